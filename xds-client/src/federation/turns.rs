//! What one thread does at a time, though no lock is held while it does.

use std::sync::Mutex;

use crate::federation::lock::lock;

/// Who comes while somebody is at it waits for nothing, be it in the middle of what is being done: it is done once more by whoever
/// is at it.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Turn>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Free,
    Taken,
    /// Somebody came meanwhile.
    Again,
}

/// Frees the turn of who panics.
struct Taken<'a>(&'a Turns);

impl Turns {
    /// Does it, now or by whoever is at it: that it is done wholly after this was called is all that is certain.
    pub(crate) fn take(&self, mut work: impl FnMut()) {
        if !self.begin() {
            return;
        }
        let taken = Taken(self);
        loop {
            work();
            if self.end() {
                break;
            }
        }
        std::mem::forget(taken);
    }

    /// Does it, unless somebody is at it already.
    pub(crate) fn take_free(&self, work: impl FnOnce()) {
        let is_free = {
            let turn = &mut *lock(&self.0);
            *turn == Turn::Free && std::mem::replace(turn, Turn::Taken) == Turn::Free
        };
        if is_free {
            let _taken = Taken(self);
            work();
        }
    }

    fn begin(&self) -> bool {
        let turn = &mut *lock(&self.0);
        let is_free = *turn == Turn::Free;
        *turn = if is_free { Turn::Taken } else { Turn::Again };
        is_free
    }

    /// Whether nobody came meanwhile: then the turn is over.
    fn end(&self) -> bool {
        let turn = &mut *lock(&self.0);
        let is_over = *turn == Turn::Taken;
        *turn = if is_over { Turn::Free } else { Turn::Taken };
        is_over
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *lock(&self.0.0) = Turn::Free;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn what_is_to_be_done_while_it_is_done_is_done_after_that() {
        let (turns, at, times) = (Turns::default(), Cell::new(0), Cell::new(0));
        turns.take(|| {
            times.set(times.get() + 1);
            assert_eq!(at.replace(1), 0, "one within another");
            if times.get() < 3 {
                (0..2).for_each(|_| turns.take(|| unreachable!()));
            }
            at.set(0);
        });
        assert_eq!(times.get(), 3);
    }

    #[test]
    fn what_is_to_be_done_once_is_not_done_while_it_is_done() {
        let (turns, times) = (Turns::default(), Cell::new(0));
        for _ in 0..2 {
            turns.take_free(|| {
                times.set(times.get() + 1);
                turns.take_free(|| unreachable!());
            });
        }
        assert_eq!(times.get(), 2);
    }

    #[test]
    fn who_panics_leaves_the_turn_to_others() {
        let turns = Turns::default();
        #[allow(clippy::panic, reason = "it is what is tested")]
        let panicked = catch_unwind(AssertUnwindSafe(|| turns.take(|| panic!("on purpose"))));
        let mut done = false;
        turns.take(|| done = true);
        assert!(done && panicked.is_err());
    }
}
