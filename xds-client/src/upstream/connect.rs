//! Connections to an origin.

use std::pin::Pin;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::{self, Channel, Uri};
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::ended::chain;
use super::heard::{Heard, Listening};

/// A connection that is being made; if there is none to be had, why.
pub(super) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, String>> + Send>>;

/// A connection, and what is heard on it. It ends with the last channel.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) channel: Channel,
    pub(super) heard: Heard,
}

/// Connects to `endpoint` by TCP.
pub(super) fn tcp(endpoint: transport::Endpoint) -> Connecting {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(endpoint.get_connect_timeout());
    over(endpoint, connector.map_response(TokioIo::into_inner))
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
