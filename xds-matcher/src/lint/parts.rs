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
pub(super) struct Span {
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
        let beyond = self.listed.iter().filter(|(class, members)| {
            spend(steps, members.len());
            let listed = limits.class(**class);
            let mut within = ranges.iter().filter(|_| spend(steps, listed.size()));
            exceptions.binary_search(class).is_err() && !within.any(|ranges| listed.is_within(*ranges))
        });
        Some(once_each(beyond.flat_map(|(_, members)| members)))
    }

    /// All that have a list.
    pub(super) fn all_listed(&self) -> Vec<usize> {
        once_each(self.listed.values().flatten())
    }

    /// The integers of this, the left, and of the other, by their first; none where neither has ranges.
    pub(super) fn spans_with(&self, other: &Self, limits: &Limits<'_>, steps: &mut usize) -> Vec<Span> {
        let left = self.listed.keys().map(|class| (*class, true));
        let all = left.chain(other.listed.keys().map(|class| (*class, false)));
        if !all.clone().any(|(class, _)| limits.class(class).is_integers()) {
            return Vec::new();
        }
        let spent = all.take_while(|(class, _)| spend(steps, limits.class(*class).size()));
        let spans = spent.flat_map(|(class, left)| {
            limits.class(class).spans().map(move |(first, last)| Span { first, last, class, left })
        });
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_unstable_by_key(|span| span.first);
        spans
    }
}

/// Calls `meet` with a class of the left and one of the right for each two spans of theirs that have some integer in common.
pub(super) fn for_each_meeting<E>(
    spans: Vec<Span>,
    mut meet: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
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
            let (one, another) = if left { (class, met) } else { (met, class) };
            meet(one, another)?;
        }
        open.insert((last, class));
    }
    Ok(())
}

fn once_each<'m>(members: impl Iterator<Item = &'m usize>) -> Vec<usize> {
    let mut members: Vec<usize> = members.copied().collect();
    members.sort_unstable();
    members.dedup();
    members
}
