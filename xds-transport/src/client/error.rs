//! What ends a stream.

use thiserror::Error;

use xdstp_cache::TypeUrl;

use crate::wire::walk::WalkError;

/// Why a stream must be closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A response cannot be read at all, so that there is not even a nonce to refuse it by.
    #[error("unreadable response")]
    Malformed(#[from] WalkError),
    /// The server goes on writing although it reads no answers.
    #[error("the server sends responses without reading their acknowledgements")]
    Unread,
    /// A stream of one type brings another.
    #[error("the origin answers who asks for {asked} with {came:?}")]
    OtherType {
        /// What its method is for.
        asked: TypeUrl,
        /// What a response says that it is of.
        came: String,
    },
}
