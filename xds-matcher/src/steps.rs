//! What is counted while a question is worked on, so that every question ends after so many steps.

/// So many bytes of a text are compared in one step.
const BYTES: usize = 128;

/// What it takes to find a text of so many bytes among `count` others.
pub(crate) fn look_up(bytes: usize, count: usize) -> usize {
    1 + bytes / BYTES * (1 + count.checked_ilog2().map_or(0, |halvings| halvings as usize))
}

/// Takes `cost` from what is left; whether something is.
pub(crate) fn spend(steps: &mut usize, cost: usize) -> bool {
    *steps = steps.saturating_sub(cost);
    *steps > 0
}
