//! Pairs of variants that may be meant for one subscriber, without looking at all pairs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use crate::admitted::Admitted;

/// So few are compared with each other at once.
const FEW: usize = 8;

/// How often variants are split by a key. Each splitting takes some stack, and by then few are left together.
const MAX_SPLITS: usize = 64;

/// Calls `visit` for each pair of variants that have values of every key in common, `i` before `j`, once, until it or the
/// `steps` end that. Every key and value that is looked at is a step.
pub(super) fn for_each_pair<'a>(
    variants: &[&Admitted<'a>],
    steps: &mut usize,
    visit: &mut dyn FnMut(usize, usize, &mut usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let members: Vec<usize> = (0..variants.len()).filter(|&i| !is_nothing(variants, i)).collect();
    let mut pairs = Pairs { variants, steps, visit, seen: BTreeSet::new(), split_by: Vec::new() };
    pairs.among(&members)
}

fn is_nothing(variants: &[&Admitted<'_>], i: usize) -> bool {
    variants.get(i).is_none_or(|admitted| admitted.is_nothing())
}

struct Pairs<'v, 'a> {
    variants: &'v [&'v Admitted<'a>],
    steps: &'v mut usize,
    visit: &'v mut dyn FnMut(usize, usize, &mut usize) -> ControlFlow<()>,
    /// Two variants that share several values are met several times.
    seen: BTreeSet<(usize, usize)>,
    split_by: Vec<&'a str>,
}

impl<'a> Pairs<'_, 'a> {
    /// All pairs of `members`.
    fn among(&mut self, members: &[usize]) -> ControlFlow<()> {
        let key =
            if members.len() <= FEW || self.split_by.len() >= MAX_SPLITS { None } else { self.split_key(members) };
        let Some(key) = key else {
            return members
                .iter()
                .enumerate()
                .try_for_each(|(at, &i)| members.iter().skip(at + 1).try_for_each(|&j| self.offer(i, j)));
        };
        let (limited, free): (Vec<usize>, Vec<usize>) = members.iter().partition(|&&i| self.limits(i, key));
        self.split_by.push(key);
        let done = self.sharing(&limited, key).is_break() || self.among(&free).is_break();
        self.split_by.pop();
        if done {
            return ControlFlow::Break(());
        }
        limited.iter().try_for_each(|&i| free.iter().try_for_each(|&j| self.offer(i, j)))
    }

    /// Pairs of `members` that share a value of `key`, of which each has some.
    fn sharing(&mut self, members: &[usize], key: &'a str) -> ControlFlow<()> {
        let mut by_value: BTreeMap<Option<&'a str>, Vec<usize>> = BTreeMap::new();
        // Those that share an integer with a range, which exact integers are looked up in like ranges of one.
        let mut spans: Vec<(u64, u64, usize)> = Vec::new();
        let values = |i: usize| self.variants.get(i).and_then(|admitted| admitted.values(key));
        let has_ranges = members.iter().any(|&i| values(i).is_some_and(|values| !values.ranges().is_empty()));
        for (i, values) in members.iter().filter_map(|&i| Some((i, values(i)?))) {
            *self.steps = self.steps.saturating_sub(values.len());
            for value in values.exact() {
                by_value.entry(*value).or_default().push(i);
            }
            spans.extend(values.ranges().as_slice().iter().map(|range| (range.start(), range.end(), i)));
            if has_ranges {
                spans.extend(values.exact_integers().map(|n| (n, n, i)));
            }
        }
        by_value.into_values().filter(|sharing| sharing.len() > 1).try_for_each(|sharing| self.among(&sharing))?;
        self.spanning(spans)
    }

    /// Pairs whose spans of integers have some in common.
    fn spanning(&mut self, mut spans: Vec<(u64, u64, usize)>) -> ControlFlow<()> {
        spans.sort_unstable();
        // By end: those that the next span may still begin in.
        let mut open: BTreeSet<(u64, usize)> = BTreeSet::new();
        for (start, end, i) in spans {
            while open.first().is_some_and(|(end, _)| *end < start) {
                open.pop_first();
            }
            open.iter().try_for_each(|&(_, j)| self.offer(i, j))?;
            open.insert((end, i));
        }
        ControlFlow::Continue(())
    }

    /// The key that tells most of the members apart, unless it has been tried.
    fn split_key(&mut self, members: &[usize]) -> Option<&'a str> {
        let mut limited: BTreeMap<&'a str, usize> = BTreeMap::new();
        for admitted in members.iter().filter_map(|&i| self.variants.get(i)) {
            for (key, _) in admitted.keys() {
                *self.steps = self.steps.saturating_sub(1);
                *limited.entry(key).or_default() += 1;
            }
        }
        limited.retain(|key, count| *count > 1 && !self.split_by.contains(key));
        limited.into_iter().max_by_key(|(_, count)| *count).map(|(key, _)| key)
    }

    fn limits(&self, i: usize, key: &str) -> bool {
        self.variants.get(i).is_some_and(|admitted| admitted.values(key).is_some())
    }

    fn offer(&mut self, i: usize, j: usize) -> ControlFlow<()> {
        *self.steps = self.steps.saturating_sub(1);
        if *self.steps == 0 {
            return ControlFlow::Break(());
        }
        let (Some(a), Some(b)) = (self.variants.get(i), self.variants.get(j)) else { return ControlFlow::Continue(()) };
        let pair = (i.min(j), i.max(j));
        if i == j || a.excludes(b, self.steps) || !self.seen.insert(pair) {
            return ControlFlow::Continue(());
        }
        (self.visit)(pair.0, pair.1, self.steps)
    }
}
