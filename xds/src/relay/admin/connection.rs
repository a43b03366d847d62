//! A request and its answer, on a connection of their own.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::address::{Address, Scheme};
use crate::ask::Secure;
use crate::show::with_causes;

/// More than any page has.
const MOST: u64 = 64 << 20;
/// What is spoken in TLS (RFC 7301).
const ALPN: &[u8] = b"http/1.1";

/// TLS with who is at an address.
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// If the address or the arguments ask for it. A socket on this machine needs none.
    ///
    /// # Errors
    /// A file is not good, the name is none, or both do not go together, in words.
    pub(super) fn with(address: &Address, secure: &Secure) -> Result<Option<Self>, String> {
        let Address::Tcp(scheme, authority) = address else { return Ok(None) };
        let asked = secure.tls(&[address.to_string()]).map_err(|error| with_causes(&*error))?;
        let Some(tls) = asked.or_else(|| (*scheme == Scheme::Https).then(Default::default)) else { return Ok(None) };
        let uri = format!("https://{authority}").parse().map_err(|_| format!("{authority} is no host and port"))?;
        let made = tls.config_for(ALPN).and_then(|config| Ok(Self { config, name: tls.name_of(&uri)? }));
        made.map(Some).map_err(|error| with_causes(&error))
    }

    fn begin(self, stream: TcpStream) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let connection = ClientConnection::new(self.config, self.name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}

/// What is answered, each read and write within `timeout`.
pub(super) fn exchange(address: &Address, tls: Option<Tls>, timeout: Duration, request: &str) -> io::Result<Vec<u8>> {
    let answer = match address {
        Address::Tcp(_, address) => {
            let stream = connected(address, timeout)?;
            match tls {
                Some(tls) => ask(tls.begin(stream)?, request),
                None => ask(stream, request),
            }
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            ask(stream, request)
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(io::Error::other("there are no such sockets on this system")),
    };
    // The system's word for it is that the resource is temporarily unavailable.
    answer.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "timed out"),
        _ => error,
    })
}

fn connected(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "there is no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// HTTP/1.0: the answer ends with the connection, and is in one piece.
fn ask(mut stream: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).map(|_| answer)
}
