//! Variants apart by what they admit for one key.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::limits::{Class, Limits};
use crate::steps::spend;

/// Some variants by what they admit for one key.
pub(super) struct Parts<'l> {
    /// By class, those that admit only some classes; one that admits several is there several times.
    pub(super) listed: BTreeMap<usize, Vec<usize>>,
    /// By what they do not admit, those that admit all else.
    pub(super) excepting: BTreeMap<&'l [usize], Vec<usize>>,
}

/// Integers from the first to the last, and whose they are.
struct Span {
    first: u64,
    last: u64,
    class: usize,
    left: bool,
}

impl<'l> Parts<'l> {
    pub(super) fn of(limits: &'l Limits<'_>, members: &[usize], key: usize, steps: &mut usize) -> Self {
        let mut parts = Self { listed: BTreeMap::new(), excepting: BTreeMap::new() };
        for &member in members {
            let limit = limits.by(member).iter().find(|limit| limit.key == key);
            let classes = limit.map_or(&[][..], |limit| &limit.classes);
            spend(steps, classes.len().max(1));
            if limit.is_some_and(|limit| !limit.except) {
                classes.iter().for_each(|class| parts.listed.entry(*class).or_default().push(member));
            } else {
                parts.excepting.entry(classes).or_default().push(member);
            }
        }
        parts
    }

    /// Those without a list.
    pub(super) fn unlisted(&self) -> Vec<usize> {
        self.excepting.values().flatten().copied().collect()
    }

    /// Those of the listed that admit more than `exceptions`; `None` if all do.
    pub(super) fn listed_beyond(
        &self,
        exceptions: &[usize],
        limits: &Limits<'_>,
        steps: &mut usize,
    ) -> Option<Vec<usize>> {
        let ranges: Vec<Class<'_>> =
            exceptions.iter().map(|class| limits.class(*class)).filter(|class| class.is_integers()).collect();
        spend(steps, exceptions.len());
        if ranges.is_empty() && !exceptions.iter().any(|class| self.listed.contains_key(class)) {
            return None;
        }
        let excepted = |class: &usize| {
            exceptions.binary_search(class).is_ok()
                || ranges.iter().any(|ranges| limits.class(*class).is_within(*ranges))
        };
        let beyond = self.listed.iter().filter(|(class, members)| {
            spend(steps, ranges.len() + members.len());
            !excepted(class)
        });
        Some(once_each(beyond.flat_map(|(_, members)| members)))
    }

    /// All that have a list.
    pub(super) fn all_listed(&self) -> Vec<usize> {
        once_each(self.listed.values().flatten())
    }

    /// Calls `meet` with classes of the one and of the other that have some integer in common, and of which one has ranges.
    pub(super) fn for_each_meeting<E>(
        &self,
        other: &Self,
        limits: &Limits<'_>,
        mut meet: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut classes = self.listed.keys().chain(other.listed.keys());
        if !classes.any(|class| limits.class(*class).is_integers()) {
            return Ok(());
        }
        let left = self.listed.keys().map(|class| (*class, true));
        let all = left.chain(other.listed.keys().map(|class| (*class, false)));
        let spans = all.flat_map(|(class, left)| {
            limits.class(class).spans().map(move |(first, last)| Span { first, last, class, left })
        });
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_unstable_by_key(|span| span.first);
        // By last integer: those that the next span may still begin in.
        let (mut open_left, mut open_right) = (BTreeSet::new(), BTreeSet::new());
        for Span { first, last, class, left } in spans {
            for open in [&mut open_left, &mut open_right] {
                while open.first().is_some_and(|(last, _)| *last < first) {
                    open.pop_first();
                }
            }
            let (open, opposite) = if left { (&mut open_left, &open_right) } else { (&mut open_right, &open_left) };
            for &(_, met) in opposite {
                if limits.class(class).is_integers() || limits.class(met).is_integers() {
                    let (one, another) = if left { (class, met) } else { (met, class) };
                    meet(one, another)?;
                }
            }
            open.insert((last, class));
        }
        Ok(())
    }
}

fn once_each<'m>(members: impl Iterator<Item = &'m usize>) -> Vec<usize> {
    let mut members: Vec<usize> = members.copied().collect();
    members.sort_unstable();
    members.dedup();
    members
}
