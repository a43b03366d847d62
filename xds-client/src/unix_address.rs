//! The address of a unix socket, as gRPC writes it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// A unix socket: `unix:PATH`, `unix:///PATH`, or on Linux `unix-abstract:NAME`, which is in no directory. What is behind the
/// scheme is taken as it is, without escapes.
///
/// ```
/// use std::path::Path;
///
/// use xdstp_client::UnixAddress;
///
/// let address: UnixAddress = "unix:///run/xds/relay.sock".parse()?;
/// assert_eq!((address.to_string().as_str(), address.path()), ("unix:/run/xds/relay.sock", Some(Path::new("/run/xds/relay.sock"))));
/// assert!("unix:".parse::<UnixAddress>().is_err());
/// # Ok::<(), xdstp_client::UnixAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixAddress(Name);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Path(PathBuf),
    Abstract(String),
}

/// A text is not the address of a unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UnixAddressError(String);

impl UnixAddress {
    /// Whether a text has one of the schemes.
    ///
    /// ```
    /// use xdstp_client::UnixAddress;
    ///
    /// assert!(UnixAddress::has_scheme("unix:relay.sock") && !UnixAddress::has_scheme("unix.example.com:1"));
    /// ```
    #[must_use]
    pub fn has_scheme(text: &str) -> bool {
        text.starts_with("unix:") || text.starts_with("unix-abstract:")
    }

    /// The socket of a path.
    ///
    /// # Errors
    /// It is empty, too long for the system, or has a byte 0; or there are no such sockets on this system.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, UnixAddressError> {
        Self(Name::Path(path.into())).checked()
    }

    /// The same, where a relative path is one in `directory`.
    ///
    /// # Errors
    /// It is too long, then.
    pub fn within(self, directory: &Path) -> Result<Self, UnixAddressError> {
        match self.0 {
            Name::Path(path) => Self::at(directory.join(path)),
            name @ Name::Abstract(_) => Ok(Self(name)),
        }
    }

    /// Its path, unless it is an abstract one.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Name::Path(path) => Some(path),
            Name::Abstract(_) => None,
        }
    }

    /// What the system knows it by.
    ///
    /// # Errors
    /// The system has no such name.
    #[cfg(unix)]
    pub fn socket_addr(&self) -> std::io::Result<std::os::unix::net::SocketAddr> {
        match &self.0 {
            Name::Path(path) => std::os::unix::net::SocketAddr::from_pathname(path),
            #[cfg(target_os = "linux")]
            Name::Abstract(name) => {
                use std::os::linux::net::SocketAddrExt as _;
                std::os::unix::net::SocketAddr::from_abstract_name(name)
            }
            #[cfg(not(target_os = "linux"))]
            Name::Abstract(_) => Err(std::io::Error::other("only Linux has abstract names")),
        }
    }

    /// Connects to whoever listens there.
    ///
    /// # Errors
    /// Nobody does, or has no room, or the system says no.
    #[cfg(unix)]
    pub async fn connect(&self) -> std::io::Result<tokio::net::UnixStream> {
        match &self.0 {
            Name::Path(path) => tokio::net::UnixStream::connect(path).await,
            // As Linux has it: a name that begins with a byte 0 is in no directory.
            Name::Abstract(name) => tokio::net::UnixStream::connect(format!("\0{name}")).await,
        }
    }

    fn checked(self) -> Result<Self, UnixAddressError> {
        if matches!(&self.0, Name::Path(path) if path.as_os_str().is_empty())
            || matches!(&self.0, Name::Abstract(name) if name.is_empty())
        {
            return Err(UnixAddressError(format!("{self}: expected unix:PATH or unix-abstract:NAME")));
        }
        #[cfg(unix)]
        return match self.socket_addr() {
            Ok(_) => Ok(self),
            Err(error) => Err(UnixAddressError(format!("{self}: {error}"))),
        };
        #[cfg(not(unix))]
        Err(UnixAddressError(format!("{self}: this system has no unix sockets")))
    }
}

impl FromStr for UnixAddress {
    type Err = UnixAddressError;

    fn from_str(text: &str) -> Result<Self, UnixAddressError> {
        let wrong = || UnixAddressError(format!("{text}: expected unix:PATH, unix:///PATH or unix-abstract:NAME"));
        if let Some(name) = text.strip_prefix("unix-abstract:") {
            return Self(Name::Abstract(name.to_owned())).checked();
        }
        let rest = text.strip_prefix("unix:").ok_or_else(wrong)?;
        // What is between two slashes and the third would be another machine.
        let path = rest.strip_prefix("//").map_or(Some(rest), |rest| rest.starts_with('/').then_some(rest));
        Self::at(path.ok_or_else(wrong)?)
    }
}

impl fmt::Display for UnixAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Name::Path(path) => write!(f, "unix:{}", path.display()),
            Name::Abstract(name) => write!(f, "unix-abstract:{name}"),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name_that_the_system_takes() {
        for (text, shown) in [
            ("unix:/run/a", "unix:/run/a"),
            ("unix:///run/a", "unix:/run/a"),
            ("unix:a/b", "unix:a/b"),
            ("unix:/a%20b", "unix:/a%20b"),
        ] {
            assert_eq!(text.parse::<UnixAddress>().unwrap().to_string(), shown);
        }
        let long = format!("unix:/{}", "a".repeat(200));
        for text in ["", "/run/a", "unix", "unix:", "unix://", "unix://host/a", "unix:/a\0b", &long, "unix-abstract:"] {
            assert!(text.parse::<UnixAddress>().is_err(), "{text}");
        }
        let address = "unix:a".parse::<UnixAddress>().unwrap();
        assert_eq!(address.within(Path::new("/run")).unwrap().to_string(), "unix:/run/a");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_name_is_in_no_directory() {
        let address = "unix-abstract:xds".parse::<UnixAddress>().unwrap();
        assert_eq!((address.path(), address.to_string().as_str()), (None, "unix-abstract:xds"));
        assert_eq!(address.clone().within(Path::new("/run")), Ok(address));
    }
}
