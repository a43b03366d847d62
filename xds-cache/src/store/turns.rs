//! Which variants of a name came and went: who was away may hold what it was not told of.

use std::sync::Arc;
use std::time::Instant;

use crate::moments::Seq;
use crate::variant::Variant;

/// How many are remembered of a name.
pub(crate) const MOST: usize = 8;

/// A variant came or went, of a name that had others.
pub(crate) struct Turn {
    pub(crate) variant: Arc<Variant>,
    pub(crate) seq: Seq,
    pub(crate) at: Instant,
}

/// The last that came, or that went: each once, oldest first.
#[derive(Default)]
pub(crate) struct Turns(Vec<Turn>);

impl Turns {
    pub(crate) fn note(&mut self, turn: Turn) {
        self.forget(&turn.variant);
        self.0.push(turn);
        self.0.drain(..self.0.len().saturating_sub(MOST));
    }

    pub(crate) fn forget(&mut self, variant: &Variant) {
        self.0.retain(|turn| *turn.variant != *variant);
    }

    pub(crate) fn of(&self, variant: &Variant) -> Option<&Turn> {
        self.0.iter().find(|turn| *turn.variant == *variant)
    }

    /// Whether a variant is known to have come, or gone, after another one that has.
    pub(crate) fn is_after(&self, variant: &Variant, other: &Variant) -> bool {
        self.0.iter().skip_while(|turn| *turn.variant != *other).any(|turn| *turn.variant == *variant)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.0.iter()
    }
}
