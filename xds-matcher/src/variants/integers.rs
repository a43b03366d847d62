//! Look-up of variants by a range that one of their values lies in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::index::{Runs, TupleHash};
use crate::IntRange;
use crate::ranges::Ranges;

/// The integers that variants have as values of one key, each for one tuple of other values.
#[derive(Debug, Clone)]
pub(super) struct Integers {
    runs: Runs,
    /// Sorted within each tuple; apart from the variants, so that a search meets nothing else.
    integers: Box<[u64]>,
    variants: Box<[u32]>,
}

impl FromIterator<(TupleHash, u64, u32)> for Integers {
    fn from_iter<I: IntoIterator<Item = (TupleHash, u64, u32)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable();
        Self {
            runs: Runs::of(entries.iter().map(|(tuple, ..)| *tuple)),
            integers: entries.iter().map(|(_, n, _)| *n).collect(),
            variants: entries.iter().map(|(.., variant)| *variant).collect(),
        }
    }
}

impl Integers {
    /// The integers of this tuple in a range, with the variants that have them, in descending order.
    #[inline]
    pub(super) fn within(&self, tuple: TupleHash, range: IntRange) -> impl Iterator<Item = (u64, u32)> {
        let run = self.runs.find(tuple);
        let integers = self.integers.get(run.clone()).unwrap_or_default();
        let end = run.start + integers.partition_point(|n| *n <= range.end());
        let integers = self.integers.get(run.start..end).unwrap_or_default();
        let variants = self.variants.get(run.start..end).unwrap_or_default();
        let both = integers.iter().zip(variants).rev();
        both.map(|(n, variant)| (*n, *variant)).take_while(move |(n, _)| *n >= range.start())
    }

    /// What it takes to look at the integers in the ranges, of an index without tuples; counted up to `enough`.
    pub(super) fn count(&self, ranges: &Ranges, enough: usize) -> usize {
        let mut count = 0;
        for range in ranges.as_slice() {
            // A range is looked up in some steps, even if it has nothing.
            let start = self.integers.partition_point(|n| *n < range.start());
            let end = self.integers.partition_point(|n| *n <= range.end());
            count += 1 + end.saturating_sub(start);
            if count >= enough {
                break;
            }
        }
        count
    }
}
