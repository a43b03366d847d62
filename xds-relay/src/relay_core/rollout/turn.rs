//! Whether this relay publishes, or another one that shares its releases.

use std::time::{Duration, Instant, SystemTime};

use super::tally::{self, Tally};
use super::{Releases, State};
use crate::releases::{Control, Release, Stages, StoredError, Turn};

/// How often the turn is asked for, that others have, where nobody hears that it is free; and for how long a store is left alone
/// that did not answer.
const AGAIN: Duration = Duration::from_secs(5);
/// For how long a relay whose origin says nothing keeps the turn, before another one may have it that has more to say: for longer than
/// it takes a stream to be there again and to say all.
const PATIENT: Duration = Duration::from_secs(30);
/// For how long it leaves the turn to such a one then: longer than those take to ask for it.
const LEAVES: Duration = Duration::from_secs(10);
/// For how long nobody has the turn before another relay whose origin says nothing takes it, so that candidates halt and go on: it is
/// not to take it from who leaves it for a moment, or the stage would begin anew each time.
const FORSAKEN: Duration = Duration::from_secs(30);
/// For how long it is awaited that a stage is over which holds for nothing, before it is told how clients are that are well.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The turn of this relay, if it has it, and what it told others.
#[derive(Default)]
pub(super) struct MyTurn {
    turn: Option<Box<dyn Turn>>,
    /// Others have it.
    not_before: Option<Instant>,
    /// Since when the origin has nothing to publish, or this relay has the turn all the same.
    unready_since: Option<Instant>,
    /// Whether somebody has it, as far as is known; and since when nobody does.
    is_others: bool,
    free_since: Option<Instant>,
    /// The store does not answer.
    rests_until: Option<Instant>,
    /// What the origin has it had before it was this relay's turn.
    pub(super) is_inherited: bool,
    /// Since when this relay has seen a candidate in its stage, which began then: clocks are set, and those of others are not its own.
    stage: Option<((Release, usize, SystemTime), Instant)>,
    told: Option<(Instant, Tally)>,
    /// Until when others may know more of a store that was put back to what it was.
    awaits_newer: Option<Instant>,
}

impl MyTurn {
    /// Nobody has it.
    pub(super) fn is_free(&mut self) {
        self.not_before = None;
        (self.is_others, self.free_since) = (false, None);
    }

    /// Somebody has it.
    pub(super) fn is_others(&mut self) {
        (self.is_others, self.free_since) = (true, None);
    }

    /// Whether a relay whose origin says nothing may take it, which was the `last` to have it or not.
    fn is_forsaken(&mut self, is_last: bool, now: Instant) -> bool {
        if self.is_others {
            return false;
        }
        let free_since = *self.free_since.get_or_insert(now);
        let waits = if is_last { LEAVES } else { FORSAKEN };
        let is_over = |since: Instant, waits| now.saturating_duration_since(since) >= waits;
        is_over(free_since, waits) && self.unready_since.is_some_and(|since| is_over(since, PATIENT))
    }

    /// Others may have it.
    pub(super) fn give_back(&mut self) {
        self.turn = None;
    }

    /// Whether this relay has it, as far as it knows.
    pub(super) fn is_taken(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether the store is left alone now.
    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// It is, if it did not answer.
    pub(super) fn rests(&mut self, error: &StoredError, now: Instant) {
        if error.is_of_store() {
            self.rests_until = Some(after(now));
        }
    }

    /// Another relay may know more than what was put back into a store: that is heard before anything is done that comes after.
    pub(super) fn await_newer(&mut self, now: Instant) {
        self.awaits_newer = Some(after(now));
    }

    /// Whether that is still so.
    pub(super) fn awaits_newer(&self, now: Instant) -> bool {
        self.awaits_newer.is_some_and(|until| now < until)
    }

    /// Looks in which stage the candidate is.
    pub(super) fn look(&mut self, control: &Control, now: Instant) {
        let seen = control.candidate().map(|candidate| (candidate.release, candidate.stage, candidate.since));
        if self.stage.map(|(of, _)| of) != seen {
            self.stage = seen.map(|of| (of, now));
        }
    }

    /// Whether the candidate was in its stage for long enough as far as this relay saw.
    pub(super) fn has_held(&self, stages: &Stages, now: Instant) -> bool {
        self.stage.is_some_and(|((_, stage, _), since)| now.saturating_duration_since(since) >= stages.hold(stage))
    }

    /// Whether the candidate is in the next stage before anything is heard that others tell of this one.
    fn goes_on_at_once(&self, stages: &Stages, now: Instant) -> bool {
        self.stage.is_some_and(|((_, stage, _), since)| {
            stages.hold(stage).is_zero() && now.saturating_duration_since(since) < AT_ONCE
        })
    }
}

/// When a store that did not answer is asked again: it may have taken its time to say no.
pub(super) fn after(now: Instant) -> Instant {
    now.max(Instant::now()) + AGAIN
}

impl Releases {
    /// Whether others may know more of a store that was put back, be it that they have mended it: nothing is done before.
    pub(super) fn awaits_newer(&self, state: &mut State, now: Instant) -> bool {
        if state.stored.take_gone_back() && self.turns.are_shared() {
            state.turn.await_newer(now);
        }
        let awaits = state.turn.awaits_newer(now);
        state.stored.await_newer(awaits);
        awaits
    }

    /// Whether this relay publishes: it does if no other one does, and its origin says something. If that of none does, one of them goes
    /// on with what is released.
    pub(super) fn has_turn(&self, state: &mut State, now: Instant, wall: SystemTime) -> Result<bool, StoredError> {
        let has_content = || self.origin.ready().is_ok() && self.origin.content().is_some();
        let is_ready = !self.turns.are_shared() || has_content() && self.can_complete(state);
        let my = &mut state.turn;
        let since = if is_ready { None } else { Some(*my.unready_since.get_or_insert(now)) };
        my.unready_since = since;
        // Whoever takes it begins the stage anew.
        let is_kept = since.is_none_or(|since| now.saturating_duration_since(since) < PATIENT);
        if my.turn.as_ref().is_some_and(|turn| turn.is_held() && is_kept) {
            return Ok(true);
        }
        if let Some(turn) = my.turn.take() {
            tracing::warn!(scope = self.rollout.scope(), "it is not this relay's turn to publish any more");
            if turn.is_held() {
                my.is_free();
            }
        }
        let is_last = state.stored.control().publisher().is_some_and(|of| of.instance == self.instance);
        let may_have_it = is_ready || my.is_forsaken(is_last, now);
        if !may_have_it || state.stored.is_recalled() || my.not_before.is_some_and(|then| now < then) {
            return Ok(false);
        }
        let turn = self.turns.take(&state.stored.turn(), self.instance)?;
        my.not_before = Some(after(now));
        let Some(turn) = turn else {
            my.is_others();
            return Ok(false);
        };
        if !is_ready {
            my.unready_since = Some(now);
        }
        state.stored.write_through(turn.store());
        (my.turn, my.not_before) = (Some(turn), None);
        if self.turns.are_shared() {
            tracing::info!(scope = self.rollout.scope(), "it is this relay's turn to publish");
            my.is_inherited = true;
            for (of, said) in state.stored.tallies()? {
                self.hear_tally(state, of, Some(&said), now);
            }
            self.publisher(state, wall)?;
        }
        Ok(true)
    }

    /// Tells whoever publishes how the clients of this relay are, if that is another one, and there is time for that: each word of
    /// each relay is work for a store, and for all that follow it.
    pub(super) fn tell_others(
        &self,
        state: &mut State,
        tally: Option<&Tally>,
        now: Instant,
    ) -> Result<(), StoredError> {
        if !self.turns.are_shared() {
            return Ok(());
        }
        let my = &mut state.turn;
        let tally = tally.filter(|tally| !tally.is_well() || !my.goes_on_at_once(&self.rollout.stages, now));
        let is_told = match (&my.told, tally) {
            (None, None) => true,
            (Some((at, told)), Some(tally)) => told == tally && now.saturating_duration_since(*at) < tally::AGAIN,
            _ => false,
        };
        if !is_told {
            state.stored.tell(self.instance, tally)?;
            my.told = tally.map(|tally| (now, tally.clone()));
        }
        Ok(())
    }

    /// What relays told that say nothing any more is not kept for ever.
    pub(super) fn forget_told(&self, state: &mut State, now: Instant) -> Result<(), StoredError> {
        for of in state.tallies.take_old(now) {
            state.stored.tell(of, None::<&Tally>)?;
        }
        Ok(())
    }
}
