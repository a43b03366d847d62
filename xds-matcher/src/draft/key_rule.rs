//! What a subscription says about one key.

use alloc::boxed::Box;

use crate::constraint::Node;
use crate::prefixed::Prefixed;
use crate::range::integer;
use crate::ranges::Ranges;
use crate::{DynamicParameters, ErrorKind};

/// `X_k` of a key `k`, which holds only where the key is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRule {
    key: Prefixed,
    /// `Value` and `IntIn` leaves of `key`, all of which must hold.
    leaves: Box<[Node]>,
    /// What they say of exact values together.
    exact: Exact,
    /// The integers that all ranges have in common; `None` without ranges.
    ranges: Option<Ranges>,
    invert: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Exact {
    Any,
    One(Prefixed),
    /// Several at once, which no key can have.
    Several,
}

/// What a key rule lets through, for a look-up in an index.
#[derive(Clone, Copy)]
pub(crate) enum Admits<'a> {
    Anything,
    Value(&'a Prefixed),
    Integers(&'a Ranges),
    Nothing,
}

impl KeyRule {
    pub(super) fn new(key: Prefixed, leaves: Box<[Node]>, invert: bool) -> Self {
        let (mut exact, mut ranges) = (Exact::Any, None::<Ranges>);
        for leaf in &leaves {
            match (leaf, &exact) {
                (Node::Value { value, .. }, Exact::Any) => exact = Exact::One(value.clone()),
                (Node::Value { value, .. }, Exact::One(other)) if other != value => exact = Exact::Several,
                (Node::IntIn { ranges: more, .. }, _) => {
                    let more = Ranges::of(more);
                    ranges = Some(ranges.map_or_else(|| more.clone(), |ranges| ranges.and(&more)));
                }
                _ => {}
            }
        }
        Self { key, leaves, exact, ranges, invert }
    }

    pub(super) fn key(&self) -> &Prefixed {
        &self.key
    }

    pub(super) fn says_nothing(&self) -> bool {
        self.leaves.is_empty()
    }

    pub(super) fn to_node(&self) -> Node {
        let all = || match &*self.leaves {
            [leaf] => leaf.clone(),
            leaves => Node::And(leaves.into()),
        };
        let condition = match (&*self.leaves, self.invert) {
            ([], _) => Node::True,
            (_, true) => Node::Not(Box::new(all())),
            (_, false) => all(),
        };
        Node::absent_or(self.key.clone(), condition)
    }

    pub(super) fn holds(&self, value: &Prefixed) -> bool {
        // An empty list constrains nothing, inverted or not.
        self.leaves.is_empty() || self.leaves_hold(value) != self.invert
    }

    fn leaves_hold(&self, value: &Prefixed) -> bool {
        let exact = match &self.exact {
            Exact::Any => true,
            Exact::One(wanted) => wanted == value,
            Exact::Several => false,
        };
        exact && self.ranges.as_ref().is_none_or(|ranges| ranges.holds(value))
    }

    pub(crate) fn is_ranged(&self) -> bool {
        self.ranges.is_some()
    }

    pub(super) fn is_inverted(&self) -> bool {
        self.invert
    }

    pub(super) fn integer(&self, variant: &DynamicParameters) -> Option<u64> {
        variant.lookup(&self.key).and_then(|value| integer(value))
    }

    #[inline]
    pub(crate) fn admits(&self) -> Admits<'_> {
        match (&self.exact, &self.ranges) {
            _ if self.invert => Admits::Anything,
            (Exact::One(value), None) => Admits::Value(value),
            (Exact::One(value), Some(_)) if self.leaves_hold(value) => Admits::Value(value),
            (Exact::One(_), Some(_)) | (Exact::Several, _) => Admits::Nothing,
            (Exact::Any, None) => Admits::Anything,
            (Exact::Any, Some(ranges)) => Admits::Integers(ranges),
        }
    }

    /// The one value that the rule is about; or why there is none.
    pub(super) fn exact_value(&self) -> Result<&str, ErrorKind> {
        match &self.exact {
            _ if self.invert => Err(ErrorKind::InvertNotRepresentable),
            _ if self.is_ranged() => Err(ErrorKind::RangeNotRepresentable),
            Exact::One(value) => Ok(value),
            _ => Err(ErrorKind::MultiValueNotRepresentable),
        }
    }

    /// The largest integer some spelling of which satisfies the rule; only for keys with a range, by which variants are
    /// preferred.
    pub(super) fn largest(&self) -> Option<u64> {
        let ranges = self.ranges.as_ref()?.as_slice();
        match (&self.exact, self.invert) {
            (Exact::Any, false) => ranges.last().map(|range| range.end()),
            (Exact::One(value), false) => integer(value).filter(|_| self.leaves_hold(value)),
            (Exact::Several, false) => None,
            // Below a range that reaches to the end; ranges are merged, so that nothing else is in between.
            (Exact::Any, true) => match ranges.last() {
                Some(last) if last.end() == u64::MAX => last.start().checked_sub(1),
                _ => Some(u64::MAX),
            },
            // Another spelling of it is none of the values.
            (_, true) => Some(u64::MAX),
        }
    }
}
