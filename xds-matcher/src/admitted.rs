//! Which values a constraint can be true for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use crate::constraint::Node;
use crate::ranges::Ranges;
use crate::values::Values;

/// Which values a node can only be true for, key by key.
///
/// This is what an index can be built on, and what tells most variants apart without a search. It is sound but not complete:
/// a node may be false for values that are admitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admitted<'a> {
    /// Keys that are not listed may have any value. No set is empty.
    keys: BTreeMap<&'a str, Values<'a>>,
    /// The node is false whatever the parameters.
    nothing: bool,
}

impl<'a> Admitted<'a> {
    /// In time linear in `size`, that of the node: where sets are met again and again, level by level, anything is admitted
    /// in the end.
    pub(crate) fn by(node: &'a Node, size: usize) -> Self {
        let mut steps = 1024 + 32 * size;
        let admitted = Self::by_node(node, false, &mut steps);
        if steps == 0 { Self::default() } else { admitted }
    }

    /// Each of these keys has its value.
    #[cfg(feature = "draft")]
    pub(crate) fn exactly(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self { keys: pairs.map(|(key, value)| (key, Values::one(Some(value)))).collect(), nothing: false }
    }

    pub(crate) fn only(key: &'a str, value: Option<&'a str>) -> Self {
        Self::values_of(key, Values::one(value))
    }

    fn values_of(key: &'a str, values: Values<'a>) -> Self {
        Self { keys: [(key, values)].into(), nothing: false }
    }

    fn nothing() -> Self {
        Self { keys: BTreeMap::new(), nothing: true }
    }

    fn by_node(node: &'a Node, negate: bool, steps: &mut usize) -> Self {
        match (node, negate) {
            (Node::Not(inner), _) => Self::by_node(inner, !negate, steps),
            (Node::Value { key, value }, false) => Self::only(key, Some(value)),
            (Node::Exists { key }, true) => Self::only(key, None),
            (Node::IntIn { key, ranges }, false) => Self::values_of(key, Values::integers(Ranges::of(ranges))),
            (Node::And(nodes), false) | (Node::Or(nodes), true) => Self::join(nodes, negate, Self::and, steps),
            (Node::And(nodes), true) | (Node::Or(nodes), false) if nodes.is_empty() => Self::nothing(),
            (Node::And(nodes), true) | (Node::Or(nodes), false) => Self::join(nodes, negate, Self::or, steps),
            (Node::True, true) => Self::nothing(),
            _ => Self::default(),
        }
    }

    /// Joins neighbours, then pairs of pairs and so on, so that no set grows by one value at a time.
    fn join(nodes: &'a [Node], negate: bool, join: fn(Self, Self, &mut usize) -> Self, steps: &mut usize) -> Self {
        // How many nodes each stands for, falling.
        let mut joined: Vec<(usize, Self)> = Vec::new();
        for node in nodes {
            let mut next = (1, Self::by_node(node, negate, steps));
            while let Some((_, before)) = joined.pop_if(|(count, _)| *count <= next.0) {
                next = (2 * next.0, join(before, next.1, steps));
            }
            joined.push(next);
        }
        let all = joined.into_iter().rev().map(|(_, admitted)| admitted);
        all.reduce(|after, before| join(before, after, steps)).unwrap_or_default()
    }

    fn and(mut self, mut other: Self, steps: &mut usize) -> Self {
        if self.nothing || other.nothing || *steps == 0 {
            return if *steps == 0 { Self::default() } else { Self::nothing() };
        }
        if self.keys.len() < other.keys.len() {
            mem::swap(&mut self, &mut other);
        }
        for (key, values) in other.keys {
            let present = self.keys.entry(key).or_default();
            if present.is_empty() {
                *present = values;
                *steps = steps.saturating_sub(1);
                continue;
            }
            *steps = steps.saturating_sub(touched(present, &values));
            *present = mem::take(present).and(values);
            if present.is_empty() {
                return Self::nothing();
            }
        }
        self
    }

    fn or(mut self, mut other: Self, steps: &mut usize) -> Self {
        if *steps == 0 {
            return Self::default();
        }
        if self.nothing || other.nothing {
            return if self.nothing { other } else { self };
        }
        if self.keys.len() > other.keys.len() {
            mem::swap(&mut self, &mut other);
        }
        self.keys.retain(|key, values| {
            *steps = steps.saturating_sub(1);
            let Some(more) = other.keys.remove(key) else { return false };
            *steps = steps.saturating_sub(touched(values, &more));
            *values = mem::take(values).or(more);
            true
        });
        self
    }

    /// The values admitted for `key`; `None` if any is.
    pub(crate) fn values(&self, key: &str) -> Option<&Values<'a>> {
        self.keys.get(key)
    }

    /// The keys with limited values, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'a str, &Values<'a>)> {
        self.keys.iter().map(|(key, values)| (*key, values))
    }

    /// Keys that must have one certain value.
    pub(crate) fn required_values(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.keys.iter().filter_map(|(key, values)| Some((*key, values.only()??)))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// What all of them admit.
    pub(crate) fn all<'s>(all: impl Iterator<Item = &'s Self>) -> Self
    where
        'a: 's,
    {
        // Bounded by how large they are, each of which has been made within its own bound.
        all.fold(Self::default(), |common, next| common.and(next.clone(), &mut usize::MAX.clone()))
    }

    /// Whether they have no value of some key in common, or one admits nothing. Every key and value looked at is a step.
    pub(crate) fn excludes(&self, other: &Self, steps: &mut usize) -> bool {
        if self.nothing || other.nothing {
            return true;
        }
        let (few, many) = if self.keys.len() <= other.keys.len() { (self, other) } else { (other, self) };
        few.keys.iter().any(|(key, values)| {
            *steps = steps.saturating_sub(1);
            many.keys.get(key).is_some_and(|others| values.is_disjoint(others, steps))
        })
    }
}

/// What it costs to combine two sets of values.
fn touched(a: &Values<'_>, b: &Values<'_>) -> usize {
    let ranges = a.ranges().len() + b.ranges().len();
    // Integers have to be told from all exact values; otherwise the smaller set goes into the larger.
    if ranges == 0 { 1 + a.len().min(b.len()) } else { 1 + a.len() + b.len() }
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
        assert_eq!(Admitted::by(nested.node(), nested.size()).values("k").map(Values::len), Some(8_000));
    }

    #[test]
    fn sets_that_are_met_at_every_level_are_given_up() {
        let mut nested = Constraint::any((0..8_000).map(|i| Constraint::value("k", i.to_string()))).unwrap();
        for _ in 0..98 {
            let integer: Constraint = "k in 0..".parse().unwrap();
            nested = Constraint::all([integer, nested]).unwrap();
        }
        assert!(Admitted::by(nested.node(), nested.size()).values("k").is_none());
    }
}
