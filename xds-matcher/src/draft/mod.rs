//! The draft form (xRFC TP2 of 2021-08-03): a subscriber sends constraints, a variant carries parameters.
//!
//! A key that the variant does not carry matches whatever the constraint says, values may be constrained to integer ranges, and of
//! several matching variants the one with the largest integer is preferred. The messages mirror the draft's, without a protobuf library;
//! [`DynamicParameterConstraints::lower`] checks them.

mod constraints_map;
mod convert;
mod key_rule;
mod raise;
mod subscription;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::constraint::Node;
use crate::{ConstraintError, ErrorKind, IntRange, MAX_NODES};
pub use constraints_map::DynamicParameterConstraintsMap;
pub(crate) use key_rule::{Admits, KeyRule};
pub use subscription::Subscription;

/// The draft's `DynamicParameterConstraints`: what a subscriber asks of a variant's parameters.
///
/// ```
/// use xds_matcher::draft::{Constraint, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range};
///
/// let shards = Kind::IntegerRangeList(IntegerRangeList {
///     range: vec![Range { min_value: Some(0), max_value: Some(5) }],
/// });
/// let message = DynamicParameterConstraints {
///     key_constraints: [(
///         "shard".to_owned(),
///         KeyConstraints { constraints: vec![Constraint { kind: Some(shards) }], invert: false },
///     )]
///     .into(),
/// };
/// let subscription = message.lower()?;
/// assert_eq!(subscription.constraint().to_string(), "all(not exists(shard) or shard in 0..5)");
/// # Ok::<(), xds_matcher::ConstraintError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DynamicParameterConstraints {
    /// 1: one entry per key; all must be met.
    pub key_constraints: BTreeMap<String, KeyConstraints>,
}

/// `DynamicParameterConstraints.KeyConstraints`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyConstraints {
    /// 2: all must be met; none constrains nothing, inverted or not.
    pub constraints: Vec<Constraint>,
    /// The opposite of all of `constraints` together. The draft's examples use the field, its message lacks it.
    pub invert: bool,
}

/// `DynamicParameterConstraints.KeyConstraints.Constraint`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Constraint {
    /// `oneof constraint`, which is required.
    pub kind: Option<Kind>,
}

/// The members of the oneof in [`Constraint`], with their field numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// 1: the key has exactly this value.
    Value(String),
    /// 2: the key's value is an integer in one of the ranges.
    IntegerRangeList(IntegerRangeList),
}

/// `Constraint.IntegerRangeList`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntegerRangeList {
    /// 1: at least one.
    pub range: Vec<Range>,
}

/// `IntegerRangeList.Range`, both bounds included; at least one is required.
///
/// The draft declares the bounds as plain proto3 scalars, where 0 cannot be told from unset. Here 0 is a bound: `[0, 0]` is a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// 1.
    pub min_value: Option<u64>,
    /// 2.
    pub max_value: Option<u64>,
}

impl DynamicParameterConstraints {
    /// Checks the message and compiles it.
    ///
    /// # Errors
    /// [`ErrorKind::MissingConstraintType`], [`ErrorKind::EmptyRange`], [`ErrorKind::BadRange`], [`ErrorKind::TooLarge`].
    pub fn lower(&self) -> Result<Subscription, ConstraintError> {
        let mut size = 1;
        let mut keys = Vec::with_capacity(self.key_constraints.len());
        for (key, constraints) in &self.key_constraints {
            let leaves = lower_leaves(key, &constraints.constraints, &mut size)
                .map_err(|e| e.inside(format_args!("key_constraints[{key:?}]")))?;
            keys.push((key.as_str().into(), leaves, constraints.invert));
        }
        Ok(Subscription::new(keys))
    }
}

fn lower_leaves(key: &str, constraints: &[Constraint], size: &mut usize) -> Result<Box<[Node]>, ConstraintError> {
    // The key's own `or`, `not exists(key)`, `not` and `and`.
    *size += 5;
    let mut leaves = Vec::with_capacity(constraints.len());
    for (i, constraint) in constraints.iter().enumerate() {
        let at = |e: ConstraintError| e.inside(format_args!("constraints[{i}]"));
        leaves.push(match &constraint.kind {
            Some(Kind::Value(value)) => Node::Value { key: key.into(), value: value.as_str().into() },
            Some(Kind::IntegerRangeList(list)) => {
                *size += list.range.len();
                Node::IntIn { key: key.into(), ranges: lower_ranges(list).map_err(at)? }
            }
            None => return Err(at(ConstraintError::new(ErrorKind::MissingConstraintType))),
        });
        *size += 1;
    }
    if *size > MAX_NODES { Err(ConstraintError::new(ErrorKind::TooLarge)) } else { Ok(leaves.into()) }
}

fn lower_ranges(list: &IntegerRangeList) -> Result<Box<[IntRange]>, ConstraintError> {
    let empty = || ConstraintError::new(ErrorKind::EmptyRange);
    let lower = |(i, range): (usize, &Range)| {
        let (min, max) = (range.min_value, range.max_value);
        let bounds = if min.or(max).is_none() { Err(empty()) } else { Ok((min.unwrap_or(0), max.unwrap_or(u64::MAX))) };
        bounds.and_then(|(min, max)| IntRange::new(min, max)).map_err(|e| e.inside(format_args!("range[{i}]")))
    };
    let ranges = if list.range.is_empty() { Err(empty()) } else { list.range.iter().enumerate().map(lower).collect() };
    ranges.map_err(|e| e.inside("integer_range_list"))
}
