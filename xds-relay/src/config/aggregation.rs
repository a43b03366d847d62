//! Aggregation rules, as the configuration names them.

use std::path::PathBuf;

use crate::aggregation::{Reading, Rules, RulesError};
use crate::config::fields::AGGREGATION_FIELDS;
use crate::config::tls::File;
use crate::config::values::flag;
use crate::yaml::{Content, Error, Node};

/// By which rules clients share old-style resources.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aggregation {
    /// The file of the rules.
    pub rules: PathBuf,
    /// Whether all rules of a fragment count that match, as in the original, and not the first alone.
    pub legacy_all_matches: bool,
    /// What becomes of what no rule is for.
    pub unmatched: Unmatched,
}

impl Aggregation {
    /// Reads the rules, as a relay by this configuration does.
    ///
    /// # Errors
    /// As [`Rules::load`].
    pub fn load(&self) -> Result<Rules, RulesError> {
        Rules::load(&self.rules, if self.legacy_all_matches { Reading::LegacyAllMatches } else { Reading::Documented })
    }

    /// By the rules of this file, as their documents describe them.
    pub fn new(rules: impl Into<PathBuf>) -> Self {
        Self { rules: rules.into(), legacy_all_matches: false, unmatched: Unmatched::default() }
    }
}

/// What becomes of requests that have no key by the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unmatched {
    /// They share as if there were no rules: by `share_by`, or with the very same node only. A wildcard that comes after names which have a
    /// key is refused, as a type of a stream is of one group.
    #[default]
    OwnGroup,
    /// They are passed on, and share with no other stream.
    Pass,
    /// They are refused by name, and all else on their stream goes on.
    Reject,
}

/// A file, or a file and how it is understood.
pub(super) fn aggregation(node: &Node, file: File<'_>) -> Result<Aggregation, Error> {
    if !matches!(node.content, Content::Mapping(_)) {
        return Ok(Aggregation::new(file(node)?));
    }
    node.expect_fields(AGGREGATION_FIELDS)?;
    let rules = node.required_field("rules", "expected the file of the rules", file)?;
    let legacy_all_matches = node.field("legacy_all_matches", flag)?.unwrap_or_default();
    Ok(Aggregation { rules, legacy_all_matches, unmatched: node.field("unmatched", unmatched)?.unwrap_or_default() })
}

/// What is written beside `aggregation: FILE`, and belongs within it.
pub(super) fn misplaced(root: &Node) -> Result<(), Error> {
    for (key, value) in [("legacy_all_matches", "true"), ("unmatched", "reject")] {
        let words = format!("it is a field of aggregation; expected aggregation: {{ rules: FILE, {key}: {value} }}");
        root.field(key, |node| node.refuse::<()>(words))?;
    }
    Ok(())
}

fn unmatched(node: &Node) -> Result<Unmatched, Error> {
    match node.text()? {
        "own_group" => Ok(Unmatched::OwnGroup),
        "pass" => Ok(Unmatched::Pass),
        "reject" => Ok(Unmatched::Reject),
        other => node.refuse(format!("`{other}`: expected own_group, pass or reject")),
    }
}
