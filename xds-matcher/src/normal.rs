//! The normal form of a constraint.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::constraint::Node;
use crate::range::holds_integer;
use crate::ranges::{Ranges, disjoint, within};

/// What [`Constraint::normal_form`](crate::Constraint::normal_form) says, of any size.
pub(crate) fn normal_form(node: &Node) -> Node {
    normalize(node, false)
}

/// Above this many literals of one key in one list they are no longer compared with each other, which takes quadratic time.
const MAX_COMPARED: usize = 64;

fn normalize(node: &Node, negate: bool) -> Node {
    match node {
        Node::Not(inner) => normalize(inner, !negate),
        Node::And(nodes) => join(nodes, negate, !negate),
        Node::Or(nodes) => join(nodes, negate, negate),
        Node::True if negate => Node::Or(Box::default()),
        Node::True => Node::True,
        leaf => {
            let leaf = match leaf {
                Node::IntIn { key, ranges } => {
                    Node::IntIn { key: key.clone(), ranges: Ranges::of(ranges).into_boxed_slice() }
                }
                leaf => leaf.clone(),
            };
            if negate { Node::Not(Box::new(leaf)) } else { leaf }
        }
    }
}

/// The `and` (or else `or`) of the normalised children.
fn join(nodes: &[Node], negate: bool, and: bool) -> Node {
    // The unit of the operation disappears, its zero decides.
    let no = || Node::Or(Box::default());
    let (unit, zero) = if and { (Node::True, no()) } else { (no(), Node::True) };
    let mut children = Vec::with_capacity(nodes.len());
    for child in nodes {
        match (normalize(child, negate), and) {
            (child, _) if child == zero => return zero,
            (child, _) if child == unit => {}
            (Node::And(inner), true) | (Node::Or(inner), false) => children.extend(inner),
            (child, _) => children.push(child),
        }
    }
    children.sort_unstable();
    children.dedup();
    if simplify(&mut children, and).is_err() {
        return zero;
    }
    match (children.len(), and) {
        (0, _) => unit,
        (1, _) => children.pop().unwrap_or(unit),
        (_, true) => Node::And(children.into()),
        (_, false) => Node::Or(children.into()),
    }
}

/// Two literals of one key decide the whole list.
struct Decided;

/// Removes literals that follow from others (`and`) or imply others (`or`).
fn simplify(children: &mut Vec<Node>, and: bool) -> Result<(), Decided> {
    let mut by_key: Vec<usize> =
        (0..children.len()).filter(|&i| children.get(i).and_then(literal_key).is_some()).collect();
    by_key.sort_by_key(|&i| children.get(i).and_then(literal_key));
    let mut redundant = alloc::vec![false; children.len()];
    let same_key =
        |a: &usize, b: &usize| children.get(*a).and_then(literal_key) == children.get(*b).and_then(literal_key);
    for group in by_key.chunk_by(same_key).filter(|group| group.len() <= MAX_COMPARED) {
        let pairs = group.iter().flat_map(|&i| group.iter().map(move |&j| (i, j))).filter(|(i, j)| i != j);
        for (i, j) in pairs {
            let (Some(a), Some(b)) = (children.get(i).map(Literal::of), children.get(j).map(Literal::of)) else {
                continue;
            };
            let decided = if and { a.implies(b.opposite()) } else { a.opposite().implies(b) };
            if decided {
                return Err(Decided);
            }
            // Of two that mean the same, the one that sorts first stays.
            let weaker = if and { j } else { i };
            if a.implies(b) && (weaker == i.max(j) || !b.implies(a)) {
                redundant.iter_mut().skip(weaker).take(1).for_each(|r| *r = true);
            }
        }
    }
    let mut redundant = redundant.into_iter();
    children.retain(|_| !redundant.next().unwrap_or(false));
    Ok(())
}

fn literal_key(node: &Node) -> Option<&str> {
    Literal::of(node).leaf.key()
}

/// A leaf or its negation.
#[derive(Clone, Copy)]
struct Literal<'a> {
    leaf: &'a Node,
    negated: bool,
}

impl<'a> Literal<'a> {
    fn of(node: &'a Node) -> Self {
        match node {
            Node::Not(leaf) => Self { leaf, negated: true },
            leaf => Self { leaf, negated: false },
        }
    }

    fn opposite(self) -> Self {
        Self { negated: !self.negated, ..self }
    }

    /// Whether a literal implies another one of the same key. `false` may also mean "not known".
    fn implies(self, other: Self) -> bool {
        match (self.negated, other.negated) {
            (false, false) => leaf_implies(self.leaf, other.leaf),
            (true, true) => leaf_implies(other.leaf, self.leaf),
            (false, true) => leaf_excludes(self.leaf, other.leaf),
            (true, false) => false,
        }
    }
}

/// The ranges of both are sorted and merged.
fn leaf_excludes(a: &Node, b: &Node) -> bool {
    use Node::{IntIn, Value};
    match (a, b) {
        (Value { value: a, .. }, Value { value: b, .. }) => a != b,
        (Value { value, .. }, IntIn { ranges, .. }) | (IntIn { ranges, .. }, Value { value, .. }) => {
            !holds_integer(ranges, value)
        }
        (IntIn { ranges: a, .. }, IntIn { ranges: b, .. }) => disjoint(a, b),
        _ => false,
    }
}

/// The ranges of both are sorted and merged.
fn leaf_implies(a: &Node, b: &Node) -> bool {
    use Node::{Exists, IntIn, Value};
    match (a, b) {
        (Value { .. } | Exists { .. } | IntIn { .. }, Exists { .. }) => true,
        (Value { value: a, .. }, Value { value: b, .. }) => a == b,
        (Value { value, .. }, IntIn { ranges, .. }) => holds_integer(ranges, value),
        (IntIn { ranges: a, .. }, IntIn { ranges: b, .. }) => within(a, b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Constraint, ErrorKind};
    use std::string::{String, ToString};

    fn normal(text: &str) -> String {
        text.parse::<Constraint>().unwrap().normal_form().unwrap().to_string()
    }

    #[test]
    fn one_that_would_be_too_large_is_refused() {
        let negated = |count: usize| {
            let leaves = (0..count).map(|i| Constraint::value(i.to_string(), ""));
            Constraint::any(leaves).unwrap().negate().unwrap()
        };
        assert_eq!(negated(65_000).normal_form().unwrap_err().kind(), ErrorKind::TooLarge);
        let fits = negated(32_000).normal_form().unwrap();
        assert_eq!(fits.to_string().parse(), Ok(fits));
    }

    #[test]
    fn what_differs_only_in_writing_has_one_normal_form() {
        for (written, expected) in [
            ("not not a=1", "a=1"),
            ("b=1 and (a=1 and b=1)", "a=1 and b=1"),
            ("not (a=1 or b=1)", "not a=1 and not b=1"),
            ("a=1 and true", "a=1"),
            ("a=1 or true", "true"),
            ("a=1 and false", "false"),
            ("all(any(a=1))", "a=1"),
            ("n in 7..9,1..3,4", "n in 1..4,7..9"),
            ("n in 5..,0..6", "n in 0.."),
        ] {
            assert_eq!(normal(written), expected, "{written}");
        }
    }

    #[test]
    fn literals_of_one_key_are_weighed_against_each_other() {
        for (written, expected) in [
            ("a=1 and not a=1", "false"),
            ("a=1 or not a=1", "true"),
            ("a=1 and a=2", "false"),
            ("a=1 and exists(a)", "a=1"),
            ("a=1 or exists(a)", "exists(a)"),
            ("not exists(a) and not a=1", "not exists(a)"),
            ("not exists(a) or not a=1", "not a=1"),
            ("not a=1 or not a=2", "true"),
            ("a=5 and a in 0..9", "a=5"),
            ("a=5 and a in 6..9", "false"),
            ("a in 2..3 and a in 0..9", "a in 2..3"),
            ("a in 2..3 and a in 4..9", "false"),
            ("a in 2..3 and not a in 4..9", "a in 2..3"),
        ] {
            assert_eq!(normal(written), expected, "{written}");
        }
    }

    #[test]
    fn a_list_too_long_to_compare_is_still_sorted_and_deduplicated() {
        let list = |order: &mut dyn Iterator<Item = usize>| {
            Constraint::any(order.map(|i| Constraint::value("k", (i % 500).to_string())))
                .unwrap()
                .normal_form()
                .unwrap()
        };
        assert_eq!(list(&mut (0..1000)), list(&mut (0..1000).rev()));
    }
}
