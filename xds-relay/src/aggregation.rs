//! Which requests may share: the aggregation rules of [xds-relay](https://github.com/envoyproxy/xds-relay), as data.
//!
//! A file of rules has *fragments*, each with *rules*: a rule has a `match`, which says what requests it is for, and a
//! `result`, which says what to take of them. What the rules come to that match, fragment by fragment, is the request's
//! [`Key`]; requests with equal keys share.
//!
//! ```
//! use xds_relay::aggregation::{Reading, Request, Rules};
//! use xds_transport::wire::Node;
//!
//! let rules = Rules::parse("rules.yaml", r#"
//! fragments:
//!   - rules:
//!       - match: { request_node_match: { id_match: { regex_match: "^canary-" } } }
//!         result: { string_fragment: canary }
//!       - match: { any_match: true }
//!         result:
//!           request_node_fragment:
//!             cluster_action: { regex_action: { pattern: "-[0-9]+$", replace: "" } }
//!   - rules:
//!       - match: { request_type_match: { types: [type.googleapis.com/envoy.config.cluster.v3.Cluster] } }
//!         result: { string_fragment: cds }
//! "#, Reading::Documented)?;
//!
//! let node = Node { id: "web-1".into(), cluster: "web-eu-2".into(), ..Node::default() };
//! let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
//! let request = Request { node: &node, type_url, resource_names: &[] };
//! assert_eq!(rules.key(&request)?.label(), "web-eu_cds");
//! assert!(rules.explain(&request).to_string().contains(r#"did not match: id is "web-1", without "^canary-""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Files are read as protobuf's JSON reader does it after a conversion from YAML: fields in `snake_case` or
//! `lowerCamelCase`, `null` for a field that is not there, nothing unknown. Patterns are those of Go's `regexp`; see
//! [`Reading`] for what else the original does.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use xds_transport::wire::Node;

use crate::hex::hex;
use crate::text_file;
use crate::yaml;

mod error;
mod evaluate;
mod explain;
mod go_regexp;
mod group;
mod key;
mod model;
mod original;
mod pattern;
mod read;
mod read_result;
mod reader;
mod request;
mod template;
mod types;

pub use self::error::{RulesError, Warning};
pub use self::explain::{ExplainedRule, Explanation, Verdict};
pub use self::group::Group;
pub use self::key::{Key, KeyError};
pub use self::request::{Request, RequestJson};

use self::evaluate::{MAX_KEY, Names, TOO_LONG};
use self::model::{Fragment, Rule};
use self::reader::Reader;

/// How rules are understood where the original's documents say one thing and its last version does another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// As the documents say. The first rule of a fragment that matches counts. A type of xDS v2 in a rule stands for the
    /// same type of v3, too. The form of the README (`request_node_match: {field: 0, exact_match: a}`,
    /// `request_node_fragment: {field: 0, action: {exact: true}}`) is read as well as that of the schema.
    #[default]
    Documented,
    /// As the last version does. Every rule that matches counts, each with a piece of its own. Types are what they are
    /// called. The form of the schema is the only one.
    LegacyAllMatches,
}

/// Aggregation rules, checked, their patterns compiled.
#[derive(Debug)]
pub struct Rules {
    fragments: Vec<Fragment>,
    reading: Reading,
    warnings: Vec<Warning>,
    /// Of their text.
    digest: String,
}

impl Rules {
    /// Reads and checks a file; see [`Rules::parse`].
    ///
    /// # Errors
    /// The file cannot be read, is no file, is larger than 16 MiB, or [`Rules::parse`] refuses it.
    pub fn load(path: impl AsRef<Path>, reading: Reading) -> Result<Self, RulesError> {
        let path = path.as_ref();
        let text = text_file::read(path).map_err(|error| RulesError::unread(path, error))?;
        Self::parse(path, &text, reading)
    }

    /// Checks the text of rules. `file` is what errors and warnings name.
    ///
    /// # Errors
    /// What is wrong first, and where: it is no YAML, a field is unknown, missing, empty, twice there or of another type
    /// than the schema says, or a pattern is beyond what is supported. A pattern that Go does not compile is
    /// [a warning](Self::warnings), as the original says nothing of it before a request needs it.
    pub fn parse(file: impl AsRef<Path>, text: &str, reading: Reading) -> Result<Self, RulesError> {
        let file = file.as_ref();
        let mut reader = Reader::new(reading);
        let root = yaml::parse(text).map_err(|error| RulesError::in_document(file, error))?;
        let root = root.unwrap_or_else(yaml::Node::empty);
        let fragments = read::fragments(&mut reader, &root)
            .map_err(|error| RulesError::in_document(file, error).of_document(&root))?;
        let digest = hex(&Sha256::digest(text));
        Ok(Self { fragments, reading, warnings: reader.warnings.of(file), digest })
    }

    /// Whether it makes a difference that the first rule alone counts that matches.
    pub(crate) fn depend_on_reading(&self) -> bool {
        self.fragments.iter().any(|fragment| fragment.rules.len() > 1)
    }

    /// What tells them from others, and how they are read.
    pub(crate) fn digest(&self) -> String {
        format!("{} {:?}", self.digest, self.reading)
    }

    /// What is allowed and hardly meant, in the order of the file; a hundred at most.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What the request has in common with those that it may share with. Requests for different types may have equal keys,
    /// where the rules take nothing of the type: whoever shares by keys keeps types apart.
    ///
    /// # Errors
    /// It may share with nobody, for this reason: no rule matches, or one that does has nothing to take.
    pub fn key(&self, request: &Request<'_>) -> Result<Key, KeyError> {
        self.apply(request, &mut Names::Requested, |_, _, _| ())
    }

    /// What requests of a node for a type have in common with those that they may share each resource with: the key, but for
    /// what it has of names.
    ///
    /// # Errors
    /// As [`key`](Self::key), but for what names lack.
    pub fn group(&self, node: &Node, type_url: &str) -> Result<Group, KeyError> {
        let mut names = Names::Any(Vec::new());
        let key = self.apply(&Request { node, type_url, resource_names: &[] }, &mut names, |_, _, _| ())?;
        let Names::Any(names) = names else { return Err(KeyError::NoRule) };
        Ok(Group { key, names, needs_name: types::ENDPOINTS.contains(&type_url) })
    }

    /// The key, and why it is that: what became of each rule.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Explanation {
        let unseen = |rule: &Rule| ExplainedRule { line: rule.line, verdict: Verdict::NotReached };
        let mut fragments: Vec<Vec<_>> =
            self.fragments.iter().map(|fragment| fragment.rules.iter().map(unseen).collect()).collect();
        let key = self.apply(request, &mut Names::Requested, |fragment, rule, verdict| {
            if let Some(explained) = fragments.get_mut(fragment).and_then(|rules: &mut Vec<_>| rules.get_mut(rule)) {
                explained.verdict = verdict();
            }
        });
        Explanation { key, fragments }
    }

    /// Applies the rules in order. `seen` hears of each that is looked at: its fragment, its place in that, and how to find
    /// out what became of it.
    fn apply(
        &self,
        request: &Request<'_>,
        names: &mut Names,
        mut seen: impl FnMut(usize, usize, &dyn Fn() -> Verdict),
    ) -> Result<Key, KeyError> {
        if request.type_url.is_empty() {
            return Err(KeyError::NoType);
        }
        if matches!(names, Names::Requested)
            && types::ENDPOINTS.contains(&request.type_url)
            && request.resource_names.is_empty()
        {
            return Err(KeyError::NoNames);
        }
        let mut key = Key::default();
        let mut length = 0;
        for (place, fragment) in self.fragments.iter().enumerate() {
            key.begin_fragment();
            for (index, rule) in fragment.rules.iter().enumerate() {
                let outcome = match rule.condition.matches(request) {
                    Ok(false) => {
                        seen(place, index, &|| Verdict::NotMatched(rule.condition.why_not(request)));
                        continue;
                    }
                    Ok(true) => rule.result.piece(request, names),
                    Err(error) => Err(error),
                };
                seen(place, index, &|| match &outcome {
                    Ok(piece) => Verdict::Matched(piece.text().to_owned()),
                    Err(error) => Verdict::Failed(error.clone()),
                });
                let piece = outcome?;
                length += piece.text().len();
                if length > MAX_KEY {
                    return Err(TOO_LONG);
                }
                key.add(piece);
                if self.reading == Reading::Documented {
                    break;
                }
            }
        }
        if key.is_empty() { Err(KeyError::NoRule) } else { Ok(key) }
    }
}
