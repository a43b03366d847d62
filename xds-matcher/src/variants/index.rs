//! Look-up of variants by the exact values of several keys at once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::prefixed::{Prefixed, prefix};

/// From tuples of values to the numbers of variants. It keeps hashes only: whoever looks something up verifies what is found, so a
/// collision costs time and never a wrong answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// Sorted.
    entries: Box<[(TupleHash, u32)]>,
}

impl Table {
    pub(super) fn find(&self, tuple: TupleHash) -> impl Iterator<Item = u32> {
        self.from(tuple).iter().take_while(move |(hash, _)| *hash == tuple).map(|(_, variant)| *variant)
    }

    #[cfg(feature = "draft")]
    pub(super) fn count(&self, tuple: TupleHash) -> usize {
        self.from(tuple).partition_point(|(hash, _)| *hash == tuple)
    }

    fn from(&self, tuple: TupleHash) -> &[(TupleHash, u32)] {
        let start = self.entries.partition_point(|(hash, _)| *hash < tuple);
        self.entries.get(start..).unwrap_or_default()
    }
}

impl FromIterator<(TupleHash, u32)> for Table {
    fn from_iter<I: IntoIterator<Item = (TupleHash, u32)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable();
        entries.dedup();
        Self { entries: entries.into() }
    }
}

/// Where the entries of each tuple are in a list sorted by tuple.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    /// Sorted; each with the end of its run.
    ends: Box<[(TupleHash, u32)]>,
}

impl Runs {
    /// The list must be no longer than `u32` can count; what is beyond is not found.
    pub(super) fn of(tuples: impl Iterator<Item = TupleHash>) -> Self {
        let mut ends: Vec<(TupleHash, u32)> = Vec::new();
        for (tuple, end) in tuples.zip(1..) {
            match ends.last_mut() {
                Some(last) if last.0 == tuple => last.1 = end,
                _ => ends.push((tuple, end)),
            }
        }
        Self { ends: ends.into() }
    }

    pub(super) fn find(&self, tuple: TupleHash) -> Range<usize> {
        let at = self.ends.partition_point(|(before, _)| *before < tuple);
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(_, end)| *end as usize);
        match self.ends.get(at) {
            Some((found, end)) if *found == tuple => start..*end as usize,
            _ => 0..0,
        }
    }
}

/// A 64-bit hash of a sequence of values, each of which may be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TupleHash(u64);

impl TupleHash {
    /// The hash of the sequence continued by `value`.
    pub(super) fn then(self, value: Option<&str>) -> Self {
        match value {
            Some(text) => self.then_text(prefix(text), text),
            None => self.then_absent(),
        }
    }

    /// The same of a value whose prefix is known.
    #[inline]
    pub(super) fn then_prefixed(self, value: Option<&Prefixed>) -> Self {
        match value {
            Some(value) => self.then_text(value.prefix(), value),
            None => self.then_absent(),
        }
    }

    #[inline]
    fn then_text(self, prefix: u64, text: &str) -> Self {
        // The length keeps ("a", "bc") apart from ("ab", "c").
        let hash = self.mix(text.len() as u64).mix(prefix);
        if text.len() <= 8 { hash } else { hash.then_tail(text) }
    }

    /// What follows the first eight bytes.
    fn then_tail(self, text: &str) -> Self {
        let (words, rest) = text.as_bytes().get(8..).unwrap_or_default().as_chunks::<8>();
        let hash = words.iter().fold(self, |hash, word| hash.mix(u64::from_le_bytes(*word)));
        if rest.is_empty() { hash } else { hash.mix(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))) }
    }

    fn then_absent(self) -> Self {
        self.mix(u64::MAX)
    }

    fn mix(self, word: u64) -> Self {
        // One round of a multiply-and-fold hash; the multiplier is odd with irregular bits, the golden ratio's.
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd1b5_4a32_d192_ed03;
        Self((product >> 64) as u64 ^ product as u64)
    }
}
