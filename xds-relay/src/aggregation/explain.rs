//! Why a request has the key that it has.

use std::fmt::{self, Write as _};

use super::evaluate::{at, text_of};
use super::key::{Key, KeyError};
use super::model::{LOCALITY, Match, StringMatch, ValueMatch};
use super::request::Request;

/// What became of every rule for one request. Displayed, it is a line for each.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// What [`Rules::key`](super::Rules::key) says.
    pub key: Result<Key, KeyError>,
    /// For each fragment, its rules in order.
    pub fragments: Vec<Vec<ExplainedRule>>,
}

/// What became of one rule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExplainedRule {
    /// Where it begins in its file, from 1.
    pub line: usize,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It matched, and came to this.
    Matched(String),
    /// It did not match, for this reason.
    NotMatched(String),
    /// It has no result, and so the request has no key.
    Failed(KeyError),
    /// It was not looked at: an earlier one matched, or failed.
    NotReached,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Ok(key) => writeln!(f, "key {}: {key}", OneLine(&key.label()))?,
            Err(error) => writeln!(f, "no key: {error}")?,
        }
        for (fragment, rules) in self.fragments.iter().enumerate() {
            for (rule, ExplainedRule { line, verdict }) in rules.iter().enumerate() {
                writeln!(f, "  fragment {}, rule {} (line {line}) {verdict}", fragment + 1, rule + 1)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matched(value) => write!(f, "matched: {}", Shown(value)),
            Self::NotMatched(reason) => write!(f, "did not match: {reason}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::NotReached => f.write_str("was not looked at"),
        }
    }
}

/// Of an `or_match`, how many members are spoken of.
const MAX_MEMBERS: usize = 4;
/// How much of a text is shown, in characters.
const MAX_SHOWN: usize = 80;

impl Match {
    /// Why it does not match a request that it does not match.
    pub(super) fn why_not(&self, request: &Request<'_>) -> String {
        match self {
            // It always matches.
            Self::Any => String::new(),
            Self::All(members) => {
                let differs = |member: &&Self| member.matches(request) == Ok(false);
                members.iter().find(differs).map(|member| member.why_not(request)).unwrap_or_default()
            }
            Self::Or(members) => {
                let mut reasons: Vec<_> =
                    members.iter().take(MAX_MEMBERS).map(|member| member.why_not(request)).collect();
                if let Some(more @ 1..) = members.len().checked_sub(MAX_MEMBERS) {
                    reasons.push(format!("{more} more"));
                }
                format!("none of ({})", reasons.join("; "))
            }
            Self::Not(_) => "what it negates matches".to_owned(),
            Self::Type(types) => format!("the type {} is none of {}", Shown(request.type_url), types.len()),
            Self::Field(field, of) => of.why_not(field.name(), field.of(request)),
            Self::Locality(parts) => {
                let differs = |text: &str, of: &StringMatch| of.matches(text) == Ok(false);
                let mut parts = LOCALITY.iter().zip(parts).filter_map(|(field, of)| Some((field, of.as_ref()?)));
                let found = parts.find(|(field, of)| differs(field.of(request), of));
                let reason = found.map(|(field, of)| of.why_not(field.name(), field.of(request)));
                reason.unwrap_or_default()
            }
            Self::Metadata(path, of) => {
                let name = format!("metadata.{}", path.join("."));
                let found = request.node.metadata.as_ref().and_then(|metadata| at(metadata, path));
                match (found, of) {
                    (None, _) => format!("there is no {name}"),
                    (Some(found), ValueMatch::Text(of)) => of.why_not(&name, text_of(found)),
                    (Some(_), ValueMatch::Bool(wanted)) => format!("{name} is not {wanted}"),
                }
            }
        }
    }
}

impl StringMatch {
    fn why_not(&self, name: &str, text: &str) -> String {
        match self {
            Self::Exact(wanted) => format!("{name} is {}, not {}", Shown(text), Shown(wanted)),
            Self::Regex(pattern) => format!("{name} is {}, without {}", Shown(text), Shown(pattern.source())),
        }
    }
}

/// A text that others wrote, without what a terminal takes for an order.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            _ if character.is_control() => write!(f, "{}", character.escape_default()),
            _ => f.write_char(character),
        })
    }
}

/// A text in quotes, and no more of it than can be read.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_SHOWN) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
        }
    }
}
