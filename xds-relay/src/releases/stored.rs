//! The releases of a scope in a store: the control value, the last manifests with their bodies, and who did what.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use xdstp_client::state::{Op, Revision, Store};

use self::error::{Damage, LATER, StoredError};
use self::seen::Seen;
use crate::releases::act::{Transition, time_of};
use crate::releases::control::Control;
use crate::releases::keyspace::Keyspace;
use crate::releases::manifest::BodyHash;
use crate::releases::ordered::Ordered;
use crate::releases::records::{ControlRecord, Count, FORMAT, ItemRecord, PartRecord, ReleaseRecord, hash};
use crate::releases::release::Release;
use crate::releases::sealed::unseal;
use crate::releases::stage::Stages;

mod batch;
mod content;
mod copy;
pub(crate) mod error;
mod following;
mod log;
mod merged;
mod orders;
mod publish;
mod read;
mod save;
mod seen;
mod sweep;
#[cfg(test)]
mod tests;
mod waiting;

pub use self::log::Logged;
pub(crate) use self::publish::Taken;
pub use self::read::Reader;
pub(crate) use self::waiting::{Waiting, WaitingOrders};

/// The releases of one scope, in a [`Store`] that others may have, too.
///
/// What is written is written so that a crash at any moment leaves what was there before, or what is there after: bodies and
/// manifests first, under the hashes of their content, and then the one value that names them.
///
/// ```
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use xds_relay::releases::{Act, By, Instance, Manifest, Order, Stages, Stored, Transition};
/// use xds_relay::state::Memory;
///
/// let store = Arc::new(Memory::default());
/// let (now, stages) = (SystemTime::now(), Stages::default());
/// let mut stored = Stored::open(store.clone(), "xdstp://example.com")?;
/// stored.apply(&Order::new(Act::TakeOver, By::Instance(Instance(1)), "it started", now), &stages)?;
/// let publisher = stored.control().publisher().ok_or("nobody publishes")?;
/// let manifest = Manifest::new([]);
/// stored.save(&manifest, publisher, "an example", now, &|_| None)?;
/// let publish = Act::Publish { release: manifest.release(), removes_much: false };
/// stored.apply(&Order::new(publish, By::Publisher(publisher), "", now), &stages)?;
///
/// let again = Stored::open(store, "xdstp://example.com")?;
/// assert_eq!(again.control().stable(), Some(manifest.release()));
/// assert_eq!(again.manifest(manifest.release())?, manifest);
/// assert_eq!(again.log()?.last().map(|entry| entry.what.as_str()), Some("promoted"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stored {
    store: Arc<dyn Store>,
    /// What the publisher writes through: if that is over, nothing is done.
    writer: Arc<dyn Store>,
    scope: String,
    keys: Keyspace,
    /// The control value as it is in the store, how far that got, and when it was put: 0 if it is not there yet.
    base: Control,
    count: Count,
    /// What people ordered until then.
    ordered: Ordered,
    revision: Revision,
    /// The store was put back to what it was: what is known here is to be there again.
    went_back: bool,
    /// What is there then, and what people ordered until that.
    there: Option<(Control, Ordered)>,
    /// That was so since it was asked for last.
    has_gone_back: bool,
    /// Others may know more than what was put back: what is done counts as theirs does, and waits.
    awaits_newer: bool,
    /// It did not answer just now: what takes something back does not wait for it.
    is_left_alone: bool,
    /// The store did not answer yet: what holds is what was known last, and once the store is read that counts for nothing.
    is_recalled: bool,
    /// The same with what was done while the store was away.
    control: Control,
    unsaved: Vec<Waiting>,
    /// Some of that may have been done, and nobody heard it.
    is_unsure: bool,
    /// Those that there is a record of: whole, or begun.
    releases: BTreeMap<Release, Arc<ReleaseRecord>>,
    /// The bodies of each part that is there.
    parts: HashMap<BodyHash, Vec<BodyHash>>,
    /// Those that are there.
    bodies: HashSet<BodyHash>,
    /// Whether these three are to be read anew: something was written, and perhaps not all of it.
    is_unread: bool,
    /// All that was done to these three until then is known.
    floor: Revision,
    seen: Seen,
    /// Others write there, too, and what they write is heard.
    is_shared: bool,
    /// By which stages this relay goes on, where others may, and whoever wrote the control value; 0 if that is not known.
    own_stages: u64,
    written_stages: u64,
    damaged: Vec<Damage>,
    /// The control value in the store cannot be used: what is known here is what there was before.
    bad_control: Option<Damage>,
}

/// What came of an order, and whether that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// What.
    pub transition: Transition,
    /// If not, the store is away: it is so here, and [`flush`](Stored::flush) tells the store when it is back.
    pub is_kept: bool,
}

/// A release that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its id.
    pub release: Release,
    /// When it was taken.
    pub at: SystemTime,
    /// From where.
    pub from: String,
    /// How many resources are in it.
    pub resources: u64,
}

impl Stored {
    /// What is kept of a scope, which is told by any text that names it. Nothing is written.
    ///
    /// # Errors
    /// The store cannot be read, or what says what is stable and frozen is damaged: that is no reason to begin anew.
    pub fn open(store: Arc<dyn Store>, scope: &str) -> Result<Self, StoredError> {
        let mut stored = Self::of_nothing(store, scope);
        stored.read()?;
        stored.control = stored.base.clone();
        Ok(stored)
    }

    fn of_nothing(store: Arc<dyn Store>, scope: &str) -> Self {
        Self {
            keys: Keyspace::of(scope),
            writer: store.clone(),
            store,
            scope: scope.to_owned(),
            base: Control::default(),
            count: Count::default(),
            ordered: Ordered::default(),
            revision: 0,
            went_back: false,
            there: None,
            has_gone_back: false,
            awaits_newer: false,
            is_left_alone: false,
            is_recalled: false,
            control: Control::default(),
            unsaved: Vec::new(),
            is_unsure: false,
            releases: BTreeMap::new(),
            parts: HashMap::new(),
            bodies: HashSet::new(),
            is_unread: false,
            floor: 0,
            seen: Seen::default(),
            is_shared: false,
            own_stages: 0,
            written_stages: 0,
            damaged: Vec::new(),
            bad_control: None,
        }
    }

    /// Removes all that is kept of a scope, damaged or not: also what is frozen, and what is not to be taken again.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn forget(store: &dyn Store, scope: &str) -> Result<(), StoredError> {
        Self::forget_but(store, scope, None)
    }

    /// The same of all but what [waits](WaitingOrders).
    pub(crate) fn forget_releases(store: &dyn Store, scope: &str) -> Result<(), StoredError> {
        Self::forget_but(store, scope, Some(&Keyspace::of(scope).waiting()))
    }

    fn forget_but(store: &dyn Store, scope: &str, kept: Option<&str>) -> Result<(), StoredError> {
        let keys = store.list(Keyspace::of(scope).all())?.entries.into_iter().map(|entry| entry.key);
        let mut ops: Vec<_> = keys.filter(|key| Some(&**key) != kept).map(Op::delete).collect();
        // What is left by a crash is what nothing names.
        ops.sort_by_key(|op| (!op.key().ends_with("/ctl") && !op.key().contains("/rel/"), op.key().contains("/part/")));
        for some in ops.chunks(batch::MOST) {
            let _ = store.commit(some, &[])?;
        }
        Ok(())
    }

    /// What holds now, with what was done while the store was away.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// When the control value in the store was changed last, as the store counts; 0 if it is not there.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Others write there, too: what they write is heard, and remembered. They are to go on by the same stages.
    pub(crate) fn share(&mut self, stages: &Stages) {
        (self.is_shared, self.own_stages) = (true, stages.print());
    }

    /// Whether a relay wrote the control value that goes on by other stages than this one.
    pub(crate) fn has_other_stages(&self) -> bool {
        ![0, self.own_stages].contains(&self.written_stages) && self.own_stages != 0
    }

    /// What this relay writes as the control value.
    fn control_record(&self, control: &Control, count: Count) -> ControlRecord {
        let mut record = ControlRecord::of(&self.scope, control, count);
        record.stages = self.own_stages;
        record.ordered = self.ordered.prints().to_vec();
        record
    }

    /// What the publisher does goes this way from now on.
    pub(crate) fn write_through(&mut self, writer: Arc<dyn Store>) {
        // What whoever published before wrote may not be heard yet.
        (self.writer, self.is_unread) = (writer, true);
    }

    /// What was kept and cannot be used: as it was when it was opened.
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    /// What is wrong with the control value in the store, if what is known is what there was before.
    pub(crate) fn bad_control(&self) -> Option<&Damage> {
        self.bad_control.as_ref()
    }

    /// Whether all of a release is kept.
    pub fn has(&self, release: Release) -> bool {
        self.releases.get(&release).is_some_and(|record| record.complete)
    }

    /// Whether a release that is kept was taken before what is stable, or the candidate.
    pub(crate) fn is_older(&self, release: Release) -> bool {
        let number = |release: &Release| self.releases.get(release).map(|record| record.number);
        let latest = self.control.named().filter_map(|release| number(&release)).max();
        number(&release).is_some_and(|of| Some(of) < latest)
    }

    /// The releases that are kept, the latest first.
    pub fn releases(&self) -> Vec<Kept> {
        let mut whole: Vec<_> = self.releases.iter().filter(|(_, record)| record.complete).collect();
        whole.sort_by_key(|(_, record)| std::cmp::Reverse(record.number));
        let kept = |(release, record): (&Release, &Arc<ReleaseRecord>)| Kept {
            release: *release,
            at: time_of(record.at),
            from: record.from.clone(),
            resources: record.resources,
        };
        whole.into_iter().map(kept).collect()
    }

    /// Reads all that is there, and goes by that alone.
    fn read(&mut self) -> Result<(), StoredError> {
        self.read_content()?;
        // It is written before the first release is whole.
        let is_new = !self.releases.values().any(|record| record.complete) && self.damaged.is_empty();
        self.read_control(is_new)?;
        // What was recalled is of no store.
        if std::mem::take(&mut self.is_recalled) && self.revision == 0 {
            (self.base, self.count, self.ordered) = (Control::default(), Count::default(), Ordered::default());
        }
        Ok(())
    }

    fn read_content(&mut self) -> Result<(), StoredError> {
        let (parts, releases) = (self.store.list(&self.keys.parts())?, self.store.list(&self.keys.releases())?);
        (self.releases, self.parts) = (BTreeMap::new(), HashMap::new());
        self.bodies.clear();
        self.damaged.clear();
        parts.entries.iter().for_each(|entry| self.hear_part(&entry.key, &entry.value));
        releases.entries.iter().for_each(|entry| self.hear_release(&entry.key, &entry.value));
        (self.is_unread, self.floor) = (false, parts.revision);
        Ok(())
    }

    fn whole_or_begun(&self, key: &str, value: &Bytes) -> Result<(Release, ReleaseRecord), &'static str> {
        let id = key.strip_prefix(&self.keys.releases()).and_then(|id| id.parse().ok());
        let id = id.ok_or("it is under no id of a release")?;
        let record: ReleaseRecord = unseal(key, value)?;
        if record.format > FORMAT {
            return Err(LATER);
        }
        let is_there = |part: &Vec<u8>| hash(part).is_some_and(|part| self.parts.contains_key(&part));
        if record.complete && !record.parts.iter().all(is_there) {
            return Err("a part of it is missing");
        }
        Ok((id, record))
    }

    /// Reads the control value as it is in the store.
    fn read_control(&mut self, may_be_new: bool) -> Result<(), StoredError> {
        let key = self.keys.control();
        let Some(entry) = self.store.list(&key)?.entries.into_iter().find(|entry| entry.key == key) else {
            if self.count.changes > 0 && !self.is_recalled {
                self.lose_control();
                return Ok(());
            }
            let lost = Damage::new(key, "it is missing, and there are releases");
            self.bad_control = (!may_be_new).then(|| lost.clone());
            return if may_be_new { Ok(()) } else { Err(lost.into()) };
        };
        self.take_control(&key, &entry.value, entry.revision)
    }

    /// The same while the rest is as it was read before: what else was done meanwhile was not heard.
    fn read_control_alone(&mut self, may_be_new: bool) -> Result<(), StoredError> {
        let before = self.revision;
        self.read_control(may_be_new)?;
        self.is_unread |= self.revision != before;
        Ok(())
    }

    /// It is not in the store any more. What is stable and what is frozen is known here, and is to be there again.
    fn lose_control(&mut self) {
        let knows = self.count.changes > 0;
        (self.revision, self.went_back, self.is_unread, self.there) = (0, knows, true, None);
        self.has_gone_back |= knows;
        self.bad_control = None;
    }

    /// Goes by a control value that is in the store. One of before is no news: the store was put back, and what was frozen since
    /// is not to be forgotten, nor what is stable.
    fn take_control(&mut self, key: &str, value: &[u8], revision: Revision) -> Result<(), StoredError> {
        let read = self.control_of(key, value);
        self.bad_control = read.as_ref().err().and_then(StoredError::damage);
        let (record, control) = read?;
        let count = record.count();
        self.written_stages = record.stages;
        // Others may have mended what this relay could not, or has not seen.
        self.has_gone_back |= self.went_back || record.is_put_back && revision != self.revision;
        (self.revision, self.went_back) = (revision, count.is_before(self.count, self.is_recalled));
        if self.went_back {
            let (scope, is, was) = (&self.scope, count.changes, self.count.changes);
            tracing::error!(
                scope,
                is,
                was,
                "the store was put back to an earlier state: what was done since is put back"
            );
            (self.is_unread, self.has_gone_back) = (true, true);
            self.there = Some((control, Ordered::of_prints(&record.ordered)));
        } else {
            // What was put back by who knew as much may have what was ordered there beside.
            let is_other = self.count.changes > 0 && count == self.count && control != self.base;
            if is_other && !record.is_put_back {
                let (scope, is) = (&self.scope, count.changes);
                tracing::error!(
                    scope,
                    is,
                    "others changed another thing at the same time, and what this relay knew is not done"
                );
            }
            (self.base, self.count) = (control, count);
            (self.ordered, self.there) = (Ordered::of_prints(&record.ordered), None);
        }
        Ok(())
    }

    fn control_of(&self, key: &str, value: &[u8]) -> Result<(ControlRecord, Control), StoredError> {
        let record: ControlRecord = unseal(key, value).map_err(|problem| Damage::new(key, problem))?;
        if record.format > FORMAT {
            return Err(StoredError::Format { key: key.to_owned(), format: record.format, reads: FORMAT });
        }
        if record.scope != self.scope {
            return Err(Damage::new(key, "it is of another scope").into());
        }
        let control = record.control().ok_or_else(|| Damage::new(key, "it is no control value"))?;
        Ok((record, control))
    }
}

/// A part's hash, and the bodies in it.
fn bodies_of(prefix: &str, key: &str, value: &Bytes) -> Result<(BodyHash, Vec<BodyHash>), &'static str> {
    let part = BodyHash::of(value);
    if key.strip_prefix(prefix) != Some(&part.to_string()) {
        return Err("its hash is another");
    }
    let record: PartRecord = prost::Message::decode(value.clone()).map_err(|_| "it is no such message")?;
    let bodies: Option<_> = record.items.iter().map(ItemRecord::body).collect();
    Ok((part, bodies.ok_or("a body in it has no hash")?))
}
