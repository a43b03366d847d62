//! Sets of values of one key.

use alloc::collections::BTreeSet;
use core::mem;

use crate::IntRange;
use crate::range::integer;
use crate::ranges::Ranges;
use crate::steps::{look_up, spend};

/// Some of the values that a key can have; `None` is its absence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values<'a> {
    /// None of them is an integer of `ranges`, so that the two have nothing in common.
    exact: BTreeSet<Option<&'a str>>,
    ranges: Ranges,
    /// No text of `exact` has more bytes.
    longest: usize,
}

impl<'a> Values<'a> {
    pub(crate) fn one(value: Option<&'a str>) -> Self {
        Self { exact: [value].into(), ranges: Ranges::default(), longest: value.map_or(0, str::len) }
    }

    pub(crate) fn integers(ranges: Ranges) -> Self {
        Self { exact: BTreeSet::new(), ranges, longest: 0 }
    }

    pub(crate) fn exact(&self) -> &BTreeSet<Option<&'a str>> {
        &self.exact
    }

    pub(crate) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.ranges.is_empty()
    }

    /// How many values and ranges it takes to write the set.
    pub(crate) fn len(&self) -> usize {
        self.exact.len() + self.ranges.len()
    }

    pub(crate) fn contains(&self, value: Option<&str>) -> bool {
        self.exact.contains(&value) || value.is_some_and(|text| self.ranges.holds(text))
    }

    /// In how many steps one value of the one set is looked up in the other.
    pub(crate) fn look_up(&self, other: &Self) -> usize {
        look_up(self.longest.min(other.longest), self.exact.len().max(other.exact.len()))
    }

    /// What is in both. Sets without integers cost what the smaller one has.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        if self.exact.len() > other.exact.len() {
            mem::swap(&mut self, &mut other);
        }
        self.exact.retain(|value| other.contains(*value));
        if !self.ranges.is_empty() {
            let ranges = &self.ranges;
            self.exact.extend(other.exact.iter().filter(|value| value.is_some_and(|text| ranges.holds(text))));
            self.longest = self.longest.max(other.longest);
        }
        self.ranges = self.ranges.and(&other.ranges);
        self
    }

    /// What is in either. Sets without integers cost what the smaller one has.
    pub(crate) fn or(mut self, mut other: Self) -> Self {
        if self.exact.len() < other.exact.len() {
            mem::swap(&mut self, &mut other);
        }
        self.longest = self.longest.max(other.longest);
        // Appending is linear in both, whatever their sizes.
        if other.exact.len() > self.exact.len() / 8 {
            self.exact.append(&mut other.exact);
        } else {
            self.exact.extend(mem::take(&mut other.exact));
        }
        if !other.ranges.is_empty() || !self.ranges.is_empty() {
            self.ranges = self.ranges.or(&other.ranges);
            let ranges = &self.ranges;
            self.exact.retain(|value| !value.is_some_and(|text| ranges.holds(text)));
        }
        self
    }

    /// At least what is here and not in `other`, and little else: an exact value does not take its integer from a range, which
    /// has other spellings of it.
    pub(crate) fn at_least_without(mut self, other: &Self) -> Self {
        self.exact.retain(|value| !other.contains(*value));
        if !other.ranges.is_empty() {
            self.ranges = self.ranges.without(&other.ranges);
        }
        self
    }

    /// At most what is here and not in `other`, and little less: an exact value takes its integer from a range.
    pub(crate) fn at_most_without(self, other: &Self) -> Self {
        let spelled: alloc::vec::Vec<_> = if self.ranges.is_empty() {
            alloc::vec::Vec::new()
        } else {
            other.exact.iter().filter_map(|value| integer((*value)?)).map(IntRange::exactly).collect()
        };
        let mut left = self.at_least_without(other);
        if !spelled.is_empty() {
            left.ranges = left.ranges.without(&Ranges::of(&spelled));
        }
        left
    }

    /// Whether they have nothing in common; not if that is not found out. Every value looked at is a step.
    pub(crate) fn is_disjoint(&self, other: &Self, steps: &mut usize) -> bool {
        let (few, many) = if self.exact.len() <= other.exact.len() { (self, other) } else { (other, self) };
        let cost = self.look_up(other);
        let mut share =
            |from: &Self, with: &Self| from.exact.iter().any(|value| !spend(steps, cost) || with.contains(*value));
        if share(few, many) || !few.ranges.is_empty() && share(many, few) {
            return false;
        }
        spend(steps, self.ranges.len().min(other.ranges.len())) && self.ranges.is_disjoint(&other.ranges)
    }

    /// Whether all of them are in `other`; not if that is not found out. Every value looked at is a step.
    pub(crate) fn is_within(&self, other: &Self, steps: &mut usize) -> bool {
        let cost = self.look_up(other);
        self.exact.iter().all(|value| spend(steps, cost) && other.contains(*value))
            && spend(steps, self.ranges.len())
            && self.ranges.is_within(&other.ranges)
    }

    /// The one value, if it is one.
    pub(crate) fn only(&self) -> Option<Option<&'a str>> {
        if self.len() == 1 { self.exact.first().copied() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Sets of some spellings of two integers, and their ranges.
    fn sets() -> impl Iterator<Item = Values<'static>> {
        let parts = || {
            let exact = [None, Some("x"), Some("5"), Some("05"), Some("6")].map(Values::one);
            let ranges = [(5, 5), (6, 6), (6, 7)].map(|(min, max)| IntRange::new(min, max).unwrap());
            exact.into_iter().chain(ranges.map(|range| Values::integers(Ranges::of(&[range]))))
        };
        let parts: Vec<Values<'static>> = parts().collect();
        (0..1_usize << parts.len()).step_by(3).map(move |bits| {
            let chosen = parts.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            chosen.fold(Values::default(), |set, (_, part)| set.or(part.clone()))
        })
    }

    #[test]
    fn they_are_sets() {
        let probes = [None, Some("x"), Some("5"), Some("05"), Some("005"), Some("6"), Some("06"), Some("7"), Some("y")];
        for a in sets() {
            for b in sets() {
                let (both, either) = (a.clone().and(b.clone()), a.clone().or(b.clone()));
                let (most, least) = (a.clone().at_least_without(&b), a.clone().at_most_without(&b));
                for probe in probes {
                    let (in_a, in_b) = (a.contains(probe), b.contains(probe));
                    assert_eq!(both.contains(probe), in_a && in_b);
                    assert_eq!(either.contains(probe), in_a || in_b);
                    assert!(most.contains(probe) || !in_a || in_b);
                    assert!(!least.contains(probe) || in_a && !in_b);
                    assert!(most.contains(probe) || !least.contains(probe));
                }
                let steps = &mut 1000;
                assert_eq!(a.is_disjoint(&b, steps), both.is_empty());
                // Where all spellings of an integer are named it would take the range to hold them.
                assert!(!a.is_within(&b, steps) || probes.iter().all(|&p| !a.contains(p) || b.contains(p)));
                assert!(a.is_within(&a.clone().or(b.clone()), steps));
            }
        }
    }
}
