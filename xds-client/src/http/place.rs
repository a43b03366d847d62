//! Whom documents may be fetched from, and what is asked for at a locator.

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery};
use xdstp_uri::Locator;

use super::error::HttpError;

/// The servers that may be asked.
#[derive(Debug)]
pub(super) struct Places(pub(super) Vec<Place>);

#[derive(Debug)]
pub(super) struct Place {
    authority: Authority,
    is_secure: bool,
}

/// What is asked for, and of whom.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// As it is called by who watches it.
    pub(super) locator: String,
    /// Where it is.
    pub(super) uri: Uri,
    pub(super) authority: Authority,
    pub(super) path: PathAndQuery,
    pub(super) is_secure: bool,
    /// The end of the id.
    pub(super) file: String,
}

/// A server, as a program names it.
///
/// # Errors
/// It is none.
pub(super) fn read(server: &str) -> Result<Place, HttpError> {
    let wrong = |reason| HttpError::Server { server: server.to_owned(), reason };
    let uri: Uri = server.parse().map_err(|_| wrong("expected a URI"))?;
    let is_secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong("expected http:// or https://")),
    };
    if is_secure && cfg!(not(feature = "rustls-any")) {
        return Err(HttpError::NoTls { server: server.to_owned() });
    }
    let authority = uri.authority().filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| wrong("expected a host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("a user is not told"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("its documents may be anywhere on it"));
    }
    Ok(Place { authority: authority.clone(), is_secure })
}

impl Places {
    /// What is asked for at a locator without directives.
    ///
    /// # Errors
    /// Why nobody is.
    pub(super) fn find(&self, locator: &Locator<'_>) -> Result<Target, String> {
        let text = locator.to_canonical();
        let rest = text.strip_prefix("http://").unwrap_or_default();
        let (named, _) = rest.split_once('/').unwrap_or_default();
        // Whatever else is asked for, it is not said whether there is such a server.
        let place = self.0.iter().find(|place| place.authority.as_str().eq_ignore_ascii_case(named));
        let place = place.ok_or("it is not on a server of which documents are fetched")?;
        let path = PathAndQuery::try_from(rest.get(named.len()..).unwrap_or_default());
        let path = path.map_err(|error| error.to_string())?;
        let scheme = if place.is_secure { "https" } else { "http" };
        let authority = place.authority.clone();
        let uri = Uri::builder().scheme(scheme).authority(authority.clone()).path_and_query(path.clone());
        let (uri, id) = (uri.build().map_err(|error| error.to_string())?, locator.id());
        let file = id.rsplit('/').next().unwrap_or_default().to_owned();
        let (locator, is_secure) = (text.to_string(), place.is_secure);
        Ok(Target { locator, uri, authority, path, is_secure, file })
    }
}

impl Target {
    /// A name, or an address without brackets.
    pub(super) fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    pub(super) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_secure { 443 } else { 80 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_scheme_and_an_authority() {
        for good in ["http://cdn", "https://cdn:8443/", "http://[::1]:80", "http://127.0.0.1:1"] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in
            ["cdn", "cdn:80", "ftp://cdn", "file:///etc", "http://", "http://me@cdn", "http://cdn/x", "http://cdn?x"]
        {
            assert!(matches!(read(bad), Err(HttpError::Server { .. })), "{bad}");
        }
    }

    #[test]
    fn a_locator_is_asked_for_at_its_authority_and_nowhere_else() {
        let places = Places(["http://cdn:8080", "https://Safe", "http://[::1]"].map(|at| read(at).unwrap()).into());
        let find = |locator: &str| places.find(&Locator::parse(locator).unwrap());
        let found = find("http://cdn:8080/a.T/x/y%20z?b=1&a=2").unwrap();
        assert_eq!(found.uri.to_string(), "http://cdn:8080/a.T/x/y%20z?a=2&b=1");
        assert_eq!((found.host(), found.port(), found.file.as_str()), ("cdn", 8080, "y z"));
        let safe = find("http://safe/a.T/x").unwrap();
        assert_eq!((safe.uri.to_string().as_str(), safe.port()), ("https://Safe/a.T/x", 443));
        assert_eq!(find("http://[::1]/a.T/x").unwrap().host(), "::1");
        for other in [
            "http://cdn/a.T/x",
            "http://cdn:80/a.T/x",
            "http://safe:443/a.T/x",
            "http://safe.evil/a.T/x",
            "http:///a.T/x",
        ] {
            assert_eq!(find(other).unwrap_err(), "it is not on a server of which documents are fetched", "{other}");
        }
    }
}
