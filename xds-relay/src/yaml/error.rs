//! What is wrong in a document, and where.

use std::fmt;

/// A place in a text file. Both count from 1; a column is one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The column.
    pub(crate) column: usize,
}

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    /// The innermost known place.
    pub(crate) position: Option<Position>,
    /// From the document's root, as in `resources[0].name`; empty for the root itself.
    pub(crate) path: String,
    /// What is wrong there.
    pub(crate) reason: String,
}

impl Default for Position {
    /// Where a document begins.
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl Error {
    pub(crate) fn new(position: Position, reason: impl Into<String>) -> Self {
        Self { position: Some(position), path: String::new(), reason: reason.into() }
    }

    /// Places the error, unless something further in already did.
    pub(crate) fn or_at(mut self, position: Position) -> Self {
        self.position.get_or_insert(position);
        self
    }

    /// The error seen from the mapping that holds it at `key`.
    pub(crate) fn under_key(mut self, key: &str) -> Self {
        // Keys of maps are often dotted names (`envoy.filters.http.router`).
        let step = if key.contains(['.', '[', ' ']) { format!("[{key:?}]") } else { key.to_owned() };
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{separator}{}", self.path);
        self
    }

    /// The error seen from the sequence that holds it at `index`.
    pub(crate) fn under_index(mut self, index: usize) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{separator}{}", self.path);
        self
    }
}

/// A field before what is wrong with it: nothing, for the document as a whole.
pub(crate) struct Prefix<'a>(pub(crate) &'a str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column }) = self.position {
            write!(formatter, "{line}:{column}: ")?;
        }
        write!(formatter, "{}{}", Prefix(&self.path), self.reason)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { position: None, path: String::new(), reason: message.to_string() }
    }
}
