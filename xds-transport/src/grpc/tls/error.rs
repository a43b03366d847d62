//! Why there is no TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

/// What TLS was to be made with is not good.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read: one line, without a source.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: Arc<io::Error>,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate and a key do not belong together, or cannot be used.
    #[error("{} with the key {}: {reason}", certificate.display(), key.display())]
    Identity {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
    /// The system does not say whom it trusts.
    #[error("the system names nobody who may vouch for a server; name a file of certificate authorities ({reasons})")]
    NoSystemRoots {
        /// Why.
        reasons: String,
    },
    /// A name or an address was expected.
    #[error("{name:?} is neither the name of a host nor an address")]
    ServerName {
        /// What came instead.
        name: String,
    },
    /// The provider of cryptography cannot do what is needed.
    #[error("the provider of cryptography cannot be used")]
    Provider(#[source] rustls::Error),
}

impl TlsError {
    /// A certificate and a key that cannot be used together.
    #[must_use]
    pub fn identity(certificate: &Path, key: &Path, reason: rustls::Error) -> Self {
        Self::Identity { certificate: certificate.to_owned(), key: key.to_owned(), reason }
    }

    /// A file is not what it should be.
    #[must_use]
    pub fn bad(file: &Path, reason: impl ToString) -> Self {
        Self::Bad { file: file.to_owned(), reason: reason.to_string() }
    }
}
