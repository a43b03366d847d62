//! Writing down what changed: whatever it is since the last time, each once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use xdstp_cache::{Interest, TypeUrl};

use crate::federation::{Scope, Unsaved};
use crate::state::format::{Moment, ScopeRecord, read_key};
use crate::state::kept::State;
use crate::state::saver::{Place, Saved, Saver};
use crate::state::store::{Store, StoreError};

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
        let saved = saver.commit(&*store, at, more);
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
        let looks = saver.scopes.is_to_look(at);
        // What one noted that is not there any more is older than what its successor did.
        let collected: Result<bool, StoreError> = dropped.iter().chain(scopes).try_fold(true, |all, scope| {
            // When an origin has confirmed what is known, all of that is noted.
            if !looks && !scope.is_unsaved() {
                return Ok(all);
            }
            let Some(id) = self.identities.of(&scope.key, scope.origin()) else { return Ok(all) };
            let (stale_since, is_over) = self.stale_since(&id, scope);
            let record = || self.record(scope, stale_since, at);
            let (is_watched, is_mixed) = (scope.is_watched(), self.said_by(scope).is_none());
            let place = Place { key: &scope.key, is_watched, id: &id, is_mixed, record: &record };
            if saver.is_due(&place, at) || is_over && saver.scopes.has(&id) {
                saver.uses(&place, at);
            }
            Ok(all & self.collect_scope(saver, store, (scope, &place), at)?)
        });
        if looks && collected.is_ok() {
            saver.scopes.look(at);
        }
        // What could not be taken now of what is not there any more, is taken the next time.
        dropped.retain(|scope| scope.is_unsaved());
        self.drop_again(dropped);
        saver.forget_old(at);
        saver.part(store)?;
        Ok(collected? & self.values.save(saver, at))
    }

    /// What is said of a scope as a whole.
    pub(crate) fn record(&self, scope: &Scope, stale_since: Option<u64>, at: Moment) -> ScopeRecord {
        let whose = self.identities.whose(&scope.key, scope.origin()).unwrap_or_default();
        let (label, used) = (scope.key.to_string(), at.seconds());
        let said_by = self.said_by(scope).unwrap_or_default().to_owned();
        ScopeRecord { label, used, stale_since, whose, said_by, is_complete: false }
    }

    /// Which servers said all that is known of a scope: none if it was not the same always, or that is not told.
    pub(crate) fn said_by(&self, scope: &Scope) -> Option<&str> {
        self.identities.said_by(scope.origin()).filter(|_| !scope.may_hold_of_others())
    }

    /// Whether that was all of a scope.
    fn collect_scope(
        &self,
        saver: &mut Saver,
        store: &dyn Store,
        (scope, place): (&Scope, &Place<'_>),
        at: Moment,
    ) -> Result<bool, StoreError> {
        while !saver.is_full() {
            let Some(unsaved) = scope.take_unsaved(at.now) else { return Ok(true) };
            match unsaved {
                Unsaved::Some(known) => {
                    self.passed_on.note(place, &known, scope.is_recalled());
                    known.into_iter().for_each(|known| saver.set(place, known, at));
                }
                Unsaved::All => {
                    let stored = store.list(&place.id.prefix()).inspect_err(|_| scope.unsave())?;
                    let read = stored.entries.iter().filter_map(|entry| read_key(&entry.key));
                    let before: BTreeSet<(TypeUrl, Interest)> = read.map(|(_, of, interest)| (of, interest)).collect();
                    let (mut all, is_passed_on) = (Vec::new(), self.passed_on.is_wanted());
                    scope.known(before.clone(), at.now, |knows| {
                        // Of most collections there is nothing to say, and was nothing.
                        if !knows.known.is_empty() || knows.is_said || before.contains(&knows.of) {
                            all.extend(is_passed_on.then(|| knows.clone()));
                            saver.set(place, knows, at);
                        }
                    });
                    self.passed_on.note(place, &all, scope.is_recalled());
                }
            }
        }
        Ok(!scope.is_unsaved())
    }
}
