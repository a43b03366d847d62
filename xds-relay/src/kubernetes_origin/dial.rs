//! Connections to the API server.

use std::future::Future;
use std::pin::Pin;

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use xdstp_client::tls::Tls;

use crate::causes::with_causes;

/// What HTTP is spoken on.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, or why there is none.
pub(super) type Dialing<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Io>, String>> + Send + 'a>>;

/// Each call makes a connection, or says why there is none.
pub(super) trait Dial: Send + Sync + 'static {
    fn dial(&self) -> Dialing<'_>;
}

/// By TCP, with TLS or without.
pub(super) struct Network {
    pub(super) server: Uri,
    pub(super) tls: Option<Tls>,
}

impl Dial for Network {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(self.connect())
    }
}

impl Network {
    async fn connect(&self) -> Result<Box<dyn Io>, String> {
        let host = self.server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let connected = TcpStream::connect((host, self.server.port_u16().unwrap_or(443))).await;
        let io = connected.map_err(|error| error.to_string())?;
        let Some(tls) = &self.tls else { return Ok(Box::new(io)) };
        // Files are read for each connection: a CA that was replaced counts.
        let config = tls.config_for(b"http/1.1").map_err(|error| with_causes(&error))?;
        let name = tls.name_of(&self.server).map_err(|error| with_causes(&error))?;
        let secured = TlsConnector::from(config).connect(name, io).await;
        Ok(Box::new(secured.map_err(|error| with_causes(&error))?))
    }
}
