//! Why there is no relay.

use std::io;
use std::net::SocketAddr;

use xdstp_client::tls::TlsError;

use crate::aggregation::RulesError;
use crate::causes::with_causes;

/// Why a relay cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({field})")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The field of the configuration that names it.
        field: &'static str,
        /// Why.
        source: io::Error,
    },
    /// An origin of files cannot be read.
    #[error("origin {origin:?}: {reason}")]
    Origin {
        /// Its name in the configuration.
        origin: String,
        /// Why, with file, line and field where there is one.
        reason: String,
    },
    /// What clients are to be spoken to with is not good.
    #[error("tls: {}", with_causes(.0))]
    Tls(TlsError),
    /// The rules of `aggregation` are not good.
    #[error("aggregation: {0}")]
    Aggregation(RulesError),
    /// A server failed.
    #[error("cannot serve")]
    Serve(#[from] io::Error),
}
