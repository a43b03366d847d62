//! Why there is no bootstrap.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// A bootstrap cannot be read, and why.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Neither of the two variables of the environment is set.
    #[error("no bootstrap: neither GRPC_XDS_BOOTSTRAP, a file, nor GRPC_XDS_BOOTSTRAP_CONFIG, its content, is set")]
    NotConfigured,
    /// The file cannot be read: one line, without a source.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: Arc<io::Error>,
    },
    /// What it says is wrong.
    #[error("{from}:{wrong}")]
    Wrong {
        /// The file, the variable, or `bootstrap`.
        from: String,
        /// What is wrong, and where.
        wrong: Wrong,
    },
}

/// What is wrong with a bootstrap, and where: `3:17: xds_servers[0].server_uri: it must not be empty`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The field; empty where it is the whole, or no JSON.
    pub field: String,
    /// Why.
    pub reason: String,
}

impl Wrong {
    /// At a byte of a text.
    pub(super) fn new(text: &str, at: usize, field: &str, reason: &str) -> Self {
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let before = text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            field: field.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, field, reason } = self;
        write!(words, "{line}:{column}: ")?;
        if !field.is_empty() {
            write!(words, "{field}: ")?;
        }
        words.write_str(reason)
    }
}
