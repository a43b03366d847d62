//! What relays know of their origins, in one store: one of them writes it, and all read it as they start.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::state::{Keys, Sharing, State, Store, StoreError};

use crate::relay_core::core::RelayCore;
use crate::releases::{Instance, Turn, Turns};

/// Who has this key writes.
const TURN: &str = "xds-relay/known/v1/pub";
/// How often it is asked for whose turn it is, and for what others knew where that could not be read.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a store is left alone that was not written.
const RESTS: Duration = Duration::from_secs(30);
/// How long no origin may be heard by who writes: another relay may hear them.
const DEAF: Duration = Duration::from_secs(60);

/// What one relay has to do with it, from one [step](Self::step) to the next.
pub struct KnownSharing {
    sharing: Sharing,
    turns: Arc<dyn Turns>,
    turn: Option<Box<dyn Turn>>,
    learns_at: Option<Instant>,
    asks_at: Option<Instant>,
    /// When an origin was heard last, by who writes.
    heard_at: Option<Instant>,
    /// What is wrong, as it was said last.
    said: Option<String>,
}

impl KnownSharing {
    /// In a store that other relays have, too, which says whose turn it is to write. Secrets are kept with keys that all of them have.
    pub fn new<S: Store + Turns>(store: Arc<S>, keys: Option<Arc<Keys>>) -> Self {
        let sharing = Sharing::new(store.clone(), keys);
        Self { sharing, turns: store, turn: None, learns_at: None, asks_at: None, heard_at: None, said: None }
    }

    /// Reads what others knew, for a relay that is about to start. What cannot be read now is, in a later [step](Self::step).
    pub fn learn(&mut self, state: &State, now: Instant, wall: SystemTime) {
        self.learns_at = Some(now + AGAIN);
        match self.sharing.learn(state, now, wall) {
            Ok(()) => tracing::info!("what other relays knew was read"),
            Err(error) => self.say(Some(format!("what other relays knew cannot be read: {error}"))),
        }
    }

    /// Does what is to be done: to be called every second or so. It takes as long as the store takes. `now` and `wall` are the same
    /// moment.
    pub fn step(&mut self, core: &RelayCore, now: Instant, wall: SystemTime) {
        let Some(state) = core.state() else { return };
        if !self.sharing.has_learned() && self.learns_at.is_none_or(|at| at <= now) {
            self.learn(state, now, wall);
        }
        match self.write(core, state, now, wall) {
            Ok(()) if self.sharing.has_learned() => self.say(None),
            Ok(()) => {}
            Err(error) => {
                if matches!(error, StoreError::Fenced) {
                    self.turn = None;
                }
                self.asks_at = Some(now.max(Instant::now()) + RESTS);
                self.say(Some(format!("what is known is not written for other relays: {error}")));
            }
        }
    }

    fn write(&mut self, core: &RelayCore, state: &State, now: Instant, wall: SystemTime) -> Result<(), StoreError> {
        let is_over = self.turn.as_ref().is_some_and(|turn| !turn.is_held()) || self.is_deaf(core, now);
        if is_over && self.turn.take().is_some() {
            tracing::info!("it is not this relay's turn any more to write what is known for others");
        }
        if self.turn.is_none() {
            self.sharing.listen(state, now);
        }
        if self.asks_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        if self.turn.is_none() {
            self.asks_at = Some(now + AGAIN);
            if !hears_an_origin(core) {
                return Ok(());
            }
            self.turn = self.turns.take(TURN, Instance(core.relays.own().number()))?;
            if self.turn.is_some() {
                (self.heard_at, self.asks_at) = (Some(now), None);
                tracing::info!("it is this relay's turn to write what is known for others");
            }
        }
        let Some(turn) = &self.turn else { return Ok(()) };
        self.sharing.write(state, &core.federation.scopes(), &*turn.store(), now, wall).map(drop)
    }

    /// Whether who writes has heard no origin for long.
    fn is_deaf(&mut self, core: &RelayCore, now: Instant) -> bool {
        if self.turn.is_none() {
            return false;
        }
        if hears_an_origin(core) {
            self.heard_at = Some(now);
        }
        self.heard_at.is_some_and(|at| now.saturating_duration_since(at) >= DEAF)
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

/// Whether any stream to an origin is open.
fn hears_an_origin(core: &RelayCore) -> bool {
    core.federation.scopes().iter().filter_map(|scope| scope.supply()).any(|supply| supply.status().connected)
}
