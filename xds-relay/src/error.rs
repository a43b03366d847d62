//! Why there is no relay.

use std::io;

use crate::aggregation::RulesError;
use crate::config::{Address, InvalidConfig};
use xdstp_client::state::KeysError;

/// Why a relay cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be run: no file says such a thing.
    #[error("configuration: {0}")]
    Config(#[from] InvalidConfig),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({field})")]
    Listen {
        /// The address.
        address: Address,
        /// The field of the configuration that names it.
        field: &'static str,
        /// Why.
        source: io::Error,
    },
    /// An origin has not what it is to have from the start: its files cannot be read, or nobody brought it.
    #[error("origin {origin:?}: {reason}")]
    Origin {
        /// Its name in the configuration.
        origin: String,
        /// Why, with file, line and field where there is one.
        reason: String,
    },
    /// What a field of the configuration names is not good: a file, a directory, an address.
    #[error("{field}: {reason}")]
    Field {
        /// Such as `origins[1].tls.ca`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The rules of `aggregation` are not good.
    #[error("aggregation: {0}")]
    Aggregation(RulesError),
    /// The metrics cannot be in the registry that they are to be in.
    #[error("cannot export metrics")]
    Metrics(#[from] prometheus::Error),
    /// A server failed.
    #[error("cannot serve")]
    Serve(#[from] io::Error),
}

impl From<KeysError> for Error {
    /// The field that names the file.
    fn from(error: KeysError) -> Self {
        Self::Field { field: "state.secrets.encrypted".to_owned(), reason: error.to_string() }
    }
}
