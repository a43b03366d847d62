use core::fmt::{self, Write};

use super::{RESERVED, is_bare};
use crate::constraint::Node;

pub(crate) fn write(f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
    match node {
        Node::True => f.write_str("true"),
        Node::Value { key, value } => write!(f, "{}={}", Key(key), Word(value)),
        Node::Exists { key } => write!(f, "exists({})", Key(key)),
        Node::IntIn { key, ranges } => {
            write!(f, "{} in ", Key(key))?;
            for (i, range) in ranges.iter().enumerate() {
                write!(f, "{}{range}", if i == 0 { "" } else { "," })?;
            }
            Ok(())
        }
        Node::And(nodes) => write_list(f, nodes, "all()", "all", " and "),
        Node::Or(nodes) => write_list(f, nodes, "false", "any", " or "),
        Node::Not(inner) => {
            f.write_str("not ")?;
            write_operand(f, inner)
        }
    }
}

/// Lists of none and of one have no operator to show them: they are written like calls, so that the text reads back to the same tree.
fn write_list(f: &mut fmt::Formatter<'_>, nodes: &[Node], empty: &str, call: &str, operator: &str) -> fmt::Result {
    match nodes {
        [] => f.write_str(empty),
        [only] => {
            write!(f, "{call}(")?;
            write(f, only)?;
            f.write_str(")")
        }
        [first, rest @ ..] => {
            write_operand(f, first)?;
            rest.iter().try_for_each(|node| {
                f.write_str(operator)?;
                write_operand(f, node)
            })
        }
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
    match node {
        Node::And(nodes) | Node::Or(nodes) if nodes.len() > 1 => {
            f.write_str("(")?;
            write(f, node)?;
            f.write_str(")")
        }
        node => write(f, node),
    }
}

/// A value: quoted unless it can stand bare.
pub(crate) struct Word<'a>(pub(crate) &'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0.bytes().all(is_bare) { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// A key: also quoted where it would read as a word of the language.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if RESERVED.contains(&self.0) { Quoted(self.0).fmt(f) } else { Word(self.0).fmt(f) }
    }
}

/// A JSON string that escapes only what JSON requires.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
