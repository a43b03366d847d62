use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::slice;

use super::Selection;
use super::canonical::canonical_text;
use super::index::{Table, TupleHash};
use super::intervals::Intervals;
use crate::admitted::Admitted;
use crate::lint::{self, LintOptions, LintReport};
use crate::prefixed::Prefixed;
use crate::range::integer;
use crate::{Constraint, DynamicParameters, IntRange};
#[cfg(feature = "draft")]
use crate::{ConstraintError, draft};

/// The variants of one resource in the final form, each with its constraints, compiled for selection.
///
/// `N` names a variant: a string, a version, a position in the caller's own table. A subscriber's values are looked up in an index
/// over the keys that the variants fix, one probe for each set of keys that occurs (one, if the variants follow TP2's best practice),
/// and an integer among the ranges of variants that have some; only what is found there is tried, and variants that fix no key.
///
/// ```
/// use xds_matcher::{DynamicParameters, FinalVariants};
///
/// let variants = FinalVariants::new([
///     ("stable", "env=prod and version=v1".parse()?),
///     ("canary", "env=prod and not version=v1".parse()?),
/// ]);
/// let client = DynamicParameters::from_iter([("env", "prod"), ("version", "v2")]);
/// let selection = variants.select(&client);
/// assert_eq!(selection.variant(), Some(&"canary"));
/// assert!(!selection.is_ambiguous());
/// assert_eq!(variants.select(&DynamicParameters::new()).variant(), None);
/// # Ok::<(), xds_matcher::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FinalVariants<N> {
    /// In canonical order.
    variants: Box<[(N, Constraint)]>,
    groups: Box<[Group]>,
    ranged: Box<[RangedGroup]>,
}

/// The variants that fix the same keys.
#[derive(Debug, Clone)]
struct Group {
    keys: Box<[Prefixed]>,
    table: Table,
}

/// The variants that fix the same keys and have ranges for one other.
#[derive(Debug, Clone)]
struct RangedGroup {
    keys: Box<[Prefixed]>,
    ranged: Prefixed,
    intervals: Intervals,
}

/// With how many combinations of values one variant may be in the index.
const MAX_ENTRIES: usize = 256;

impl<N: Ord> FinalVariants<N> {
    /// Compiles a set of variants, in time proportional to its size.
    #[must_use]
    pub fn new(variants: impl IntoIterator<Item = (N, Constraint)>) -> Self {
        let mut variants: Vec<_> = variants.into_iter().collect();
        variants.sort_by(|a, b| a.0.cmp(&b.0));
        variants.sort_by_cached_key(|(_, constraint)| canonical_text(constraint.node()));
        let mut index = Index::default();
        for (number, (_, constraint)) in (0..).zip(&variants) {
            index.add(number, &Admitted::by(constraint.node(), constraint.cost()));
        }
        let (groups, ranged) = index.into_groups();
        Self { groups, ranged, variants: variants.into() }
    }

    /// The variant for a subscriber with these parameters. Allocates nothing.
    pub fn select(&self, parameters: &DynamicParameters) -> Selection<'_, N> {
        let mut found = Found { first: u32::MAX, count: 0 };
        self.for_each_exact_match(parameters, |number| found.add(number));
        if !self.ranged.is_empty() {
            found = self.find_by_range(parameters, found);
        }
        let variant = self.variants.get(found.first as usize).map(|(name, _)| name);
        Selection { variant, ambiguous: found.count > 1 }
    }

    /// Every variant that matches, in canonical order: what a subscription to a glob collection gets.
    #[must_use]
    pub fn matches(&self, parameters: &DynamicParameters) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_exact_match(parameters, |number| numbers.push(number));
        self.for_each_match_by_range(parameters, |number| numbers.push(number));
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| Some(&self.variants.get(number as usize)?.0)).collect()
    }

    /// [`select`](Self::select) for a subscriber of the draft form.
    ///
    /// # Errors
    /// Those of [`Subscription::to_parameters`](draft::Subscription::to_parameters).
    #[cfg(feature = "draft")]
    #[cfg_attr(docsrs, doc(cfg(feature = "draft")))]
    pub fn select_draft(&self, subscription: &draft::Subscription) -> Result<Selection<'_, N>, ConstraintError> {
        Ok(self.select(&subscription.to_parameters()?))
    }

    /// What is wrong with this set of variants, for a control plane to see before it accepts them.
    ///
    /// ```
    /// use xds_matcher::{FinalVariants, LintOptions};
    ///
    /// let variants = FinalVariants::new([("all", "exists(env)".parse()?), ("prod", "env=prod".parse()?)]);
    /// let report = variants.lint(&LintOptions::new());
    /// assert_eq!(report.overlaps, [(&"all", &"prod")]);
    /// # Ok::<(), xds_matcher::ParseError>(())
    /// ```
    pub fn lint(&self, options: &LintOptions<'_>) -> LintReport<'_, N> {
        lint::lint_final(self.iter(), options)
    }

    /// Names and constraints in canonical order.
    #[must_use]
    pub fn iter(&self) -> FinalVariantsIter<'_, N> {
        FinalVariantsIter(self.variants.iter())
    }

    // A variant is in a group once per tuple, and in two groups for values that exclude each other: nothing is visited twice.

    fn for_each_exact_match(&self, parameters: &DynamicParameters, mut visit: impl FnMut(u32)) {
        for group in &self.groups {
            for number in group.table.find(tuple(&group.keys, parameters)) {
                if self.is_match(number, parameters) {
                    visit(number);
                }
            }
        }
    }

    /// Apart, so that it costs nothing where no variant has a range.
    #[inline(never)]
    fn find_by_range(&self, parameters: &DynamicParameters, mut found: Found) -> Found {
        self.for_each_match_by_range(parameters, |number| found.add(number));
        found
    }

    fn for_each_match_by_range(&self, parameters: &DynamicParameters, mut visit: impl FnMut(u32)) {
        for group in &self.ranged {
            if let Some(n) = parameters.lookup(&group.ranged).and_then(|value| integer(value)) {
                group.intervals.for_each_around(tuple(&group.keys, parameters), n, &mut |number| {
                    if self.is_match(number, parameters) {
                        visit(number);
                    }
                });
            }
        }
    }

    #[inline]
    fn is_match(&self, number: u32, parameters: &DynamicParameters) -> bool {
        self.variants.get(number as usize).is_some_and(|(_, constraint)| constraint.matches(parameters))
    }
}

/// The matches seen so far.
struct Found {
    /// The first in canonical order.
    first: u32,
    count: usize,
}

impl Found {
    #[inline]
    fn add(&mut self, number: u32) {
        self.first = self.first.min(number);
        self.count += 1;
    }
}

#[inline]
fn tuple(keys: &[Prefixed], parameters: &DynamicParameters) -> TupleHash {
    let mut tuple = TupleHash::default();
    for key in keys {
        tuple = tuple.then_prefixed(parameters.lookup(key));
    }
    tuple
}

impl<'a, N: Ord> IntoIterator for &'a FinalVariants<N> {
    type Item = (&'a N, &'a Constraint);
    type IntoIter = FinalVariantsIter<'a, N>;

    fn into_iter(self) -> FinalVariantsIter<'a, N> {
        self.iter()
    }
}

/// Names and constraints: see [`FinalVariants::iter`].
#[derive(Debug)]
pub struct FinalVariantsIter<'a, N>(slice::Iter<'a, (N, Constraint)>);

impl<'a, N> Iterator for FinalVariantsIter<'a, N> {
    type Item = (&'a N, &'a Constraint);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, constraint)| (name, constraint))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<N> ExactSizeIterator for FinalVariantsIter<'_, N> {}

/// A combination of exact values, a range, and the variant that has both.
type Ranged = (TupleHash, IntRange, u32);

/// What the groups are made of, by their keys.
#[derive(Default)]
struct Index<'a> {
    exact: BTreeMap<Vec<&'a str>, Vec<(TupleHash, u32)>>,
    ranged: BTreeMap<(Vec<&'a str>, &'a str), Vec<Ranged>>,
}

impl<'a> Index<'a> {
    fn add(&mut self, variant: u32, admitted: &Admitted<'a>) {
        if admitted.is_nothing() {
            return;
        }
        // Of several keys with ranges one is enough to find a variant by.
        let ranged = admitted.keys().find(|(_, values)| !values.ranges().is_empty());
        let without_ranges = admitted.keys().filter(|(_, values)| values.ranges().is_empty());
        let mut keys: Vec<(&'a str, Exact<'_, 'a>)> =
            without_ranges.map(|(key, values)| (key, values.exact())).collect();
        let Some((key, values)) = ranged.filter(|(_, values)| values.ranges().len() <= MAX_ENTRIES) else {
            keep_few(&mut keys, MAX_ENTRIES);
            return self.add_exact(variant, &keys);
        };
        keep_few(&mut keys, MAX_ENTRIES / values.len().min(MAX_ENTRIES));
        let intervals = self.ranged.entry((names(&keys), key)).or_default();
        for tuple in tuples(&keys) {
            intervals.extend(values.ranges().as_slice().iter().map(|range| (tuple, *range, variant)));
        }
        // The same key may admit other values too, none of which is an integer of the ranges.
        if !values.exact().is_empty() {
            let at = keys.partition_point(|(other, _)| *other < key);
            keys.insert(at, (key, values.exact()));
            self.add_exact(variant, &keys);
        }
    }

    fn add_exact(&mut self, variant: u32, keys: &[(&'a str, Exact<'_, 'a>)]) {
        self.exact.entry(names(keys)).or_default().extend(tuples(keys).into_iter().map(|tuple| (tuple, variant)));
    }

    fn into_groups(self) -> (Box<[Group]>, Box<[RangedGroup]>) {
        let prefixed = |keys: Vec<&str>| keys.into_iter().map(Prefixed::from).collect();
        let exact = self.exact.into_iter();
        let exact = exact.map(|(keys, entries)| Group { keys: prefixed(keys), table: entries.into_iter().collect() });
        let ranged = self.ranged.into_iter().map(|((keys, ranged), entries)| RangedGroup {
            keys: prefixed(keys),
            ranged: ranged.into(),
            intervals: Intervals::new(entries),
        });
        (exact.collect(), ranged.collect())
    }
}

type Exact<'s, 'a> = &'s BTreeSet<Option<&'a str>>;

fn names<'a>(keys: &[(&'a str, Exact<'_, 'a>)]) -> Vec<&'a str> {
    keys.iter().map(|(key, _)| *key).collect()
}

/// Leaves out keys with many values, as long as the combinations are more than `limit`.
fn keep_few(keys: &mut Vec<(&str, Exact<'_, '_>)>, limit: usize) {
    keys.sort_by_key(|(_, values)| values.len());
    let mut combinations = 1usize;
    keys.retain(|(_, values)| {
        let more = combinations.saturating_mul(values.len());
        let fits = more <= limit;
        combinations = if fits { more } else { combinations };
        fits
    });
    keys.sort_by_key(|(key, _)| *key);
}

/// Each combination of values.
fn tuples(keys: &[(&str, Exact<'_, '_>)]) -> Vec<TupleHash> {
    keys.iter().fold(alloc::vec![TupleHash::default()], |tuples, (_, values)| {
        tuples.iter().flat_map(|tuple| values.iter().map(|value| tuple.then(*value))).collect()
    })
}
