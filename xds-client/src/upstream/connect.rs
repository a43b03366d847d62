//! Connections to an origin.

use std::pin::Pin;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tonic::transport::{self, Channel, Error};
use tower::ServiceExt;

use super::go_away::{GoAway, Listening};

/// A connection that is being made.
pub(super) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send>>;

/// A connection, and what the origin says when it ends it.
pub(super) struct Connected {
    pub(super) channel: Channel,
    pub(super) go_away: GoAway,
}

/// Connects to `endpoint` by TCP.
pub(super) fn tcp(endpoint: transport::Endpoint) -> Connecting {
    Box::pin(async move {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(endpoint.get_connect_timeout());
        let go_away = GoAway::default();
        let listening = go_away.clone();
        let connector =
            connector.map_response(move |io| TokioIo::new(Listening::new(io.into_inner(), listening.clone())));
        let channel = endpoint.connect_with_connector(connector).await?;
        Ok(Connected { channel, go_away })
    })
}
