//! Why nothing is asked by HTTP.

use thiserror::Error;

/// A server of documents cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// It is none, or says too much.
    #[error("{server:?} is no server of documents: {reason}; such as https://cdn.example.com or http://127.0.0.1:8080")]
    Server {
        /// What was given.
        server: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// TLS is a feature of this crate.
    #[error("{server} is asked by TLS, and this is built without")]
    NoTls {
        /// What was given.
        server: String,
    },
}
