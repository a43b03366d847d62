//! Where an origin is and how to speak to it.

mod error;
mod methods;
mod server;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
#[cfg(feature = "rustls-any")]
use tonic::codegen::http::uri::Scheme;
use tonic::metadata::MetadataMap;
use tonic::transport;
use xds_transport::client::{DEFAULT_MAX_REQUEST_SIZE, Silence};
use xds_transport::grpc::client::DEFAULT_MAX_MESSAGE_SIZE;
use xds_transport::wire::Node;
use xds_transport::wire::parameters::{Locator, LocatorError};
use xds_transport::{Dialect, Protocol, RateLimit, TypeRules};
use xdstp_cache::Selector;

pub use self::error::EndpointError;
pub(crate) use self::methods::Methods;
pub use self::server::ServerError;
use crate::backoff::Backoff;
use crate::federation::Quota;
#[cfg(feature = "rustls-any")]
use crate::tls::Tls;
#[cfg(feature = "rustls-any")]
use crate::token::TokenFile;
use crate::unix_address::UnixAddress;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What a gRPC server bears: it ends connections whose client pings more often while nothing is sent (rule 137).
const KEEPALIVE: Duration = Duration::from_secs(300);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// What servers of HTTP/2 are asked to bear at the least (RFC 9113, 6.5.2).
const DEFAULT_STREAMS_PER_CONNECTION: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// How much of a response may be under way, in bytes: hyper's default.
const STREAM_WINDOW: u32 = 2 << 20;
/// RFC 9113, 6.9.1.
const LARGEST_WINDOW: u32 = i32::MAX as u32;

/// An origin: its address, the protocol, and who we are to it.
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
    /// What is dialed, if it is not what calls say that they are for.
    pub(crate) socket: Option<UnixAddress>,
    keepalive: Duration,
    pub(crate) protocol: Protocol,
    pub(crate) node: Bytes,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) silence: Silence,
    pub(crate) follows_redirects: bool,
    pub(crate) dialect: Dialect,
    pub(crate) selector: Selector,
    pub(crate) backoff: Backoff,
    pub(crate) max_message_size: usize,
    pub(crate) streams_per_connection: NonZeroUsize,
    /// For how many connections there is room, of all that have the same.
    pub(crate) room: Option<Arc<Quota>>,
    pub(crate) max_request_size: usize,
    pub(crate) request_limit: Option<RateLimit>,
    /// What each call carries beside what is said of it elsewhere.
    metadata: MetadataMap,
    pub(crate) methods: Methods,
    #[cfg(feature = "rustls-any")]
    pub(crate) tls: Option<Tls>,
    #[cfg(feature = "rustls-any")]
    pub(crate) tokens: Vec<TokenFile>,
}

impl Endpoint {
    /// An origin at `uri`: `host:port`, or a URI with the scheme `http`, or `https` for TLS by whom the system trusts, or the
    /// address of a [unix socket](UnixAddress). It speaks delta, and knows nothing of us.
    ///
    /// # Errors
    /// When `uri` is not a URI, or has another scheme, or is a host without a port.
    pub fn new(uri: &str) -> Result<Self, EndpointError> {
        if UnixAddress::has_scheme(uri) {
            return Ok(Self::unix(uri.parse()?));
        }
        let is_tls = scheme(uri).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let full = match scheme(uri) {
            None => format!("http://{uri}"),
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => uri.to_owned(),
            Some(_) if is_tls && cfg!(feature = "rustls-any") => uri.to_owned(),
            Some(_) if is_tls => return Err(EndpointError::Tls { uri: uri.to_owned() }),
            Some(scheme) => return Err(EndpointError::Scheme { uri: uri.to_owned(), scheme: scheme.to_owned() }),
        };
        let transport = transport::Endpoint::from_shared(full)
            .map_err(|source| EndpointError::Malformed { uri: uri.to_owned(), source: source.into() })?;
        // That of HTTP is none that anybody means.
        if scheme(uri).is_none() && transport.uri().port().is_none() {
            return Err(EndpointError::NoPort { uri: uri.to_owned() });
        }
        let endpoint = Self::over(transport);
        #[cfg(feature = "rustls-any")]
        let endpoint = Self { tls: is_tls.then(Tls::default), ..endpoint };
        Ok(endpoint)
    }

    /// An origin at a unix socket, as [`new`](Self::new) has it. Calls say that they are for `localhost`, and so is TLS, if it is
    /// spoken there and no other name is given.
    #[must_use]
    pub fn unix(address: UnixAddress) -> Self {
        Self { socket: Some(address), ..Self::over(transport::Endpoint::from_static("http://localhost")) }
    }

    fn over(transport: transport::Endpoint) -> Self {
        let transport = transport
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        Self {
            transport: with_windows(transport, DEFAULT_STREAMS_PER_CONNECTION),
            socket: None,
            keepalive: KEEPALIVE,
            protocol: Protocol::Delta,
            node: Bytes::new(),
            rules: Arc::new(TypeRules::envoy()),
            silence: Silence::default(),
            follows_redirects: false,
            dialect: Dialect::Final,
            selector: Selector::default(),
            backoff: Backoff::default(),
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            streams_per_connection: DEFAULT_STREAMS_PER_CONNECTION,
            room: None,
            max_request_size: DEFAULT_MAX_REQUEST_SIZE,
            request_limit: None,
            metadata: MetadataMap::new(),
            methods: Methods::default(),
            #[cfg(feature = "rustls-any")]
            tls: None,
            #[cfg(feature = "rustls-any")]
            tokens: Vec::new(),
        }
    }

    /// Speaks this protocol.
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

    /// Speaks TLS with it, and not in clear text, whatever its scheme was.
    #[cfg(feature = "rustls-any")]
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        let mut parts = self.transport.uri().clone().into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        // What calls say that they are for; what is dialed is the same.
        let transport = match transport::Uri::from_parts(parts) {
            Ok(origin) => self.transport.origin(origin),
            Err(_) => self.transport,
        };
        Self { transport, tls: Some(tls), ..self }
    }

    /// Calls carry the [token](crate::token) of a file, beside those that were said before. It goes over TLS only, which is to be
    /// [said](Self::with_tls) before.
    ///
    /// # Errors
    /// It is spoken to in clear text.
    #[cfg(feature = "rustls-any")]
    pub fn with_token(mut self, token: TokenFile) -> Result<Self, EndpointError> {
        if self.tls.is_none() {
            return Err(EndpointError::TokenInClearText { uri: self.uri() });
        }
        self.tokens.push(token);
        Ok(self)
    }

    /// Calls carry this, too: headers of one's own, with which a server or a proxy before it tells clients apart.
    #[must_use]
    pub fn with_metadata(self, metadata: MetadataMap) -> Self {
        Self { metadata, ..self }
    }

    /// Takes it like this when the origin is silent about a name: as its absence otherwise.
    #[must_use]
    pub fn with_silence(self, silence: Silence) -> Self {
        Self { silence, ..self }
    }

    /// Takes redirects of TP1: who consumes what comes follows them.
    pub(crate) fn following_redirects(self) -> Self {
        Self { follows_redirects: true, ..self }
    }

    /// Takes it to speak this form of TP2, if it speaks any: the final one otherwise.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Asks for everything with these dynamic parameters or constraints, in the form of TP2 that it speaks: of each name the
    /// variant comes that is for them.
    ///
    /// # Errors
    /// When that form cannot say them.
    pub fn selecting(self, dialect: Dialect, selector: Selector) -> Result<Self, LocatorError> {
        Locator::new("", selector.clone()).encode(dialect)?;
        Ok(Self { dialect, selector, ..self })
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

    /// Has at most so many of a [pool's](crate::upstream::Pool) streams share a connection, or as many as the origin bears
    /// if these are fewer: 100 otherwise.
    #[must_use]
    pub fn with_streams_per_connection(self, streams_per_connection: NonZeroUsize) -> Self {
        let transport = with_windows(self.transport, streams_per_connection);
        Self { transport, streams_per_connection, ..self }
    }

    /// Has at most so many connections, together with all endpoints that have the same room, beside one of each
    /// [pool](crate::upstream::Pool), and one that it is leaving, which take no room: one that there is no room for is not made, and who waits for it is told so, as
    /// where nobody answers.
    #[must_use]
    pub fn with_room(self, room: Arc<Quota>) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Sends requests of up to this many bytes: 4 MiB otherwise, which is what gRPC servers take by default (rule 132).
    /// What is more goes in several requests, or over SotW is refused: it is among an update's
    /// [errors](xds_transport::client::Update::errors).
    #[must_use]
    pub fn with_max_request_size(self, max_request_size: usize) -> Self {
        Self { max_request_size, ..self }
    }

    /// Sends no more requests than this, but for acknowledgements: what is wanted meanwhile is one request in the end (rule
    /// 135).
    #[must_use]
    pub fn with_request_limit(self, limit: RateLimit) -> Self {
        Self { request_limit: Some(limit), ..self }
    }

    /// Pings the origin after this time without a word from it: 5 minutes otherwise, which is what a gRPC server bears
    /// by default (rule 137). Without an answer within 20 seconds the connection is lost.
    #[must_use]
    pub fn with_keepalive(self, interval: Duration) -> Self {
        Self { transport: self.transport.http2_keep_alive_interval(interval), keepalive: interval, ..self }
    }

    /// What calls carry that are made now: reads files.
    ///
    /// # Errors
    /// Why there is no token.
    pub(crate) async fn call_credentials(&self) -> Result<MetadataMap, String> {
        #[allow(unused_mut)]
        let mut metadata = self.metadata.clone();
        #[cfg(feature = "rustls-any")]
        for token in &self.tokens {
            let (token, patience) = (token.clone(), CONNECT_TIMEOUT);
            // Files may be on a disk that does not answer.
            let reading = tokio::task::spawn_blocking(move || token.header(std::time::SystemTime::now()));
            let read = tokio::time::timeout(patience, reading).await;
            let read = read.map_err(|_| format!("no token was read within {patience:?}"))?;
            let header = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            metadata.append("authorization", header);
        }
        Ok(metadata)
    }

    /// After how long without a word from the origin it is pinged.
    pub fn keepalive(&self) -> Duration {
        self.keepalive
    }

    /// The address.
    pub fn uri(&self) -> String {
        if let Some(socket) = &self.socket {
            return socket.to_string();
        }
        let uri = self.transport.uri().to_string();
        #[cfg(feature = "rustls-any")]
        if let (Some(_), Some(rest)) = (&self.tls, uri.strip_prefix("http://")) {
            return format!("https://{rest}");
        }
        uri
    }
}

/// A stream that is not read holds up none of the others: the window of their connection is all of theirs together.
fn with_windows(transport: transport::Endpoint, streams: NonZeroUsize) -> transport::Endpoint {
    let all = u32::try_from(streams.get()).unwrap_or(u32::MAX).saturating_mul(STREAM_WINDOW).min(LARGEST_WINDOW);
    transport.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(all)
}

/// What stands before `:/`; a port is followed by no path.
fn scheme(uri: &str) -> Option<&str> {
    uri.split_once(":/").map(|(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_spoken_in_clear_text_where_something_else_was_asked_for() {
        for uri in ["https://a:1", "HTTPS://a:1"] {
            match Endpoint::new(uri) {
                Ok(endpoint) => {
                    assert!(cfg!(feature = "rustls-any") && endpoint.uri().starts_with("https://"), "{uri}");
                }
                Err(error) => assert!(matches!(error, EndpointError::Tls { .. }) && !cfg!(feature = "rustls-any")),
            }
        }
        Endpoint::new("https:/a").unwrap_err();
        #[cfg(unix)]
        for uri in ["unix:///run/xds", "unix:/run/xds"] {
            assert_eq!(Endpoint::new(uri).unwrap().uri(), "unix:/run/xds");
        }
        assert!(matches!(Endpoint::new("unix:"), Err(EndpointError::Unix(_))));
        for uri in ["dns:///a:1", "xds:///a", "grpc://a:1", "://a:1"] {
            assert!(matches!(Endpoint::new(uri), Err(EndpointError::Scheme { .. })), "{uri}");
        }
        for uri in ["http://", "", "a b:1", "http:/a"] {
            assert!(matches!(Endpoint::new(uri), Err(EndpointError::Malformed { .. })), "{uri}");
        }
        for uri in ["a", "a.example.com", "[::1]", "127.0.0.1", "a/b:1"] {
            assert!(matches!(Endpoint::new(uri), Err(EndpointError::NoPort { .. })), "{uri}");
        }
        for uri in ["a:1", "http://a", "http://a:1", "HTTP://a:1", "[::1]:1", "http://a:1/"] {
            assert!(Endpoint::new(uri).is_ok(), "{uri}");
        }
    }

    #[cfg(feature = "rustls-any")]
    #[test]
    fn a_token_goes_over_tls_only() {
        for uri in ["a:1", "http://a:1", "unix:/run/xds"] {
            let error = Endpoint::new(uri).unwrap().with_token(TokenFile::new("token")).unwrap_err();
            assert!(matches!(error, EndpointError::TokenInClearText { .. }), "{uri}");
        }
        Endpoint::new("https://a:1").unwrap().with_token(TokenFile::new("token")).unwrap();
        Endpoint::new("a:1").unwrap().with_tls(Tls::default()).with_token(TokenFile::new("token")).unwrap();
    }
}
