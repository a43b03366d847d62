//! YAML (and JSON, which is YAML) with errors that say where: line, column and field path.
//!
//! The text becomes a tree first, so that a value keeps its position and how it was written. The tree is read field by
//! field, where the text of a scalar is what counts ([`fields`]: the configuration), or into any [`serde::Deserialize`]
//! type ([`de`]: messages). Then a scalar has a type, and an unquoted `no`, a boolean for one reader of YAML and a string
//! for another, is an error ([`scalar`]).

mod de;
mod error;
mod fields;
mod scalar;
mod tree;
mod write;

pub(crate) use error::{Error, Position, Prefix};
pub(crate) use tree::{Content, Key, Node};
pub(crate) use write::write;

/// Reads one document; `None` is an empty one.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Error> {
    tree::parse(text)
}
