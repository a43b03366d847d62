//! What relays know of their origins, in one store: one of them writes it, and all read it as they start.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::state::{Keys, Sharing, State, Store, StoreError};

use crate::relay_core::core::RelayCore;
use crate::releases::{Instance, Turn, Turns};

/// Who has this key writes.
const TURN: &str = "xds-relay/known/v1/pub";
/// How often it is asked for whose turn it is; and for what others knew at first, where that could not be read.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a store is left alone that was not written; and at most, where it refuses that again and again: each time all of it is read.
const RESTS: Duration = Duration::from_secs(30);
const RESTS_AT_MOST: Duration = Duration::from_secs(16 * 60);
/// How long no origin may be heard by who writes: another relay may hear them.
const DEAF: Duration = Duration::from_secs(60);
/// How long an origin is heard before what others knew is of no use any more to who has not asked for it.
const OF_USE: Duration = Duration::from_secs(600);

/// What one relay has to do with it, from one [step](Self::step) to the next.
pub struct KnownSharing {
    sharing: Sharing,
    turns: Arc<dyn Turns>,
    turn: Option<Box<dyn Turn>>,
    learns_at: Option<Instant>,
    learns_after: Duration,
    asks_at: Option<Instant>,
    rests: Duration,
    /// Since when an origin is heard, and when one was last.
    heard: Option<(Instant, Instant)>,
    /// What is wrong, as it was said last.
    said: Option<String>,
}

impl KnownSharing {
    /// In a store that other relays have, too, which says whose turn it is to write. Secrets are kept with keys that all of them have.
    pub fn new<S: Store + Turns>(store: Arc<S>, keys: Option<Arc<Keys>>) -> Self {
        let sharing = Sharing::new(store.clone(), keys);
        let (turn, learns_at, asks_at, heard, said) = (None, None, None, None, None);
        Self { sharing, turns: store, turn, learns_at, learns_after: AGAIN, asks_at, rests: RESTS, heard, said }
    }

    /// Reads what others knew, for a relay that is about to start. What cannot be read now is, in a later [step](Self::step).
    pub fn learn(&mut self, state: &State, now: Instant, wall: SystemTime) {
        self.learns_at = Some(now + self.learns_after);
        match self.sharing.learn(state, now, wall) {
            Ok(()) => tracing::info!("what other relays knew was read"),
            Err(error) => {
                // All of it may be read each time, for nothing.
                if !error.may_pass() {
                    self.learns_after = (2 * self.learns_after).min(RESTS_AT_MOST);
                }
                self.say(Some(format!("what other relays knew cannot be read: {error}")));
            }
        }
    }

    /// Does what is to be done: to be called every second or so. It takes as long as the store takes. `now` and `wall` are the same
    /// moment.
    pub fn step(&mut self, core: &RelayCore, now: Instant, wall: SystemTime) {
        let Some(state) = core.state() else { return };
        if !self.sharing.has_learned() && self.learns_at.is_none_or(|at| at <= now) {
            self.learn(state, now, wall);
        }
        self.listen(core, now);
        if self.heard.is_some_and(|(since, last)| last.saturating_duration_since(since) >= OF_USE) {
            self.sharing.forget(state);
        }
        match self.write(core, state, now, wall) {
            Ok(_) if self.sharing.has_learned() => self.say(None),
            Ok(_) => {}
            Err(error) => {
                // Another one may be able to.
                self.turn = None;
                self.asks_at = Some(now.max(Instant::now()) + self.rests);
                self.rests = if error.may_pass() { RESTS } else { (2 * self.rests).min(RESTS_AT_MOST) };
                self.say(Some(format!("what is known is not written for other relays: {error}")));
            }
        }
    }

    fn write(&mut self, core: &RelayCore, state: &State, now: Instant, wall: SystemTime) -> Result<(), StoreError> {
        // What is not kept here is not noted for others either.
        let is_able = self.is_hearing(now) && state.is_kept() && state.trouble().is_none();
        let is_over = self.turn.as_ref().is_some_and(|turn| !turn.is_held() || !is_able);
        if is_over && self.turn.take().is_some() {
            tracing::info!("it is not this relay's turn any more to write what is known for others");
        }
        if self.turn.is_none() {
            self.sharing.listen(state, now);
            if !is_able || self.asks_at.is_some_and(|at| now < at) {
                return Ok(());
            }
            self.asks_at = Some(now + AGAIN);
            self.turn = self.turns.take(TURN, Instance(core.relays.own().number()))?;
            if self.turn.is_some() {
                tracing::info!("it is this relay's turn to write what is known for others");
            }
        }
        let Some(turn) = &self.turn else { return Ok(()) };
        let saved = self.sharing.write(state, || core.federation.scopes(), &*turn.store(), now, wall)?;
        if saved.keys > 0 {
            self.rests = RESTS;
        }
        Ok(())
    }

    /// Looks whether an origin is heard.
    fn listen(&mut self, core: &RelayCore, now: Instant) {
        let is_heard =
            core.federation.scopes().iter().filter_map(|scope| scope.supply()).any(|supply| supply.status().connected);
        if is_heard {
            let since = self.heard.filter(|_| self.is_hearing(now)).map_or(now, |(since, _)| since);
            self.heard = Some((since, now));
        }
    }

    /// Whether one was lately.
    fn is_hearing(&self, now: Instant) -> bool {
        self.heard.is_some_and(|(_, last)| now.saturating_duration_since(last) < DEAF)
    }

    /// Says what is wrong, once; and that nothing is any more.
    fn say(&mut self, wrong: Option<String>) {
        if self.said == wrong {
            return;
        }
        match &wrong {
            Some(wrong) => tracing::warn!("{wrong}"),
            None => tracing::info!("what is known is shared with other relays again"),
        }
        self.said = wrong;
    }
}
