//! A scope whose names are another origin's from now on: what is here is served, and the other is asked for all that is wanted as if
//! nothing of it were here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Scope, State};
use crate::federation::demand::Demand;
use crate::federation::supply::Supply;

impl Scope {
    /// It is of another origin, whose word counts: or, if that `only_gives`, only as far as it has what is here. What it came over is
    /// to be dropped, and not under a lock.
    pub(crate) fn lead_to(&self, origin: usize, only_gives: bool) -> Option<Arc<dyn Supply>> {
        let mut state = self.lock();
        // First: whoever finds the new origin gives it a supply of that.
        let before = self.disconnect();
        self.origin.store(origin, Ordering::Release);
        let State { cache, demand, several, of_others, .. } = &mut *state;
        // How far the one before answered says nothing of this one.
        cache.origin_lost();
        *several = None;
        demand.iter_mut().for_each(Demand::lead_elsewhere);
        let turn = of_others.begin();
        of_others.only_gives = only_gives;
        drop(state);
        self.note_held(turn);
        before
    }

    /// Whether its origin takes nothing away that it never had.
    pub(crate) fn only_gives(&self) -> bool {
        self.lock().of_others.only_gives
    }

    /// How often that was so.
    pub(crate) fn leads(&self) -> usize {
        self.lock().leads()
    }

    /// Whether anything is wanted of it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.lock().demand.as_ref().is_some_and(|demand| !demand.wanted().is_empty())
    }
}

impl State {
    pub(super) fn leads(&self) -> usize {
        self.demand.as_ref().map_or(0, Demand::leads)
    }
}
