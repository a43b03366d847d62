//! Which part of what all clients together may use is one client's, where no rule for it says so.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::config::{ClientLimit, Limits, part};

/// So much of each, in the order of [`ClientLimit::ALL`]: any of it, where there is none. It is read for every name.
pub(crate) struct ClientParts {
    of_limits: [AtomicUsize; ClientLimit::ALL.len()],
    /// Of what else there is.
    percent: AtomicU8,
}

const ANY: usize = usize::MAX;

impl ClientParts {
    pub(crate) fn of(limits: &Limits) -> Self {
        let of_limits = ClientLimit::ALL.map(|limit| AtomicUsize::new(limit.part(limits).unwrap_or(ANY)));
        Self { of_limits, percent: AtomicU8::new(limits.one_client) }
    }

    /// These count from now on, for what is new.
    pub(crate) fn set(&self, limits: &Limits) {
        self.percent.store(limits.one_client, Ordering::Relaxed);
        for (part, limit) in self.of_limits.iter().zip(ClientLimit::ALL) {
            part.store(limit.part(limits).unwrap_or(ANY), Ordering::Relaxed);
        }
    }

    /// How much of it there may be, if that is limited.
    pub(crate) fn most(&self, limit: ClientLimit) -> Option<usize> {
        let part = self.of_limits.get(limit as usize)?.load(Ordering::Relaxed);
        (part != ANY).then_some(part)
    }

    /// Of so much of something, if that is limited.
    pub(crate) fn of_all(&self, all: usize) -> Option<usize> {
        part(all, self.percent.load(Ordering::Relaxed))
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
