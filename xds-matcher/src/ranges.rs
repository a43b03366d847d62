//! Sets of integers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::IntRange;
use crate::range::integer;

/// Integer ranges: sorted, and neither overlapping nor adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranges(Box<[IntRange]>);

impl Ranges {
    pub(crate) fn of(ranges: &[IntRange]) -> Self {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        Self::merged(sorted)
    }

    fn merged(sorted: impl IntoIterator<Item = IntRange>) -> Self {
        let mut merged: Vec<IntRange> = Vec::new();
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.start() <= last.end().saturating_add(1) => *last = last.extended_to(range.end()),
                _ => merged.push(range),
            }
        }
        Self(merged.into())
    }

    pub(crate) fn as_slice(&self) -> &[IntRange] {
        &self.0
    }

    pub(crate) fn into_boxed_slice(self) -> Box<[IntRange]> {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, n: u64) -> bool {
        enclosing(&self.0, n).is_some()
    }

    /// Whether a parameter value is an integer in one of them.
    pub(crate) fn holds(&self, text: &str) -> bool {
        !self.is_empty() && integer(text).is_some_and(|n| self.contains(n))
    }

    /// The integers in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (&*self.0, &*other.0);
        let mut common = Vec::new();
        while let ([a, rest_a @ ..], [b, rest_b @ ..]) = (ours, theirs) {
            common.extend(IntRange::new(a.start().max(b.start()), a.end().min(b.end())).ok());
            if a.end() <= b.end() {
                ours = rest_a;
            } else {
                theirs = rest_b;
            }
        }
        Self(common.into())
    }

    /// The integers in either.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut both = [&*self.0, &*other.0].concat();
        // Two runs that are sorted: a stable sort merges them.
        both.sort();
        Self::merged(both)
    }

    /// The integers that are not in `other`.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut gaps = Vec::new();
        let mut next = Some(0);
        for range in &other.0 {
            let gap = next.zip(range.start().checked_sub(1));
            gaps.extend(gap.and_then(|(start, end)| IntRange::new(start, end).ok()));
            next = range.end().checked_add(1);
        }
        gaps.extend(next.map(IntRange::at_least));
        self.and(&Self(gaps.into()))
    }

    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        disjoint(&self.0, &other.0)
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        within(&self.0, &other.0)
    }
}

/// Both sorted and merged: none of `a` touches one of `b`.
pub(crate) fn disjoint(a: &[IntRange], b: &[IntRange]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    !few.iter().any(|range| {
        let after = many.partition_point(|other| other.end() < range.start());
        many.get(after).is_some_and(|other| other.start() <= range.end())
    })
}

/// Both sorted and merged: each of `a` lies in one of `b`.
pub(crate) fn within(a: &[IntRange], b: &[IntRange]) -> bool {
    a.iter().all(|range| enclosing(b, range.start()).is_some_and(|outer| range.end() <= outer.end()))
}

fn enclosing(merged: &[IntRange], n: u64) -> Option<&IntRange> {
    let after = merged.partition_point(|range| range.start() <= n);
    merged.get(after.checked_sub(1)?).filter(|range| range.contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// All sets of integers below six, as ranges that need merging.
    fn sets() -> impl Iterator<Item = (u32, Ranges)> {
        (0..64_u32).map(|bits| {
            let members = (0..6).filter(|n| bits >> n & 1 == 1).map(IntRange::exactly);
            (bits, Ranges::of(&members.collect::<Vec<_>>()))
        })
    }

    #[test]
    fn they_are_sets() {
        let bits_of = |ranges: &Ranges| (0..6).filter(|n| ranges.contains(*n)).map(|n| 1 << n).sum::<u32>();
        for (a, left) in sets() {
            assert_eq!(bits_of(&left), a);
            assert!(left.as_slice().is_sorted_by(|one, next| one.end() + 1 < next.start()));
            for (b, right) in sets() {
                assert_eq!(left.and(&right), Ranges::of(left.and(&right).as_slice()));
                assert_eq!(bits_of(&left.and(&right)), a & b);
                assert_eq!(bits_of(&left.or(&right)), a | b);
                assert_eq!(bits_of(&left.without(&right)), a & !b);
                assert_eq!(left.is_disjoint(&right), a & b == 0);
                assert_eq!(within(left.as_slice(), right.as_slice()), a & !b == 0);
            }
        }
    }

    #[test]
    fn the_largest_integer_ends_the_last_range() {
        let all = Ranges::of(&[IntRange::at_most(u64::MAX - 1), IntRange::exactly(u64::MAX)]);
        assert_eq!(all.as_slice(), [IntRange::at_least(0)]);
        assert!(all.holds("18446744073709551615") && !all.holds("18446744073709551616"));
        assert!(all.without(&all).is_empty());
        let last = Ranges::of(&[IntRange::exactly(u64::MAX)]);
        assert_eq!(all.without(&last).as_slice(), [IntRange::at_most(u64::MAX - 1)]);
    }
}
