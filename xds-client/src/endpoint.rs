//! Where an origin is and how to speak to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use thiserror::Error;
use tonic::transport;
use xds_transport::client::Silence;
use xds_transport::grpc::client::DEFAULT_MAX_MESSAGE_SIZE;
use xds_transport::wire::Node;
use xds_transport::{Protocol, TypeRules};

use crate::backoff::Backoff;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);

/// An origin: its address, the variant of the protocol, and who we are to it.
///
/// ```
/// use xds_transport::Protocol;
/// use xds_transport::wire::Node;
/// use xdstp_client::Endpoint;
///
/// let node = Node { id: "me".into(), ..Node::default() };
/// let endpoint = Endpoint::new("127.0.0.1:18000")?.with_protocol(Protocol::Sotw).with_node(&node);
/// assert_eq!(endpoint.uri(), "http://127.0.0.1:18000/");
/// # Ok::<(), xdstp_client::EndpointError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) transport: transport::Endpoint,
    pub(crate) protocol: Protocol,
    pub(crate) node: Bytes,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) silence: Silence,
    pub(crate) backoff: Backoff,
    pub(crate) max_message_size: usize,
}

/// The address of an origin is not one.
#[derive(Debug, Error)]
#[error("{uri:?} is not the address of an origin")]
pub struct EndpointError {
    uri: String,
    source: transport::Error,
}

impl Endpoint {
    /// An origin at `uri`: `host:port`, or a URI with the scheme `http`. It speaks delta, and knows nothing of us.
    ///
    /// # Errors
    /// When `uri` is not a URI.
    pub fn new(uri: &str) -> Result<Self, EndpointError> {
        let full = if uri.contains("://") { uri.to_owned() } else { format!("http://{uri}") };
        let transport = transport::Endpoint::from_shared(full)
            .map_err(|source| EndpointError { uri: uri.to_owned(), source })?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_while_idle(true);
        Ok(Self {
            transport,
            protocol: Protocol::Delta,
            node: Bytes::new(),
            rules: Arc::new(TypeRules::envoy()),
            silence: Silence::default(),
            backoff: Backoff::default(),
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
        })
    }

    /// Speaks this variant of the protocol.
    #[must_use]
    pub fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// Says that we are `node`.
    #[must_use]
    pub fn with_node(self, node: &Node) -> Self {
        self.with_encoded_node(node.encode_to_vec().into())
    }

    /// Says that we are this encoded `Node`: a relay passes on one it received.
    #[must_use]
    pub fn with_encoded_node(self, node: Bytes) -> Self {
        Self { node, ..self }
    }

    /// Takes it like this when the origin is silent about a name: as its absence otherwise.
    #[must_use]
    pub fn with_silence(self, silence: Silence) -> Self {
        Self { silence, ..self }
    }

    /// Follows these rules about types: those of Envoy's otherwise.
    #[must_use]
    pub fn with_type_rules(self, rules: Arc<TypeRules>) -> Self {
        Self { rules, ..self }
    }

    /// Waits like this between attempts.
    #[must_use]
    pub fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Accepts responses of up to this many bytes: 64 MiB otherwise.
    #[must_use]
    pub fn with_max_message_size(self, max_message_size: usize) -> Self {
        Self { max_message_size, ..self }
    }

    /// The address.
    pub fn uri(&self) -> String {
        self.transport.uri().to_string()
    }
}
