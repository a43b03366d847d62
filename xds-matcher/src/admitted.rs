use alloc::collections::{BTreeMap, BTreeSet};

use crate::constraint::Node;

/// Which values a node can only be true for, key by key. `None` among the values stands for the key's absence.
///
/// This is what an index can be built on, and what tells most variants apart without a search. It is sound but not complete:
/// a node may be false for values that are admitted.
#[derive(Debug, Clone)]
pub(crate) struct Admitted<'a> {
    /// Keys that are not listed may have any value. No set is empty.
    keys: BTreeMap<&'a str, BTreeSet<Option<&'a str>>>,
    /// The node is false whatever the parameters.
    nothing: bool,
}

impl Default for Admitted<'_> {
    /// Anything.
    fn default() -> Self {
        Self { keys: BTreeMap::new(), nothing: false }
    }
}

impl<'a> Admitted<'a> {
    pub(crate) fn by(node: &'a Node) -> Self {
        Self::by_node(node, false)
    }

    pub(crate) fn only(key: &'a str, value: Option<&'a str>) -> Self {
        Self { keys: [(key, [value].into())].into(), nothing: false }
    }

    fn nothing() -> Self {
        Self { keys: BTreeMap::new(), nothing: true }
    }

    fn by_node(node: &'a Node, negate: bool) -> Self {
        match (node, negate) {
            (Node::Not(inner), _) => Self::by_node(inner, !negate),
            (Node::Value { key, value }, false) => Self::only(key, Some(value)),
            (Node::Exists { key }, true) => Self::only(key, None),
            (Node::And(nodes), false) | (Node::Or(nodes), true) => {
                nodes.iter().map(|node| Self::by_node(node, negate)).fold(Self::default(), Self::and)
            }
            (Node::And(nodes), true) | (Node::Or(nodes), false) => {
                nodes.iter().map(|node| Self::by_node(node, negate)).fold(Self::nothing(), Self::or)
            }
            (Node::True, true) => Self::nothing(),
            _ => Self::default(),
        }
    }

    fn and(mut self, other: Self) -> Self {
        if self.nothing || other.nothing {
            return Self::nothing();
        }
        for (key, values) in other.keys {
            let common = self.keys.entry(key).or_insert_with(|| values.clone());
            common.retain(|value| values.contains(value));
            if common.is_empty() {
                return Self::nothing();
            }
        }
        self
    }

    fn or(mut self, mut other: Self) -> Self {
        if self.nothing || other.nothing {
            return if self.nothing { other } else { self };
        }
        self.keys.retain(|key, values| {
            let more = other.keys.remove(key);
            more.map(|more| values.extend(more)).is_some()
        });
        self
    }

    /// The values admitted for `key`; `None` if any is.
    pub(crate) fn values(&self, key: &str) -> Option<&BTreeSet<Option<&'a str>>> {
        self.keys.get(key)
    }

    /// The keys with a limited number of values, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'a str, &BTreeSet<Option<&'a str>>)> {
        self.keys.iter().map(|(key, values)| (*key, values))
    }

    /// Keys that must have one certain value.
    pub(crate) fn required_values(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.keys.iter().filter_map(|(key, values)| Some((*key, (*values.first()?)?)).filter(|_| values.len() == 1))
    }

    /// What it costs to compare it with another one.
    pub(crate) fn size(&self) -> usize {
        self.keys.values().map(BTreeSet::len).sum()
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// What all of them admit.
    pub(crate) fn all<'s>(all: impl Iterator<Item = &'s Self>) -> Self
    where
        'a: 's,
    {
        all.fold(Self::default(), |common, next| common.and(next.clone()))
    }

    /// Whether two of them have no value of some key in common. Allocates nothing, since it is asked for every pair of variants.
    pub(crate) fn exclude_each_other<'s>(all: impl Iterator<Item = &'s Self> + Clone) -> bool
    where
        'a: 's,
    {
        let excludes = |a: &Self, b: &Self| {
            a.keys.iter().any(|(key, values)| b.keys.get(key).is_some_and(|others| values.is_disjoint(others)))
        };
        all.clone().enumerate().any(|(i, a)| a.nothing || all.clone().skip(i + 1).any(|b| excludes(a, b)))
    }
}
