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
            let record = || {
                let whose = self.identities.whose(&scope.key, scope.origin()).unwrap_or_default();
                ScopeRecord { label: scope.key.to_string(), used: at.seconds(), stale_since, whose }
            };
            let place = Place { scope, id: &id, record: &record };
            if saver.scopes.is_due(&id, at) || is_over && saver.scopes.has(&id) {
                saver.uses(&place, at);
            }
            Ok(all & collect_scope(saver, store, &place, at)?)
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
}

fn collect_scope(saver: &mut Saver, store: &dyn Store, place: &Place<'_>, at: Moment) -> Result<bool, StoreError> {
    let Place { scope, id, .. } = place;
    while !saver.is_full() {
        let Some(unsaved) = scope.take_unsaved(at.now) else { return Ok(true) };
        match unsaved {
            Unsaved::Some(known) => known.into_iter().for_each(|known| saver.set(place, known, at)),
            Unsaved::All => {
                let stored = store.list(&id.prefix()).inspect_err(|_| scope.unsave())?;
                let read = stored.entries.iter().filter_map(|entry| read_key(&entry.key));
                let before: BTreeSet<(TypeUrl, Interest)> = read.map(|(_, of, interest)| (of, interest)).collect();
                scope.known(before.clone(), at.now, |knows| {
                    // Of most collections there is nothing to say, and was nothing.
                    if !knows.known.is_empty() || knows.is_said || before.contains(&knows.of) {
                        saver.set(place, knows, at);
                    }
                });
            }
        }
    }
    Ok(!scope.is_unsaved())
}
