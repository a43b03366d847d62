//! The values of all keys, as far as they are good.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use xdstp_client::federation::Held;
use xdstp_client::state::Op;

use super::key::Key;
use super::value::Reader;
use crate::file_origin::Served;

/// Of how many values of one change it is logged why they are refused.
const SAID: usize = 20;
/// How long a reason is kept, in characters: it may quote what somebody wrote.
const LONGEST: usize = 500;

/// What an origin has.
#[derive(Debug)]
pub(super) struct Contents {
    reader: Reader,
    served: Served,
    by_key: BTreeMap<String, Slot>,
    refused: u64,
}

/// A key that has a value.
#[derive(Debug, Default)]
struct Slot {
    /// Of the value that it has.
    digest: [u8; 32],
    /// The last value that was good.
    good: Option<Vec<Held>>,
    /// Why the value that it has is not.
    refused: Option<String>,
}

/// What one change did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Whether anything is served otherwise.
    pub(super) changed: bool,
    /// How many values were refused.
    pub(super) refused: u64,
}

impl Contents {
    pub(super) fn new(reader: Reader, served: Served) -> Self {
        Self { reader, served, by_key: BTreeMap::new(), refused: 0 }
    }

    /// Does what was done to keys, as one change.
    pub(super) fn apply<'a>(&mut self, ops: impl IntoIterator<Item = &'a Op>) -> Done {
        let mut done = Done::default();
        for op in ops {
            match op {
                Op::Put(key, value) => self.put(key, value, &mut done),
                Op::Delete(key) => self.delete(key, &mut done),
            }
        }
        if done.refused > SAID as u64 {
            tracing::error!("{} more values are refused", done.refused - SAID as u64);
        }
        done
    }

    fn put(&mut self, key: &str, value: &Bytes, done: &mut Done) {
        let digest = Sha256::digest(value).into();
        if self.by_key.get(key).is_some_and(|slot| slot.digest == digest) {
            return;
        }
        let read = self.read(key, value);
        let slot = self.by_key.entry(key.to_owned()).or_default();
        slot.digest = digest;
        self.refused -= u64::from(slot.refused.take().is_some());
        match read {
            Ok(held) => {
                slot.good = Some(held);
                done.changed = true;
            }
            Err(why) => {
                done.refused += 1;
                if done.refused <= SAID as u64 {
                    let last = if slot.good.is_some() { "its last good value stays" } else { "it has none" };
                    tracing::error!("{}: refused, and {last}: {why}", key.escape_debug());
                }
                self.refused += 1;
                slot.refused = Some(why);
            }
        }
    }

    fn delete(&mut self, key: &str, done: &mut Done) {
        let Some(slot) = self.by_key.remove(key) else { return };
        self.refused -= u64::from(slot.refused.is_some());
        done.changed |= slot.good.is_some();
    }

    fn read(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        let key: Key = key.parse().map_err(|error: super::KeyError| error.to_string())?;
        let served = match self.served.refusal(key.name().as_str()) {
            Some(reason) => Err(reason),
            None => self.reader.read(&key, value),
        };
        served.map_err(|why| match why.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", why.get(..at).unwrap_or_default()),
            None => why,
        })
    }

    /// The keys that have good values and are none of these.
    pub(super) fn missing(&self, there: &BTreeSet<&str>) -> BTreeSet<String> {
        let missing = self.by_key.iter().filter(|(key, slot)| slot.good.is_some() && !there.contains(key.as_str()));
        missing.map(|(key, _)| key.clone()).collect()
    }

    /// Those with good values that are gone after this.
    pub(super) fn removed_by(&self, ops: &[Op]) -> BTreeSet<String> {
        let last: BTreeMap<&str, bool> = ops.iter().map(|op| (op.key(), matches!(op, Op::Delete(_)))).collect();
        let is_good = |key: &str| self.by_key.get(key).is_some_and(|slot| slot.good.is_some());
        last.into_iter().filter(|(key, gone)| *gone && is_good(key)).map(|(key, _)| key.to_owned()).collect()
    }

    /// All keys that have a value.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.by_key.keys().map(String::as_str)
    }

    /// How many keys have a good value.
    pub(super) fn good(&self) -> usize {
        self.by_key.values().filter(|slot| slot.good.is_some()).count()
    }

    /// How many have one that is refused, and the first of them.
    pub(super) fn refused(&self) -> (u64, Option<String>) {
        if self.refused == 0 {
            return (0, None);
        }
        let first = self.by_key.iter().find_map(|(key, slot)| Some((key, slot.refused.as_ref()?)));
        (self.refused, first.map(|(key, why)| format!("{}: {why}", key.escape_debug())))
    }

    /// All that is served.
    pub(super) fn held(&self) -> Vec<Held> {
        self.by_key.values().filter_map(|slot| slot.good.as_ref()).flatten().cloned().collect()
    }
}
