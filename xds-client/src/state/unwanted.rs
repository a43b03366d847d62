//! What is kept, and nobody has asked for in this run: it goes after a week, or before where there is too much of it.
//!
//! A run writes all that is asked for in it at least once. So a key was asked for in the run that wrote it last, and perhaps until
//! the end of that, and not since.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;

use crate::state::store::Revision;

/// How long it is kept, in seconds.
pub(crate) const UNUSED: u64 = 7 * 24 * 3600;
/// Of how many names and bytes in a store, beside what the last run asked for.
const MOST_NAMES: usize = 100_000;
const MOST_BYTES: usize = 256 << 20;
/// Runs of how long are told apart, once they are over, in seconds.
const APART: u64 = 3600;

/// The runs that there were, the oldest first.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Runs {
    #[prost(message, repeated, tag = "1")]
    runs: Vec<Run>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Run {
    /// The last revision of the store that it made.
    #[prost(uint64, tag = "1")]
    revision: Revision,
    /// When it ended, in seconds since 1970.
    #[prost(uint64, tag = "2")]
    ended: u64,
}

impl Runs {
    /// One more is over, which was at this revision last. It is the one that a store is opened after, which needs to be told apart
    /// from all others; those before it by the hour, and none of them but for a week.
    pub(crate) fn end(&mut self, revision: Revision, ended: u64) {
        // Of a store that was made anew of an older one, they mean others.
        if self.runs.last().is_some_and(|last| last.revision > revision) {
            self.runs.clear();
        }
        if let [.., before, last] = &*self.runs
            && before.ended / APART == last.ended / APART
        {
            self.runs.remove(self.runs.len() - 2);
        }
        self.runs.retain(|run| run.revision < revision && run.ended.saturating_add(UNUSED) >= ended);
        self.runs.push(Run { revision, ended });
    }

    /// When the run ended that wrote something last, and whether that is the one before this. What was written before all that
    /// are known was before that.
    pub(crate) fn of(&self, revision: Revision) -> Option<(u64, bool)> {
        let at = self.runs.partition_point(|run| run.revision < revision);
        self.runs.get(at).map(|run| (run.ended, at + 1 == self.runs.len()))
    }
}

/// Keys that nobody has asked for in this run.
#[derive(Debug, Default)]
pub(crate) struct Unwanted {
    /// As they were written.
    in_order: BTreeMap<(Revision, Arc<str>), Of>,
    written: HashMap<Arc<str>, Revision>,
    /// Of those that the last run did not ask for either: how many, and how many bytes.
    names: usize,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Of {
    asked: u64,
    by_last_run: bool,
    bytes: usize,
}

impl Unwanted {
    /// This is kept, which takes so many bytes, and was asked for until the end of a run.
    pub(crate) fn add(&mut self, key: &str, written: Revision, (asked, by_last_run): (u64, bool), bytes: usize) {
        let key: Arc<str> = key.into();
        if !by_last_run {
            (self.names, self.bytes) = (self.names + 1, self.bytes + bytes);
        }
        self.written.insert(key.clone(), written);
        self.in_order.insert((written, key), Of { asked, by_last_run, bytes });
    }

    /// Whether a key is among them.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.written.contains_key(key)
    }

    /// Somebody asked for it, or it is not kept any more.
    pub(crate) fn remove(&mut self, key: &str) {
        if !self.written.is_empty()
            && let Some((key, written)) = self.written.remove_entry(key)
            && let Some(of) = self.in_order.remove(&(written, key))
        {
            self.leave(of);
        }
    }

    /// Takes the oldest, if it was not asked for since a moment, or there is too much.
    pub(crate) fn take_over(&mut self, before: u64) -> Option<Arc<str>> {
        self.take_beyond(before, (MOST_NAMES, MOST_BYTES))
    }

    fn take_beyond(&mut self, before: u64, (names, bytes): (usize, usize)) -> Option<Arc<str>> {
        let oldest = self.in_order.first_entry()?;
        let is_too_much = !oldest.get().by_last_run && (self.names > names || self.bytes > bytes);
        if !is_too_much && oldest.get().asked >= before {
            return None;
        }
        let ((_, key), of) = oldest.remove_entry();
        self.written.remove(&key);
        self.leave(of);
        Some(key)
    }

    fn leave(&mut self, of: Of) {
        if !of.by_last_run {
            (self.names, self.bytes) = (self.names - 1, self.bytes - of.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = APART;

    #[test]
    fn a_key_was_asked_for_until_the_end_of_the_run_that_wrote_it() {
        let mut runs = Runs::default();
        assert_eq!(runs.of(1), None);
        for (revision, ended) in [(3, 10), (5, HOUR), (9, 2 * HOUR)] {
            runs.end(revision, ended);
        }
        let of = [0, 3, 4, 5, 6, 9, 10].map(|revision| runs.of(revision));
        let [first, second, last] = [(10, false), (HOUR, false), (2 * HOUR, true)].map(Some);
        assert_eq!(of, [first, first, second, second, last, last, None]);
        // A week later only the last is of any use.
        runs.end(10, 2 * HOUR + UNUSED);
        assert_eq!(runs.of(1), Some((2 * HOUR, false)));
    }

    #[test]
    fn however_often_a_program_begins_anew_its_runs_are_few_and_no_key_is_younger_by_more_than_an_hour() {
        let mut runs = Runs::default();
        for run in 1..10_000_u64 {
            runs.end(run, run * 97);
            let (ended, _) = runs.of(run.saturating_sub(500).max(1)).unwrap_or_default();
            assert!(ended <= run.saturating_sub(500).max(1) * 97 + HOUR);
            assert_eq!(runs.of(run), Some((run * 97, true)));
        }
        assert!(runs.runs.len() <= 7 * 24 + 2, "{}", runs.runs.len());
        // It was made anew of an older one, or of all that was in it.
        runs.end(3, 7);
        assert_eq!(runs.runs.len(), 1);
    }

    #[test]
    fn the_oldest_goes_by_age_number_and_size_and_what_the_last_run_asked_for_by_its_age_alone() {
        let mut unwanted = Unwanted::default();
        for (key, written, asked, by_last_run) in [("b", 2, 20, false), ("a", 1, 10, false), ("c", 3, 30, false)] {
            unwanted.add(key, written, (asked, by_last_run), 100);
        }
        for key in ["d", "e", "f"] {
            unwanted.add(key, 4, (40, true), 1000);
        }
        let take =
            |unwanted: &mut Unwanted, before, most| unwanted.take_beyond(before, most).map(|key| key.to_string());
        assert_eq!(take(&mut unwanted, 10, (3, 300)), None);
        assert_eq!(take(&mut unwanted, 11, (3, 300)).as_deref(), Some("a"));
        assert_eq!(take(&mut unwanted, 11, (1, 300)).as_deref(), Some("b"));
        assert_eq!(take(&mut unwanted, 11, (1, 99)).as_deref(), Some("c"));
        assert_eq!(take(&mut unwanted, 40, (0, 0)), None);
        unwanted.remove("d");
        unwanted.remove("none");
        assert_eq!(take(&mut unwanted, 41, (0, 0)).as_deref(), Some("e"));
        unwanted.remove("f");
        assert_eq!(take(&mut unwanted, 41, (0, 0)), None);
        assert!(unwanted.written.is_empty() && (unwanted.names, unwanted.bytes) == (0, 0));
    }
}
