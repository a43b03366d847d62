//! Look-up of variants by a range that one of their values lies in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::index::TupleHash;
use crate::IntRange;
use crate::ranges::Ranges;

/// The integers that variants have as values of one key, each for one tuple of other values.
#[derive(Debug, Clone)]
pub(super) struct Integers {
    /// Sorted.
    entries: Box<[(TupleHash, u64, u32)]>,
}

impl FromIterator<(TupleHash, u64, u32)> for Integers {
    fn from_iter<I: IntoIterator<Item = (TupleHash, u64, u32)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable();
        Self { entries: entries.into() }
    }
}

impl Integers {
    /// The integers of this tuple in a range, with the variants that have them, in ascending order.
    pub(super) fn within(&self, tuple: TupleHash, range: IntRange) -> &[(TupleHash, u64, u32)] {
        let start = self.entries.partition_point(|&(t, n, _)| (t, n) < (tuple, range.start()));
        let rest = self.entries.get(start..).unwrap_or_default();
        let end = rest.partition_point(|&(t, n, _)| (t, n) <= (tuple, range.end()));
        rest.get(..end).unwrap_or_default()
    }

    /// What it takes to look at the integers in the ranges, of an index without tuples; counted up to `enough`.
    pub(super) fn count(&self, ranges: &Ranges, enough: usize) -> usize {
        let mut count = 0;
        for range in ranges.as_slice() {
            // A range is looked up in some steps, even if it has nothing.
            count += 1 + self.within(TupleHash::default(), *range).len();
            if count >= enough {
                break;
            }
        }
        count
    }
}
