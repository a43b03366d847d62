//! What is wrong with a file of rules, and what is odd.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::original;
use crate::text_file::Unread;
use crate::yaml::{self, Content, Position, Prefix};

/// Why rules are refused: one line, `FILE:LINE:COLUMN: FIELD: what is wrong`. It is all there is to say: there is no
/// [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file as given.
        file: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// What the file says are no rules.
    #[error("{}:{line}:{column}: {}{problem}", file.display(), Prefix(field))]
    #[non_exhaustive]
    Invalid {
        /// The file as given.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// Such as `fragments[0].rules[1].match`; empty for the file as a whole.
        field: String,
        /// What is wrong.
        problem: String,
        /// The same as the original says it, where it is known how.
        original: Option<String>,
    },
}

impl RulesError {
    pub(super) fn unread(file: &Path, error: Unread) -> Self {
        match error {
            Unread::File(reason) => Self::Unreadable { file: file.to_owned(), reason },
            Unread::Text(error) => Self::in_document(file, error),
        }
    }

    pub(super) fn in_document(file: &Path, error: yaml::Error) -> Self {
        let yaml::Error { position, path: field, reason: problem } = error;
        let Position { line, column } = position.unwrap_or_default();
        let original = original::words(&field, &problem);
        Self::Invalid { file: file.to_owned(), line, column, field, problem, original }
    }

    /// What the original says of a document that is a text or a number, which to it is JSON.
    pub(super) fn of_document(mut self, root: &yaml::Node) -> Self {
        if let (Self::Invalid { original, .. }, Content::Plain(text) | Content::Text(text)) = (&mut self, &root.content)
            && !root.is_null()
        {
            let is_other = matches!(root.content, Content::Plain(_)) && serde_json::from_str::<Value>(text).is_ok();
            let token = if is_other { text.clone() } else { Value::from(text.as_str()).to_string() };
            *original = Some(format!("syntax error (line 1:1): unexpected token {token}"));
        }
        self
    }

    /// One line, too, and what is wrong in the words of the original, all of them, where it is known what these are:
    /// `FILE:LINE:COLUMN: FIELD: invalid KeyerConfiguration.Fragments: …`.
    #[must_use]
    pub fn in_original_words(&self) -> String {
        match self {
            Self::Invalid { file, line, column, field, original: Some(original), .. } => {
                format!("{}:{line}:{column}: {}{original}", file.display(), Prefix(field))
            }
            other => other.to_string(),
        }
    }
}

/// Something in a file of rules that is allowed and hardly meant: `FILE:LINE:COLUMN: what it is`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The file as given.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What it is, and what comes of it.
    pub problem: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.problem)
    }
}

/// As many as anybody reads, and of each as much: a pipe takes them all, although nobody reads it.
#[derive(Debug, Default)]
pub(super) struct Warnings(Vec<(Position, String)>);

const MAX_WARNINGS: usize = 100;
const MAX_CHARACTERS: usize = 300;

impl Warnings {
    pub(super) fn push(&mut self, position: Position, problem: String) {
        if self.0.len() < MAX_WARNINGS {
            self.0.push((position, problem.chars().take(MAX_CHARACTERS).collect()));
        }
    }

    /// In the order of the file, which all are in.
    pub(super) fn of(mut self, file: &Path) -> Vec<Warning> {
        self.0.sort_by_key(|(position, _)| (position.line, position.column));
        let warning = |(Position { line, column }, problem)| Warning { file: file.to_owned(), line, column, problem };
        self.0.into_iter().map(warning).collect()
    }
}
