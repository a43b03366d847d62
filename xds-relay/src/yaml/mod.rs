//! YAML (and JSON, which is YAML) into any [`serde::Deserialize`] type, with errors that
//! say where: line, column and field path.
//!
//! The text becomes a tree first, so that a value keeps its position and how it was
//! written. Both are needed: a plain `no` is a boolean for Envoy and a string for a YAML 1.2 reader, so one file
//! would mean two things; here it is an error ([`scalar`]).

mod de;
mod error;
mod scalar;
mod tree;

pub(crate) use error::{Error, Position};
pub(crate) use tree::{Content, Node};

/// Reads one document; `None` is an empty one.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Error> {
    tree::parse(text)
}
