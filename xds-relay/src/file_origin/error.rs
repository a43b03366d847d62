//! What is wrong with a file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::yaml;

/// A file, or the directory of them, cannot be used. Displayed as
/// `resources/a.yaml:12:21: resources[0].filter_chains[0].name: the reason`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct FileError {
    /// The file, or the directory where that is what cannot be read.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The character within the line, counted from 1.
    pub column: Option<usize>,
    /// The field, from the root of the file, as in `resources[0].name`; empty for the file as a whole.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl FileError {
    pub(super) fn of_file(file: &Path, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, column: None, path: String::new(), reason: reason.into() }
    }

    pub(super) fn in_document(file: &Path, error: yaml::Error) -> Self {
        Self {
            file: file.to_owned(),
            line: error.position.map(|position| position.line),
            column: error.position.map(|position| position.column),
            path: error.path,
            reason: error.reason,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file.display())?;
        for place in [self.line, self.column].into_iter().flatten() {
            write!(formatter, ":{place}")?;
        }
        if !self.path.is_empty() {
            write!(formatter, ": {}", self.path)?;
        }
        write!(formatter, ": {}", self.reason)
    }
}
