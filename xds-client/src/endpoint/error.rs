//! What is wrong with an address.

use std::sync::Arc;

use thiserror::Error;
use tonic::transport;

use crate::unix_address::UnixAddressError;

/// The address of an origin is not one.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is no URI.
    #[error(
        "{uri:?} is not the address of an origin; expected HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH"
    )]
    Malformed {
        /// The address.
        uri: String,
        /// Why.
        source: Arc<transport::Error>,
    },
    /// It is a host without a port.
    #[error("{uri:?} has no port; expected HOST:PORT, such as control-plane.example.com:18000")]
    NoPort {
        /// The address.
        uri: String,
    },
    /// It asks for TLS, which this crate was built without: clear text in its place would be no favour.
    #[error("{uri:?}: this program was built without TLS; http://HOST:PORT speaks in clear text")]
    Tls {
        /// The address.
        uri: String,
    },
    /// It is no unix socket's.
    #[error(transparent)]
    Unix(#[from] UnixAddressError),
    /// A token would be sent in clear text, to whoever listens.
    #[error("{uri:?}: a token goes over TLS only; expected https://HOST:PORT")]
    TokenInClearText {
        /// The address.
        uri: String,
    },
    /// It asks for something else than HTTP/2 over TCP or a unix socket.
    #[error(
        "{uri:?}: the scheme {scheme:?} is not supported; expected HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH"
    )]
    Scheme {
        /// The address.
        uri: String,
        /// Its scheme.
        scheme: String,
    },
}
