//! Connections to an origin.

use std::pin::Pin;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "rustls-any")]
use tokio_rustls::TlsConnector;
use tonic::transport::{self, Channel, Uri};
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::ended::chain;
use super::heard::{Heard, Listening};
use crate::endpoint::Endpoint;
#[cfg(unix)]
use crate::unix_address::UnixAddress;

/// A connection that is being made; if there is none to be had, why.
pub(super) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, String>> + Send>>;

/// A connection, and what is heard on it. It ends with the last channel.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) channel: Channel,
    pub(super) heard: Heard,
}

/// Connects to `endpoint` by TCP, or to its unix socket, and speaks TLS if it says so.
pub(super) fn to(endpoint: &Endpoint) -> Connecting {
    let transport = endpoint.transport.clone();
    match endpoint.socket.clone() {
        None => securely(endpoint, connector(&transport).map_response(TokioIo::into_inner)),
        #[cfg(unix)]
        Some(address) => securely(endpoint, service_fn(move |_: Uri| unix(address.clone()))),
        #[cfg(not(unix))]
        Some(address) => Box::pin(async move { Err(format!("{address}: this system has no unix sockets")) }),
    }
}

#[cfg(unix)]
async fn unix(address: UnixAddress) -> Result<tokio::net::UnixStream, BoxError> {
    let connect = || {
        // It does not wait: who listens there has room or has not.
        let io = std::os::unix::net::UnixStream::connect_addr(&address.socket_addr()?)?;
        io.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(io)
    };
    connect().map_err(|error| format!("{address}: {error}").into())
}

#[cfg(not(feature = "rustls-any"))]
fn securely<C>(endpoint: &Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    over(endpoint.transport.clone(), connector)
}

#[cfg(feature = "rustls-any")]
fn securely<C>(endpoint: &Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Clone + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let transport = endpoint.transport.clone();
    let Some(tls) = endpoint.tls.clone() else { return over(transport, connector) };
    let patience = transport.get_connect_timeout().unwrap_or(Duration::MAX);
    let connector = service_fn(move |uri: Uri| {
        let (connector, tls) = (connector.clone(), tls.clone());
        let securing = async move {
            let name = tls.name_of(&uri)?;
            // Files may be on a disk that does not answer.
            let config = tokio::task::spawn_blocking(move || tls.config()).await??;
            let io = connector.oneshot(uri).await.map_err(Into::into)?;
            let io = TlsConnector::from(config).connect(name, io).await?;
            match io.get_ref().1.alpn_protocol() {
                Some(b"h2") => Ok(io),
                _ => Err(BoxError::from("connected by TLS, but the origin does not offer HTTP/2 there (ALPN)")),
            }
        };
        async move {
            let secured = tokio::time::timeout(patience, securing).await;
            secured.unwrap_or_else(|_| Err(format!("nobody answered by TLS within {patience:?}").into()))
        }
    });
    over(transport, connector)
}

fn connector(endpoint: &transport::Endpoint) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(endpoint.get_connect_timeout());
    connector
}

/// Connects over what `connector` makes. Before the origin has said how many streams it bears it is not connected: a
/// stream too many would wait without a word.
pub(super) fn over<C>(endpoint: transport::Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let heard = Heard::default();
    let listening = heard.clone();
    let mut connector = Some(connector.map_response(move |io| TokioIo::new(Listening::new(io, listening.clone()))));
    // By itself a channel would connect again, and none of its streams would know.
    let once = service_fn(move |uri| {
        let connector = connector.take();
        async move {
            match connector {
                Some(connector) => connector.oneshot(uri).await.map_err(Into::into),
                None => Err(BoxError::from("the connection is over")),
            }
        }
    });
    Box::pin(async move {
        let patience = endpoint.get_connect_timeout().unwrap_or(Duration::MAX);
        let channel = endpoint.connect_with_connector(once).await.map_err(|error| chain(&error))?;
        match tokio::time::timeout(patience, heard.settings()).await {
            Ok(begun) => begun.map(|()| Connected { channel, heard }),
            Err(_) => Err(format!("connected, but nobody spoke HTTP/2 within {patience:?}")),
        }
    })
}
