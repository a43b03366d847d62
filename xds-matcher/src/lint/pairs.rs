//! Pairs of variants that may be meant for one subscriber, without looking at all pairs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::limits::Limits;
use super::parts::{Parts, for_each_meeting};
use crate::admitted::Admitted;
use crate::steps::spend;

/// So few are compared with each other, or with any number of others, at once.
const FEW: usize = 4;

/// How often variants are split by a key. Each splitting takes some stack, and by then few are left together.
const MAX_SPLITS: usize = 64;

/// A pair that is told apart in so few steps is told apart anew each time that it is met: noting it takes more memory than
/// that is worth.
const FEW_STEPS: usize = 8;

/// Calls `visit` for each pair of variants that have values of every key in common, `i` before `j`, once, until it or the
/// `steps` end that. Every key and value that is looked at is a step.
pub(super) fn for_each_pair<'a>(
    variants: &[&Admitted<'a>],
    steps: &mut usize,
    visit: &mut dyn FnMut(usize, usize, &mut usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(limits) = Limits::of(variants, steps) else { return ControlFlow::Break(()) };
    let members = limits.members();
    Pairs { variants, limits: &limits, steps, visit, seen: BTreeSet::new(), split_by: Vec::new() }.among(&members)
}

struct Pairs<'v, 'a> {
    variants: &'v [&'v Admitted<'a>],
    limits: &'v Limits<'v>,
    steps: &'v mut usize,
    visit: &'v mut dyn FnMut(usize, usize, &mut usize) -> ControlFlow<()>,
    /// Two variants that share several values, or have many ranges, are met several times.
    seen: BTreeSet<(usize, usize)>,
    split_by: Vec<usize>,
}

/// How many of those on the left and of those on the right (among themselves: the same) ...
#[derive(Default)]
struct Tally {
    /// ... have a list of what they admit for a key.
    listed: [usize; 2],
    /// ... name a class, as one that they admit and as one that they do not.
    classes: BTreeMap<usize, [[usize; 2]; 2]>,
}

impl<'v> Pairs<'v, '_> {
    /// All pairs of `members`.
    fn among(&mut self, members: &[usize]) -> ControlFlow<()> {
        if *self.steps == 0 {
            return ControlFlow::Break(());
        }
        let key = if members.len() <= FEW { None } else { self.split_key(members, None) };
        let Some(key) = key else {
            let mut members = members.iter();
            while let Some(&i) = members.next() {
                members.clone().try_for_each(|&j| self.offer(i, j))?;
            }
            return ControlFlow::Continue(());
        };
        self.split_by.push(key);
        let parts = Parts::of(self.limits, members, key, self.steps);
        let done = self.split_among(&parts);
        self.split_by.pop();
        done
    }

    /// All pairs of one of `left` and one of `right`.
    fn between(&mut self, left: &[usize], right: &[usize]) -> ControlFlow<()> {
        if *self.steps == 0 {
            return ControlFlow::Break(());
        }
        let few = left.len().min(right.len()) <= FEW;
        let Some(key) = (if few { None } else { self.split_key(left, Some(right)) }) else {
            return left.iter().try_for_each(|&i| right.iter().try_for_each(|&j| self.offer(i, j)));
        };
        self.split_by.push(key);
        let left = Parts::of(self.limits, left, key, self.steps);
        let right = Parts::of(self.limits, right, key, self.steps);
        let done = self.split_between(&left, &right);
        self.split_by.pop();
        done
    }

    fn split_among(&mut self, parts: &Parts<'_>) -> ControlFlow<()> {
        parts.listed.values().try_for_each(|sharing| self.among(sharing))?;
        self.among(&parts.unlisted())?;
        self.meeting(parts, parts, |one, another| one < another)?;
        self.across(parts, parts)
    }

    fn split_between(&mut self, left: &Parts<'_>, right: &Parts<'_>) -> ControlFlow<()> {
        for (class, sharing) in &left.listed {
            spend(self.steps, 1);
            if let Some(others) = right.listed.get(class) {
                self.between(sharing, others)?;
            }
        }
        self.between(&left.unlisted(), &right.unlisted())?;
        self.meeting(left, right, |one, another| one != another)?;
        self.across(left, right)?;
        self.across(right, left)
    }

    /// Pairs that have an integer in common.
    fn meeting(
        &mut self,
        left: &Parts<'_>,
        right: &Parts<'_>,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> ControlFlow<()> {
        let spans = left.spans_with(right, self.limits, self.steps);
        let met = for_each_meeting(spans, |one, another| {
            // Of two values, numbers tell whether they are the same.
            let is_range = [one, another].into_iter().any(|class| self.limits.class(class).is_integers());
            let both = left.listed.get(&one).zip(right.listed.get(&another));
            let pair = if spend(self.steps, 1) { both.filter(|_| is_range && wanted(one, another)) } else { None };
            let done = pair.map_or(ControlFlow::Continue(()), |(one, another)| self.between(one, another));
            if done.is_break() || *self.steps == 0 { Err(()) } else { Ok(()) }
        });
        if met.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Pairs of one that has a list and another that has exceptions, or none.
    fn across(&mut self, listed: &Parts<'_>, unlisted: &Parts<'_>) -> ControlFlow<()> {
        let mut with_all = Vec::new();
        for (exceptions, members) in &unlisted.excepting {
            match listed.listed_beyond(exceptions, self.limits, self.steps) {
                Some(beyond) => self.between(&beyond, members)?,
                None => with_all.extend(members),
            }
        }
        if with_all.is_empty() { ControlFlow::Continue(()) } else { self.between(&listed.all_listed(), &with_all) }
    }

    /// The key that leaves the fewest pairs together, unless none leaves fewer than there are or it has been tried.
    fn split_key(&mut self, left: &[usize], right: Option<&[usize]>) -> Option<usize> {
        if self.split_by.len() >= MAX_SPLITS {
            return None;
        }
        let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
        for (side, members) in [Some(left), right].into_iter().enumerate() {
            for limit in members.into_iter().flatten().flat_map(|member| self.limits.by(*member)) {
                if self.split_by.contains(&limit.key) {
                    continue;
                }
                spend(self.steps, limit.classes.len());
                let tally = tallies.entry(limit.key).or_default();
                tally.add(side, limit.except, &limit.classes);
            }
        }
        let pairs = |key: &Tally| match right {
            None => key.pairs_among(left.len()),
            Some(right) => key.pairs_between(left.len(), right.len()),
        };
        let all = pairs(&Tally::default());
        let best = tallies.iter().map(|(key, tally)| (pairs(tally), *key)).min();
        best.filter(|(pairs, _)| *pairs < all).map(|(_, key)| key)
    }

    fn offer(&mut self, i: usize, j: usize) -> ControlFlow<()> {
        if !spend(self.steps, 1) {
            return ControlFlow::Break(());
        }
        let (Some(a), Some(b)) = (self.variants.get(i), self.variants.get(j)) else { return ControlFlow::Continue(()) };
        let pair = (i.min(j), i.max(j));
        if i == j || self.seen.contains(&pair) {
            return ControlFlow::Continue(());
        }
        let before = *self.steps;
        let excluded = a.excludes(b, self.steps);
        if !excluded || before - *self.steps > FEW_STEPS {
            self.seen.insert(pair);
        }
        if excluded {
            return ControlFlow::Continue(());
        }
        (self.visit)(pair.0, pair.1, self.steps)
    }
}

impl Tally {
    fn add(&mut self, side: usize, except: bool, classes: &[usize]) {
        if let (false, Some(listed)) = (except, self.listed.get_mut(side)) {
            *listed += 1;
        }
        for class in classes {
            let [listed, excepting] = self.classes.entry(*class).or_default();
            if let Some(count) = if except { excepting } else { listed }.get_mut(side) {
                *count += 1;
            }
        }
    }

    /// How many pairs of `count` the key does not tell apart. Ranges that meet are not looked for: it need only be good to
    /// choose by.
    fn pairs_among(&self, count: usize) -> usize {
        let two_of = |n: usize| n.saturating_mul(n.saturating_sub(1)) / 2;
        let unlisted = count.saturating_sub(self.listed[0]);
        let sharing = self.classes.values().map(|[listed, _]| two_of(listed[0]));
        let apart = self.classes.values().map(|[listed, excepting]| listed[0].saturating_mul(excepting[0]));
        let together = sharing.fold(two_of(unlisted), usize::saturating_add);
        together
            .saturating_add(self.listed[0].saturating_mul(unlisted))
            .saturating_sub(apart.fold(0, usize::saturating_add))
    }

    /// The same of pairs of one of `left` and one of `right`.
    fn pairs_between(&self, left: usize, right: usize) -> usize {
        let (ours, theirs) = (left.saturating_sub(self.listed[0]), right.saturating_sub(self.listed[1]));
        let sharing = self.classes.values().map(|[listed, _]| listed[0].saturating_mul(listed[1]));
        let apart = self.classes.values().map(|[listed, excepting]| {
            listed[0].saturating_mul(excepting[1]).saturating_add(listed[1].saturating_mul(excepting[0]))
        });
        [ours.saturating_mul(theirs), self.listed[0].saturating_mul(theirs), self.listed[1].saturating_mul(ours)]
            .into_iter()
            .chain(sharing)
            .fold(0, usize::saturating_add)
            .saturating_sub(apart.fold(0, usize::saturating_add))
    }
}
