//! The final form (xRFC TP2 of 2022-02-09): a variant carries constraints, a subscriber sends parameters.
//!
//! The messages mirror `envoy.service.discovery.v3.DynamicParameterConstraints` field by field, without a protobuf library:
//! whoever decodes the wire fills them in, [`DynamicParameterConstraints::lower`] checks them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use crate::constraint::Node;
use crate::{Constraint, ConstraintError, ErrorKind, MAX_DEPTH, MAX_NODES};

/// `DynamicParameterConstraints`: what a variant asks of a subscriber's parameters.
///
/// ```
/// use xds_matcher::final_form::{ConstraintType, DynamicParameterConstraints, Kind, SingleConstraint};
///
/// let production = Kind::Constraint(SingleConstraint {
///     key: "env".into(),
///     constraint_type: Some(ConstraintType::Value("prod".into())),
/// });
/// let message = DynamicParameterConstraints::from(Kind::NotConstraints(Box::new(production.into())));
/// let constraint = message.lower()?;
/// assert_eq!(constraint.to_string(), "not env=prod");
/// assert_eq!(DynamicParameterConstraints::raise(&constraint)?, message);
/// # Ok::<(), xds_matcher::ConstraintError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DynamicParameterConstraints {
    /// `oneof type`; unset means unconstrained.
    pub kind: Option<Kind>,
}

/// The members of `DynamicParameterConstraints.type`, with their field numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// 1: a condition on one key.
    Constraint(SingleConstraint),
    /// 2: at least one of them; none is false.
    OrConstraints(ConstraintList),
    /// 3: all of them; none is true.
    AndConstraints(ConstraintList),
    /// 4: the opposite.
    NotConstraints(Box<DynamicParameterConstraints>),
}

/// `DynamicParameterConstraints.ConstraintList`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConstraintList {
    /// 1.
    pub constraints: Vec<DynamicParameterConstraints>,
}

/// `DynamicParameterConstraints.SingleConstraint`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SingleConstraint {
    /// 1; the empty key is a key like any other.
    pub key: String,
    /// `oneof constraint_type`, which is required.
    pub constraint_type: Option<ConstraintType>,
}

/// The members of `SingleConstraint.constraint_type`, with their field numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstraintType {
    /// 2: the key has exactly this value.
    Value(String),
    /// 3: the key is there.
    Exists,
}

impl DynamicParameterConstraints {
    /// Checks the message, including the parts that could not matter to a result, and makes the constraint it means.
    ///
    /// # Errors
    /// [`ErrorKind::MissingConstraintType`], [`ErrorKind::TooDeep`], [`ErrorKind::TooLarge`].
    pub fn lower(&self) -> Result<Constraint, ConstraintError> {
        lower(self, 0, &mut 0).map(Constraint::from_bounded)
    }

    /// The message that means `constraint`.
    ///
    /// # Errors
    /// [`ErrorKind::RangeNotRepresentable`]: the final form has no integers.
    pub fn raise(constraint: &Constraint) -> Result<Self, ConstraintError> {
        raise(constraint.node())
    }
}

impl From<Kind> for DynamicParameterConstraints {
    fn from(kind: Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

/// Takes the children out before they are dropped: a message of any depth, as a lenient decoder may have made it, must not
/// exhaust the stack.
impl Drop for DynamicParameterConstraints {
    fn drop(&mut self) {
        let mut nested = Vec::new();
        take_children(self, &mut nested);
        while let Some(mut message) = nested.pop() {
            take_children(&mut message, &mut nested);
        }
    }
}

fn take_children(message: &mut DynamicParameterConstraints, into: &mut Vec<DynamicParameterConstraints>) {
    match &mut message.kind {
        None | Some(Kind::Constraint(_)) => {}
        Some(Kind::OrConstraints(list) | Kind::AndConstraints(list)) => into.append(&mut list.constraints),
        Some(Kind::NotConstraints(inner)) => into.push(mem::take(&mut **inner)),
    }
}

fn lower(message: &DynamicParameterConstraints, depth: usize, size: &mut usize) -> Result<Node, ConstraintError> {
    if depth > MAX_DEPTH {
        return Err(ConstraintError::new(ErrorKind::TooDeep));
    }
    *size += 1;
    if *size > MAX_NODES {
        return Err(ConstraintError::new(ErrorKind::TooLarge));
    }
    let mut all = |list: &ConstraintList| {
        let one = |(i, child)| lower(child, depth + 1, size).map_err(|e| e.inside(format_args!("constraints[{i}]")));
        list.constraints.iter().enumerate().map(one).collect::<Result<Box<[Node]>, _>>()
    };
    Ok(match &message.kind {
        None => Node::True,
        Some(Kind::Constraint(single)) => {
            let key = single.key.as_str().into();
            match &single.constraint_type {
                Some(ConstraintType::Value(value)) => Node::Value { key, value: value.as_str().into() },
                Some(ConstraintType::Exists) => Node::Exists { key },
                None => return Err(ConstraintError::new(ErrorKind::MissingConstraintType).inside("constraint")),
            }
        }
        Some(Kind::OrConstraints(list)) => Node::Or(all(list).map_err(|e| e.inside("or_constraints"))?),
        Some(Kind::AndConstraints(list)) => Node::And(all(list).map_err(|e| e.inside("and_constraints"))?),
        Some(Kind::NotConstraints(inner)) => {
            Node::Not(Box::new(lower(inner, depth + 1, size).map_err(|e| e.inside("not_constraints"))?))
        }
    })
}

fn raise(node: &Node) -> Result<DynamicParameterConstraints, ConstraintError> {
    let list = |nodes: &[Node]| {
        let constraints = nodes.iter().map(raise).collect::<Result<Vec<_>, _>>()?;
        Ok(ConstraintList { constraints })
    };
    let single = |key: &str, constraint_type| {
        Kind::Constraint(SingleConstraint { key: key.into(), constraint_type: Some(constraint_type) })
    };
    Ok(DynamicParameterConstraints::from(match node {
        Node::True => return Ok(DynamicParameterConstraints::default()),
        Node::Value { key, value } => single(key, ConstraintType::Value(value.into())),
        Node::Exists { key } => single(key, ConstraintType::Exists),
        Node::IntIn { key, .. } => {
            return Err(ConstraintError::new(ErrorKind::RangeNotRepresentable).inside(format_args!("key {key:?}")));
        }
        Node::And(nodes) => Kind::AndConstraints(list(nodes)?),
        Node::Or(nodes) => Kind::OrConstraints(list(nodes)?),
        Node::Not(inner) => Kind::NotConstraints(Box::new(raise(inner)?)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(times: usize) -> DynamicParameterConstraints {
        (0..times).fold(DynamicParameterConstraints::default(), |inner, i| {
            DynamicParameterConstraints::from(match i % 2 {
                0 => Kind::NotConstraints(Box::new(inner)),
                _ => Kind::AndConstraints(ConstraintList { constraints: alloc::vec![inner] }),
            })
        })
    }

    #[test]
    fn a_hundred_levels_are_accepted_and_one_more_is_not() {
        assert!(nested(MAX_DEPTH).lower().is_ok());
        assert_eq!(nested(MAX_DEPTH + 1).lower().unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn a_message_of_any_depth_is_refused_and_dropped_without_exhausting_the_stack() {
        assert_eq!(nested(1_000_000).lower().unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn ranges_cannot_be_said() {
        let constraint: Constraint = "env=prod and shard in 4..6".parse().unwrap();
        let error = DynamicParameterConstraints::raise(&constraint).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RangeNotRepresentable);
    }
}
