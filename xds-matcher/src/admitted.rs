//! Which values a constraint can be true for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::constraint::Node;
use crate::ranges::Ranges;
use crate::steps::{look_up, spend};
use crate::values::Values;

/// Which values a node can only be true for, key by key.
///
/// This is what an index can be built on, and what tells most variants apart without a search. It is sound but not complete:
/// a node may be false for values that are admitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admitted<'a> {
    /// Keys that may only have these values. No set is empty.
    listed: BTreeMap<&'a str, Values<'a>>,
    /// Keys that may have any values but these. No set is empty. A key in neither map may have any value; none is in both.
    excepted: BTreeMap<&'a str, Values<'a>>,
    /// The node is false whatever the parameters.
    nothing: bool,
}

/// What is admitted for one key.
#[derive(Debug)]
enum Limit<'a> {
    To(Values<'a>),
    Except(Values<'a>),
}

impl<'a> Admitted<'a> {
    /// In time linear in `cost`, which is the node's size and what it takes to look at its texts: where sets are met again
    /// and again, level by level, anything is admitted in the end.
    pub(crate) fn by(node: &'a Node, cost: usize) -> Self {
        let mut steps = 1024 + 32 * cost;
        let admitted = Self::by_node(node, false, &mut steps);
        if steps == 0 { Self::default() } else { admitted }
    }

    /// Each of these keys has its value.
    #[cfg(feature = "draft")]
    pub(crate) fn exactly(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self { listed: pairs.map(|(key, value)| (key, Values::one(Some(value)))).collect(), ..Self::default() }
    }

    pub(crate) fn only(key: &'a str, value: Option<&'a str>) -> Self {
        Self::limited(key, Limit::To(Values::one(value)))
    }

    fn limited(key: &'a str, limit: Limit<'a>) -> Self {
        let mut admitted = Self::default();
        admitted.limit(key, limit);
        admitted
    }

    fn nothing() -> Self {
        Self { nothing: true, ..Self::default() }
    }

    fn by_node(node: &'a Node, negate: bool, steps: &mut usize) -> Self {
        let limit = if negate { Limit::Except } else { Limit::To };
        match node {
            Node::Not(inner) => Self::by_node(inner, !negate, steps),
            Node::Value { key, value } => Self::limited(key, limit(Values::one(Some(value)))),
            Node::IntIn { key, ranges } => Self::limited(key, limit(Values::integers(Ranges::of(ranges)))),
            Node::Exists { key } if negate => Self::only(key, None),
            Node::Exists { key } => Self::limited(key, Limit::Except(Values::one(None))),
            Node::And(nodes) if !negate => Self::join(nodes, negate, true, steps),
            Node::Or(nodes) if negate => Self::join(nodes, negate, true, steps),
            Node::And(nodes) | Node::Or(nodes) => Self::join(nodes, negate, false, steps),
            Node::True if negate => Self::nothing(),
            Node::True => Self::default(),
        }
    }

    /// What all of the nodes admit together if `all`, else what each of them does. Keys are sorted once, and the sets of one key
    /// joined as neighbours, then pairs of pairs and so on: nothing grows by one at a time.
    fn join(nodes: &'a [Node], negate: bool, all: bool, steps: &mut usize) -> Self {
        if let [node] = nodes {
            return Self::by_node(node, negate, steps);
        }
        let (mut limits, mut count) = (Vec::new(), 0);
        for admitted in nodes.iter().map(|node| Self::by_node(node, negate, steps)) {
            if admitted.nothing && all {
                return Self::nothing();
            }
            count += usize::from(!admitted.nothing);
            limits.extend(admitted.into_limits());
        }
        let mut common = Self { nothing: count == 0 && !all, ..Self::default() };
        let cost = limits.iter().map(|(key, _)| 4 * look_up(key.len(), limits.len())).sum();
        if !spend(steps, cost) {
            return Self::default();
        }
        limits.sort_by_key(|(key, _)| *key);
        let mut limits = limits.into_iter().peekable();
        while let Some((key, first)) = limits.next() {
            let mut joined = alloc::vec![(1, first)];
            let mut sets = 1;
            while let Some((_, limit)) = limits.next_if(|(next, _)| *next == key) {
                sets += 1;
                let mut next = (1, limit);
                // How many sets each stands for, falling.
                while let Some((_, before)) = joined.pop_if(|(count, _)| *count <= next.0) {
                    next = (2 * next.0, before.join(next.1, all, steps));
                }
                joined.push(next);
            }
            if !all && sets < count {
                continue;
            }
            let joined = joined.into_iter().rev().map(|(_, limit)| limit);
            let Some(limit) = joined.reduce(|after, before| before.join(after, all, steps)) else { continue };
            if *steps == 0 {
                return Self::default();
            }
            if limit.is_nothing() {
                return Self::nothing();
            }
            common.limit(key, limit);
        }
        common
    }

    fn into_limits(self) -> impl Iterator<Item = (&'a str, Limit<'a>)> {
        let excepted = self.excepted.into_iter().map(|(key, values)| (key, Limit::Except(values)));
        self.listed.into_iter().map(|(key, values)| (key, Limit::To(values))).chain(excepted)
    }

    fn limit(&mut self, key: &'a str, limit: Limit<'a>) {
        match limit {
            Limit::To(values) => _ = self.listed.insert(key, values),
            Limit::Except(values) if values.is_empty() => {}
            Limit::Except(values) => _ = self.excepted.insert(key, values),
        }
    }

    /// The only values admitted for `key`; `None` if there is no end of them.
    pub(crate) fn values(&self, key: &str) -> Option<&Values<'a>> {
        self.listed.get(key)
    }

    /// The only values not admitted for `key`.
    pub(crate) fn exceptions(&self, key: &str) -> Option<&Values<'a>> {
        self.excepted.get(key)
    }

    /// The keys that have one of so many values, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'a str, &Values<'a>)> {
        self.listed.iter().map(|(key, values)| (*key, values))
    }

    /// The keys that have any but some values, sorted; none of them is one of [`keys`](Self::keys).
    pub(crate) fn excepted_keys(&self) -> impl Iterator<Item = (&'a str, &Values<'a>)> {
        self.excepted.iter().map(|(key, values)| (*key, values))
    }

    /// Keys that must have one certain value.
    pub(crate) fn required_values(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.listed.iter().filter_map(|(key, values)| Some((*key, values.only()??)))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Whether they have no value of some key in common, or one admits nothing; not if that is not found out. Every key and
    /// value looked at is a step.
    pub(crate) fn excludes(&self, other: &Self, steps: &mut usize) -> bool {
        if self.nothing || other.nothing {
            return true;
        }
        // No two sets without end are disjoint.
        let (few, many) = if self.listed.len() <= other.listed.len() { (self, other) } else { (other, self) };
        few.listed.iter().any(|(key, values)| {
            spend(steps, look_up(key.len(), many.listed.len()))
                && many.listed.get(key).is_some_and(|others| values.is_disjoint(others, steps))
        }) || excepts(few, many, steps)
            || excepts(many, few, steps)
    }
}

/// Whether all values of some key that the one admits are exceptions of the other.
fn excepts(listed: &Admitted<'_>, excepted: &Admitted<'_>, steps: &mut usize) -> bool {
    let (listed, excepted) = (&listed.listed, &excepted.excepted);
    let mut within = |key: &str, values: &Values<'_>, exceptions: Option<&Values<'_>>| {
        spend(steps, look_up(key.len(), listed.len().max(excepted.len())))
            && exceptions.is_some_and(|exceptions| values.is_within(exceptions, steps))
    };
    if listed.len() <= excepted.len() {
        listed.iter().any(|(key, values)| within(key, values, excepted.get(key)))
    } else {
        excepted
            .iter()
            .any(|(key, exceptions)| listed.get(key).is_some_and(|values| within(key, values, Some(exceptions))))
    }
}

impl<'a> Limit<'a> {
    fn join(self, other: Self, all: bool, steps: &mut usize) -> Self {
        match (*steps, all) {
            // Whatever it is, it is not used.
            (0, _) => self,
            (_, true) => self.and(other, steps),
            (_, false) => self.or(other, steps),
        }
    }

    fn and(self, other: Self, steps: &mut usize) -> Self {
        match (self, other) {
            (Self::To(a), Self::To(b)) => {
                spend(steps, touched(&a, &b));
                Self::To(a.and(b))
            }
            (Self::To(a), Self::Except(b)) | (Self::Except(b), Self::To(a)) => {
                spend(steps, (a.len() + b.ranges().len()) * a.look_up(&b));
                Self::To(a.at_least_without(&b))
            }
            (Self::Except(a), Self::Except(b)) => {
                spend(steps, touched(&a, &b));
                Self::Except(a.or(b))
            }
        }
    }

    fn or(self, other: Self, steps: &mut usize) -> Self {
        match (self, other) {
            (Self::To(a), Self::To(b)) => {
                spend(steps, touched(&a, &b));
                Self::To(a.or(b))
            }
            (Self::To(a), Self::Except(b)) | (Self::Except(b), Self::To(a)) => {
                spend(steps, (a.len() + b.len()) * a.look_up(&b));
                Self::Except(b.at_most_without(&a))
            }
            (Self::Except(a), Self::Except(b)) => {
                spend(steps, touched(&a, &b));
                Self::Except(a.and(b))
            }
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::To(values) if values.is_empty())
    }
}

/// What it costs to combine two sets of values.
fn touched(a: &Values<'_>, b: &Values<'_>) -> usize {
    let ranges = a.ranges().len() + b.ranges().len();
    // Integers have to be told from all exact values; otherwise the smaller set goes into the larger.
    let values = if ranges == 0 { a.len().min(b.len()) } else { a.len() + b.len() };
    1 + values * a.look_up(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;
    use std::string::ToString;

    fn steps_of(constraint: &Constraint) -> usize {
        let mut left = usize::MAX;
        Admitted::by_node(constraint.node(), false, &mut left);
        usize::MAX - left
    }

    #[test]
    fn a_set_is_handed_from_level_to_level_and_not_copied() {
        let mut nested = Constraint::any((0..8_000).map(|i| Constraint::value("k", i.to_string()))).unwrap();
        let flat = steps_of(&nested);
        for level in 0..98 {
            nested = if level % 2 == 0 { Constraint::all([nested]) } else { Constraint::any([nested]) }.unwrap();
        }
        assert!(steps_of(&nested) <= flat + 98);
        assert_eq!(Admitted::by(nested.node(), nested.cost()).values("k").map(Values::len), Some(8_000));
    }

    #[test]
    fn long_values_are_as_many_steps_as_it_takes_to_compare_them() {
        let any = |bytes: usize| Constraint::any((0..64).map(|i| Constraint::value("k", std::format!("{i:x>bytes$}"))));
        let (short, long) = (any(8).unwrap(), any(12_800).unwrap());
        assert!(steps_of(&long) > steps_of(&short) + 32 * 6 * 100);
        // As they are, they are worth an index.
        assert_eq!(Admitted::by(long.node(), long.cost()).values("k").map(Values::len), Some(64));
    }

    #[test]
    fn what_is_denied_is_admitted_of_nobody_else() {
        let admitted = |text: &str| {
            let constraint: Constraint = text.parse().unwrap();
            move |other: &str| {
                let other: Constraint = other.parse().unwrap();
                let [a, b] = [&constraint, &other].map(|c| Admitted::by(c.node(), c.cost()));
                a.excludes(&b, &mut 1000) && b.excludes(&a, &mut 1000)
            }
        };
        for (a, b) in [
            ("exists(a)", "not exists(a)"),
            ("not a=1", "a=1"),
            ("not a=1 and not a=2", "a=1 or a=2"),
            ("not (a=1 or a=2)", "a=2"),
            ("not a in 0..9", "a in 3..4 or a=5"),
            ("exists(a) and not a=1", "not exists(a) or a=1"),
            ("not a=1 or not a=2", "false"),
            ("a=1 or not a in 0..9", "a in 3..4"),
        ] {
            assert!(admitted(a)(b), "{a} | {b}");
        }
        for (a, b) in [
            ("not a=1", "not a=2"),
            ("not a=1 or not a=2", "a=1"),
            ("not a in 5", "not exists(a)"),
            ("not a=5", "a in 5"),
            ("a=5 or not a in 0..9", "a=5"),
            ("exists(a) or b=1", "not exists(a)"),
        ] {
            assert!(!admitted(a)(b), "{a} | {b}");
        }
    }

    #[test]
    fn sets_that_are_met_at_every_level_are_given_up() {
        let mut nested = Constraint::any((0..8_000).map(|i| Constraint::value("k", i.to_string()))).unwrap();
        for _ in 0..98 {
            let integer: Constraint = "k in 0..".parse().unwrap();
            nested = Constraint::all([integer, nested]).unwrap();
        }
        assert!(Admitted::by(nested.node(), nested.cost()).values("k").is_none());
    }
}
