//! What other relays do with the same releases, as it is heard from the store.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use xdstp_client::state::{Event, Op, StoreError};

use crate::releases::act::{Instance, Order};
use crate::releases::control::Control;
use crate::releases::keyspace::{Keyspace, Kind};
use crate::releases::manifest::BodyHash;
use crate::releases::records::{Count, hash};
use crate::releases::stage::Stages;
use crate::releases::stored::error::{Damage, StoredError};
use crate::releases::stored::merged::Became;
use crate::releases::stored::{Stored, bodies_of};

impl Stored {
    /// What was done to the keys of the scope, in the order of revisions; events of others are not looked at. What is known
    /// already changes nothing. Whether nobody publishes any more.
    ///
    /// # Errors
    /// The control value is damaged. What is known holds on, and all else was heard.
    pub(crate) fn hear(&mut self, events: &[Event], stages: &Stages) -> (bool, Result<(), StoredError>) {
        let (mut is_free, mut heard_control) = (false, Ok(()));
        // Where nothing was read, what was done tells little.
        if self.is_recalled && events.iter().any(|event| self.is_about(event)) {
            return (false, self.refresh(stages));
        }
        let keys = self.keys.clone();
        for event in of_releases_last(events, &keys) {
            match self.keys.kind(event.op.key()) {
                Some(Kind::Turn) => is_free = matches!(event.op, Op::Delete(_)),
                Some(Kind::Control) if event.revision > self.revision => heard_control = self.hear_control(event),
                Some(kind @ (Kind::Release | Kind::Part | Kind::Body(_))) if event.revision > self.floor => {
                    self.hear_content(kind, event);
                }
                _ => {}
            }
        }
        // They are whole revisions, and may be told twice.
        self.floor = events.last().map_or(0, |event| event.revision).max(self.floor);
        // What is kept of a release may have come before what this relay wrote, and was not heard then.
        self.is_unread |= self.base.named().any(|release| !self.has(release));
        (self.control, _) = self.with_unsaved(stages);
        (is_free, heard_control)
    }

    /// Whether it is said there who is served what, or what is in a release.
    pub(crate) fn is_about(&self, event: &Event) -> bool {
        self.keys.kind(event.op.key()).is_some_and(|kind| kind != Kind::Turn)
    }

    /// Whether the store was put back to what it was, which nobody has mended yet.
    pub(crate) fn went_back(&self) -> bool {
        self.went_back
    }

    /// Whether it was since this was asked last, be it that somebody has mended it.
    pub(crate) fn take_gone_back(&mut self) -> bool {
        std::mem::take(&mut self.has_gone_back)
    }

    /// Whether others may know more than what was put back: what is ordered waits for that, or is refused.
    pub(crate) fn await_newer(&mut self, awaits: bool) {
        self.awaits_newer = awaits;
    }

    /// The store did not answer just now: nothing is asked of it while that is so, and what takes something back waits for it.
    pub(crate) fn leave_alone(&mut self, is_left_alone: bool) {
        self.is_left_alone = is_left_alone;
    }

    /// Has the store know again what is known here, beside what was [ordered](Self::merged) there since: whatever it names is to be
    /// [there](Self::put_back) before. What became of what was ordered there is to be told.
    ///
    /// # Errors
    /// The store cannot be written. Others were faster: they are heard.
    pub(crate) fn put_control_back(&mut self, stages: &Stages) -> Result<Vec<(Order, Became)>, StoredError> {
        let merged = self.merged(stages)?;
        let unsaved = std::mem::take(&mut self.unsaved);
        let before = std::mem::replace(&mut self.ordered, merged.ordered.clone());
        let done = self.commit_anyhow(&merged.control, &[]);
        if !matches!(done, Ok(true)) {
            self.ordered = before;
        }
        // What was ordered meanwhile is written as what is ordered when the store is back.
        self.unsaved = unsaved;
        (self.control, _) = self.with_unsaved(stages);
        if done? { Ok(merged.orders) } else { Err(StoredError::Contended) }
    }

    /// Goes by what the store says, though it was put back to an earlier state.
    ///
    /// # Errors
    /// It cannot be read. What is known holds on.
    pub(crate) fn give_in(&mut self, stages: &Stages) -> Result<(), StoredError> {
        let known = (self.count, self.went_back);
        (self.count, self.went_back) = (Count::default(), false);
        if let Err(error) = self.read_control_alone(self.revision == 0) {
            (self.count, self.went_back) = known;
            return Err(error);
        }
        if self.revision == 0 {
            self.base = Control::default();
        }
        let settled = self.settle_doubts();
        (self.control, _) = self.with_unsaved(stages);
        settled
    }

    /// Who has this key publishes.
    pub(crate) fn turn(&self) -> String {
        self.keys.turn()
    }

    /// Who says under that key how its clients are.
    pub(crate) fn tally_of(&self, key: &str) -> Option<Instance> {
        self.keys.tally_of(key)
    }

    /// What relays say of their clients.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn tallies(&self) -> Result<Vec<(Instance, Bytes)>, StoreError> {
        let told = self.store.list(&self.keys.tallies())?.entries;
        Ok(told.into_iter().filter_map(|entry| Some((self.keys.tally_of(&entry.key)?, entry.value))).collect())
    }

    /// Says how the clients of a relay are, or says nothing any more.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) fn tell(&self, instance: Instance, tally: Option<&impl Message>) -> Result<(), StoreError> {
        let key = self.keys.tally(instance);
        let op = match tally {
            Some(tally) => Op::put(key, tally.encode_to_vec()),
            None => Op::delete(key),
        };
        self.store.commit(&[op], &[]).map(drop)
    }

    /// Reads all anew: what was done may not have been heard.
    ///
    /// # Errors
    /// It cannot be read, or the control value is damaged. What is known holds on.
    pub(crate) fn read_anew(&mut self, stages: &Stages) -> Result<(), StoredError> {
        if !self.is_recalled {
            self.read_content()?;
        }
        self.refresh(stages)
    }

    fn hear_control(&mut self, event: &Event) -> Result<(), StoredError> {
        match &event.op {
            Op::Put(key, value) => self.take_control(key, value, event.revision),
            Op::Delete(_) => {
                self.lose_control();
                Ok(())
            }
        }
    }

    fn hear_content(&mut self, kind: Kind<'_>, event: &Event) {
        match &event.op {
            Op::Put(key, value) => match kind {
                Kind::Release => self.hear_release(key, value),
                Kind::Part => self.hear_part(key, value),
                // One in several pieces is read when it is needed.
                _ => self.seen.insert(BodyHash::of(value), value.clone()),
            },
            Op::Delete(key) => self.hear_deleted(kind, key),
        }
    }

    pub(super) fn hear_release(&mut self, key: &str, value: &Bytes) {
        match self.whole_or_begun(key, value) {
            Ok((release, record)) => {
                if record.complete {
                    let parts = record.parts.iter().filter_map(|part| self.parts.get(&hash(part)?));
                    self.bodies.extend(parts.flatten().copied());
                }
                self.releases.insert(release, Arc::new(record));
                self.is_mended(key);
            }
            Err(problem) => self.is_damaged(Kind::Release, key, problem),
        }
    }

    pub(super) fn hear_part(&mut self, key: &str, value: &Bytes) {
        match bodies_of(&self.keys.parts(), key, value) {
            Ok((part, bodies)) => {
                self.parts.insert(part, bodies);
                if self.is_shared {
                    self.seen.insert(part, value.clone());
                }
                self.is_mended(key);
            }
            Err(problem) => self.is_damaged(Kind::Part, key, problem),
        }
    }

    fn hear_deleted(&mut self, kind: Kind<'_>, key: &str) {
        self.is_not_there(kind, key);
        self.is_mended(key);
    }

    /// It is as if it were not there: whoever needs it writes it anew. What a release has that is served is not to go for that.
    fn is_damaged(&mut self, kind: Kind<'_>, key: &str, problem: &'static str) {
        if kind != Kind::Release || !self.base.named().any(|release| self.keys.release(release) == key) {
            self.is_not_there(kind, key);
        }
        self.damaged.retain(|damage| damage.key != key);
        self.damaged.push(Damage::new(key, problem));
    }

    fn is_not_there(&mut self, kind: Kind<'_>, key: &str) {
        match kind {
            Kind::Release => {
                let id = key.strip_prefix(&self.keys.releases()).and_then(|id| id.parse().ok());
                id.and_then(|id| self.releases.remove(&id));
            }
            Kind::Part => {
                let part = key.strip_prefix(&self.keys.parts()).and_then(BodyHash::of_key);
                part.and_then(|part| self.parts.remove(&part));
            }
            Kind::Body(body) => _ = BodyHash::of_key(body).map(|body| self.bodies.remove(&body)),
            Kind::Control | Kind::Turn => {}
        }
    }

    fn is_mended(&mut self, key: &str) {
        let damaged = self.damaged.len();
        self.damaged.retain(|damage| damage.key != key);
        // A release that lacked it may be whole.
        self.is_unread |= self.damaged.len() != damaged;
    }
}

/// Events, of each revision those of releases last: a release is whole if its parts are there, in whatever order they are told.
fn of_releases_last<'a>(events: &'a [Event], keys: &Keyspace) -> impl Iterator<Item = &'a Event> {
    let is_of_release = |event: &&Event| matches!(keys.kind(event.op.key()), Some(Kind::Release));
    events.chunk_by(|one, next| one.revision == next.revision).flat_map(move |of_revision| {
        let others = of_revision.iter().filter(move |event| !is_of_release(event));
        others.chain(of_revision.iter().filter(is_of_release))
    })
}
