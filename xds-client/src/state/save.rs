//! Writing down what changed: whatever it is since the last time, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use xds_transport::{Frame, is_secret};
use xdstp_cache::{Interest, Known, TypeUrl};

use crate::federation::{Knows, Lack, Scope, ScopeKey, Unsaved};
use crate::state::aging::Aging;
use crate::state::aliases::KeptAliases;
use crate::state::bodies::Bodies;
use crate::state::format::{Moment, Record, SAVED_KEY, ScopeId, ScopeRecord, read_key, seal, unseal};
use crate::state::kept::State;
use crate::state::keys::Keys;
use crate::state::store::{Op, Store, StoreError};
use crate::state::unwanted::{UNUSED, Unwanted};

/// How much is written at once, more or less: the rest is, the next time.
const MOST: usize = 20_000;
const MOST_BYTES: usize = 16 << 20;
/// How often it is said that all is as it was, in seconds.
const HEARTBEAT: u64 = 60;
/// How often it is said that a scope is in use, in seconds.
const USED: u64 = 24 * 3600;
/// How long it is known what went, in seconds: as long as a cache knows it.
const GONE: u64 = 3600;
/// How long what nobody watches any more is kept while the program runs, in seconds: it may be about to end.
const LEFT: u64 = 600;
/// Of how many names each, at most.
const MOST_NAMES: usize = 100_000;

/// What is written, and is to be.
#[derive(Default)]
pub(crate) struct Saver {
    pub(crate) bodies: Bodies,
    /// What secrets are kept with, if they are.
    keys: Option<Arc<Keys>>,
    /// What is to be written, or was perhaps: it is written until it surely is, and nothing else before.
    ops: Vec<Op>,
    bytes: usize,
    /// The last moment that it was said to be so.
    said: u64,
    /// When it was last said of scopes that they are in use.
    used: BTreeMap<ScopeKey, u64>,
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
        Self { keys, ..Self::default() }
    }

    pub(crate) fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Whether resources of a type are not kept.
    pub(crate) fn omits(&self, of: &TypeUrl) -> bool {
        self.keys.is_none() && is_secret(of.as_str())
    }

    /// Writes what is known of a secret: nothing of it is kept with what others have.
    pub(crate) fn set_secret(&mut self, key: String, record: Record) {
        let _ = self.bodies.set(&key, None);
        self.note_gone(&key, record.gone);
        let encrypted = self.keys().and_then(|keys| record.encrypt(&key, keys));
        let op = encrypted.map_or_else(|| Op::delete(key.clone()), |record| Op::Put(key.clone(), seal(&key, &record)));
        self.add(op);
    }

    pub(crate) fn add(&mut self, op: Op) {
        self.bytes += op.size();
        self.ops.push(op);
    }

    fn is_full(&self) -> bool {
        self.ops.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// Notes when what is said of a name that went is over.
    pub(crate) fn note_gone(&mut self, key: &str, gone: Option<u64>) {
        self.gone.set(key, gone);
    }

    /// Of a name that is somebody else's, or secret, nothing is written; what was written of it is deleted.
    fn set(&mut self, scope: &Scope, id: &ScopeId, knows: Knows, at: Moment) {
        let authority = scope.key.authority();
        let Knows { of: (of, interest), known, lack, is_said, aliases: last, .. } = knows;
        let is_kept = match &interest {
            _ if self.omits(&of) => false,
            Interest::Name(name) => authority.is_none_or(|authority| name.authority() == Some(authority)),
            Interest::Wildcard => true,
        };
        // `do_not_cache` is said to those that serve others: a program keeps what is its own.
        let may_be_kept = |known: &Known<Frame>| {
            scope.is_watched() || !matches!(known, Known::Present { resource, .. } if resource.value.do_not_cache())
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
            Some((mut record, body)) if is_secret(of.as_str()) => {
                self.aliases.set(&key, &record.aliases);
                (record.body, record.content) = (Vec::new(), body.map(|(_, content)| content));
                self.set_secret(key, record);
            }
            Some((mut record, body)) => {
                self.aliases.set(&key, &record.aliases);
                let content = body.as_ref().map(|(_, content)| content.clone());
                self.bytes += content.as_ref().map_or(0, Bytes::len);
                if self.bodies.set(&key, body) {
                    (record.body, record.content) = (Vec::new(), content);
                }
                self.note_gone(&key, record.gone);
                let value = seal(&key, &record);
                self.add(Op::Put(key, value));
            }
            None => self.delete(key),
        }
    }

    fn delete(&mut self, key: String) {
        let _ = self.bodies.set(&key, None);
        self.note_gone(&key, None);
        self.aliases.set(&key, &[]);
        self.add(Op::Delete(key));
    }

    /// What is kept with an alias that is gone is kept without it: that it is gone itself nobody said.
    fn part(&mut self, store: &dyn Store) -> Result<(), StoreError> {
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
    fn forget_old(&mut self, at: Moment) {
        let since = |seconds| at.seconds().saturating_sub(seconds).saturating_mul(1000);
        while !self.is_full()
            && let Some(key) = self.gone.take_over(since(GONE), MOST_NAMES)
        {
            self.delete(key);
        }
        while !self.is_full()
            && let Some(key) = self.left.take_over(since(LEFT), MOST_NAMES)
        {
            self.delete(key);
        }
        while !self.is_full()
            && let Some(key) = self.unwanted.take_over(at.seconds().saturating_sub(UNUSED))
        {
            self.delete(key.as_ref().to_owned());
        }
    }

    /// Whether it was not said for long that a scope is in use.
    fn is_due(&self, scope: &ScopeKey, at: Moment) -> bool {
        self.used.get(scope).is_none_or(|said| *said + USED <= at.seconds())
    }

    /// Says of a scope that it is in use.
    fn uses(&mut self, scope: &ScopeKey, id: &ScopeId, record: &ScopeRecord) {
        self.used.insert(scope.clone(), record.used);
        let key = id.key();
        let value = seal(&key, record);
        self.add(Op::Put(key, value));
    }

    /// What was said long ago is to be said again, if it is asked for: it need not be known.
    fn forget_used(&mut self, at: Moment) {
        self.used.retain(|_, said| *said + USED > at.seconds());
    }
}

impl State {
    /// Writes what changed of these scopes since the last call; after an error, the same once more.
    pub(crate) fn save(&self, scopes: &[Arc<Scope>], now: Instant, wall: SystemTime) -> Result<Saved, StoreError> {
        let at = Moment { now, wall };
        self.set_time(at);
        // A store is anybody's code: no lock is held while it is asked.
        let Some(mut saver) = self.saver.borrow() else { return Ok(Saved { keys: 0, more: true }) };
        let Some(store) = self.store() else { return Ok(Saved::default()) };
        self.catch_up(scopes, now);
        let more = saver.is_full() || !self.collect(&mut saver, &*store, scopes, at)?;
        let saved = commit(&mut saver, &*store, at, more);
        drop(saver);
        if matches!(saved, Err(StoreError::Gone)) {
            self.lose();
        }
        saved
    }

    /// Whether that was all.
    fn collect(
        &self,
        saver: &mut Saver,
        store: &dyn Store,
        scopes: &[Arc<Scope>],
        at: Moment,
    ) -> Result<bool, StoreError> {
        let mut dropped = self.take_dropped();
        // What one noted that is not there any more is older than what its successor did.
        let collected = dropped.iter().chain(scopes).try_fold(true, |all, scope| {
            let is_due = saver.is_due(&scope.key, at);
            // When an origin has confirmed what is known, all of that is noted.
            if !is_due && !scope.is_unsaved() {
                return Ok(all);
            }
            let Some(id) = self.identities.of(&scope.key, scope.origin()) else { return Ok(all) };
            let (stale_since, is_over) = self.stale_since(&id, scope);
            if is_due || is_over {
                let whose = self.identities.whose(&scope.key, scope.origin()).unwrap_or_default();
                let record = ScopeRecord { label: scope.key.to_string(), used: at.seconds(), stale_since, whose };
                saver.uses(&scope.key, &id, &record);
            }
            Ok(all & collect_scope(saver, store, scope, &id, at)?)
        });
        // What could not be taken now of what is not there any more, is taken the next time.
        dropped.retain(|scope| scope.is_unsaved());
        self.drop_again(dropped);
        saver.forget_old(at);
        saver.part(store)?;
        collected
    }
}

fn collect_scope(
    saver: &mut Saver,
    store: &dyn Store,
    scope: &Scope,
    id: &ScopeId,
    at: Moment,
) -> Result<bool, StoreError> {
    while !saver.is_full() {
        let Some(unsaved) = scope.take_unsaved(at.now) else { return Ok(true) };
        match unsaved {
            Unsaved::Some(known) => known.into_iter().for_each(|known| saver.set(scope, id, known, at)),
            Unsaved::All => {
                let stored = store.list(&id.prefix()).inspect_err(|_| scope.unsave())?;
                let read = stored.entries.iter().filter_map(|entry| read_key(&entry.key));
                let before: BTreeSet<(TypeUrl, Interest)> = read.map(|(_, of, interest)| (of, interest)).collect();
                scope.known(before.clone(), at.now, |knows| {
                    // Of most collections there is nothing to say, and was nothing.
                    if !knows.known.is_empty() || knows.is_said || before.contains(&knows.of) {
                        saver.set(scope, id, knows, at);
                    }
                });
            }
        }
    }
    Ok(!scope.is_unsaved())
}

fn commit(saver: &mut Saver, store: &dyn Store, at: Moment, more: bool) -> Result<Saved, StoreError> {
    let bodies = saver.bodies.take_ops();
    bodies.into_iter().for_each(|op| saver.add(op));
    if saver.ops.is_empty() && at.seconds() < saver.said + HEARTBEAT {
        return Ok(Saved { keys: 0, more });
    }
    saver.said = at.seconds();
    saver.forget_used(at);
    saver.ops.retain(|op| op.key() != SAVED_KEY);
    saver.add(Op::put(SAVED_KEY, at.seconds().to_string()));
    // What is beside another is written with it; of one key, the last counts.
    saver.ops.sort_by(|one, other| one.key().cmp(other.key()));
    // Nobody else writes what this one does.
    let _ = store.commit(&saver.ops, &[])?;
    let keys = saver.ops.len();
    (saver.ops, saver.bytes) = (Vec::new(), 0);
    Ok(Saved { keys, more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_of_scopes_long_ago_is_not_known() {
        let mut saver = Saver::default();
        let at = |seconds| Moment {
            now: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds),
        };
        for seconds in [10, 20] {
            let (key, record) =
                (ScopeKey::Authority(seconds.to_string()), ScopeRecord { used: seconds, ..ScopeRecord::default() });
            saver.uses(&key, &ScopeId::of(&[b"a"]), &record);
        }
        saver.forget_used(at(USED + 15));
        assert_eq!(saver.used.len(), 1);
        assert!(saver.is_due(&ScopeKey::Authority("10".into()), at(USED + 15)));
        assert!(!saver.is_due(&ScopeKey::Authority("20".into()), at(USED + 15)));
    }
}
