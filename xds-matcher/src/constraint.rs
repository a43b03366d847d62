use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::prefixed::Prefixed;
use crate::range::holds_integer;
use crate::steps::look_up;
use crate::{ConstraintError, DynamicParameters, ErrorKind, IntRange, Overlap, ParseError, normal, text};

/// How many `and`, `or` and `not` may stand around a leaf.
pub const MAX_DEPTH: usize = 100;

/// How many nodes (leaves, integer ranges, `and`, `or` and `not`) one constraint may have.
pub const MAX_NODES: usize = 65_536;

/// A condition on dynamic parameters: the one expression tree behind both forms of TP2.
///
/// It is built from a message ([`final_form`](crate::final_form), [`draft`](crate::draft)), from text, or from the constructors here,
/// and is never deeper than [`MAX_DEPTH`] nor larger than [`MAX_NODES`]. Equality is that of the written expression;
/// [`normal_form`](Self::normal_form) makes expressions comparable that only differ in how they are written.
///
/// ```
/// use xds_matcher::{Constraint, DynamicParameters};
///
/// let constraint: Constraint = "env=prod and not exists(version)".parse()?;
/// let mut client = DynamicParameters::from_iter([("env", "prod")]);
/// assert!(constraint.matches(&client));
/// client.insert("version", "v1");
/// assert!(!constraint.matches(&client));
/// # Ok::<(), xds_matcher::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constraint {
    node: Node,
    depth: usize,
    size: usize,
}

impl Constraint {
    /// Matches everything: what a message without a type means.
    #[must_use]
    pub const fn unconstrained() -> Self {
        Self { node: Node::True, depth: 0, size: 1 }
    }

    /// `key=value`: the key is there and has exactly this value.
    #[must_use]
    pub fn value(key: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        Self::from_bounded(Node::Value { key: key.into().into(), value: value.into().into() })
    }

    /// `exists(key)`: the key is there, whatever its value.
    #[must_use]
    pub fn exists(key: impl Into<Box<str>>) -> Self {
        Self::from_bounded(Node::Exists { key: key.into().into() })
    }

    /// `key in 4..6,11..15`: the key is there and its value is an integer in one of the ranges.
    ///
    /// ```
    /// use xds_matcher::{Constraint, IntRange};
    ///
    /// let shards = Constraint::int_in("shard", [IntRange::new(4, 6)?, IntRange::at_least(11)])?;
    /// assert_eq!(shards.to_string(), "shard in 4..6,11..");
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::EmptyRange`] without a range, [`ErrorKind::TooLarge`].
    pub fn int_in(
        key: impl Into<Box<str>>,
        ranges: impl IntoIterator<Item = IntRange>,
    ) -> Result<Self, ConstraintError> {
        let ranges: Box<[IntRange]> = ranges.into_iter().collect();
        if ranges.is_empty() {
            return Err(ConstraintError::new(ErrorKind::EmptyRange));
        }
        let size = 1 + ranges.len();
        Self::bounded(Node::IntIn { key: key.into().into(), ranges }, 0, size)
    }

    /// All of them hold; true if there are none.
    ///
    /// ```
    /// use xds_matcher::Constraint;
    ///
    /// let both = Constraint::all([Constraint::value("env", "prod"), Constraint::exists("version")])?;
    /// assert_eq!(both.to_string(), "env=prod and exists(version)");
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`], [`ErrorKind::TooLarge`].
    pub fn all(constraints: impl IntoIterator<Item = Self>) -> Result<Self, ConstraintError> {
        let (nodes, depth, size) = Self::children(constraints)?;
        Self::bounded(Node::And(nodes), depth + 1, size + 1)
    }

    /// At least one of them holds; false if there are none.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`], [`ErrorKind::TooLarge`].
    pub fn any(constraints: impl IntoIterator<Item = Self>) -> Result<Self, ConstraintError> {
        let (nodes, depth, size) = Self::children(constraints)?;
        Self::bounded(Node::Or(nodes), depth + 1, size + 1)
    }

    /// It does not hold. A key that is not there does not have any value, so `not env=prod` matches parameters without `env`.
    ///
    /// ```
    /// use xds_matcher::{Constraint, DynamicParameters};
    ///
    /// assert!(Constraint::value("env", "prod").negate()?.matches(&DynamicParameters::new()));
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`], [`ErrorKind::TooLarge`].
    pub fn negate(self) -> Result<Self, ConstraintError> {
        Self::bounded(Node::Not(Box::new(self.node)), self.depth + 1, self.size + 1)
    }

    /// Whether the parameters satisfy the constraint. Allocates nothing.
    #[must_use]
    pub fn matches(&self, parameters: &DynamicParameters) -> bool {
        self.node.matches(parameters)
    }

    /// The keys mentioned anywhere in the expression, sorted.
    ///
    /// ```
    /// let constraint: xds_matcher::Constraint = "version=v1 or not exists(env)".parse().unwrap();
    /// assert!(constraint.keys().eq(["env", "version"]));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let mut keys = BTreeSet::new();
        self.node.for_each_leaf(&mut |leaf| {
            keys.extend(leaf.key());
        });
        keys.into_iter()
    }

    /// The constraint in a form that is equal for expressions that differ only in how they are written, to be compared, hashed or
    /// used as a map key.
    ///
    /// `not` stands only before leaves; nested `and`s and `or`s are one; children are sorted and none follows from another one of
    /// the same key; integer ranges are sorted and merged. Equal normal forms always mean the same. Two expressions that mean the
    /// same usually have equal normal forms, but not always: that question is as hard as any in logic.
    ///
    /// ```
    /// use xds_matcher::Constraint;
    ///
    /// let written: Constraint = "not (version=v1 or not env=prod) and env=prod".parse().unwrap();
    /// let meant: Constraint = "env=prod and not version=v1".parse().unwrap();
    /// assert_ne!(written, meant);
    /// assert_eq!(written.normal_form()?, meant.normal_form()?);
    /// assert_eq!(written.normal_form()?.to_string(), "env=prod and not version=v1");
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`]: one `not` of a list becomes one for each of its children.
    pub fn normal_form(&self) -> Result<Self, ConstraintError> {
        let node = normal::normal_form(&self.node);
        let (depth, size) = node.measure();
        Self::bounded(node, depth, size)
    }

    /// Whether some parameters satisfy both constraints, decided exactly as long as that takes at most
    /// [`Overlap::STEPS`] steps.
    pub fn overlap(&self, other: &Self) -> Overlap {
        crate::overlap::overlap(self, other)
    }

    /// In how many steps its nodes and ranges are looked at, and each of its texts is found among the others.
    pub(crate) fn cost(&self) -> usize {
        let mut cost = self.size;
        self.node.for_each_leaf(&mut |leaf| {
            let value = if let Node::Value { value, .. } = leaf { value.len() } else { 0 };
            cost += look_up(leaf.key().map_or(0, str::len), self.size) + look_up(value, self.size) - 2;
        });
        cost
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// For nodes that are bounded by how they came to be: leaves, and rewrites of a constraint that add no level.
    pub(crate) fn from_bounded(node: Node) -> Self {
        let (depth, size) = node.measure();
        Self { node, depth, size }
    }

    fn bounded(node: Node, depth: usize, size: usize) -> Result<Self, ConstraintError> {
        if depth > MAX_DEPTH {
            return Err(ConstraintError::new(ErrorKind::TooDeep));
        }
        if size > MAX_NODES {
            return Err(ConstraintError::new(ErrorKind::TooLarge));
        }
        Ok(Self { node, depth, size })
    }

    fn children(constraints: impl IntoIterator<Item = Self>) -> Result<(Box<[Node]>, usize, usize), ConstraintError> {
        let (mut nodes, mut depth, mut size) = (Vec::new(), 0, 0usize);
        for constraint in constraints {
            depth = depth.max(constraint.depth);
            size = size.saturating_add(constraint.size);
            // Here and not only for the whole, so that an endless iterator ends.
            if size > MAX_NODES {
                return Err(ConstraintError::new(ErrorKind::TooLarge));
            }
            nodes.push(constraint.node);
        }
        Ok((nodes.into(), depth, size))
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Constraint({self})")
    }
}

/// The text form; [`FromStr`] reads it back to an equal constraint.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, &self.node)
    }
}

impl FromStr for Constraint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text::parse(text)
    }
}

/// The expression itself. Never deeper than `MAX_DEPTH`, which bounds every recursion over it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Node {
    True,
    Value { key: Prefixed, value: Prefixed },
    Exists { key: Prefixed },
    IntIn { key: Prefixed, ranges: Box<[IntRange]> },
    And(Box<[Self]>),
    Or(Box<[Self]>),
    Not(Box<Self>),
}

impl Node {
    /// The draft's rule for a key: a variant that does not have it matches whatever the condition says.
    #[cfg(feature = "draft")]
    pub(crate) fn absent_or(key: Prefixed, condition: Self) -> Self {
        Self::Or(Box::new([Self::Not(Box::new(Self::Exists { key })), condition]))
    }

    pub(crate) fn matches(&self, parameters: &DynamicParameters) -> bool {
        let (mut node, mut negate) = (self, false);
        while let Self::Not(inner) = node {
            (node, negate) = (inner, !negate);
        }
        // Recursion for lists alone, which are few: leaves are what the time goes to.
        let holds = match node {
            Self::And(nodes) => nodes.iter().all(|node| node.matches_inline(parameters)),
            Self::Or(nodes) => nodes.iter().any(|node| node.matches_inline(parameters)),
            leaf => leaf.leaf_matches(parameters),
        };
        holds != negate
    }

    #[inline]
    fn matches_inline(&self, parameters: &DynamicParameters) -> bool {
        match self {
            Self::And(_) | Self::Or(_) => self.matches(parameters),
            Self::Not(inner) if matches!(**inner, Self::And(_) | Self::Or(_) | Self::Not(_)) => {
                self.matches(parameters)
            }
            Self::Not(leaf) => !leaf.leaf_matches(parameters),
            leaf => leaf.leaf_matches(parameters),
        }
    }

    #[inline]
    fn leaf_matches(&self, parameters: &DynamicParameters) -> bool {
        match self {
            Self::Value { key, value } => parameters.lookup(key).is_some_and(|v| v == value),
            Self::Exists { key } => parameters.lookup(key).is_some(),
            Self::IntIn { key, ranges } => parameters.lookup(key).is_some_and(|v| holds_integer(ranges, v)),
            Self::True | Self::And(_) | Self::Or(_) | Self::Not(_) => true,
        }
    }

    /// The key of a leaf; `True` and inner nodes have none.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Value { key, .. } | Self::Exists { key } | Self::IntIn { key, .. } => Some(key),
            Self::True | Self::And(_) | Self::Or(_) | Self::Not(_) => None,
        }
    }

    pub(crate) fn for_each_leaf<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().for_each(|node| node.for_each_leaf(visit)),
            Self::Not(node) => node.for_each_leaf(visit),
            leaf => visit(leaf),
        }
    }

    /// Levels around the deepest leaf, and nodes.
    fn measure(&self) -> (usize, usize) {
        match self {
            Self::True | Self::Value { .. } | Self::Exists { .. } => (0, 1),
            Self::IntIn { ranges, .. } => (0, 1 + ranges.len()),
            Self::And(nodes) | Self::Or(nodes) => nodes
                .iter()
                .map(Self::measure)
                .fold((1, 1), |(depth, size), child| (depth.max(child.0 + 1), size + child.1)),
            Self::Not(node) => {
                let (depth, size) = node.measure();
                (depth + 1, size + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constructors_bound_depth_and_size() {
        let mut constraint = Constraint::exists("a");
        for _ in 0..MAX_DEPTH {
            constraint = constraint.negate().unwrap();
        }
        assert_eq!(constraint.negate().unwrap_err().kind(), ErrorKind::TooDeep);
        let endless = core::iter::repeat(Constraint::exists("a"));
        assert_eq!(Constraint::any(endless).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn an_empty_all_is_true_and_an_empty_any_is_false() {
        let parameters = DynamicParameters::new();
        assert!(Constraint::all([]).unwrap().matches(&parameters));
        assert!(!Constraint::any([]).unwrap().matches(&parameters));
    }
}
