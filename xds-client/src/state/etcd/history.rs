//! Whose revisions they are: a cluster that is put back, or another one, has others.

use std::sync::Mutex;

use tokio::sync::watch;

use super::messages::Header;
use crate::federation::lock;
use crate::state::store::Revision;

/// What was seen of the cluster.
#[derive(Debug)]
pub(super) struct History {
    seen: Mutex<Seen>,
    number: watch::Sender<u64>,
}

/// How far a history had come, which has a number of its own in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) number: u64,
    cluster: Option<u64>,
    term: u64,
    revision: Revision,
    /// How far it had come when it was first seen, if there was another before.
    floor: Revision,
}

impl Default for History {
    fn default() -> Self {
        Self { seen: Mutex::default(), number: watch::Sender::new(0) }
    }
}

impl History {
    pub(super) fn seen(&self) -> Seen {
        *lock(&self.seen)
    }

    /// Tells of the numbers of those that begin from now on.
    pub(super) fn numbers(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }

    /// Whether that revision may be of this history: before it was first seen, nobody was told one of it.
    pub(super) fn may_have(&self, revision: Revision) -> bool {
        revision >= self.seen().floor
    }

    /// Notes what was answered to who asked when so much had been `before`. It was answered by all members, so to speak: all of
    /// them know that of which any was told before. Another cluster than that one, or the same that knows less, is another
    /// history, whatever its number is.
    pub(super) fn note(&self, before: Seen, header: &Header) -> Seen {
        let mut seen = lock(&self.seen);
        // It was asked in another history, and may be of that.
        if before.number != seen.number {
            return *seen;
        }
        let revision = Revision::try_from(header.revision).unwrap_or(0);
        let is_other = before.cluster.is_some_and(|cluster| cluster != header.cluster_id)
            || header.raft_term < before.term
            || revision < before.revision;
        if is_other {
            tracing::warn!(
                "etcd is another cluster, or was put back: cluster {:x} at revision {revision}, where {:x} was at {}",
                header.cluster_id,
                before.cluster.unwrap_or_default(),
                before.revision,
            );
            *seen = Seen { number: seen.number + 1, floor: revision, ..Seen::default() };
        }
        seen.cluster = Some(header.cluster_id);
        seen.term = seen.term.max(header.raft_term);
        seen.revision = seen.revision.max(revision);
        if is_other {
            self.number.send_replace(seen.number);
        }
        *seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(cluster_id: u64, raft_term: u64, revision: i64) -> Header {
        Header { cluster_id, revision, raft_term }
    }

    #[test]
    fn another_cluster_and_one_that_knows_less_are_other_histories() {
        for other in [header(2, 5, 100), header(1, 4, 100), header(1, 5, 9), header(1, 5, -1)] {
            let history = History::default();
            let first = history.note(history.seen(), &header(1, 5, 10));
            assert_eq!(first.number, 0, "the first that is seen is no other");
            assert_eq!(history.note(first, &header(1, 6, 10)).number, 0);
            assert_eq!(history.note(first, &other).number, 1, "{other:?}");
            assert!(history.numbers().has_changed().is_ok() && *history.numbers().borrow() == 1);
        }
    }

    #[test]
    fn an_answer_that_was_under_way_meanwhile_is_no_other_history() {
        let history = History::default();
        let asked = history.note(history.seen(), &header(1, 5, 10));
        let _ = history.note(history.seen(), &header(1, 5, 12));
        assert_eq!(history.note(asked, &header(1, 5, 11)).number, 0);
        let _ = history.note(history.seen(), &header(2, 1, 3));
        // Of the one before.
        assert_eq!(history.note(asked, &header(1, 5, 13)).number, 1);
        assert_eq!(history.note(history.seen(), &header(2, 1, 4)).number, 1);
        assert!(!history.may_have(2) && history.may_have(3));
    }
}
