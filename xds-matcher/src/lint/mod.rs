//! What is wrong with a set of variants.

#[cfg(feature = "draft")]
mod draft_rules;
mod final_rules;
mod limits;
mod pairs;
mod parts;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

#[cfg(feature = "draft")]
pub(crate) use draft_rules::lint_draft;
pub(crate) use final_rules::lint_final;

/// What a lint knows about the subscribers.
///
/// ```
/// use xds_matcher::{FinalVariants, LintOptions};
///
/// let variants = FinalVariants::new([("prod", "env=prod".parse()?), ("test", "env=test".parse()?)]);
/// let values = [("env", ["prod", "test", "qa"].as_slice())];
/// assert_eq!(variants.lint(&LintOptions::new().values(&values)).uncovered["env"], ["qa"]);
/// # Ok::<(), xds_matcher::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LintOptions<'a> {
    values: &'a [(&'a str, &'a [&'a str])],
    sent: Option<&'a [&'a str]>,
}

impl<'a> LintOptions<'a> {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: &[], sent: None }
    }

    /// Keys with the values that subscribers use for them: there should be a variant for each.
    #[must_use]
    pub const fn values(self, values: &'a [(&'a str, &'a [&'a str])]) -> Self {
        Self { values, ..self }
    }

    /// The keys that subscribers send already, if that is known: nothing should depend on others yet.
    #[must_use]
    pub const fn sent(self, keys: &'a [&'a str]) -> Self {
        Self { sent: Some(keys), ..self }
    }
}

/// Where a set of variants departs from TP2's best practices.
///
/// Every finding is certain. What could not be decided within [`LintReport::STEPS`] is in [`undecided`](Self::undecided) or
/// [`uncovered_undecided`](Self::uncovered_undecided); [`is_complete`](Self::is_complete) is false if even those lists were cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct LintReport<'a, N> {
    /// Pairs of variants that one subscriber would match both of, each pair and the list sorted.
    pub overlaps: Vec<(&'a N, &'a N)>,
    /// Pairs for which that was too much work to find out.
    pub undecided: Vec<(&'a N, &'a N)>,
    /// Whether all variants mention the same keys.
    pub same_keys: bool,
    /// Per key, the values from [`LintOptions::values`] that no variant is for.
    pub uncovered: BTreeMap<String, Vec<String>>,
    /// Per key, the values for which that was too much work to find out.
    pub uncovered_undecided: BTreeMap<String, Vec<String>>,
    /// Per key that is not sent yet, the several variants that it alone tells apart (draft: subscribers get any of them) or that only
    /// its senders can match (final: nobody gets them).
    pub unsent: BTreeMap<String, Vec<&'a N>>,
    complete: bool,
    /// How many were taken.
    steps: usize,
}

impl<N> LintReport<'_, N> {
    /// How many nodes, keys and values one lint looks at, at most, so that it ends in seconds whatever it is given;
    /// [`Overlap::STEPS`](crate::Overlap::STEPS) for one pair of variants.
    pub const STEPS: usize = 1 << 26;

    /// How many pairs of variants a report lists, at most.
    pub const PAIRS: usize = 100_000;

    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Self { overlaps, undecided, same_keys, uncovered, uncovered_undecided, unsent, complete, steps: _ } = self;
        *complete
            && *same_keys
            && overlaps.is_empty()
            && undecided.is_empty()
            && uncovered.is_empty()
            && uncovered_undecided.is_empty()
            && unsent.is_empty()
    }

    /// Whether every pair of variants was looked at.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    fn new() -> Self {
        Self {
            overlaps: Vec::new(),
            undecided: Vec::new(),
            same_keys: true,
            uncovered: BTreeMap::new(),
            uncovered_undecided: BTreeMap::new(),
            unsent: BTreeMap::new(),
            complete: true,
            steps: 0,
        }
    }
}

impl<N: Ord> LintReport<'_, N> {
    fn sort(&mut self) {
        for pairs in [&mut self.overlaps, &mut self.undecided] {
            for pair in pairs.iter_mut().filter(|(a, b)| a > b) {
                *pair = (pair.1, pair.0);
            }
            pairs.sort_unstable();
        }
        self.unsent.values_mut().for_each(|names| {
            names.sort_unstable();
            names.dedup();
        });
    }
}

fn all_equal<'s>(mut sets: impl Iterator<Item = &'s BTreeSet<&'s str>>) -> bool {
    let first = sets.next();
    sets.all(|set| Some(set) == first)
}

fn insert_value(found: &mut BTreeMap<String, Vec<String>>, key: &str, value: &str) {
    found.entry(key.into()).or_default().push(value.into());
}
