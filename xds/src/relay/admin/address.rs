//! Where the admin pages are, and how they are spoken to.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(Scheme, String),
    Unix(PathBuf),
}

/// What an address says of how it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Unsaid,
    Http,
    Https,
}

impl Scheme {
    const ALL: [Self; 2] = [Self::Http, Self::Https];

    fn prefix(self) -> &'static str {
        match self {
            Self::Unsaid => "",
            Self::Http => "http://",
            Self::Https => "https://",
        }
    }

    /// As a browser has it.
    fn parted(text: &str) -> (Self, &str) {
        let said = Self::ALL.into_iter().find_map(|scheme| {
            let (prefix, rest) = text.split_at_checked(scheme.prefix().len())?;
            prefix.eq_ignore_ascii_case(scheme.prefix()).then(|| (scheme, rest.trim_end_matches('/')))
        });
        said.unwrap_or((Self::Unsaid, text))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = !path.is_empty();
            return is_path.then(|| Self::Unix(path.into())).ok_or_else(|| "expected unix:/path".to_owned());
        }
        let (scheme, address) = Scheme::parted(text);
        let has_port =
            address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let expected = || "expected host:port, https://host:port or unix:/path".to_owned();
        has_port.then(|| Self::Tcp(scheme, address.to_owned())).ok_or_else(expected)
    }
}

impl Address {
    /// Whether it may be on another machine: what a name stands for is not looked up.
    pub(super) fn is_elsewhere(&self) -> bool {
        let Self::Tcp(_, address) = self else { return false };
        let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        !host.eq_ignore_ascii_case("localhost")
            && !host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(scheme, address) => write!(f, "{}{address}", scheme.prefix()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        let tcp = |scheme, text: &str| Ok(Address::Tcp(scheme, text.to_owned()));
        assert_eq!("127.0.0.1:18001".parse(), tcp(Scheme::Unsaid, "127.0.0.1:18001"));
        assert_eq!("http://[::1]:1/".parse(), tcp(Scheme::Http, "[::1]:1"));
        assert_eq!("HTTPS://a:1".parse(), tcp(Scheme::Https, "a:1"));
        assert_eq!("https://a:1/".parse::<Address>().unwrap().to_string(), "https://a:1");
        assert_eq!("unix:/run/x".parse(), Ok(Address::Unix("/run/x".into())));
        assert_eq!("unix:run/x".parse(), Ok(Address::Unix("run/x".into())), "of this directory");
        for (text, is_elsewhere) in [
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
            ("LocalHost:1", false),
            ("unix:/x", false),
            ("http://127.0.0.1:1", false),
            ("http://10.0.0.1:1", true),
            ("10.0.0.1:1", true),
            ("localhost.example:1", true),
            ("[fe80::1]:1", true),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_elsewhere(), is_elsewhere, "{text}");
        }
        for text in ["", "localhost", ":1", "a:b", "https://a", "https://:1", "unix:"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
