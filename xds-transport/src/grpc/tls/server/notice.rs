//! What happens to a server's TLS that its operator wants to know.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::grpc::tls::error::TlsError;
use crate::grpc::tls::expiry::Reminder;
use crate::grpc::tls::server::client::TlsClient;
use crate::grpc::tls::server::handshake::HandshakeError;

/// What happened that whoever runs a server wants to know: its `Display` is a line for a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// Files changed, and count from now on.
    Renewed {
        /// The file of the server's certificate.
        certificate: PathBuf,
    },
    /// Files changed, and are not good: those before them still count. It is said once.
    NotRenewed(TlsError),
    /// A certificate of the server, or of who may vouch for its clients, is about to expire, or did, or is not good yet.
    Reminder(Reminder),
    /// A client was not spoken to.
    Refused {
        /// Which, as far as the connection says.
        client: TlsClient,
        /// Why.
        reason: HandshakeError,
    },
    /// The system has no connection to give, for the moment.
    NotTaken(io::Error),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renewed { certificate } => write!(f, "certificates are read anew: {}", certificate.display()),
            Self::NotRenewed(error) => write!(f, "new certificates do not count, those before do: {error}"),
            Self::Reminder(reminder) => reminder.fmt(f),
            Self::Refused { client, reason } => match client.peer() {
                Some(peer) => write!(f, "no TLS with {peer}: {reason}"),
                None => write!(f, "no TLS with a client: {reason}"),
            },
            Self::NotTaken(error) => write!(f, "no connection is taken for the moment: {error}"),
        }
    }
}
