//! The final form (xRFC TP2 of 2022-02-09): a variant carries constraints, a subscriber sends parameters.
//!
//! The messages mirror `envoy.service.discovery.v3.DynamicParameterConstraints` field by field, without a protobuf library:
//! whoever decodes the wire fills them in, [`DynamicParameterConstraints::lower`] checks them. No message is ever deeper than
//! [`MAX_DEPTH`], so that it can be cloned, printed and dropped: [`ConstraintList`] and [`Negated`] refuse what would be.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::constraint::Node;
use crate::{Constraint, ConstraintError, ErrorKind, MAX_DEPTH, MAX_NODES};

/// `DynamicParameterConstraints`: what a variant asks of a subscriber's parameters.
///
/// ```
/// use xds_matcher::final_form::{ConstraintType, DynamicParameterConstraints, Kind, Negated, SingleConstraint};
///
/// let production = Kind::Constraint(SingleConstraint {
///     key: "env".into(),
///     constraint_type: Some(ConstraintType::Value("prod".into())),
/// });
/// let message = DynamicParameterConstraints::from(Kind::NotConstraints(Negated::new(production.into())?));
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
#[non_exhaustive]
pub enum Kind {
    /// 1: a condition on one key.
    Constraint(SingleConstraint),
    /// 2: at least one of them; none is false.
    OrConstraints(ConstraintList),
    /// 3: all of them; none is true.
    AndConstraints(ConstraintList),
    /// 4: the opposite.
    NotConstraints(Negated),
}

/// `DynamicParameterConstraints.ConstraintList`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConstraintList {
    constraints: Vec<DynamicParameterConstraints>,
    depth: usize,
}

impl ConstraintList {
    /// A list of these.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`].
    pub fn new(constraints: impl Into<Vec<DynamicParameterConstraints>>) -> Result<Self, ConstraintError> {
        let constraints = constraints.into();
        let depth = one_deeper(constraints.iter().map(DynamicParameterConstraints::depth).max().unwrap_or_default())?;
        Ok(Self { constraints, depth })
    }

    /// 1: the constraints.
    #[must_use]
    pub fn constraints(&self) -> &[DynamicParameterConstraints] {
        &self.constraints
    }

    /// The constraints, moved out.
    #[must_use]
    pub fn into_constraints(self) -> Vec<DynamicParameterConstraints> {
        self.constraints
    }
}

/// The `DynamicParameterConstraints` of which `not_constraints` is the opposite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negated {
    constraints: Box<DynamicParameterConstraints>,
    depth: usize,
}

impl Negated {
    /// The opposite of this.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`].
    pub fn new(constraints: DynamicParameterConstraints) -> Result<Self, ConstraintError> {
        let depth = one_deeper(constraints.depth())?;
        Ok(Self { constraints: Box::new(constraints), depth })
    }

    /// What it is the opposite of.
    #[must_use]
    pub fn constraints(&self) -> &DynamicParameterConstraints {
        &self.constraints
    }

    /// What it is the opposite of, moved out.
    #[must_use]
    pub fn into_constraints(self) -> DynamicParameterConstraints {
        *self.constraints
    }
}

fn one_deeper(depth: usize) -> Result<usize, ConstraintError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(ConstraintError::new(ErrorKind::TooDeep)) }
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
#[non_exhaustive]
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
    /// [`ErrorKind::MissingConstraintType`], [`ErrorKind::TooLarge`].
    pub fn lower(&self) -> Result<Constraint, ConstraintError> {
        lower(self, &mut 0).map(Constraint::from_bounded)
    }

    /// The message that means `constraint`.
    ///
    /// # Errors
    /// [`ErrorKind::RangeNotRepresentable`]: the final form has no integers.
    pub fn raise(constraint: &Constraint) -> Result<Self, ConstraintError> {
        raise(constraint.node())
    }

    /// How many lists and negations stand around the deepest leaf.
    fn depth(&self) -> usize {
        match &self.kind {
            None | Some(Kind::Constraint(_)) => 0,
            Some(Kind::OrConstraints(list) | Kind::AndConstraints(list)) => list.depth,
            Some(Kind::NotConstraints(negated)) => negated.depth,
        }
    }
}

impl From<Kind> for DynamicParameterConstraints {
    fn from(kind: Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

fn lower(message: &DynamicParameterConstraints, size: &mut usize) -> Result<Node, ConstraintError> {
    *size += 1;
    if *size > MAX_NODES {
        return Err(ConstraintError::new(ErrorKind::TooLarge));
    }
    let mut all = |list: &ConstraintList| {
        let one = |(i, child)| lower(child, size).map_err(|e| e.inside(format_args!("constraints[{i}]")));
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
        Some(Kind::NotConstraints(negated)) => {
            Node::Not(Box::new(lower(&negated.constraints, size).map_err(|e| e.inside("not_constraints"))?))
        }
    })
}

fn raise(node: &Node) -> Result<DynamicParameterConstraints, ConstraintError> {
    let list = |nodes: &[Node]| ConstraintList::new(nodes.iter().map(raise).collect::<Result<Vec<_>, _>>()?);
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
        Node::Not(inner) => Kind::NotConstraints(Negated::new(raise(inner)?)?),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(times: usize) -> Result<DynamicParameterConstraints, ConstraintError> {
        (0..times).try_fold(DynamicParameterConstraints::default(), |inner, i| {
            Ok(DynamicParameterConstraints::from(match i % 2 {
                0 => Kind::NotConstraints(Negated::new(inner)?),
                _ => Kind::AndConstraints(ConstraintList::new([inner])?),
            }))
        })
    }

    #[test]
    fn a_hundred_levels_are_accepted_and_one_more_is_not() {
        let deepest = nested(MAX_DEPTH).unwrap();
        assert_eq!(DynamicParameterConstraints::raise(&deepest.lower().unwrap()), Ok(deepest.clone()));
        assert_eq!(Negated::new(deepest.clone()).unwrap_err().kind(), ErrorKind::TooDeep);
        assert_eq!(ConstraintList::new([deepest]).unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn a_message_of_any_depth_is_refused_before_it_can_exhaust_the_stack() {
        assert_eq!(nested(1_000_000).unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn what_a_message_holds_can_be_moved_out_of_it() {
        let leaf =
            Kind::Constraint(SingleConstraint { key: "k".into(), constraint_type: Some(ConstraintType::Exists) });
        let negated = Kind::NotConstraints(Negated::new(leaf.clone().into()).unwrap());
        let list =
            DynamicParameterConstraints::from(Kind::OrConstraints(ConstraintList::new([negated.into()]).unwrap()));
        let Some(Kind::OrConstraints(list)) = list.kind else { panic!() };
        let Some(Kind::NotConstraints(negated)) = list.into_constraints().remove(0).kind else { panic!() };
        assert_eq!(negated.into_constraints().kind, Some(leaf));
    }

    #[test]
    fn ranges_cannot_be_said() {
        let constraint: Constraint = "env=prod and shard in 4..6".parse().unwrap();
        let error = DynamicParameterConstraints::raise(&constraint).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RangeNotRepresentable);
    }
}
