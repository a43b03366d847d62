//! Sets of values of one key.

use alloc::collections::BTreeSet;
use core::mem;

use crate::range::integer;
use crate::ranges::Ranges;

/// Some of the values that a key can have; `None` is its absence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values<'a> {
    /// None of them is an integer of `ranges`, so that the two have nothing in common.
    exact: BTreeSet<Option<&'a str>>,
    ranges: Ranges,
}

impl<'a> Values<'a> {
    pub(crate) fn one(value: Option<&'a str>) -> Self {
        Self { exact: [value].into(), ranges: Ranges::default() }
    }

    pub(crate) fn integers(ranges: Ranges) -> Self {
        Self { exact: BTreeSet::new(), ranges }
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

    /// What is in both. Sets without integers cost what the smaller one has.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        if self.exact.len() > other.exact.len() {
            mem::swap(&mut self, &mut other);
        }
        self.exact.retain(|value| other.contains(*value));
        if !self.ranges.is_empty() {
            let ranges = &self.ranges;
            self.exact.extend(other.exact.iter().filter(|value| value.is_some_and(|text| ranges.holds(text))));
        }
        self.ranges = self.ranges.and(&other.ranges);
        self
    }

    /// What is in either. Sets without integers cost what the smaller one has.
    pub(crate) fn or(mut self, mut other: Self) -> Self {
        if self.exact.len() < other.exact.len() {
            mem::swap(&mut self, &mut other);
        }
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

    /// Whether they have nothing in common. Every value looked at is a step.
    pub(crate) fn is_disjoint(&self, other: &Self, steps: &mut usize) -> bool {
        let (few, many) = if self.exact.len() <= other.exact.len() { (self, other) } else { (other, self) };
        let mut share = |from: &Self, with: &Self| {
            from.exact.iter().any(|value| {
                *steps = steps.saturating_sub(1);
                with.contains(*value)
            })
        };
        if share(few, many) || !few.ranges.is_empty() && share(many, few) {
            return false;
        }
        *steps = steps.saturating_sub(self.ranges.len().min(other.ranges.len()));
        self.ranges.is_disjoint(&other.ranges)
    }

    /// The one value, if it is one.
    pub(crate) fn only(&self) -> Option<Option<&'a str>> {
        if self.len() == 1 { self.exact.first().copied() } else { None }
    }

    /// The exact values that are integers.
    pub(crate) fn exact_integers(&self) -> impl Iterator<Item = u64> {
        self.exact.iter().filter_map(|value| integer((*value)?))
    }
}
