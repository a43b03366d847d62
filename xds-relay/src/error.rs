//! Why there is no relay.

use std::io;

use xdstp_client::tls::TlsError;

use crate::aggregation::RulesError;
use crate::causes::with_causes;
use crate::config::{Address, InvalidConfig};
use crate::state::KeysError;

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
    /// What clients are to be spoken to with is not good.
    #[error("tls: {}", with_causes(.0))]
    Tls(TlsError),
    /// What secrets are to be kept with is not good.
    #[error("state.secrets: {0}")]
    State(KeysError),
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
