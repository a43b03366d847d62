//! What is wrong with a file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::yaml;

/// So many are displayed of the things that are wrong.
const MOST: usize = 20;
/// So many are kept: more than that are told to be at least as many.
const MOST_KEPT: usize = 1000;

/// A file, or the directory of them, cannot be used. Displayed as
/// `resources/a.yaml:12:21: resources[0].filter_chains[0].name: the reason`, and a line like that for each of the
/// [others](Self::others).
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
    /// What else was found to be wrong, in the same files, up to a bound: none of these has others.
    pub others: Box<[Self]>,
}

/// Errors of many files, as they are found.
#[derive(Debug, Default)]
pub(super) struct FileErrors(Vec<FileError>);

impl FileErrors {
    pub(super) fn push(&mut self, error: FileError) {
        if self.0.len() < MOST_KEPT {
            self.0.push(error);
        }
    }

    /// All together, if there are any.
    pub(super) fn into_result(self) -> Result<(), FileError> {
        let mut errors = self.0.into_iter();
        match errors.next() {
            None => Ok(()),
            Some(first) => Err(FileError { others: errors.collect(), ..first }),
        }
    }
}

impl FileError {
    pub(super) fn of_file(file: &Path, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            path: String::new(),
            reason: reason.into(),
            others: Box::default(),
        }
    }

    pub(super) fn in_document(file: &Path, error: yaml::Error) -> Self {
        Self {
            file: file.to_owned(),
            line: error.position.map(|position| position.line),
            column: error.position.map(|position| position.column),
            path: error.path,
            reason: error.reason,
            others: Box::default(),
        }
    }

    /// All that is wrong with a document.
    pub(super) fn of_document(file: &Path, problems: impl IntoIterator<Item = yaml::Error>) -> Self {
        let mut errors = FileErrors::default();
        problems.into_iter().for_each(|error| errors.push(Self::in_document(file, error)));
        errors.into_result().err().unwrap_or_else(|| Self::of_file(file, "it is not good"))
    }

    /// A line for each, and for how many more there are.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let all = std::iter::once(self.line_of()).chain(self.others.iter().map(Self::line_of));
        let more = (self.others.len() + 1).saturating_sub(MOST);
        let at_least = if self.others.len() + 1 < MOST_KEPT { "" } else { "at least " };
        all.take(MOST).chain((more > 0).then(|| format!("and {at_least}{more} others")))
    }

    /// How many there are, in words.
    pub(crate) fn count(&self) -> String {
        match self.others.len() + 1 {
            1 => "1 error".to_owned(),
            count if count < MOST_KEPT => format!("{count} errors"),
            count => format!("at least {count} errors"),
        }
    }

    fn line_of(&self) -> String {
        let mut line = self.file.display().to_string();
        for place in [self.line, self.column].into_iter().flatten() {
            line.push_str(&format!(":{place}"));
        }
        if !self.path.is_empty() {
            line.push_str(&format!(": {}", self.path));
        }
        format!("{line}: {}", self.reason)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().collect::<Vec<_>>().join("\n"))
    }
}
