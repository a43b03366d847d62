//! The variants of the draft form that carry the same keys, and which of them a subscription can be about.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::index::{Table, TupleHash};
use super::integers::Integers;
use crate::DynamicParameters;
use crate::draft::Admits;
use crate::prefixed::Prefixed;
use crate::range::integer;
use crate::ranges::Ranges;

#[derive(Debug, Clone)]
pub(super) struct Group {
    keys: Box<[Prefixed]>,
    members: Box<[u32]>,
    /// By the values of all keys.
    by_all: Table,
    /// In the order of `keys`.
    by_key: Box<[KeyIndex]>,
}

/// Look-up by the value of one key.
#[derive(Debug, Clone)]
struct KeyIndex {
    by_value: Table,
    /// Its integers.
    alone: Integers,
    /// Its integers, for each tuple of the values of all other keys.
    with_others: Integers,
}

/// Where the variants are that can match.
enum Candidates<'g, 'a> {
    Nowhere,
    Everywhere,
    Fixed(&'g Table, TupleHash),
    Within(&'g Integers, TupleHash, &'a Ranges),
}

impl Group {
    pub(super) fn new<N>(keys: &[&str], members: Vec<u32>, variants: &[(N, DynamicParameters)]) -> Self {
        let value =
            |number: u32, key: &str| variants.get(number as usize).and_then(|(_, parameters)| parameters.get(key));
        let tuple = |number: u32, skipped: Option<&str>| {
            let keys = keys.iter().filter(|key| Some(**key) != skipped);
            keys.fold(TupleHash::default(), |tuple, key| tuple.then(value(number, key)))
        };
        let by_key = keys.iter().map(|key| {
            let integers = || members.iter().filter_map(|&number| Some((integer(value(number, key)?)?, number)));
            KeyIndex {
                by_value: members.iter().map(|&n| (TupleHash::default().then(value(n, key)), n)).collect(),
                alone: integers().map(|(n, number)| (TupleHash::default(), n, number)).collect(),
                with_others: integers().map(|(n, number)| (tuple(number, Some(key)), n, number)).collect(),
            }
        });
        Self {
            by_all: members.iter().map(|&number| (tuple(number, None), number)).collect(),
            by_key: by_key.collect(),
            keys: keys.iter().map(|key| Prefixed::from(*key)).collect(),
            members: members.into(),
        }
    }

    /// Calls `visit` with every variant that can match; it answers whether the variant does.
    ///
    /// `best_only`: variants with smaller integers of the first key with ranges than one that matches may be left out.
    pub(super) fn for_each_candidate<'a>(
        &self,
        admits: impl Fn(&Prefixed) -> Admits<'a>,
        best_only: bool,
        mut visit: impl FnMut(u32) -> bool,
    ) {
        match self.candidates(admits) {
            Candidates::Nowhere => {}
            Candidates::Everywhere => self.members.iter().for_each(|number| _ = visit(*number)),
            Candidates::Fixed(table, tuple) => table.find(tuple).for_each(|number| _ = visit(number)),
            Candidates::Within(integers, tuple, ranges) => {
                let mut best = None;
                for range in ranges.as_slice().iter().rev() {
                    for (n, number) in integers.within(tuple, *range) {
                        if best_only && best.is_some_and(|best| n < best) {
                            return;
                        }
                        if visit(number) {
                            best = Some(n);
                        }
                    }
                }
            }
        }
    }

    #[inline]
    fn candidates<'a>(&self, admits: impl Fn(&Prefixed) -> Admits<'a>) -> Candidates<'_, 'a> {
        // Of all keys but the first one with ranges.
        let (mut tuple, mut all_fixed) = (TupleHash::default(), true);
        let mut ranged: Option<(&KeyIndex, &'a Ranges)> = None;
        for (key, index) in self.keys.iter().zip(&self.by_key) {
            match admits(key) {
                Admits::Nothing => return Candidates::Nowhere,
                Admits::Value(value) => tuple = tuple.then_prefixed(Some(value)),
                Admits::Integers(ranges) if ranged.is_none() => ranged = Some((index, ranges)),
                Admits::Integers(_) | Admits::Anything => all_fixed = false,
            }
        }
        match ranged {
            None if all_fixed => return Candidates::Fixed(&self.by_all, tuple),
            Some((index, ranges)) if all_fixed => return Candidates::Within(&index.with_others, tuple, ranges),
            _ => {}
        }
        // Otherwise by the key that leaves the fewest.
        let fixed = self.keys.iter().zip(&self.by_key).filter_map(|(key, index)| match admits(key) {
            Admits::Value(value) => Some((&index.by_value, TupleHash::default().then_prefixed(Some(value)))),
            _ => None,
        });
        let fixed = fixed.map(|(table, value)| (table.count(value), table, value)).min_by_key(|(count, ..)| *count);
        match (fixed, ranged) {
            (Some((count, table, value)), Some((index, ranges))) => {
                if index.alone.count(ranges, count) < count {
                    Candidates::Within(&index.alone, TupleHash::default(), ranges)
                } else {
                    Candidates::Fixed(table, value)
                }
            }
            (Some((_, table, value)), None) => Candidates::Fixed(table, value),
            (None, Some((index, ranges))) => Candidates::Within(&index.alone, TupleHash::default(), ranges),
            (None, None) => Candidates::Everywhere,
        }
    }
}
