//! The values of all keys, as far as they are good.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use xdstp_client::federation::{Held, Unreadable};
use xdstp_client::state::{KeptChange, KeptValue, KeptValues};

use super::name::{Name, name_of, shown_name};
use super::outline::{has_secret, outline};
use super::refusal::{Instead, Refusal, last_good};
use super::shown::shown;

/// Of how many values of one change it is logged why they are refused.
pub(super) const SAID: usize = 20;

/// What is done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has this value from now on.
    Put {
        key: String,
        /// Of several values with the same resource it is served of the one that is least here, and then by its key.
        rank: String,
        value: Bytes,
    },
    /// It has none.
    Delete(String),
}

/// Which resources are in a value.
pub(crate) trait Read: Send + 'static {
    /// The origin that they are of, for the log.
    fn origin(&self) -> &str;

    /// A key, for people: as it is where it is kept.
    fn shown_key(&self, key: &str) -> String {
        key.escape_debug().to_string()
    }

    /// # Errors
    /// What is wrong, and where, without what may be secret.
    fn read(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String>;

    /// Reads what was good before a restart. What breaks no more than a rule was served, and is served on: clients hold it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_kept(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        self.read(key, value)
    }

    /// The resource that a key has whatever its value says, if the key says so.
    fn named(&self, _key: &str) -> Option<Name> {
        None
    }

    /// Whether there may be resources in its value that only that names.
    fn may_hide(&self, _key: &str) -> bool {
        false
    }
}

/// What an origin has.
#[derive(Debug)]
pub(crate) struct Contents<R> {
    reader: R,
    by_key: BTreeMap<String, Slot>,
    /// The values that each resource is in.
    of_name: BTreeMap<Name, BTreeSet<Place>>,
    /// The resources that are in several.
    contested: BTreeSet<Name>,
    refused: u64,
}

/// A key that has a value.
#[derive(Clone, Debug, Default)]
struct Slot {
    rank: String,
    /// Of the value that it has.
    digest: [u8; 32],
    /// The last value that was good.
    good: Option<Vec<Held>>,
    /// Why the value that it has is not.
    refused: Option<Refusal>,
    /// What is in it, or was before a restart, and cannot be read: it is there, and nobody is served it. Others may have the last good
    /// value, and serve that.
    lost: Vec<Name>,
    /// There may be more of that, of which nobody knows the names.
    hides: bool,
}

/// The rank of a value, and its key.
type Place = (String, String);

/// What changes are to do, which was read already.
#[derive(Debug, Default)]
pub(super) struct Staged {
    slots: BTreeMap<String, Option<Slot>>,
    /// The resources that are served no more after it.
    pub(super) gone: BTreeSet<Name>,
    /// The values that are good.
    good: BTreeMap<String, KeptValue>,
}

/// A value that was good before a restart, and what it is as it is read now.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) key: String,
    /// Beside it is its rank.
    pub(crate) kept: KeptValue,
    /// What is in it, or was and cannot be read any more.
    pub(crate) held: Result<Vec<Held>, Vec<Name>>,
    /// It would not be taken now: where it is there still it is refused, and the last good one.
    pub(crate) is_refused: bool,
}

/// What one change did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Whether anything is served otherwise.
    pub(crate) changed: bool,
    /// How many values were refused.
    pub(crate) refused: u64,
    /// The resources that may be in several since.
    contested: Vec<Name>,
}

impl Change {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete(key) => key,
        }
    }
}

impl<R: Read> Contents<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, by_key: BTreeMap::new(), of_name: BTreeMap::new(), contested: BTreeSet::new(), refused: 0 }
    }

    /// Reads what is put, and changes nothing. What is done last to a key counts. Of a key that is new in a list it is not known which
    /// values it had before.
    pub(super) fn stage<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a Change>,
        is_listed: bool,
        now: Instant,
    ) -> Staged {
        let last: BTreeMap<&str, &Change> = changes.into_iter().map(|change| (change.key(), change)).collect();
        let (mut slots, mut values) = (BTreeMap::new(), BTreeMap::new());
        for (key, change) in last {
            let before = self.by_key.get(key);
            let after = match change {
                Change::Delete(_) if before.is_none() => continue,
                Change::Delete(_) => None,
                Change::Put { rank, value, .. } => {
                    let digest = <[u8; 32]>::from(Sha256::digest(value));
                    let was_read = |slot: &Slot| slot.lost.is_empty() || slot.refused.is_some();
                    let is_same = |slot: &Slot| slot.digest == digest && slot.rank == *rank && was_read(slot);
                    if before.is_some_and(is_same) {
                        continue;
                    }
                    let good = before.and_then(|slot| slot.good.clone());
                    let (good, refused) = match self.reader.read(key, value) {
                        Ok(held) => {
                            let value = KeptValue::new(value.clone(), rank.clone()).secret(has_secret(&held));
                            let value = value.outlined(outline(&held));
                            values.insert(key.to_owned(), value);
                            (Some(held), None)
                        }
                        Err(why) => {
                            let since = before.and_then(|slot| slot.refused.as_ref()).map_or(now, |was| was.since);
                            (good, Some(Refusal { why: shown(&why), since }))
                        }
                    };
                    let (lost, hides) = match &good {
                        Some(_) => (Vec::new(), false),
                        None => self.unread(key, before, is_listed),
                    };
                    Some(Slot { rank: rank.clone(), digest, good, refused, lost, hides })
                }
            };
            slots.insert(key.to_owned(), after);
        }
        let gone = self.gone_after(&slots);
        Staged { slots, gone, good: values }
    }

    /// What is in a value that cannot be read, as far as that is known, and whether there may be more.
    fn unread(&self, key: &str, before: Option<&Slot>, is_listed: bool) -> (Vec<Name>, bool) {
        let named: Vec<_> = match before {
            Some(before) => before.lost.clone(),
            None => self.reader.named(key).filter(|_| is_listed).into_iter().collect(),
        };
        // Of one that was refused it is known since when.
        let is_new = before.is_none_or(|before| before.refused.is_none());
        let hides = before.is_some_and(|before| before.hides) || is_listed && is_new && self.reader.may_hide(key);
        (named, hides)
    }

    /// A key had this value before a restart, unless all of its part `is_listed`: then only the last good value of what is refused is
    /// not known. Whether anything is served otherwise.
    pub(super) fn remember(
        &mut self,
        Remembered { key, kept, held, is_refused }: &Remembered,
        is_listed: bool,
    ) -> bool {
        // What is of no value is read once it is listed.
        let digest = if *is_refused { [0; 32] } else { Sha256::digest(&kept.value).into() };
        let slot = match self.by_key.get(key) {
            None if !is_listed => Slot { rank: kept.beside.clone(), digest, ..Slot::default() },
            Some(slot) if slot.good.is_none() && held.is_ok() => slot.clone(),
            _ => return false,
        };
        let mut done = Done::default();
        let lost = held.clone().err().unwrap_or_default();
        let slot = Slot { good: held.clone().ok(), lost, hides: false, ..slot };
        self.replace(key.clone(), Some(slot), &mut done);
        self.say_contested(std::mem::take(&mut done.contested));
        held.is_ok()
    }

    /// Whether a key has a value, be it good or not.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    fn gone_after(&self, slots: &BTreeMap<String, Option<Slot>>) -> BTreeSet<Name> {
        let stay: BTreeSet<Name> = slots.values().flatten().flat_map(Slot::names).collect();
        let before = slots.keys().filter_map(|key| self.by_key.get(key)).flat_map(Slot::names);
        let is_elsewhere = |name: &Name| {
            self.of_name.get(name).is_some_and(|places| places.iter().any(|(_, key)| !slots.contains_key(key)))
        };
        before.filter(|name| !stay.contains(name) && !is_elsewhere(name)).collect()
    }

    /// Does what was staged, as one change.
    pub(super) fn commit(&mut self, Staged { slots, .. }: Staged) -> Done {
        let mut done = Done::default();
        for (key, after) in slots {
            self.replace(key, after, &mut done);
        }
        if done.refused > SAID as u64 {
            let origin = self.reader.origin();
            tracing::error!(origin, "{} more values are refused", done.refused - SAID as u64);
        }
        self.say_contested(std::mem::take(&mut done.contested));
        done
    }

    /// What went from one to another within the change is in one.
    fn say_contested(&self, names: Vec<Name>) {
        let origin = self.reader.origin();
        let mut contested = names.iter().filter(|name| self.contested.contains(*name));
        for name in contested.by_ref().take(SAID) {
            let places = self.of_name.get(name).into_iter().flatten();
            let all = places.map(|(_, key)| self.reader.shown_key(key)).collect::<Vec<_>>();
            tracing::error!(
                origin,
                "{} is in {}: it is served of the first",
                shown_name(name),
                shown(&all.join(" and "))
            );
        }
        match contested.count() {
            0 => {}
            more => tracing::error!(origin, "{more} more resources are in several values"),
        }
    }

    fn replace(&mut self, key: String, after: Option<Slot>, done: &mut Done) {
        if let Some(before) = self.by_key.remove(&key) {
            self.refused -= u64::from(before.refused.is_some());
            // What is refused leaves the last good value.
            let counts = |after: &Slot| after.refused.is_none() || after.rank != before.rank;
            done.changed |= before.good.is_some() && after.as_ref().is_none_or(counts);
            // It was told that this is not known.
            done.changed |= before.refused.is_some() && before.is_unknown();
            let place = (before.rank.clone(), key.clone());
            for name in before.names() {
                self.leave(&name, &place);
            }
        }
        let Some(slot) = after else { return };
        let place = (slot.rank.clone(), key);
        for name in slot.names() {
            self.enter(name, &place, done);
        }
        let (_, key) = place;
        match &slot.refused {
            None => done.changed = true,
            Some(Refusal { why, .. }) => {
                done.refused += 1;
                self.refused += 1;
                if done.refused <= SAID as u64 {
                    let last = self.last_good(&key, &slot);
                    let last = last.unwrap_or_else(|| "nothing of it is served".to_owned());
                    let (origin, key) = (self.reader.origin(), self.reader.shown_key(&key));
                    tracing::error!(origin, "{key}: refused, and {last}: {why}");
                }
            }
        }
        self.by_key.insert(key, slot);
    }

    fn last_good(&self, key: &str, slot: &Slot) -> Option<String> {
        let all = slot.good.iter().flatten();
        last_good(&all.filter(|held| self.counts(key, slot, &name_of(held))).collect::<Vec<_>>())
    }

    fn leave(&mut self, name: &Name, place: &Place) {
        let Some(places) = self.of_name.get_mut(name) else { return };
        places.remove(place);
        match places.len() {
            0 => _ = self.of_name.remove(name),
            1 => _ = self.contested.remove(name),
            _ => {}
        }
    }

    fn enter(&mut self, name: Name, place: &Place, done: &mut Done) {
        let places = self.of_name.entry(name.clone()).or_default();
        places.insert(place.clone());
        if places.len() > 1 && self.contested.insert(name.clone()) {
            done.contested.push(name);
        }
    }

    /// Whether any value has this resource.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.of_name.contains_key(name)
    }

    /// What is done where all keys with a prefix are to have these values, and no others.
    pub(crate) fn replacing(&self, prefix: &str, with: Vec<Change>) -> Vec<Change> {
        let there: BTreeSet<&str> = with.iter().map(Change::key).collect();
        let gone = self.keys(prefix).filter(|key| !there.contains(key));
        let mut changes: Vec<_> = gone.map(|key| Change::Delete(key.to_owned())).collect();
        changes.extend(with);
        changes
    }

    fn slots(&self, prefix: &str) -> impl Iterator<Item = (&str, &Slot)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let slots = self.by_key.range::<str, _>(from).map(|(key, slot)| (key.as_str(), slot));
        slots.take_while(move |(key, _)| key.starts_with(prefix))
    }

    fn keys(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.slots(prefix).map(|(key, _)| key)
    }

    /// How many resources are in the good values of keys with a prefix.
    pub(super) fn good(&self, prefix: &str) -> usize {
        match prefix {
            "" => self.of_name.len(),
            prefix => self.slots(prefix).flat_map(|(_, slot)| slot.names()).collect::<BTreeSet<_>>().len(),
        }
    }

    /// How many values are refused, or have what another one has, and the first of them.
    pub(crate) fn refused(&self) -> (u64, Option<String>) {
        let contested: usize =
            self.contested.iter().filter_map(|name| self.of_name.get(name)).map(|places| places.len() - 1).sum();
        let count = self.refused + contested as u64;
        if let Some((key, _, refusal)) = self.first_refused() {
            return (count, Some(format!("{}: {}", self.reader.shown_key(key), refusal.why)));
        }
        let first = self.contested.first().and_then(|name| {
            let mut places = self.of_name.get(name)?.iter().map(|(_, key)| self.reader.shown_key(key));
            let (served, other) = (places.next()?, places.next()?);
            Some(format!("{other}: {} is in {served} already", shown_name(name)))
        });
        (count, first)
    }

    /// What there is instead of the first value that is refused.
    pub(crate) fn instead(&self) -> Option<Instead> {
        let (key, slot, refusal) = self.first_refused()?;
        Some(Instead { since: refusal.since, last_good: self.last_good(key, slot) })
    }

    /// Looked for only where there is one: mostly none is, of however many keys.
    fn first_refused(&self) -> Option<(&String, &Slot, &Refusal)> {
        let mut all = self.by_key.iter();
        (self.refused > 0).then(|| all.find_map(|(key, slot)| Some((key, slot, slot.refused.as_ref()?))))?
    }

    /// All that is served.
    pub(crate) fn held(&self) -> Vec<Held> {
        let all =
            self.by_key.iter().flat_map(|(key, slot)| slot.good.iter().flatten().map(move |held| (key, slot, held)));
        if self.contested.is_empty() {
            return all.map(|(_, _, held)| held.clone()).collect();
        }
        let served = all.filter(|(key, slot, held)| self.counts(key, slot, &name_of(held)));
        served.map(|(_, _, held)| held.clone()).collect()
    }

    /// Of what beside that it is not known whether it is there, and why.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        let unknown = self.by_key.iter().filter(|(_, slot)| self.refused > 0 && !slot.lost.is_empty());
        let all = unknown.filter_map(|(key, slot)| {
            let reason: Arc<str> = format!("{}: {}", self.reader.shown_key(key), slot.refused.as_ref()?.why).into();
            let lost = slot.lost.iter().filter(move |name| self.counts(key, slot, name));
            Some(lost.map(move |(type_url, name)| Unreadable {
                type_url: type_url.clone(),
                name: name.clone(),
                reason: reason.clone(),
            }))
        });
        all.flatten().collect()
    }

    /// Whether there may be resources of which nobody knows even the names.
    pub(super) fn hides_any(&self) -> bool {
        self.refused > 0 && self.by_key.values().any(|slot| slot.hides)
    }

    /// Whether a resource is served of this value, if it is in several.
    fn counts(&self, key: &str, slot: &Slot, name: &Name) -> bool {
        let is_first = |(rank, first): &Place| *rank == slot.rank && first == key;
        !self.contested.contains(name) || self.of_name.get(name).and_then(BTreeSet::first).is_some_and(is_first)
    }
}

impl Staged {
    /// Keeps what is good of it, once it is done. What is refused leaves the last good value, which may have come to another place.
    pub(super) fn keep(&mut self, kept: &KeptValues) {
        let changes = self.slots.iter().map(|(key, slot)| {
            let change = match (slot, self.good.remove(key)) {
                (None, _) => KeptChange::Remove,
                (Some(_), Some(value)) => KeptChange::Put(value),
                (Some(slot), None) => KeptChange::Beside(slot.rank.clone()),
            };
            (key.clone(), change)
        });
        kept.change(changes);
    }
}

impl Slot {
    /// Whether it is not known what others have of it.
    fn is_unknown(&self) -> bool {
        self.hides || !self.lost.is_empty()
    }

    /// Of the resources in its good value, each once: the variants of a name are together. So are those that were in it.
    fn names(&self) -> impl Iterator<Item = Name> {
        self.good.iter().flatten().map(name_of).chain(self.lost.iter().cloned()).collect::<BTreeSet<_>>().into_iter()
    }
}
