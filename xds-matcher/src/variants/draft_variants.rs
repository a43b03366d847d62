use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::Selection;
use super::index::{Table, TupleHash};
use crate::DynamicParameters;
use crate::draft::{Admits, Subscription};
use crate::lint::{self, LintOptions, LintReport};
use crate::prefixed::Prefixed;

/// The variants of one resource in the draft form, each with its parameters, compiled for selection.
///
/// Where a subscription fixes all keys of a group of variants, one probe of an index finds them; where it fixes some, only the variants
/// with the rarest of these values are tried.
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

/// The variants that carry the same keys.
#[derive(Debug, Clone)]
struct Group {
    keys: Box<[Prefixed]>,
    members: Box<[u32]>,
    /// By the values of all keys.
    by_all: Table,
    /// By the value of one key, in the order of `keys`.
    by_key: Box<[Table]>,
}

impl<N: Ord> DraftVariants<N> {
    /// Compiles a set of variants, in time proportional to its size.
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
        self.for_each_match(subscription, |number, parameters| {
            best.offer(number, parameters, |a, b| subscription.prefer(a, b));
        });
        self.selection(&best)
    }

    /// Every variant that matches, in canonical order: what a subscription to a glob collection gets.
    pub fn matches(&self, subscription: &Subscription) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_match(subscription, |number, _| numbers.push(number));
        self.names(numbers)
    }

    /// [`select`](Self::select) for a subscriber of the final form. Its values are exact: no integer is preferred to another.
    pub fn select_final(&self, parameters: &DynamicParameters) -> Selection<'_, N> {
        let mut best = Best::default();
        self.for_each_final_match(parameters, |number, variant| best.offer(number, variant, |_, _| Ordering::Equal));
        self.selection(&best)
    }

    /// [`matches`](Self::matches) for a subscriber of the final form.
    pub fn matches_final(&self, parameters: &DynamicParameters) -> Vec<&N> {
        let mut numbers = Vec::new();
        self.for_each_final_match(parameters, |number, _| numbers.push(number));
        self.names(numbers)
    }

    /// Whether a cache that holds these variants must ask upstream before it answers the subscription: it has no match, or one that
    /// a larger integer would be preferred to. Not for glob collections.
    pub fn must_ask_upstream(&self, subscription: &Subscription) -> bool {
        let mut best = Best::default();
        self.for_each_match(subscription, |number, parameters| {
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
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&N, &DynamicParameters)> {
        self.variants.iter().map(|(name, parameters)| (name, parameters))
    }

    fn selection(&self, best: &Best<'_>) -> Selection<'_, N> {
        let Some((number, _)) = best.found else { return Selection::NONE };
        Selection { variant: self.variants.get(number as usize).map(|(name, _)| name), ambiguous: best.tied }
    }

    fn names(&self, mut numbers: Vec<u32>) -> Vec<&N> {
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| Some(&self.variants.get(number as usize)?.0)).collect()
    }

    fn for_each_match<'a>(&'a self, subscription: &Subscription, mut visit: impl FnMut(u32, &'a DynamicParameters)) {
        let mut verify = |number: u32| {
            if let Some((_, parameters)) = self.variants.get(number as usize).filter(|(_, p)| subscription.matches(p)) {
                visit(number, parameters);
            }
        };
        for group in &self.groups {
            group.for_each_candidate(
                |key| subscription.rule(key).map_or(Admits::Anything, |rule| rule.admits()),
                &mut verify,
            );
        }
    }

    fn for_each_final_match<'a>(&'a self, sent: &DynamicParameters, mut visit: impl FnMut(u32, &'a DynamicParameters)) {
        let mut verify = |number: u32| {
            let agrees =
                |variant: &DynamicParameters| variant.iter().all(|(k, v)| sent.value(k).is_none_or(|s| s == v));
            if let Some((_, parameters)) = self.variants.get(number as usize).filter(|(_, p)| agrees(p)) {
                visit(number, parameters);
            }
        };
        for group in &self.groups {
            group.for_each_candidate(
                |key| sent.lookup(key).map_or(Admits::Anything, |value| Admits::Value(value)),
                &mut verify,
            );
        }
    }
}

impl Group {
    fn new<N>(keys: &[&str], members: Vec<u32>, variants: &[(N, DynamicParameters)]) -> Self {
        let values =
            |number: u32, key: &str| variants.get(number as usize).and_then(|(_, parameters)| parameters.value(key));
        let all = |number| keys.iter().fold(TupleHash::default(), |tuple, key| tuple.then(values(number, key)));
        let one = |key: &&str| members.iter().map(|&n| (TupleHash::default().then(values(n, key)), n)).collect();
        Self {
            by_all: members.iter().map(|&number| (all(number), number)).collect(),
            by_key: keys.iter().map(one).collect(),
            keys: keys.iter().map(|key| Prefixed::from(*key)).collect(),
            members: members.into(),
        }
    }

    fn for_each_candidate<'a>(&self, admits: impl Fn(&Prefixed) -> Admits<'a>, mut visit: impl FnMut(u32)) {
        let mut tuple = TupleHash::default();
        let mut all_fixed = true;
        for key in &self.keys {
            match admits(key) {
                Admits::Nothing => return,
                Admits::Anything => all_fixed = false,
                Admits::Value(value) => tuple = tuple.then(Some(value)),
            }
        }
        if all_fixed {
            return self.by_all.find(tuple).for_each(visit);
        }
        let fixed = self.keys.iter().zip(&self.by_key).filter_map(|(key, table)| match admits(key) {
            Admits::Value(value) => Some((table, TupleHash::default().then(Some(value)))),
            _ => None,
        });
        match fixed.min_by_key(|(table, value)| table.count(*value)) {
            Some((table, value)) => table.find(value).for_each(visit),
            None => self.members.iter().for_each(|number| visit(*number)),
        }
    }
}

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
