//! Which resources a cache may do without, in the order it does.

use std::collections::{BTreeMap, HashMap};

use crate::keys::Target;

/// Names and collections by when they were last wanted or changed.
///
/// One may be in use again meanwhile: that is looked at when its turn comes, or subscribing to a collection
/// would have to visit its members.
#[derive(Default)]
pub(crate) struct Idle {
    order: BTreeMap<u64, Target>,
    since: HashMap<Target, u64>,
    next: u64,
}

impl Idle {
    /// It was wanted, or changed, just now.
    pub(crate) fn renew(&mut self, target: Target) {
        self.next += 1;
        if let Some(before) = self.since.insert(target, self.next) {
            self.order.remove(&before);
        }
        self.order.insert(self.next, target);
    }

    pub(crate) fn remove(&mut self, target: Target) {
        if let Some(since) = self.since.remove(&target) {
            self.order.remove(&since);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Target> {
        let (_, target) = self.order.pop_first()?;
        self.since.remove(&target);
        Some(target)
    }

    #[cfg(test)]
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.order.values().copied()
    }
}
