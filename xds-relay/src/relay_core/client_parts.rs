//! Which part of what all clients together may use is one client's, where no rule for it says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::{ClientLimit, Limits};

/// So much of each, in the order of [`ClientLimit::ALL`]: any of it, where there is none. It is read for every name.
pub(crate) struct ClientParts([AtomicUsize; ClientLimit::ALL.len()]);

const ANY: usize = usize::MAX;

impl ClientParts {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self(ClientLimit::ALL.map(|limit| AtomicUsize::new(limit.part(limits).unwrap_or(ANY))))
    }

    /// These count from now on, for what is new.
    pub(crate) fn set(&self, limits: &Limits) {
        for (part, limit) in self.0.iter().zip(ClientLimit::ALL) {
            part.store(limit.part(limits).unwrap_or(ANY), Ordering::Relaxed);
        }
    }

    /// How much of it there may be, if that is limited.
    pub(crate) fn most(&self, limit: ClientLimit) -> Option<usize> {
        let part = self.0.get(limit as usize)?.load(Ordering::Relaxed);
        (part != ANY).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_that_of_its_limit_and_changes_with_it() {
        let [mut limits, all] = [Limits::default(); 2].map(|limits| Limits { one_client: 100, ..limits });
        let parts = ClientParts::of(&limits);
        assert_eq!(ClientLimit::ALL.map(|limit| parts.most(limit)), [None; 6]);
        limits.one_client = 10;
        parts.set(&limits);
        assert_eq!(ClientLimit::ALL.map(|limit| parts.most(limit)), ClientLimit::ALL.map(|limit| limit.part(&limits)));
        parts.set(&all);
        assert_eq!(parts.most(ClientLimit::Names), None);
    }
}
