use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Constraint as Leaf, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range};
use crate::constraint::Node;
use crate::{Constraint, ConstraintError, ErrorKind, IntRange};

impl DynamicParameterConstraints {
    /// A message that means `constraint`, if the draft form has one: conditions on single keys, joined by `and`, each of which holds
    /// where the key is absent.
    ///
    /// ```
    /// use xds_matcher::{Constraint, draft::DynamicParameterConstraints};
    ///
    /// let canary: Constraint = "(not exists(env) or env=canary) and not version=v1".parse().unwrap();
    /// let message = DynamicParameterConstraints::raise(&canary)?;
    /// assert!(message.key_constraints["version"].invert);
    ///
    /// // The draft matches whatever lacks the key, so it cannot insist on one.
    /// let strict: Constraint = "env=canary".parse().unwrap();
    /// assert!(DynamicParameterConstraints::raise(&strict).is_err());
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`], [`ErrorKind::TooLarge`].
    pub fn raise(constraint: &Constraint) -> Result<Self, ConstraintError> {
        let normal = constraint.normal_form()?;
        let clauses = match normal.node() {
            Node::True => &[],
            Node::And(clauses) => &**clauses,
            clause => core::slice::from_ref(clause),
        };
        let mut keys: BTreeMap<String, KeyConstraints> = BTreeMap::new();
        for clause in clauses {
            let not_representable = || {
                ConstraintError::new(ErrorKind::NotRepresentable)
                    .inside(format_args!("{}", Constraint::from_bounded(clause.clone())))
            };
            let (key, condition) = raise_clause(clause).ok_or_else(not_representable)?;
            match keys.get_mut(key) {
                None => _ = keys.insert(key.into(), condition),
                // One key has one list and one `invert`.
                Some(present) if present.invert || condition.invert => return Err(not_representable()),
                Some(present) => present.constraints.extend(condition.constraints),
            }
        }
        Ok(Self { key_constraints: keys })
    }
}

/// The key a clause of the normal form is about, and what it says; `None` for what the draft cannot say.
fn raise_clause(clause: &Node) -> Option<(&str, KeyConstraints)> {
    let literals = match clause {
        Node::Or(literals) => &**literals,
        literal => core::slice::from_ref(literal),
    };
    let mut key = None;
    let (mut may_be_absent, mut inverted, mut positive) = (false, Vec::new(), None);
    for literal in literals {
        let of = match literal {
            Node::Not(leaf) => {
                match &**leaf {
                    Node::Exists { .. } => may_be_absent = true,
                    leaf => inverted.push(raise_leaf(leaf)?),
                }
                leaf.key()?
            }
            condition => {
                if positive.replace(condition).is_some() {
                    return None;
                }
                key_of_all(condition)?
            }
        };
        if *key.get_or_insert(of) != of {
            return None;
        }
    }
    let (constraints, invert) = match positive {
        None if inverted.is_empty() => (contradiction(), false),
        // A negated leaf already holds where the key is absent.
        None => (inverted, true),
        Some(Node::And(leaves)) if may_be_absent && inverted.is_empty() => {
            (leaves.iter().map(raise_leaf).collect::<Option<_>>()?, false)
        }
        Some(leaf) if may_be_absent && inverted.is_empty() => (alloc::vec![raise_leaf(leaf)?], false),
        Some(_) => return None,
    };
    Some((key?, KeyConstraints { constraints, invert }))
}

/// The one key of a leaf, or of all children of an `and`.
fn key_of_all(node: &Node) -> Option<&str> {
    let Node::And(leaves) = node else { return node.key() };
    let key = leaves.first()?.key()?;
    leaves.iter().all(|leaf| leaf.key() == Some(key)).then_some(key)
}

fn raise_leaf(leaf: &Node) -> Option<Leaf> {
    let range =
        |r: &IntRange| Range { min_value: Some(r.start()), max_value: Some(r.end()).filter(|max| *max < u64::MAX) };
    let kind = match leaf {
        Node::Value { value, .. } => Kind::Value(value.into()),
        Node::IntIn { ranges, .. } => {
            Kind::IntegerRangeList(IntegerRangeList { range: ranges.iter().map(range).collect() })
        }
        _ => return None,
    };
    Some(Leaf { kind: Some(kind) })
}

/// "The key must be absent" has no words of its own: two values at once, which no present key can have.
fn contradiction() -> Vec<Leaf> {
    ["0", "1"].map(|value| Leaf { kind: Some(Kind::Value(value.into())) }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_draft_can_say_survives_the_way_there_and_back() {
        for text in [
            "true",
            "not exists(a)",
            "not a=1",
            "not a=1 or not a in 4..6",
            "not exists(a) or a=1",
            "(not exists(a) or a in 0..5) and (not exists(a) or a in 3..9)",
            "(not exists(a) or (a=05 and a in 0..5)) and not b=x",
        ] {
            let constraint: Constraint = text.parse().unwrap();
            let raised = DynamicParameterConstraints::raise(&constraint).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(
                raised,
                DynamicParameterConstraints::raise(raised.lower().unwrap().constraint()).unwrap(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_the_draft_cannot_say_is_an_error() {
        for text in [
            "false",
            "a=1",
            "exists(a)",
            "not exists(a) or b=1",
            "not a=1 and not a=2",
            "not exists(a) or a=1 or a=2",
            "(not exists(a) or a in 0..5) and not a=3",
        ] {
            let error = DynamicParameterConstraints::raise(&text.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotRepresentable, "{text}");
        }
    }
}
