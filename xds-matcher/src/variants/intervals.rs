//! Look-up of variants by an integer that lies in one of their ranges.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::index::{Runs, TupleHash};
use crate::IntRange;

/// Ranges of integers, each for one tuple of values and with the number of a variant.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    runs: Runs,
    /// Of the ranges, sorted within each tuple; apart from them, so that a search meets nothing else.
    starts: Box<[u64]>,
    /// In the same order; the intervals of one tuple are a tree, of which the middle is the root.
    entries: Box<[Interval]>,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    range: IntRange,
    variant: u32,
    /// The largest end of those before, of the same tuple.
    largest_before: Option<u64>,
    /// The largest end in the subtree below and here.
    largest_end: u64,
}

impl Intervals {
    pub(super) fn new(entries: impl IntoIterator<Item = (TupleHash, IntRange, u32)>) -> Self {
        let mut sorted: Vec<(TupleHash, IntRange, u32)> = entries.into_iter().collect();
        sorted.sort_unstable();
        let mut entries = Vec::with_capacity(sorted.len());
        for tree in sorted.chunk_by(|a, b| a.0 == b.0) {
            let (first, mut largest_before) = (entries.len(), None);
            for &(_, range, variant) in tree {
                entries.push(Interval { range, variant, largest_before, largest_end: 0 });
                largest_before = largest_before.max(Some(range.end()));
            }
            set_largest_ends(entries.get_mut(first..).unwrap_or_default());
        }
        Self {
            runs: Runs::of(sorted.iter().map(|(tuple, ..)| *tuple)),
            starts: sorted.iter().map(|(_, range, _)| range.start()).collect(),
            entries: entries.into(),
        }
    }

    /// Visits the variants of this tuple that have a range around `n`.
    #[inline]
    pub(super) fn for_each_around(&self, tuple: TupleHash, n: u64, visit: &mut impl FnMut(u32)) {
        let run = self.runs.find(tuple);
        let starts = self.starts.get(run.clone()).unwrap_or_default();
        let started = starts.partition_point(|start| *start <= n);
        let started = self.entries.get(run.start..run.start + started).unwrap_or_default();
        let Some(last) = started.last() else { return };
        // Most often no two ranges of a tuple overlap: the last that has started is the only one that may not have ended.
        if last.largest_before.is_some_and(|end| n <= end) {
            stab(self.entries.get(run).unwrap_or_default(), n, visit);
        } else if n <= last.range.end() {
            visit(last.variant);
        }
    }
}

fn set_largest_ends(tree: &mut [Interval]) -> u64 {
    let middle = tree.len() / 2;
    let (before, rest) = tree.split_at_mut(middle);
    let Some((root, after)) = rest.split_first_mut() else { return 0 };
    root.largest_end = root.range.end().max(set_largest_ends(before)).max(set_largest_ends(after));
    root.largest_end
}

/// Visits all around `n`. As deep as the tree, whose depth is the logarithm of its size.
#[inline(never)]
fn stab(tree: &[Interval], n: u64, visit: &mut impl FnMut(u32)) {
    let mut tree = tree;
    // To the right in a loop, to the left by recursion.
    while let Some((before, [root, after @ ..])) = tree.split_at_checked(tree.len() / 2) {
        if root.largest_end < n {
            return;
        }
        stab(before, n, visit);
        if n < root.range.start() {
            return;
        }
        if n <= root.range.end() {
            visit(root.variant);
        }
        tree = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_around_an_integer_is_found_and_no_other() {
        let tuples = [TupleHash::default(), TupleHash::default().then(Some("a"))];
        let ranges: Vec<(u64, u64)> = (0..7).flat_map(|start| (start..7).map(move |end| (start, end))).collect();
        let numbered = (0..).zip(ranges.iter().cycle().take(2 * ranges.len()));
        let entries = numbered.map(|(number, &(start, end))| {
            (tuples[number as usize / ranges.len()], IntRange::new(start, end).unwrap(), number)
        });
        let intervals = Intervals::new(entries);
        for (i, tuple) in tuples.into_iter().enumerate() {
            for n in 0..9 {
                let mut found = Vec::new();
                intervals.for_each_around(tuple, n, &mut |number| found.push(number as usize));
                found.sort_unstable();
                let expected = (0..ranges.len()).filter(|&at| ranges[at].0 <= n && n <= ranges[at].1);
                assert_eq!(found, expected.map(|at| i * ranges.len() + at).collect::<Vec<_>>());
            }
        }
    }
}
