//! What is to be written of what is known, each key once, until a store has it.

use std::sync::Arc;

use bytes::Bytes;
use xds_transport::{Frame, is_secret};
use xdstp_cache::{Interest, Known, TypeUrl};

use crate::federation::{Knows, Lack, ScopeKey};
use crate::state::aging::Aging;
use crate::state::aliases::KeptAliases;
use crate::state::bodies::{Bodies, Set};
use crate::state::format::{Moment, Record, SAVED_KEY, ScopeId, ScopeRecord, seal, unseal};
use crate::state::keys::Keys;
use crate::state::scopes::KeptScopes;
use crate::state::store::{Op, Store, StoreError};
use crate::state::unwanted::{UNUSED, Unwanted};
use crate::state::written::{Written, in_order, write};

/// How much is written at once, more or less: the rest is, the next time.
const MOST: usize = 20_000;
const MOST_BYTES: usize = 16 << 20;
/// How long something is known to be asked for without being written anew, in seconds: much less than it is kept for nobody.
const ANEW: u64 = 24 * 3600;
/// How often it is said that all is as it was, in seconds.
const HEARTBEAT: u64 = 60;
/// How long it is known what went, in seconds: as long as a cache knows it.
const GONE: u64 = 3600;
/// How long what nobody watches any more is kept while the program runs, in seconds: it may be about to end.
const LEFT: u64 = 600;
/// The same where others may watch it.
const LEFT_BY_ONE: u64 = 24 * 3600;
/// Of how many names each, at most.
const MOST_NAMES: usize = 100_000;

/// What is written, and is to be.
#[derive(Default)]
pub(crate) struct Saver {
    pub(crate) bodies: Bodies,
    pub(crate) scopes: KeptScopes,
    /// What secrets are kept with, if they are.
    keys: Option<Arc<Keys>>,
    /// What is to be written, or was perhaps: it is written until it surely is, and nothing else before.
    ops: Vec<Op>,
    bytes: usize,
    /// The last moment that it was said to be so.
    said: u64,
    /// What is kept of names that went, since then, in milliseconds.
    gone: Aging,
    /// By which other keys what is kept may be asked for.
    pub(crate) aliases: KeptAliases,
    /// Those of them that are gone, with the keys of what is kept with them still.
    parted: Vec<(String, String)>,
    /// What is kept of what nobody asked for in this run.
    pub(crate) unwanted: Unwanted,
    /// What is kept of what nobody watches any more, since then, in milliseconds.
    left: Aging,
    left_for: u64,
    /// What is there as it would be written, where that is looked at.
    written: Option<Written>,
}

/// A scope, what it is kept as, and what is said of it where anything is.
pub(crate) struct Place<'a> {
    pub(crate) key: &'a ScopeKey,
    /// A program watches it, and serves nobody.
    pub(crate) is_watched: bool,
    pub(crate) id: &'a ScopeId,
    /// What is known of it is by several servers, or it is not told by which.
    pub(crate) is_mixed: bool,
    pub(crate) record: &'a dyn Fn() -> ScopeRecord,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// How many keys were written or deleted.
    pub keys: usize,
    /// There is more, for the next time.
    pub more: bool,
}

impl Saver {
    /// One that keeps secrets, if there are keys.
    pub(crate) fn new(keys: Option<Arc<Keys>>) -> Self {
        Self { keys, left_for: LEFT, ..Self::default() }
    }

    /// One that writes nothing that is there already: others wrote it. They may want what this program has left.
    pub(crate) fn after_others(keys: Option<Arc<Keys>>) -> Self {
        Self { written: Some(Written::default()), left_for: LEFT_BY_ONE, ..Self::new(keys) }
    }

    /// Whether others wrote what is there, too.
    pub(crate) fn is_after_others(&self) -> bool {
        self.written.is_some()
    }

    /// This is there, and was asked for until a moment, in seconds since 1970: not too long ago it need not be written anew.
    pub(crate) fn note_written(&mut self, key: &str, value: &[u8], asked: u64, at: Moment) {
        if let Some(written) = &mut self.written {
            written.set(key, value, asked.saturating_add(ANEW) < at.seconds());
        }
    }

    /// Whether more is there than so many bytes, and nothing under a key.
    pub(crate) fn is_too_much(&self, key: &str, most: usize) -> bool {
        self.written.as_ref().is_some_and(|written| written.bytes() > most && !written.has_any(key))
    }

    pub(crate) fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Whether resources of a type are not kept.
    pub(crate) fn omits(&self, of: &TypeUrl) -> bool {
        self.keys.is_none() && is_secret(of.as_str())
    }

    /// Writes what is known of a secret, under a key that is kept: nothing of it is with what others have.
    pub(crate) fn set_secret(&mut self, key: String, record: Record) {
        let gone = record.gone;
        let Some(encrypted) = self.keys().and_then(|keys| record.encrypt(&key, keys)) else { return self.delete(key) };
        self.note_gone(&key, gone);
        let value = seal(&key, &encrypted);
        self.add(Op::Put(key, value));
    }

    pub(crate) fn add(&mut self, op: Op) {
        self.bytes += op.size();
        self.ops.push(op);
    }

    /// Whether no more is to be added before what is there is written.
    pub(crate) fn is_full(&self) -> bool {
        self.ops.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// Notes when what is said of a name that went is over.
    pub(crate) fn note_gone(&mut self, key: &str, gone: Option<u64>) {
        self.gone.set(key, gone);
    }

    /// Of a name that is somebody else's, or secret, nothing is written; what was written of it is deleted.
    pub(crate) fn set(&mut self, place: &Place<'_>, knows: Knows, at: Moment) {
        let Place { id, is_watched, .. } = *place;
        let authority = place.key.authority();
        let Knows { of: (of, interest), known, lack, is_said, aliases: last, .. } = knows;
        let is_kept = match &interest {
            _ if self.omits(&of) => false,
            Interest::Name(name) => authority.is_none_or(|authority| name.authority() == Some(authority)),
            Interest::Wildcard => true,
        };
        // `do_not_cache` is said to those that serve others: a program keeps what is its own.
        let may_be_kept = |known: &Known<Frame>| {
            is_watched || !matches!(known, Known::Present { resource, .. } if resource.value.do_not_cache())
        };
        let is_kept = is_kept && (known.is_empty() || known.iter().any(may_be_kept));
        let lack = if is_kept { lack } else { Lack::Gone };
        let known: Vec<_> = known.into_iter().filter(|known| is_kept && may_be_kept(known)).collect();
        let key = id.key_of(&of, &interest);
        let record = Record::of(known, at);
        self.unwanted.remove(&key);
        if let Some(owner) = self.aliases.owner(&key).filter(|_| is_said && record.is_none()) {
            self.parted.push((owner.clone(), key.clone()));
        }
        if let Some(last) = last.filter(|_| record.is_none()) {
            let last: Vec<_> = last.iter().map(ToString::to_string).collect();
            self.parted.extend(self.aliases.parted(&key, &last));
        }
        if let Some((record, _)) = &record {
            // With all its aliases, and nothing else has them.
            self.parted.retain(|(owner, _)| *owner != key);
            self.parted.extend(self.aliases.taken(&key, &record.aliases));
        }
        match lack {
            Lack::Left if record.is_none() => return self.left.begin(&key, at.seconds().saturating_mul(1000)),
            Lack::Unanswered if record.is_none() => return self.left.set(&key, None),
            _ => self.left.set(&key, None),
        }
        match record {
            Some((record, body)) => self.put(place, (key, is_secret(of.as_str())), record, body, at),
            None => self.delete(key),
        }
    }

    fn put(
        &mut self,
        place: &Place<'_>,
        (key, is_secret): (String, bool),
        mut record: Record,
        body: Option<Bytes>,
        at: Moment,
    ) {
        self.aliases.set(&key, &record.aliases);
        self.bytes += body.as_ref().map_or(0, Bytes::len);
        let Set { is_new, together } = self.bodies.set(&key, body.clone().filter(|_| !is_secret));
        // Written with it: of keys of a scope without a record nobody knows when it was in use.
        if is_new && self.scopes.add(place.id) {
            self.uses(place, at);
        }
        match together {
            Some(hash) => record.body = hash.to_vec(),
            None => record.content = body,
        }
        if is_secret {
            return self.set_secret(key, record);
        }
        self.note_gone(&key, record.gone);
        let value = seal(&key, &record);
        self.add(Op::Put(key, value));
    }

    /// Whether it is to be said of a scope that it is in use.
    pub(crate) fn is_due(&self, place: &Place<'_>, at: Moment) -> bool {
        self.scopes.is_due(place.id, place.is_mixed, at)
    }

    /// Says of a scope that it is in use.
    pub(crate) fn uses(&mut self, place: &Place<'_>, at: Moment) {
        let mut record = (place.record)();
        self.scopes.uses(place.id, at);
        if place.is_mixed {
            self.scopes.mix(place.id);
        }
        if self.scopes.is_mixed(place.id) {
            record.said_by.clear();
        }
        let key = place.id.key();
        let value = seal(&key, &record);
        self.add(Op::Put(key, value));
    }

    /// Nothing is kept under a key any more, if anything is.
    fn delete(&mut self, key: String) {
        self.note_gone(&key, None);
        self.aliases.set(&key, &[]);
        if !self.bodies.remove(&key) {
            return;
        }
        if let Some(scope) = self.scopes.remove(&key) {
            self.add(Op::Delete(scope.key()));
        }
        self.add(Op::Delete(key));
    }

    /// What is kept with an alias that is gone is kept without it: that it is gone itself nobody said.
    pub(crate) fn part(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        while let Some((key, alias)) = self.parted.last().cloned() {
            // It may have been written since without it.
            if self.aliases.has(&key, &alias) {
                let pending = self.ops.iter().rev().find(|op| op.key() == key).cloned();
                let value = match pending {
                    Some(Op::Put(_, value)) => Some(value),
                    Some(Op::Delete(_)) => None,
                    None => {
                        store.list(&key)?.entries.into_iter().find(|entry| entry.key == key).map(|entry| entry.value)
                    }
                };
                let record = value.and_then(|value| unseal::<Record>(&key, &value));
                match record.filter(|record| !record.aliases.is_empty()) {
                    Some(mut record) => {
                        record.aliases.retain(|name| !alias.ends_with(&format!("\0{name}")));
                        self.aliases.set(&key, &record.aliases);
                        let value = seal(&key, &record);
                        self.add(Op::Put(key, value));
                    }
                    // Of a secret nobody sees what else it is called.
                    None => self.delete(key),
                }
            }
            self.parted.pop();
        }
        Ok(())
    }

    /// What went or was left too long ago, or before too many others, is not known any more.
    pub(crate) fn forget_old(&mut self, at: Moment) {
        let since = |seconds| at.seconds().saturating_sub(seconds).saturating_mul(1000);
        while !self.is_full()
            && let Some(key) = self.gone.take_over(since(GONE), MOST_NAMES)
        {
            self.delete(key);
        }
        while !self.is_full()
            && let Some(key) = self.left.take_over(since(self.left_for), MOST_NAMES)
        {
            self.delete(key);
        }
        while !self.is_full()
            && let Some(key) = self.unwanted.take_over(at.seconds().saturating_sub(UNUSED))
        {
            self.delete(key.as_ref().to_owned());
        }
    }

    /// Writes all that is to be written.
    pub(crate) fn commit(&mut self, store: &dyn Store, at: Moment, more: bool) -> Result<Saved, StoreError> {
        let bodies = self.bodies.take_ops();
        bodies.into_iter().for_each(|op| self.add(op));
        if self.ops.is_empty() && at.seconds() < self.said + HEARTBEAT {
            return Ok(Saved { keys: 0, more });
        }
        self.said = at.seconds();
        self.add(Op::put(SAVED_KEY, at.seconds().to_string()));
        let mut keys = 0;
        // Nobody else writes what this one does.
        self.ops = in_order(std::mem::take(&mut self.ops), store.limits());
        if let Some(written) = &self.written {
            self.ops.retain(|op| !written.has(op));
        }
        write(store, &mut self.ops, |ops, revision| {
            keys += ops.len();
            match &mut self.written {
                Some(written) => written.note(ops, revision),
                None => Ok(()),
            }
        })?;
        self.bytes = 0;
        Ok(Saved { keys, more })
    }
}
