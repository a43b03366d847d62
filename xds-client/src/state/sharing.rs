//! What is known, where others of the same kind read it: who starts without having known anything goes by what they knew.
//!
//! One of them writes at a time, all that it knows, some time after it knows it. What it does not know it leaves as it is, for some time; that
//! something is there no more is written where its origin said so.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use xds_transport::Frame;
use xdstp_cache::{Interest, Known};

use crate::federation::{Knows, Lack, Scope};
use crate::state::format::{Moment, ScopeId};
use crate::state::kept::State;
use crate::state::keys::Keys;
use crate::state::passed_on::Noted;
use crate::state::read::Read;
use crate::state::saver::{Place, Saved, Saver};
use crate::state::store::{Store, StoreError};

/// How long after something is known it is written: what changes all the time is not written each time.
const EVERY: Duration = Duration::from_secs(30);
/// How long one writes before it looks at all anew: who comes later knows by that what was known lately.
const RUN: Duration = Duration::from_secs(12 * 3600);
/// How much is written, in bytes: others have the same store for what matters more.
const MOST_BYTES: usize = 1 << 30;

/// What a [`State`] has in common with those of other programs: relays that are asked for the same, and have the same
/// [identities](crate::state::Identities).
///
/// It is beside what each of them keeps by itself, and need not be there.
pub struct Sharing {
    store: Arc<dyn Store>,
    keys: Option<Arc<Keys>>,
    /// What was read, until it is forgotten.
    learned: Option<Vec<ScopeId>>,
    writing: Option<Writing>,
}

struct Writing {
    saver: Saver,
    due: Instant,
    ends: Instant,
    /// What the records of scopes say there.
    stale_since: HashMap<ScopeId, Option<u64>>,
}

impl Sharing {
    /// In a store that others have, too. Secrets are kept if there are keys: the same for all.
    pub fn new(store: Arc<dyn Store>, keys: Option<Arc<Keys>>) -> Self {
        Self { store, keys, learned: None, writing: None }
    }

    /// Whether it was read what others knew.
    pub fn has_learned(&self) -> bool {
        self.learned.is_some()
    }

    /// Reads what others knew: scopes that nothing is known of here are served from it as if it had been known here. `now` and
    /// `wall` are the same moment.
    ///
    /// # Errors
    /// It cannot be read, or is of a later format.
    pub fn learn(&mut self, state: &State, now: Instant, wall: SystemTime) -> Result<(), StoreError> {
        let at = Moment { now, wall };
        let read = Read::of(&*self.store, &state.identities, at, &mut Saver::new(self.keys.clone()))?;
        self.learned = Some(learn(state, read, at));
        Ok(())
    }

    /// Forgets what was read and nobody asked for: it is of no use any more, and may be much.
    pub fn forget(&mut self, state: &State) {
        let Some(learned) = self.learned.as_mut().map(std::mem::take).filter(|learned| !learned.is_empty()) else {
            return;
        };
        state.with_read(|read, asked, _| {
            for id in learned.iter().filter(|id| !asked.contains(*id)) {
                read.loaded.remove(id);
                read.since.remove(id);
            }
        });
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
        scopes: impl Fn() -> Vec<Arc<Scope>>,
        store: &dyn Store,
        now: Instant,
        wall: SystemTime,
    ) -> Result<Saved, StoreError> {
        let at = Moment { now, wall };
        let Some(mut writing) = self.writing.take().filter(|writing| now < writing.ends) else {
            self.writing = Some(Writing::begin(state, store, self.keys.clone(), at)?);
            scopes().iter().for_each(|scope| scope.unsave());
            return Ok(Saved::default());
        };
        if now < writing.due && !state.passed_on.is_full() {
            self.writing = Some(writing);
            return Ok(Saved::default());
        }
        let taken = state.passed_on.take();
        let gone = taken.gone();
        if writing.saver.scopes.is_to_look(at) {
            writing.use_scopes(state, &scopes(), at);
        }
        // Who fails begins anew: it is not known what was written.
        let saved = writing.write(taken.scopes, store, at).inspect_err(|_| state.passed_on.give_back(gone))?;
        let is_lost = |id| taken.lost.contains(&id);
        if !taken.lost.is_empty() {
            let scopes = scopes().into_iter();
            let lost = scopes.filter(|scope| state.identities.of(&scope.key, scope.origin()).is_some_and(is_lost));
            lost.for_each(|scope| scope.unsave());
        }
        writing.due = now + EVERY;
        self.writing = Some(writing);
        Ok(saved)
    }
}

/// What nothing was known of here is as if it had been known here. What that is.
fn learn(state: &State, learned: Read, at: Moment) -> Vec<ScopeId> {
    let mut ids = Vec::new();
    state.with_read(|read, asked, unread| {
        let Read { loaded, since, mut origins, saved, of_another, .. } = learned;
        for (id, known) in loaded {
            if read.since.contains_key(&id) || read.loaded.contains_key(&id) {
                continue;
            }
            if asked.contains(&id) {
                unread.insert(id.clone());
            }
            // The clock of who wrote it may be another.
            let since = since.get(&id).copied().unwrap_or(saved).min(at.seconds());
            read.since.insert(id.clone(), since);
            if of_another.contains(&id) {
                read.of_another.insert(id.clone());
            }
            read.loaded.insert(id.clone(), known);
            ids.push(id);
        }
        read.origins.append(&mut origins);
        read.saved = read.saved.max(saved.min(at.seconds()));
    });
    ids
}

impl Writing {
    fn begin(state: &State, store: &dyn Store, keys: Option<Arc<Keys>>, at: Moment) -> Result<Self, StoreError> {
        let mut saver = Saver::after_others(keys);
        let read = Read::of(store, &state.identities, at, &mut saver)?;
        state.passed_on.write();
        let stale_since = read.since.into_iter().map(|(id, since)| (id, Some(since))).collect();
        Ok(Self { saver, due: at.now + EVERY, ends: at.now + RUN, stale_since })
    }

    /// Says of scopes that they are in use, that nothing changes of.
    fn use_scopes(&mut self, state: &State, scopes: &[Arc<Scope>], at: Moment) {
        for scope in scopes {
            let Some(id) = state.identities.of(&scope.key, scope.origin()) else { continue };
            let record = || state.record(scope, state.is_stale_since(&id), at);
            let (is_watched, is_mixed) = (scope.is_watched(), state.said_by(scope).is_none());
            let place = Place { key: &scope.key, is_watched, id: &id, is_mixed, record: &record };
            if self.saver.is_due(&place, at) {
                self.saver.uses(&place, at);
            }
        }
        self.saver.scopes.look(at);
    }

    fn write(&mut self, scopes: BTreeMap<ScopeId, Noted>, store: &dyn Store, at: Moment) -> Result<Saved, StoreError> {
        let (mut keys, mut is_too_much) = (0, false);
        for (id, noted) in scopes {
            let Noted { key, is_watched, record, knows } = noted;
            let (since, is_mixed) = (record.stale_since, record.said_by.is_empty());
            let place = Place { key: &key, is_watched, id: &id, is_mixed, record: &|| record.clone() };
            // Before what others said is among it.
            if self.saver.is_due(&place, at) {
                self.saver.uses(&place, at);
            }
            for knows in knows.into_values() {
                let (type_url, interest) = &knows.of;
                let key = id.key_of(type_url, interest);
                let knows = to_be_shared(knows);
                if !knows.known.is_empty() && self.saver.is_too_much(&key, MOST_BYTES) {
                    is_too_much = true;
                    continue;
                }
                // What this one was not asked for is as old as it was.
                if knows.lack == Lack::Left && knows.known.is_empty() && self.saver.unwanted.has(&key) {
                    continue;
                }
                self.saver.set(&place, knows, at);
                if self.saver.is_full() {
                    self.saver.part(store)?;
                    keys += self.saver.commit(store, at, true)?.keys;
                }
            }
            let is_said = self.stale_since.insert(id.clone(), since) == Some(since);
            if self.saver.is_due(&place, at) || !is_said && self.saver.scopes.has(&id) {
                self.saver.uses(&place, at);
            }
            if !self.saver.scopes.has(&id) {
                self.stale_since.remove(&id);
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
        Ok(Saved { keys, more: false })
    }
}

/// What others are to know: no version of a type, which counts with all of its content alone; nothing that is over soon; and what went is there no
/// more. What is unknown is left.
fn to_be_shared(knows: Knows) -> Knows {
    let went = knows.known.iter().any(|known| matches!(known, Known::Gone { .. }));
    let is_shared = |known: &Known<Frame>| match known {
        Known::Present { resource, .. } => resource.value.expires().is_none(),
        Known::Answered { .. } => true,
        _ => false,
    };
    let Knows { of, known, is_said, aliases, .. } = knows;
    let known: Vec<_> = known.into_iter().filter(is_shared).collect();
    let is_gone = (is_said || went) && matches!(&of.1, Interest::Name(name) if !name.is_glob());
    let lack = if is_gone { Lack::Gone } else { Lack::Left };
    Knows { of, known, lack, is_said, aliases }
}
