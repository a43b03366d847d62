//! The fixed order of variants.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::constraint::Node;
use crate::text::Quoted;

/// The text by whose bytes variants of the final form are ordered: an S-expression with the children of every list sorted and
/// without repetitions. Nothing else is rewritten, so that an independent implementation arrives at the same order.
pub(super) fn canonical_text(node: &Node) -> String {
    let atom = |name: &str, parts: &[&str]| {
        let parts: String = parts.iter().map(|part| [" ", part].concat()).collect();
        ["(", name, &parts, ")"].concat()
    };
    let list = |name: &str, nodes: &[Node]| {
        let mut children: Vec<String> = nodes.iter().map(canonical_text).collect();
        children.sort_unstable();
        children.dedup();
        atom(name, &children.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let quoted = |text: &str| Quoted(text).to_string();
    match node {
        Node::True => "true".into(),
        Node::Value { key, value } => atom("eq", &[&quoted(key), &quoted(value)]),
        Node::Exists { key } => atom("has", &[&quoted(key)]),
        Node::IntIn { key, ranges } => {
            let ranges: Vec<_> = ranges.iter().map(ToString::to_string).collect();
            atom("int", &[&quoted(key), &ranges.join(" ")])
        }
        Node::And(nodes) => list("and", nodes),
        Node::Or(nodes) => list("or", nodes),
        Node::Not(inner) => atom("not", &[&canonical_text(inner)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;

    #[test]
    fn children_are_sorted_and_nothing_else_is_rewritten() {
        let constraint: Constraint = "(b=2 or b=2 or not not exists(a)) and all() and true".parse().unwrap();
        assert_eq!(canonical_text(constraint.node()), r#"(and (and) (or (eq "b" "2") (not (not (has "a")))) true)"#);
        let escaped: Constraint = "\"\\u0001\\\"\"=\"\u{e9}\"".parse().unwrap();
        assert_eq!(canonical_text(escaped.node()), "(eq \"\\u0001\\\"\" \"\u{e9}\")");
    }
}
