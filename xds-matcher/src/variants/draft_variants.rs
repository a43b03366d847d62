use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::slice;

use super::Selection;
use super::draft_group::Group;
use crate::DynamicParameters;
use crate::draft::{Admits, KeyRule, Subscription};
use crate::lint::{self, LintOptions, LintReport};
use crate::prefixed::Prefixed;

/// The variants of one resource in the draft form, each with its parameters, compiled for selection.
///
/// Where a subscription fixes all keys of a group of variants, or all but one that it gives ranges for, one probe of an index finds them;
/// where it fixes some, only the variants with the rarest of these values are tried. An inverted range is no help to find any.
///
/// ```
/// use xds_matcher::{DraftVariants, DynamicParameters, draft::Subscription};
///
/// let variants = DraftVariants::new(["3", "4", "7"].map(|shard| (shard, DynamicParameters::from_iter([("shard", shard)]))));
/// let client = Subscription::of(&"not exists(shard) or shard in 0..5".parse().unwrap()).unwrap();
/// // Of several matching integers the largest is preferred.
/// assert_eq!(variants.select(&client).variant(), Some(&"4"));
/// assert_eq!(variants.matches(&client), [&"3", &"4"]);
/// // A cache that holds only these must still ask for 5.
/// assert!(variants.must_ask_upstream(&client));
/// ```
#[derive(Debug, Clone)]
pub struct DraftVariants<N> {
    /// In canonical order.
    variants: Box<[(N, DynamicParameters)]>,
    groups: Box<[Group]>,
}

impl<N: Ord> DraftVariants<N> {
    /// Compiles a set of variants, in time proportional to its size.
    #[must_use]
    pub fn new(variants: impl IntoIterator<Item = (N, DynamicParameters)>) -> Self {
        let mut variants: Vec<_> = variants.into_iter().collect();
        // Parameters are ordered as lists of pairs sorted by key, which is the canonical order.
        variants.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        let mut groups: BTreeMap<Vec<&str>, Vec<u32>> = BTreeMap::new();
        for (number, (_, parameters)) in (0..).zip(&variants) {
            groups.entry(parameters.iter().map(|(key, _)| key).collect()).or_default().push(number);
        }
        let groups = groups.into_iter().map(|(keys, members)| Group::new(&keys, members, &variants)).collect();
        Self { groups, variants: variants.into() }
    }

    /// The variant for a subscription: of those that match, the one with the largest integers. Allocates nothing.
    pub fn select(&self, subscription: &Subscription) -> Selection<'_, N> {
        let mut best = Best::default();
        self.for_each_match(subscription, true, |number, parameters| {
            best.offer(number, parameters, |a, b| subscription.prefer(a, b));
        });
        self.selection(&best)
    }

    /// Every variant that matches, in canonical order: what a subscription to a glob collection gets.
    #[must_use]
    pub fn matches(&self, subscription: &Subscription) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_match(subscription, false, |number, _| numbers.push(number));
        self.names(numbers)
    }

    /// [`select`](Self::select) for a subscriber of the final form. Its values are exact: no integer is preferred to another.
    pub fn select_final(&self, parameters: &DynamicParameters) -> Selection<'_, N> {
        let mut best = Best::default();
        self.for_each_final_match(parameters, |number, variant| best.offer(number, variant, |_, _| Ordering::Equal));
        self.selection(&best)
    }

    /// [`matches`](Self::matches) for a subscriber of the final form.
    #[must_use]
    pub fn matches_final(&self, parameters: &DynamicParameters) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_final_match(parameters, |number, _| numbers.push(number));
        self.names(numbers)
    }

    /// Whether a cache that holds these variants must ask upstream before it answers the subscription: it has no match, or one that
    /// a larger integer would be preferred to. Not for glob collections.
    #[must_use]
    pub fn must_ask_upstream(&self, subscription: &Subscription) -> bool {
        let mut best = Best::default();
        self.for_each_match(subscription, true, |number, parameters| {
            best.offer(number, parameters, |a, b| subscription.prefer(a, b));
        });
        best.found.is_none_or(|(_, parameters)| subscription.must_ask_upstream(parameters))
    }

    /// What is wrong with this set of variants, for a control plane to see before it accepts them.
    pub fn lint(&self, options: &LintOptions<'_>) -> LintReport<'_, N> {
        let variants: Vec<_> = self.iter().collect();
        lint::lint_draft(&variants, options)
    }

    /// Names and parameters in canonical order.
    #[must_use]
    pub fn iter(&self) -> DraftVariantsIter<'_, N> {
        DraftVariantsIter(self.variants.iter())
    }

    fn selection(&self, best: &Best<'_>) -> Selection<'_, N> {
        let Some((number, _)) = best.found else { return Selection::NONE };
        Selection { variant: self.variants.get(number as usize).map(|(name, _)| name), ambiguous: best.tied }
    }

    fn names(&self, mut numbers: Vec<u32>) -> Vec<&N> {
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| Some(&self.variants.get(number as usize)?.0)).collect()
    }

    fn for_each_match<'a>(
        &'a self,
        subscription: &Subscription,
        best_only: bool,
        mut visit: impl FnMut(u32, &'a DynamicParameters),
    ) {
        let mut verify = |number: u32| {
            let found = self.variants.get(number as usize).filter(|(_, variant)| subscription.matches(variant));
            found.map(|(_, variant)| visit(number, variant)).is_some()
        };
        let best_only = best_only && subscription.prefers_what_it_admits();
        for group in &self.groups {
            let admits = |key: &Prefixed| subscription.rule(key).map_or(Admits::Anything, KeyRule::admits);
            group.for_each_candidate(admits, best_only, &mut verify);
        }
    }

    fn for_each_final_match<'a>(&'a self, sent: &DynamicParameters, mut visit: impl FnMut(u32, &'a DynamicParameters)) {
        let agrees = |variant: &DynamicParameters| variant.iter().all(|(k, v)| sent.get(k).is_none_or(|s| s == v));
        let mut verify = |number: u32| {
            let found = self.variants.get(number as usize).filter(|(_, variant)| agrees(variant));
            found.map(|(_, variant)| visit(number, variant)).is_some()
        };
        for group in &self.groups {
            let admits = |key: &Prefixed| sent.lookup(key).map_or(Admits::Anything, Admits::Value);
            group.for_each_candidate(admits, false, &mut verify);
        }
    }
}

impl<'a, N: Ord> IntoIterator for &'a DraftVariants<N> {
    type Item = (&'a N, &'a DynamicParameters);
    type IntoIter = DraftVariantsIter<'a, N>;

    fn into_iter(self) -> DraftVariantsIter<'a, N> {
        self.iter()
    }
}

/// Names and parameters: see [`DraftVariants::iter`].
#[derive(Debug)]
pub struct DraftVariantsIter<'a, N>(slice::Iter<'a, (N, DynamicParameters)>);

impl<'a, N> Iterator for DraftVariantsIter<'a, N> {
    type Item = (&'a N, &'a DynamicParameters);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, parameters)| (name, parameters))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<N> ExactSizeIterator for DraftVariantsIter<'_, N> {}

/// The best of the variants seen so far.
#[derive(Default)]
struct Best<'a> {
    found: Option<(u32, &'a DynamicParameters)>,
    tied: bool,
}

impl<'a> Best<'a> {
    fn offer(
        &mut self,
        number: u32,
        parameters: &'a DynamicParameters,
        prefer: impl Fn(&DynamicParameters, &DynamicParameters) -> Ordering,
    ) {
        match self.found.map(|(best, present)| (prefer(parameters, present), number < best)) {
            None | Some((Ordering::Greater, _)) => *self = Self { found: Some((number, parameters)), tied: false },
            Some((Ordering::Equal, first)) => {
                self.tied = true;
                if first {
                    self.found = Some((number, parameters));
                }
            }
            Some((Ordering::Less, _)) => {}
        }
    }
}
