//! What went lately: much that goes one after the other is much.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::name::Name;

/// How long what removes much is held before it is listed again.
pub(crate) const HELD: Duration = Duration::from_secs(30);
/// For how long what went counts with what goes next.
const LATELY: Duration = Duration::from_secs(60);
/// It is much that is more than so many resources, and more than one in five; or all, of several.
pub(crate) const MUCH: usize = 10;
const ONE_IN: usize = 5;

/// The resources of a part that went lately, and when.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<Name, Instant>);

impl Losses {
    /// These went, of whoever had them.
    pub(super) fn add(&mut self, gone: impl IntoIterator<Item = Name>, now: Instant) {
        self.0.extend(gone.into_iter().map(|name| (name, now)));
    }

    /// What went counts no more after a while, nor what is there again.
    pub(super) fn retain(&mut self, now: Instant, is_there: impl Fn(&Name) -> bool) {
        self.0.retain(|name, at| now.saturating_duration_since(*at) < LATELY && !is_there(name));
    }

    /// Whether it is much that so many more go, of as many as `good` says there are; that is asked if it may be.
    pub(super) fn is_much(&self, gone: usize, good: impl FnOnce() -> usize) -> bool {
        let lost = gone + self.0.len();
        if gone == 0 || (gone == 1 && lost <= MUCH) {
            return false;
        }
        let good = good();
        // All there was, be it little, is much.
        let is_all = gone > 1 && gone >= good;
        is_all || (lost > MUCH && lost.saturating_mul(ONE_IN) > good + self.0.len())
    }
}
