//! What reading a file of rules keeps in mind.

use std::sync::Arc;

use super::Reading;
use super::error::Warnings;
use super::pattern::{Pattern, Patterns};
use crate::proto_json::Message;
use crate::yaml::{Error, Node, Position};

pub(super) struct Reader {
    reading: Reading,
    patterns: Patterns,
    pub(super) warnings: Warnings,
}

impl Reader {
    pub(super) fn new(reading: Reading) -> Self {
        Self { reading, patterns: Patterns::default(), warnings: Warnings::default() }
    }

    pub(super) fn warn(&mut self, position: Position, problem: String) {
        self.warnings.push(position, problem);
    }

    /// The rules are read as the last version of the original reads them, and not as its documents say.
    pub(super) fn follows_the_original(&self) -> bool {
        self.reading == Reading::LegacyAllMatches
    }

    /// The pattern at `node`. One that Go does not compile is remarked on: only what needs it fails.
    pub(super) fn pattern(&mut self, node: &Node, source: &str) -> Result<Arc<Pattern>, Error> {
        let pattern = match self.patterns.compile(source) {
            Ok(pattern) => pattern,
            Err(reason) => return node.refuse(reason),
        };
        if let Some(error) = pattern.error() {
            self.warn(node.position, format!("{error}: a request that gets here has no key"));
        }
        Ok(pattern)
    }

    /// The fields of a message that the README of the original describes, in another form than its schema: both, unless
    /// the original is followed, which has no more than the schema.
    pub(super) fn with_older(&self, names: &[&'static str], older: &[&'static str]) -> Vec<&'static str> {
        let older = if self.follows_the_original() { &[] } else { older };
        [names, older].concat()
    }
}

/// Refuses fields of both forms in one message.
pub(super) fn refuse_mixed(node: &Node, message: &Message<'_>, names: &[&str], older: &[&str]) -> Result<(), Error> {
    if !message.has_any(names) {
        return Ok(());
    }
    node.refuse(format!("two forms in one: expected one of {}, or else {}", names.join(", "), older.join(", ")))
}
