//! Whether this relay publishes, or another one that shares its releases.

use std::time::{Duration, Instant};

use super::tally::{self, Tally};
use super::{Releases, State};
use crate::releases::{Release, StoredError, Turn};

/// How often the turn is asked for, that others have, where nobody hears that it is free.
const AGAIN: Duration = Duration::from_secs(5);

/// The turn of this relay, if it has it, and what it told others.
#[derive(Default)]
pub(super) struct MyTurn {
    turn: Option<Box<dyn Turn>>,
    /// Others have it, or nobody knows.
    not_before: Option<Instant>,
    told: Option<(Instant, Tally)>,
}

impl MyTurn {
    /// Nobody has it.
    pub(super) fn is_free(&mut self) {
        self.not_before = None;
    }

    /// Others may have it.
    pub(super) fn give_back(&mut self) {
        self.turn = None;
    }
}

impl Releases {
    /// Whether this relay publishes: it does if no other one does.
    pub(super) fn has_turn(&self, state: &mut State, now: Instant) -> Result<bool, StoredError> {
        let my = &mut state.turn;
        if my.turn.as_ref().is_some_and(|turn| turn.is_held()) {
            return Ok(true);
        }
        if my.turn.take().is_some() {
            tracing::warn!(scope = self.rollout.scope(), "it is not this relay's turn to publish any more");
        }
        if my.not_before.is_some_and(|then| now < then) {
            return Ok(false);
        }
        my.not_before = Some(now + AGAIN);
        let Some(turn) = self.turns.take(&state.stored.turn(), self.instance)? else { return Ok(false) };
        if self.turns.are_shared() {
            tracing::info!(scope = self.rollout.scope(), "it is this relay's turn to publish");
        }
        state.stored.write_through(turn.store());
        (my.turn, my.not_before) = (Some(turn), None);
        Ok(true)
    }

    /// Tells whoever publishes how the clients of this relay are, if that is another one.
    pub(super) fn tell_others(&self, state: &mut State, candidate: Option<Release>, now: Instant) {
        if !self.turns.are_shared() {
            return;
        }
        let tally = candidate.and_then(|release| {
            let missed = state.tallies.missed(release);
            state.health.tally(release, &missed, now)
        });
        let my = &mut state.turn;
        let is_told = match (&my.told, &tally) {
            (None, None) => true,
            (Some((at, told)), Some(tally)) => told == tally && now.saturating_duration_since(*at) < tally::AGAIN,
            _ => false,
        };
        if is_told {
            return;
        }
        match state.stored.tell(self.instance, tally.as_ref()) {
            Ok(()) => my.told = tally.map(|tally| (now, tally)),
            Err(error) => {
                tracing::debug!(scope = self.rollout.scope(), "how clients are is not told to others: {error}");
            }
        }
    }
}
