//! What removes much at once, and waits until it is seen again.

use std::collections::BTreeSet;
use std::time::Instant;

use super::losses::{HELD, Losses};
use super::name::{Name, shown_name};

/// The removals of what is told together: of a part of an origin, or of all of it.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    held: Option<Candidate>,
    /// What went lately, where one thing is done after the other.
    losses: Losses,
    one_by_one: bool,
}

/// A removal that waits until it is seen again.
#[derive(Debug)]
struct Candidate {
    gone: BTreeSet<Name>,
    since: Instant,
}

impl Removals {
    /// What goes one after the other within a minute is one removal.
    pub(super) fn one_by_one(one_by_one: bool) -> Self {
        Self { one_by_one, ..Self::default() }
    }

    /// What went counts no more after a while, nor what is there again.
    pub(super) fn retain(&mut self, now: Instant, is_there: impl Fn(&Name) -> bool) {
        self.losses.retain(now, is_there);
    }

    /// These went, and nothing held them.
    pub(super) fn went(&mut self, gone: BTreeSet<Name>, now: Instant) {
        if self.one_by_one {
            self.losses.add(gone, now);
        }
    }

    /// Until when it is held that these are gone, of as many as `good` says there are, if it is: what removes much counts once what is
    /// seen so much later says the same. What is gone beside it by then, if that is not much, was removed meanwhile.
    pub(crate) fn hold(&mut self, gone: &BTreeSet<Name>, good: impl Fn() -> usize, now: Instant) -> Option<Instant> {
        let is_much = |gone: usize| self.losses.is_much(gone, &good);
        if !is_much(gone.len()) {
            if self.held.take().is_some() {
                tracing::info!("what was gone is there again");
            }
            return None;
        }
        if let Some(Candidate { gone: before, since }) = &self.held
            && !is_much(gone.difference(before).count())
        {
            let until = *since + HELD;
            if now < until {
                return Some(until);
            }
            tracing::warn!("{} resources are gone for {} s: they are removed", gone.len(), HELD.as_secs());
            self.held = None;
            // That this is meant is known now.
            self.losses = Losses::default();
            return None;
        }
        let first = gone.first().map(shown_name).unwrap_or_default();
        tracing::error!(
            "{} of {} resources are gone, {first} among them: nothing changes until that is so for {} s",
            gone.len(),
            good(),
            HELD.as_secs(),
        );
        self.held = Some(Candidate { gone: gone.clone(), since: now });
        Some(now + HELD)
    }

    /// How many resources are gone and served all the same.
    pub(crate) fn held_back(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.gone.len())
    }
}

/// That so many are, for people.
pub(crate) fn said_of_removal(gone: usize) -> String {
    format!("{gone} resources are gone at once: they stay until that is so for {} s", HELD.as_secs())
}
