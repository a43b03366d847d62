//! Keys that are kept for a while after something became of them.

use std::collections::{BTreeMap, BTreeSet};

/// Keys, and when it became of each what it is about: the oldest come first.
#[derive(Debug, Default)]
pub(crate) struct Aging {
    by_time: BTreeSet<(u64, String)>,
    since: BTreeMap<String, u64>,
}

impl Aging {
    /// It became of a key then; or not at all.
    pub(crate) fn set(&mut self, key: &str, since: Option<u64>) {
        if let Some(before) = self.since.remove(key) {
            self.by_time.remove(&(before, key.to_owned()));
        }
        if let Some(since) = since {
            self.by_time.insert((since, key.to_owned()));
            self.since.insert(key.to_owned(), since);
        }
    }

    /// The same, unless it became of it before.
    pub(crate) fn begin(&mut self, key: &str, since: u64) {
        if !self.since.contains_key(key) {
            self.set(key, Some(since));
        }
    }

    /// Takes the oldest, if it is from before a moment, or there are more than so many.
    pub(crate) fn take_over(&mut self, before: u64, most: usize) -> Option<String> {
        let key = self.by_time.first().filter(|(since, _)| *since < before || self.by_time.len() > most)?.1.clone();
        self.set(&key, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_no_more_are_there_than_may_be() {
        let mut aging = Aging::default();
        for (key, since) in [("b", 2), ("a", 1), ("c", 3), ("d", 4)] {
            aging.set(key, Some(since));
        }
        aging.begin("d", 9);
        aging.set("b", None);
        assert_eq!(aging.take_over(1, 3), None);
        assert_eq!(aging.take_over(1, 2).as_deref(), Some("a"));
        aging.set("c", Some(5));
        assert_eq!(aging.take_over(5, 2).as_deref(), Some("d"));
        assert_eq!(aging.take_over(5, 2), None);
        assert_eq!(aging.take_over(6, 2).as_deref(), Some("c"));
        assert!(aging.by_time.is_empty() && aging.since.is_empty());
    }
}
