use std::{
    io,
    path::{Path, PathBuf},
};

use crate::text_file;
use crate::yaml::{self, Position, Prefix};

/// Why a configuration is refused: one line, `FILE:LINE:COLUMN: FIELD: what is wrong and what was expected`. It is
/// all there is to say: there is no [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file as given.
        file: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// What the file says cannot be done.
    #[error("{}:{line}:{column}: {}{problem}", file.display(), Prefix(field))]
    #[non_exhaustive]
    Invalid {
        /// The file as given.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// Such as `origins[1].server`; empty for the file as a whole.
        field: String,
        /// What is wrong and what was expected.
        problem: String,
    },
}

impl ConfigError {
    pub(super) fn in_document(file: &Path, error: yaml::Error) -> Self {
        let yaml::Error { position, path: field, reason: problem } = error;
        let Position { line, column } = position.unwrap_or_default();
        Self::Invalid { file: file.to_owned(), line, column, field, problem }
    }

    /// That what a field says cannot be done, where that is found out later than the file is read: with the place that the
    /// field has in the file now.
    ///
    /// ```
    /// use xds_relay::ConfigError;
    ///
    /// let error = ConfigError::of_field("no/such/relay.yaml", "tls.key", "there is no key in it".to_owned());
    /// assert_eq!(error.to_string(), "no/such/relay.yaml:1:1: tls.key: there is no key in it");
    /// ```
    #[must_use]
    pub fn of_field(file: impl AsRef<Path>, field: &str, problem: String) -> Self {
        let file = file.as_ref();
        let root = text_file::read(file).ok().and_then(|text| yaml::parse(&text).ok().flatten());
        let Position { line, column } = root.map(|root| root.place_of(field)).unwrap_or_default();
        Self::Invalid { file: file.to_owned(), line, column, field: field.to_owned(), problem }
    }

    /// The file as it was given.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. } | Self::Invalid { file, .. } => file,
        }
    }
}
