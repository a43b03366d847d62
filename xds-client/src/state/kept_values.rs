//! Values under keys that somebody else has, as far as they are kept: whoever reads them there says which, and is given them again
//! after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use bytes::Bytes;

use crate::federation::lock;
use crate::state::format::{Moment, ScopeId, ScopeRecord, seal};
use crate::state::saver::Saver;
use crate::state::store::Op;
use crate::state::value_format::{ReadValue, ReadValues, ValueRecord, key_of, owner_key};

/// How many keys that went are remembered while it is not known what was kept. Of more nothing is: what was kept is not given then.
const GONE: usize = 100_000;
/// How often it is said that values are in use, in seconds.
const USED: u64 = 24 * 3600;

/// A value, and what is to be known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptValue {
    /// As it is there.
    pub value: Bytes,
    /// What is known beside, and is given back as it is.
    pub beside: String,
    /// Whether it is kept encrypted, or not at all.
    pub is_secret: bool,
    /// What is kept of it if it is not, and given back as it is.
    pub outline: Vec<String>,
    /// It was not kept: it has its outline, and no value.
    pub is_outline: bool,
}

impl KeptValue {
    /// One that anybody may read who reads files.
    pub fn new(value: impl Into<Bytes>, beside: impl Into<String>) -> Self {
        let (value, beside) = (value.into(), beside.into());
        Self { value, beside, is_secret: false, outline: Vec::new(), is_outline: false }
    }

    /// The same, if it is a secret.
    #[must_use]
    pub fn secret(self, is_secret: bool) -> Self {
        Self { is_secret, ..self }
    }

    /// The same, of which this is no secret.
    #[must_use]
    pub fn outlined(self, outline: Vec<String>) -> Self {
        Self { outline, ..self }
    }
}

/// What is done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptChange {
    /// It has this value from now on, and is kept with it.
    Put(KeptValue),
    /// Its value stays, and this is known beside.
    Beside(String),
    /// It has none any more.
    Remove,
}

/// Who is given what was kept: once, by whoever reads it.
pub(crate) type Reader = Box<dyn Fn(Vec<(String, KeptValue)>) + Send + Sync>;

/// The values under some keys, as far as they are kept. Of what was kept before nothing goes until all that is there was
/// [heard](Self::complete): that proves that something was there, and not what is.
pub struct KeptValues {
    pub(crate) id: ScopeId,
    label: String,
    /// By its position in the configuration.
    pub(crate) origin: usize,
    reader: Reader,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What is to be in the store.
    values: BTreeMap<String, KeptValue>,
    /// The keys that are there, or are about to be.
    there: BTreeSet<String>,
    /// Those of which the store may have something else: of those that have no value only those that it has, or may have.
    unsaved: BTreeSet<String>,
    /// What is there is known.
    is_open: bool,
    /// More went than is remembered, before it was known what was kept.
    has_forgotten: bool,
    /// It was known once.
    was_opened: bool,
    /// And who reads it was given it.
    was_read: bool,
    /// It was not before all that is there was heard: what was not heard of may be of use still.
    was_late: bool,
    /// Whether anything was.
    had_any: bool,
    /// All that is there was heard.
    is_complete: bool,
    /// What was read was all that was there once.
    was_complete: bool,
    /// It is said of what is kept that it is all.
    is_said_complete: bool,
    /// Since when nobody has said that it is so, in seconds since 1970.
    stale_since: Option<u64>,
    /// When it was last said that this is in use, if what is said is as it is.
    said: Option<u64>,
}

impl KeptValues {
    pub(crate) fn new(id: ScopeId, label: &str, origin: usize, reader: Reader) -> Self {
        Self { id, label: label.to_owned(), origin, reader, inner: Mutex::default() }
    }

    /// All of that is done, as one change: whoever is given it again has all of it, or nothing.
    pub fn change(&self, changes: impl IntoIterator<Item = (String, KeptChange)>) {
        let inner = &mut *lock(&self.inner);
        for (key, change) in changes {
            let is_changed = match change {
                KeptChange::Put(value) if inner.values.get(&key) == Some(&value) => false,
                KeptChange::Put(value) => {
                    // As a part of something larger it would keep all of that.
                    let value = KeptValue { value: Bytes::copy_from_slice(&value.value), ..value };
                    inner.values.insert(key.clone(), value);
                    true
                }
                KeptChange::Beside(beside) => {
                    let other = inner.values.get_mut(&key).filter(|value| value.beside != beside);
                    other.map(|value| value.beside = beside).is_some()
                }
                KeptChange::Remove => {
                    inner.remove(key);
                    continue;
                }
            };
            if is_changed {
                inner.unsaved.insert(key);
            }
        }
    }

    /// All that is there was heard, and of the keys that were kept these are there: the others go. What could not be read of one that is there
    /// stays until it has another value. Of what is read later than that nothing goes that was not [removed](KeptChange::Remove): whoever heard
    /// all did not know that it is much.
    pub fn complete(&self, is_there: impl Fn(&str) -> bool) {
        let inner = &mut *lock(&self.inner);
        if std::mem::replace(&mut inner.is_complete, true) {
            return;
        }
        inner.values.retain(|key, _| is_there(key));
        let gone = inner.there.iter().filter(|key| !is_there(key));
        inner.unsaved.extend(gone.cloned());
        (inner.stale_since, inner.said) = (None, None);
    }

    /// Whether what was kept before is known, and was given to who reads it. Who hears all that is there before that cannot tell what went.
    pub fn was_read(&self) -> bool {
        lock(&self.inner).was_read
    }

    /// Whether what was kept before was all that was there once, as far as it is known: [all was heard](Self::complete), and written.
    pub fn was_complete(&self) -> bool {
        lock(&self.inner).was_complete
    }

    /// Whether anything was kept before.
    pub(crate) fn had_any(&self) -> bool {
        lock(&self.inner).had_any
    }

    /// Since when nobody has said that it is so, in seconds since 1970: none if somebody has.
    pub(crate) fn stale_since(&self) -> Option<u64> {
        lock(&self.inner).stale_since
    }

    /// That is in the store, which is open now: what was kept before is to be [given](Self::give).
    pub(crate) fn opened(&self, read: ReadValues) -> Vec<(String, KeptValue)> {
        {
            let inner = &mut *lock(&self.inner);
            let ReadValues { record, values } = read;
            let is_given = !inner.was_opened && !inner.has_forgotten;
            inner.there = values.keys().cloned().collect();
            inner.said = record.as_ref().map(|record| record.used);
            inner.is_said_complete = record.as_ref().is_some_and(|record| record.is_complete);
            inner.was_complete |= inner.is_said_complete && !inner.was_opened;
            let mut given = Vec::new();
            for (key, read) in values {
                let (value, is_to_be_encrypted) = match read {
                    ReadValue::Good { value, is_to_be_encrypted } => (value, is_to_be_encrypted),
                    ReadValue::Unread => continue,
                    ReadValue::Omitted => {
                        inner.unsaved.insert(key);
                        continue;
                    }
                };
                // Of what went meanwhile there is no good value.
                let went = inner.unsaved.contains(&key) && !inner.values.contains_key(&key);
                if is_given && !went {
                    given.push((key.clone(), value.clone()));
                    if !inner.is_complete {
                        inner.values.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                }
                if inner.values.get(&key) == Some(&value) && !is_to_be_encrypted {
                    inner.unsaved.remove(&key);
                } else if inner.values.contains_key(&key) {
                    inner.unsaved.insert(key);
                }
            }
            let lacks = inner.values.keys().filter(|key| !inner.there.contains(*key));
            inner.unsaved.extend(lacks.cloned());
            inner.was_late |= inner.is_complete && !inner.was_opened;
            if inner.is_complete {
                inner.said = None;
                let gone = inner.there.iter().filter(|key| !inner.was_late && !inner.values.contains_key(*key));
                inner.unsaved.extend(gone.cloned());
            } else if !inner.was_opened {
                inner.stale_since = record.and_then(|record| record.stale_since);
            }
            inner.had_any |= !given.is_empty();
            (inner.is_open, inner.was_opened) = (true, true);
            given
        }
    }

    /// That was kept before: who reads it is given it.
    pub(crate) fn give(&self, given: Vec<(String, KeptValue)>) {
        // Not under the lock: it may say at once what is to be kept.
        if !given.is_empty() {
            (self.reader)(given);
        }
        lock(&self.inner).was_read = true;
    }

    /// The keys that the store may have something else of.
    #[cfg(test)]
    pub(crate) fn unsaved(&self) -> Vec<String> {
        lock(&self.inner).unsaved.iter().cloned().collect()
    }

    /// The store is not there any more.
    pub(crate) fn lost(&self) {
        lock(&self.inner).is_open = false;
    }

    /// Adds to what is written what is otherwise there. Whether that was all.
    pub(crate) fn save(&self, saver: &mut Saver, at: Moment) -> bool {
        let inner = &mut *lock(&self.inner);
        if !inner.is_open {
            return inner.unsaved.is_empty();
        }
        let is_due = inner.said.is_none_or(|said| said.saturating_add(USED) <= at.seconds());
        let is_used = inner.is_said_complete || !(inner.there.is_empty() && inner.unsaved.is_empty());
        while !saver.is_full()
            && let Some(key) = inner.unsaved.pop_first()
        {
            let stored = key_of(&self.id, &key);
            let sealed = inner.values.get(&key).and_then(|value| ValueRecord::sealed(&stored, value, saver.keys()));
            match sealed {
                Some(sealed) => {
                    inner.there.insert(key);
                    saver.add(Op::Put(stored, sealed));
                }
                None if inner.there.remove(&key) => saver.add(Op::Delete(stored)),
                None => {}
            }
        }
        // Even that there is nothing is to be known.
        let is_newly = inner.unsaved.is_empty() && (inner.is_complete || inner.was_complete) && !inner.is_said_complete;
        inner.is_said_complete |= is_newly;
        if is_newly || is_due && is_used {
            self.say(inner, saver, at);
        }
        inner.unsaved.is_empty()
    }

    /// Says that they are in use, and since when nobody has said that they are so.
    fn say(&self, inner: &mut Inner, saver: &mut Saver, at: Moment) {
        let (label, used, stale_since) = (self.label.clone(), at.seconds(), inner.stale_since);
        let record =
            ScopeRecord { label, used, stale_since, is_complete: inner.is_said_complete, ..ScopeRecord::default() };
        let key = owner_key(&self.id);
        let value = seal(&key, &record);
        saver.add(Op::Put(key, value));
        inner.said = Some(used);
    }
}

impl Inner {
    fn remove(&mut self, key: String) {
        self.values.remove(&key);
        let gone = || self.unsaved.len().saturating_sub(self.values.len());
        if self.there.contains(&key) {
            self.unsaved.insert(key);
        } else if self.was_opened {
            self.unsaved.remove(&key);
        } else if gone() < GONE {
            // It may have been kept.
            self.unsaved.insert(key);
        } else {
            self.unsaved.remove(&key);
            self.has_forgotten = true;
        }
    }
}
