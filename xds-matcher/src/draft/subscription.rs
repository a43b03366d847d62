use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::key_rule::KeyRule;
use crate::constraint::Node;
use crate::prefixed::Prefixed;
use crate::{Constraint, ConstraintError, DynamicParameters};

/// Checked and compiled draft constraints: what a subscriber of the draft form asks for.
///
/// ```
/// use xds_matcher::draft::Subscription;
///
/// let subscription: Subscription = Subscription::of(&"not exists(shard) or shard in 0..5".parse().unwrap()).unwrap();
/// assert!(subscription.matches(&[("shard", "3")].into_iter().collect()));
/// assert!(!subscription.matches(&[("shard", "6")].into_iter().collect()));
/// assert!(subscription.matches(&[("env", "prod")].into_iter().collect()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    constraint: Constraint,
    /// Sorted by key.
    keys: Box<[KeyRule]>,
}

impl Subscription {
    /// The subscription that a constraint means.
    ///
    /// # Errors
    /// [`NotRepresentable`](crate::ErrorKind::NotRepresentable) for what the draft form cannot say: see
    /// [`DynamicParameterConstraints::raise`](super::DynamicParameterConstraints::raise).
    pub fn of(constraint: &Constraint) -> Result<Self, ConstraintError> {
        super::DynamicParameterConstraints::raise(constraint)?.lower()
    }

    /// The subscription that a text such as `env=prod and shard in 0..5` means to someone who knows the draft: each condition on
    /// one key holds where the key is absent, without saying so. One that does say whether the key exists means what it says.
    ///
    /// ```
    /// use xds_matcher::draft::Subscription;
    ///
    /// let subscription = Subscription::where_present(&"env=prod and shard in 0..5".parse().unwrap()).unwrap();
    /// assert!(subscription.matches(&[("shard", "3")].into_iter().collect()));
    /// assert!(!subscription.matches(&[("env", "test"), ("shard", "3")].into_iter().collect()));
    /// assert!(Subscription::where_present(&"exists(env)".parse().unwrap()).is_err());
    /// ```
    ///
    /// # Errors
    /// Those of [`of`](Self::of), and [`TooDeep`](crate::ErrorKind::TooDeep), [`TooLarge`](crate::ErrorKind::TooLarge).
    pub fn where_present(constraint: &Constraint) -> Result<Self, ConstraintError> {
        let normal = constraint.normal_form()?;
        let conditions = match normal.node() {
            Node::And(conditions) => &**conditions,
            condition => core::slice::from_ref(condition),
        };
        let relaxed = conditions.iter().map(|condition| {
            let mut says_existence = false;
            condition.for_each_leaf(&mut |leaf| says_existence |= matches!(leaf, Node::Exists { .. }));
            let condition = Constraint::from_bounded(condition.clone());
            let mut keys = condition.keys();
            match (keys.next().map(Constraint::exists), keys.next()) {
                (Some(exists), None) if !says_existence => Constraint::any([exists.negate()?, condition.clone()]),
                _ => Ok(condition.clone()),
            }
        });
        Self::of(&Constraint::all(relaxed.collect::<Result<Vec<_>, ConstraintError>>()?)?)
    }

    pub(super) fn new(keys: Vec<(Prefixed, Box<[Node]>, bool)>) -> Self {
        let rules: Box<[KeyRule]> =
            keys.into_iter().map(|(key, leaves, invert)| KeyRule::new(key, leaves, invert)).collect();
        let node = Node::And(rules.iter().map(KeyRule::to_node).collect());
        Self { constraint: Constraint::from_bounded(node), keys: rules }
    }

    /// The same as an expression over a variant's parameters.
    #[must_use]
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// Whether a variant with these parameters answers the subscription.
    #[must_use]
    pub fn matches(&self, variant: &DynamicParameters) -> bool {
        self.keys.iter().all(|rule| variant.lookup(rule.key()).is_none_or(|value| rule.holds(value)))
    }

    /// The parameters a client of the final form sends to say the same. Keys without a constraint are not sent.
    ///
    /// ```
    /// use xds_matcher::{ErrorKind, draft::Subscription};
    ///
    /// let exact = Subscription::of(&"not exists(env) or env=prod".parse().unwrap()).unwrap();
    /// assert_eq!(exact.to_parameters().unwrap().to_string(), "{env=prod}");
    /// let ranged = Subscription::of(&"not exists(shard) or shard in 0..5".parse().unwrap()).unwrap();
    /// assert_eq!(ranged.to_parameters().unwrap_err().kind(), ErrorKind::RangeNotRepresentable);
    /// ```
    ///
    /// # Errors
    /// Only exact values can be parameters:
    /// [`InvertNotRepresentable`](crate::ErrorKind::InvertNotRepresentable),
    /// [`RangeNotRepresentable`](crate::ErrorKind::RangeNotRepresentable),
    /// [`MultiValueNotRepresentable`](crate::ErrorKind::MultiValueNotRepresentable).
    pub fn to_parameters(&self) -> Result<DynamicParameters, ConstraintError> {
        let constrained = self.keys.iter().filter(|rule| !rule.says_nothing());
        let exact = constrained.map(|rule| match rule.exact_value() {
            Ok(value) => Ok((&**rule.key(), value)),
            Err(kind) => Err(ConstraintError::new(kind).inside(format_args!("key_constraints[{:?}]", &**rule.key()))),
        });
        exact.collect::<Result<Vec<_>, ConstraintError>>().map(DynamicParameters::from_iter)
    }

    /// Whether a cache that would answer with `selected` must nevertheless ask upstream, because a variant with a larger integer
    /// would be preferred and may exist. Not for glob collections, which use all matching variants.
    #[must_use]
    pub fn must_ask_upstream(&self, selected: &DynamicParameters) -> bool {
        self.keys.iter().any(|rule| rule.largest().is_some_and(|largest| rule.integer(selected) < Some(largest)))
    }

    /// Which of two matching variants is preferred: the larger integer on the first ranged key that tells them apart; `Greater` is better.
    pub(crate) fn prefer(&self, a: &DynamicParameters, b: &DynamicParameters) -> Ordering {
        let ranged = self.keys.iter().filter(|rule| rule.is_ranged());
        ranged.map(|rule| rule.integer(a).cmp(&rule.integer(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Whether every range that decides between variants also says which to look for: an inverted one decides and admits everything.
    pub(crate) fn prefers_what_it_admits(&self) -> bool {
        !self.keys.iter().any(|rule| rule.is_ranged() && rule.is_inverted())
    }

    pub(crate) fn rule(&self, key: &Prefixed) -> Option<&KeyRule> {
        let at = self.keys.binary_search_by(|rule| rule.key().cmp(key)).ok()?;
        self.keys.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range};

    fn ranged(ranges: &[(u64, u64)], invert: bool) -> Subscription {
        let range = ranges.iter().map(|&(min, max)| Range { min_value: Some(min), max_value: Some(max) }).collect();
        let kind = Some(Kind::IntegerRangeList(IntegerRangeList { range }));
        let key = KeyConstraints { constraints: alloc::vec![crate::draft::Constraint { kind }], invert };
        DynamicParameterConstraints { key_constraints: [("n".into(), key)].into() }.lower().unwrap()
    }

    fn n(value: &str) -> DynamicParameters {
        [("n", value)].into_iter().collect()
    }

    #[test]
    fn the_range_from_zero_to_zero_is_a_range() {
        let zero = ranged(&[(0, 0)], false);
        assert!(zero.matches(&n("0")) && zero.matches(&n("00")) && !zero.matches(&n("1")));
        assert!(!zero.must_ask_upstream(&n("0")));
    }

    #[test]
    fn an_inverted_range_decides_before_a_range_of_a_later_key() {
        use crate::DraftVariants;
        let rule = |min, max, invert| KeyConstraints {
            constraints: alloc::vec![crate::draft::Constraint {
                kind: Some(Kind::IntegerRangeList(IntegerRangeList {
                    range: alloc::vec![Range { min_value: Some(min), max_value: Some(max) }]
                }))
            }],
            invert,
        };
        let keys = [("l", rule(0, 9, false)), ("m", rule(90, 99, true)), ("n", rule(0, 9, false))];
        let key_constraints = keys.map(|(key, rule)| (key.into(), rule)).into();
        let subscription = DynamicParameterConstraints { key_constraints }.lower().unwrap();
        let variant = |m, n| (m, [("m", m), ("n", n)].into_iter().collect::<DynamicParameters>());
        let variants = DraftVariants::new([variant("1", "8"), variant("2", "7"), variant("3", "6")]);
        assert_eq!(variants.select(&subscription).variant(), Some(&"3"));
    }

    #[test]
    fn inverted_ranges_prefer_what_lies_just_below_an_open_range() {
        let below_ten = ranged(&[(10, u64::MAX)], true);
        assert!(!below_ten.must_ask_upstream(&n("9")));
        assert!(below_ten.must_ask_upstream(&n("8")));
        assert!(below_ten.must_ask_upstream(&n("none")));
        assert!(ranged(&[(4, 6)], true).must_ask_upstream(&n("18446744073709551614")));
    }
}
