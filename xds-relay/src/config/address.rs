//! Where the relay listens, and where servers are.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use http::Uri;
use xdstp_client::UnixAddress;

/// Where connections are taken.
///
/// ```
/// use xds_relay::config::Address;
///
/// assert_eq!("[::1]:18000".parse::<Address>()?.tcp().unwrap().port(), 18000);
/// assert_eq!("unix:///run/xds.sock".parse::<Address>()?.to_string(), "unix:/run/xds.sock");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A unix socket. Its file is there as long as the relay, and who may write to it may connect: by the umask that the relay
    /// has, and by the directory that it is in.
    Unix(UnixAddress),
}

/// Where a server is.
///
/// ```
/// use xds_relay::config::ServerAddress;
///
/// assert_eq!("http://127.0.0.1:18010".parse::<ServerAddress>()?.to_string(), "http://127.0.0.1:18010/");
/// assert_eq!("unix:/run/xds.sock".parse::<ServerAddress>()?.to_string(), "unix:/run/xds.sock");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerAddress {
    /// `http://HOST:PORT/`, or with `https`.
    Http(Uri),
    /// A unix socket.
    Unix(UnixAddress),
}

impl Address {
    /// The address and the port, unless it is a unix socket.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl<A: Into<SocketAddr>> From<A> for Address {
    fn from(address: A) -> Self {
        Self::Tcp(address.into())
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if UnixAddress::has_scheme(text) {
            return text.parse().map(Self::Unix).map_err(|error: xdstp_client::UnixAddressError| error.to_string());
        }
        text.parse().map(Self::Tcp).map_err(|_| format!("`{text}`: expected IP:PORT or unix:PATH"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(address) => address.fmt(f),
        }
    }
}

impl ServerAddress {
    /// What it is called where it is one of several: `HOST:PORT`, or the unix socket.
    ///
    /// ```
    /// use xds_relay::config::ServerAddress;
    ///
    /// assert_eq!("http://127.0.0.1:18010".parse::<ServerAddress>()?.target(), "127.0.0.1:18010");
    /// assert_eq!("unix:/run/xds.sock".parse::<ServerAddress>()?.target(), "unix:/run/xds.sock");
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Http(uri) => uri.authority().map(ToString::to_string).unwrap_or_default(),
            Self::Unix(address) => address.to_string(),
        }
    }

    /// Whether TLS is spoken there by the address alone.
    #[must_use]
    pub fn is_https(&self) -> bool {
        matches!(self, Self::Http(uri) if uri.scheme_str() == Some("https"))
    }
}

impl From<Uri> for ServerAddress {
    fn from(uri: Uri) -> Self {
        Self::Http(uri)
    }
}

impl From<UnixAddress> for ServerAddress {
    fn from(address: UnixAddress) -> Self {
        Self::Unix(address)
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if UnixAddress::has_scheme(text) {
            return text.parse().map(Self::Unix).map_err(|error: xdstp_client::UnixAddressError| error.to_string());
        }
        text.parse().map(Self::Http).map_err(|error: http::uri::InvalidUri| error.to_string())
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(uri) => uri.fmt(f),
            Self::Unix(address) => address.fmt(f),
        }
    }
}
