//! Look-up of variants by an integer that lies in one of their ranges.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::index::TupleHash;
use crate::IntRange;

/// Ranges of integers, each for one tuple of values and with the number of a variant.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    /// Sorted by tuple and start; the intervals of one tuple are a tree, of which the middle is the root.
    entries: Box<[Interval]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    tuple: TupleHash,
    range: IntRange,
    variant: u32,
    /// The largest end in the subtree below and here.
    largest_end: u64,
}

impl Intervals {
    pub(super) fn new(entries: impl IntoIterator<Item = (TupleHash, IntRange, u32)>) -> Self {
        let interval = |(tuple, range, variant): (_, IntRange, _)| Interval { tuple, range, variant, largest_end: 0 };
        let mut entries: Vec<Interval> = entries.into_iter().map(interval).collect();
        entries.sort_unstable();
        entries.chunk_by_mut(|a, b| a.tuple == b.tuple).for_each(|tree| _ = set_largest_ends(tree));
        Self { entries: entries.into() }
    }

    /// Visits the variants of this tuple that have a range around `n`.
    pub(super) fn for_each_around(&self, tuple: TupleHash, n: u64, visit: &mut impl FnMut(u32)) {
        let start = self.entries.partition_point(|entry| entry.tuple < tuple);
        let rest = self.entries.get(start..).unwrap_or_default();
        // Most often there is one tuple or few.
        let end = match rest.last() {
            Some(last) if last.tuple == tuple => rest.len(),
            _ => rest.partition_point(|entry| entry.tuple == tuple),
        };
        stab(rest.get(..end).unwrap_or_default(), n, visit);
    }
}

fn set_largest_ends(tree: &mut [Interval]) -> u64 {
    let middle = tree.len() / 2;
    let (before, rest) = tree.split_at_mut(middle);
    let Some((root, after)) = rest.split_first_mut() else { return 0 };
    root.largest_end = root.range.end().max(set_largest_ends(before)).max(set_largest_ends(after));
    root.largest_end
}

/// As deep as the tree, whose depth is the logarithm of its size.
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
