//! What is known, where others of the same kind read it: who starts without having known anything goes by what they knew.
//!
//! One of them writes at a time, all that it knows, some time after it knows it. What one of them was never asked for it does not
//! know, and leaves as it is: that something is there no more is written where its origin said so.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use xds_transport::Frame;
use xdstp_cache::{Extent, Interest, Known};

use crate::federation::{Knows, Lack, Scope};
use crate::state::format::{Moment, ScopeId};
use crate::state::kept::State;
use crate::state::keys::Keys;
use crate::state::passed_on::{Noted, Taken, Wish};
use crate::state::read::Read;
use crate::state::saver::{Place, Saved, Saver};
use crate::state::store::{Store, StoreError};

/// How long after something is known it is written: what changes all the time is not written each time.
const EVERY: Duration = Duration::from_secs(30);
/// How much is written, in bytes: others have the same store for what matters more.
const MOST_BYTES: usize = 1 << 30;
/// By how much others must have known something later for it to count more than what was known here, in seconds: both are written some time
/// after that.
const LATER: u64 = 120;

/// What a [`State`] has in common with those of other programs: relays that are asked for the same, and have the same
/// [identities](crate::state::Identities).
///
/// It is beside what each of them keeps by itself, and need not be there.
pub struct Sharing {
    store: Arc<dyn Store>,
    keys: Option<Arc<Keys>>,
    has_learned: bool,
    writing: Option<Writing>,
}

struct Writing {
    saver: Saver,
    due: Instant,
    /// What the records of scopes say there.
    stale_since: HashMap<ScopeId, Option<u64>>,
    /// Collections of which all there is is known, of each scope.
    complete: HashMap<ScopeId, BTreeSet<Wish>>,
    /// Scopes of which something is written that is not known here, and may be there.
    unknown: HashSet<ScopeId>,
}

impl Sharing {
    /// In a store that others have, too. Secrets are kept if there are keys: the same for all.
    pub fn new(store: Arc<dyn Store>, keys: Option<Arc<Keys>>) -> Self {
        Self { store, keys, has_learned: false, writing: None }
    }

    /// Whether it was read what others knew.
    pub fn has_learned(&self) -> bool {
        self.has_learned
    }

    /// Reads what others knew: what is not known here, or was known later by them, is served as if it had been known here. `now` and `wall` are
    /// the same moment.
    ///
    /// # Errors
    /// It cannot be read, or is of a later format.
    pub fn learn(&mut self, state: &State, now: Instant, wall: SystemTime) -> Result<(), StoreError> {
        let at = Moment { now, wall };
        let read = Read::of(&*self.store, &state.identities, at, &mut Saver::new(self.keys.clone()))?;
        learn(state, read);
        self.has_learned = true;
        Ok(())
    }

    /// Notes what goes, for when this program writes: to be called every second or so while it does not.
    pub fn listen(&mut self, state: &State, now: Instant) {
        self.writing = None;
        state.passed_on.begin(now);
    }

    /// Writes what is known, at most every half a minute, by a store in which nobody else writes meanwhile: to be called every
    /// second or so. `now` and `wall` are the same moment.
    ///
    /// # Errors
    /// It cannot be written: it is the next time, as if nothing had been.
    pub fn write(
        &mut self,
        state: &State,
        scopes: &[Arc<Scope>],
        store: &dyn Store,
        now: Instant,
        wall: SystemTime,
    ) -> Result<Saved, StoreError> {
        let at = Moment { now, wall };
        let Some(mut writing) = self.writing.take() else {
            self.writing = Some(Writing::begin(state, scopes, store, self.keys.clone(), at)?);
            return Ok(Saved::default());
        };
        if now < writing.due {
            self.writing = Some(writing);
            return Ok(Saved::default());
        }
        // Who fails begins anew: it is not known what was written.
        let taken = state.passed_on.take();
        let is_lost = taken.is_lost;
        let (saved, anew) = writing.write(taken, store, at)?;
        let is_anew = |scope: &&Arc<Scope>| {
            is_lost || state.identities.of(&scope.key, scope.origin()).is_some_and(|id| anew.contains(&id))
        };
        scopes.iter().filter(is_anew).for_each(|scope| scope.unsave());
        writing.due = now + EVERY;
        self.writing = Some(writing);
        Ok(saved)
    }
}

/// What was not known here, or was known later by others, is as if it had been known here.
fn learn(state: &State, learned: Read) {
    state.with_read(|read, asked, unread| {
        let Read { loaded, since, mut origins, saved, .. } = learned;
        for (id, known) in loaded {
            let later = since.get(&id).copied().unwrap_or(saved);
            let is_older = match read.since.get(&id) {
                // It is served already.
                Some(_) if asked.contains(&id) => false,
                Some(own) => own.saturating_add(LATER) < later,
                None => true,
            };
            if is_older {
                if asked.contains(&id) {
                    unread.insert(id.clone());
                }
                read.since.insert(id.clone(), later);
                read.loaded.insert(id, known);
            }
        }
        read.origins.append(&mut origins);
        read.saved = read.saved.max(saved);
    });
}

impl Writing {
    fn begin(
        state: &State,
        scopes: &[Arc<Scope>],
        store: &dyn Store,
        keys: Option<Arc<Keys>>,
        at: Moment,
    ) -> Result<Self, StoreError> {
        let mut saver = Saver::after_others(keys);
        let read = Read::of(store, &state.identities, at, &mut saver)?;
        let others = read.loaded.into_iter().map(|(id, known)| (id, known.iter().filter_map(wish).collect()));
        state.passed_on.write(others.collect::<BTreeMap<_, _>>());
        scopes.iter().for_each(|scope| scope.unsave());
        let stale_since = read.since.into_iter().map(|(id, since)| (id, Some(since))).collect();
        Ok(Self { saver, due: at.now + EVERY, stale_since, complete: HashMap::new(), unknown: HashSet::new() })
    }

    /// Of which scopes all is to be looked at anew: of a collection of theirs all there is is known since.
    fn write(&mut self, taken: Taken, store: &dyn Store, at: Moment) -> Result<(Saved, BTreeSet<ScopeId>), StoreError> {
        let (mut keys, mut anew, mut is_too_much) = (0, BTreeSet::new(), false);
        for (id, noted) in taken.scopes {
            let Noted { key, is_watched, record, knows } = noted;
            let since = record.stale_since;
            let place = Place { key: &key, is_watched, id: &id, record: &|| record.clone() };
            let complete = self.complete.entry(id.clone()).or_default();
            let is_news = knows.values().fold(false, |any, knows| any | look(complete, knows));
            if self.unknown.remove(&id) && is_news {
                anew.insert(id.clone());
            }
            for knows in knows.into_values() {
                let (type_url, interest) = &knows.of;
                if !knows.known.is_empty() && self.saver.is_too_much(&id.key_of(type_url, interest), MOST_BYTES) {
                    is_too_much = true;
                    continue;
                }
                let is_gone = knows.is_said || is_covered(complete, &knows);
                if !is_gone && knows.known.is_empty() {
                    self.unknown.insert(id.clone());
                }
                let lack = if is_gone { Lack::Gone } else { Lack::Left };
                self.saver.set(&place, Knows { lack, ..knows }, at);
                if self.saver.is_full() {
                    self.saver.part(store)?;
                    keys += self.saver.commit(store, at, true)?.keys;
                }
            }
            let is_said = self.stale_since.insert(id.clone(), since) == Some(since);
            if self.saver.scopes.is_due(&id, at) || !is_said && self.saver.scopes.has(&id) {
                self.saver.uses(&place, at);
            }
            if !self.saver.scopes.has(&id) {
                self.forget(&id);
            }
        }
        if is_too_much {
            tracing::warn!(
                most = MOST_BYTES,
                "not all that is known is written for others: it is more than so many bytes"
            );
        }
        self.saver.forget_old(at);
        self.saver.part(store)?;
        keys += self.saver.commit(store, at, false)?.keys;
        Ok((Saved { keys, more: false }, anew))
    }

    fn forget(&mut self, id: &ScopeId) {
        self.stale_since.remove(id);
        self.complete.remove(id);
        self.unknown.remove(id);
    }
}

/// Notes of which collections all there is is known. Whether it is of one more.
fn look(complete: &mut BTreeSet<Wish>, knows: &Knows) -> bool {
    let is_complete = |known: &Known<Frame>| matches!(known, Known::Answered { extent: Extent::Complete, .. });
    if knows.known.iter().any(is_complete) {
        return complete.insert(knows.of.clone());
    }
    complete.remove(&knows.of);
    false
}

/// Whether a name would be known if it were there: its collection is, with all there is.
fn is_covered(complete: &BTreeSet<Wish>, knows: &Knows) -> bool {
    let (type_url, Interest::Name(name)) = &knows.of else { return false };
    let collection = name.glob_parent().map_or(Interest::Wildcard, Interest::Name);
    knows.known.is_empty() && !name.is_glob() && complete.contains(&(type_url.clone(), collection))
}

/// What it is about.
fn wish(known: &Known<Frame>) -> Option<Wish> {
    match known {
        Known::Present { type_url, name, .. } | Known::Gone { type_url, name, .. } => {
            Some((type_url.clone(), Interest::Name(name.clone())))
        }
        Known::Answered { type_url, collection, .. } => Some((type_url.clone(), collection.clone())),
        _ => None,
    }
}
