//! Connections to what is at an address, by TCP, and by TLS where that is said.

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use xdstp_client::tls::Tls;

use crate::causes::with_causes;

/// What is spoken on.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection to who speaks `alpn`, or why there is none. The files of TLS are read for it: those that were replaced count.
///
/// # Errors
/// There is none, in words.
pub(crate) async fn connect(server: &Uri, tls: Option<&Tls>, alpn: &[u8]) -> Result<Box<dyn Io>, String> {
    let host = server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let connected = TcpStream::connect((host, server.port_u16().unwrap_or(443))).await;
    let io = connected.map_err(|error| error.to_string())?;
    let Some(tls) = tls else { return Ok(Box::new(io)) };
    let config = tls.config_for(alpn).map_err(|error| with_causes(&error))?;
    let name = tls.name_of(server).map_err(|error| with_causes(&error))?;
    let secured = TlsConnector::from(config).connect(name, io).await;
    Ok(Box::new(secured.map_err(|error| with_causes(&error))?))
}
