use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::Selection;
use super::canonical::canonical_text;
use super::index::{Table, TupleHash};
use crate::admitted::Admitted;
use crate::lint::{self, LintOptions, LintReport};
use crate::prefixed::Prefixed;
use crate::{Constraint, ConstraintError, DynamicParameters, draft};

/// The variants of one resource in the final form, each with its constraints, compiled for selection.
///
/// `N` names a variant: a string, a version, a position in the caller's own table. A subscriber's values are looked up in an index
/// over the keys that the variants fix, one probe for each set of keys that occurs (one, if the variants follow TP2's best practice);
/// only what is found there is tried, and variants that fix no key.
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
/// # Ok::<(), xds_matcher::TextError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FinalVariants<N> {
    /// In canonical order.
    variants: Box<[(N, Constraint)]>,
    groups: Box<[Group]>,
}

/// The variants that fix the same keys.
#[derive(Debug, Clone)]
struct Group {
    keys: Box<[Prefixed]>,
    table: Table,
}

/// With how many combinations of values one variant may be in the index.
const MAX_ENTRIES: usize = 256;

impl<N: Ord> FinalVariants<N> {
    /// Compiles a set of variants, in time proportional to its size.
    pub fn new(variants: impl IntoIterator<Item = (N, Constraint)>) -> Self {
        let mut variants: Vec<_> = variants.into_iter().collect();
        variants.sort_by(|a, b| a.0.cmp(&b.0));
        variants.sort_by_cached_key(|(_, constraint)| canonical_text(constraint.node()));
        let mut groups: BTreeMap<Vec<&str>, Vec<(TupleHash, u32)>> = BTreeMap::new();
        for (number, (_, constraint)) in (0..).zip(&variants) {
            let admitted = Admitted::by(constraint.node());
            if !admitted.is_nothing() {
                let (keys, tuples) = index_entries(&admitted);
                groups.entry(keys).or_default().extend(tuples.into_iter().map(|tuple| (tuple, number)));
            }
        }
        let groups = groups.into_iter().map(|(keys, entries)| Group {
            keys: keys.into_iter().map(Prefixed::from).collect(),
            table: entries.into_iter().collect(),
        });
        Self { groups: groups.collect(), variants: variants.into() }
    }

    /// The variant for a subscriber with these parameters. Allocates nothing.
    pub fn select(&self, parameters: &DynamicParameters) -> Selection<'_, N> {
        let (mut first, mut count) = (u32::MAX, 0);
        self.for_each_match(parameters, |number| {
            first = first.min(number);
            count += 1;
        });
        let variant = self.variants.get(first as usize).map(|(name, _)| name);
        Selection { variant, ambiguous: count > 1 }
    }

    /// Every variant that matches, in canonical order: what a subscription to a glob collection gets.
    pub fn matches(&self, parameters: &DynamicParameters) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_match(parameters, |number| numbers.push(number));
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| Some(&self.variants.get(number as usize)?.0)).collect()
    }

    /// [`select`](Self::select) for a subscriber of the draft form.
    ///
    /// # Errors
    /// Those of [`Subscription::to_parameters`](draft::Subscription::to_parameters).
    pub fn select_draft(&self, subscription: &draft::Subscription) -> Result<Selection<'_, N>, ConstraintError> {
        Ok(self.select(&subscription.to_parameters()?))
    }

    /// What is wrong with this set of variants, for a control plane to see before it accepts them.
    ///
    /// ```
    /// use xds_matcher::{FinalVariants, LintOptions};
    ///
    /// let variants = FinalVariants::new([("all", "exists(env)".parse()?), ("prod", "env=prod".parse()?)]);
    /// let report = variants.lint(&LintOptions::default());
    /// assert_eq!(report.overlaps, [(&"all", &"prod")]);
    /// # Ok::<(), xds_matcher::TextError>(())
    /// ```
    pub fn lint(&self, options: &LintOptions<'_>) -> LintReport<'_, N> {
        let variants: Vec<_> = self.variants.iter().map(|(name, constraint)| (name, constraint.node())).collect();
        lint::lint_final(&variants, options)
    }

    /// Names and constraints in canonical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&N, &Constraint)> {
        self.variants.iter().map(|(name, constraint)| (name, constraint))
    }

    fn for_each_match(&self, parameters: &DynamicParameters, mut visit: impl FnMut(u32)) {
        for group in &self.groups {
            let tuple = group
                .keys
                .iter()
                .fold(TupleHash::default(), |tuple, key| tuple.then(parameters.lookup(key).map(|value| &**value)));
            for number in group.table.find(tuple) {
                // A variant is in one group and there once per tuple: nothing is visited twice.
                if self.variants.get(number as usize).is_some_and(|(_, constraint)| constraint.matches(parameters)) {
                    visit(number);
                }
            }
        }
    }
}

/// The keys to find a variant by, and each combination of their values that it admits.
fn index_entries<'a>(admitted: &Admitted<'a>) -> (Vec<&'a str>, Vec<TupleHash>) {
    let mut keys: Vec<(&'a str, &BTreeSet<Option<&'a str>>)> = admitted.keys().collect();
    // Keys with few values first, as long as the combinations stay few.
    keys.sort_by_key(|(_, values)| values.len());
    let mut combinations = 1usize;
    keys.retain(|(_, values)| {
        let more = combinations.saturating_mul(values.len());
        let fits = more <= MAX_ENTRIES;
        combinations = if fits { more } else { combinations };
        fits
    });
    keys.sort_by_key(|(key, _)| *key);
    let tuples = keys.iter().fold(alloc::vec![TupleHash::default()], |tuples, (_, values)| {
        tuples.iter().flat_map(|tuple| values.iter().map(|value| tuple.then(*value))).collect()
    });
    (keys.into_iter().map(|(key, _)| key).collect(), tuples)
}
