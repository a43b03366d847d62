//! Why a connection is not secured.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// A connection is not secured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The client speaks something else: one line, without a source.
    #[error("it speaks clear text, or something else ({0})")]
    NotTls(io::Error),
    /// Either refuses the other, or the connection breaks: one line, without a source.
    #[error("{0}")]
    Failed(io::Error),
    /// It was not done in time.
    #[error("the handshake took longer than {0:?}")]
    Late(Duration),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<rustls::Error>());
        match reason {
            Some(rustls::Error::InvalidMessage(_)) => Self::NotTls(error),
            _ => Self::Failed(error),
        }
    }
}
