//! Patterns of Go's `regexp`, which the rules are written for, as the crate `regex` understands them.
//!
//! The two have the same engine behind them (leftmost-first, no back-references) and grammars that differ in details:
//! `\d` is ASCII for the one and Unicode for the other, `a{,2}` is text for the one and an error for the other, `(?<n>a)`
//! and `[a&&b]` mean something to the second only. So a pattern is read by Go's grammar (1.19, what the original is built
//! with) and written anew without anything that the two could read differently. What Go does not compile is an error here,
//! in the words of Go.

use std::fmt;

mod class;
mod escape;
mod parse;
mod repeat;
mod unicode;

/// A pattern for the crate `regex`; its groups have numbers only.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) pattern: String,
    /// The names of the groups by number, empty for those without; the first is the whole match. Not unique.
    pub(super) names: Vec<String>,
}

/// What `regexp.Compile` says of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    reason: &'static str,
    part: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.reason, self.part)
    }
}

impl SyntaxError {
    fn new(reason: &'static str, part: &str) -> Self {
        Self { reason, part: part.to_owned() }
    }

    /// Of what was read between two ends of the pattern: `before` ends in `after`.
    fn between(reason: &'static str, before: &str, after: &str) -> Self {
        Self::new(reason, before.strip_suffix(after).unwrap_or(before))
    }
}

const INVALID_CLASS_RANGE: &str = "invalid character class range";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_NAMED_CAPTURE: &str = "invalid named capture";
const INVALID_PERL_SYNTAX: &str = "invalid or unsupported Perl syntax";
const INVALID_REPEAT_COUNT: &str = "invalid repeat count";
const MISSING_BRACKET: &str = "missing closing ]";
const MISSING_PAREN: &str = "missing closing )";
const MISSING_REPEAT_ARGUMENT: &str = "missing argument to repetition operator";
const NESTED_REPETITION: &str = "invalid nested repetition operator";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED_PAREN: &str = "unexpected )";

/// A class that holds no character, and one that holds each.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
const ANYTHING: &str = r"[\x{0}-\x{10FFFF}]";

/// Writes a pattern of Go anew.
///
/// # Errors
/// Go does not compile it.
pub(super) fn translate(pattern: &str) -> Result<Translated, SyntaxError> {
    parse::parse(pattern)
}

#[cfg(test)]
mod tests;
