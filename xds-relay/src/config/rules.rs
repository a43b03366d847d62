//! What holds for the values of a configuration, however it was made: an error is what is wrong and what was expected.

use std::net::SocketAddr;
use std::time::Duration;

use http::Uri;

use super::{DEFAULT_ADMIN, Origin};

/// What gRPC's own clients allow (gRFC A8); more pings than that tell nothing.
const SHORTEST_KEEPALIVE: Duration = Duration::from_secs(10);

/// Nobody may share by nothing.
pub(super) const NO_PARTS: &str = "empty; expected at least one part of the node, or no share_by to share nothing";

pub(super) const NO_SERVERS: &str = "empty; expected at least one server";

/// Whether a server may stand behind these, with which it shares how it is spoken to.
pub(super) fn is_one_more(server: &Uri, before: &[Uri]) -> Result<(), String> {
    let text = server.authority().map_or("", |authority| authority.as_str());
    if let Some(other) = before.iter().position(|other| other.authority() == server.authority()) {
        return Err(format!("`{text}` is servers[{other}] already"));
    }
    match before.first().map(is_https) {
        Some(true) if !is_https(server) => Err(format!("`{text}`: expected https://, as those before it have")),
        Some(false) if is_https(server) => Err(format!("`{text}`: expected no https://, as those before it have none")),
        _ => Ok(()),
    }
}

pub(super) fn is_https(server: &Uri) -> bool {
    server.scheme_str() == Some("https")
}

/// Of an origin.
pub(super) fn name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = !name.is_empty() && name.len() <= 64 && name.chars().all(plain);
    is_name.then_some(()).ok_or_else(|| format!("`{name}`: expected up to 64 letters, digits, `.`, `_` and `-`"))
}

pub(super) fn is_taken(name: &str, other: usize) -> String {
    format!("`{name}` is the name of origins[{other}] already")
}

pub(super) fn authority(authority: &str) -> Result<(), String> {
    let alone = !authority.contains(['/', '?', '#']) && !authority.contains(char::is_whitespace);
    alone.then_some(()).ok_or_else(|| format!("`{authority}`: expected an authority alone, such as example.com"))
}

pub(super) fn is_listed(authority: &str, owner: &str) -> String {
    format!("`{authority}` is listed by origin `{owner}` already")
}

pub(super) fn admin(admin: SocketAddr, listen: SocketAddr) -> Result<(), String> {
    let everywhere = admin.ip().is_unspecified() || listen.ip().is_unspecified();
    let apart = admin.port() != listen.port() || admin.port() == 0 || (admin.ip() != listen.ip() && !everywhere);
    apart.then_some(()).ok_or_else(|| "the same address as listen; expected another port".to_owned())
}

/// Where nothing is said of the admin pages.
pub(super) fn listen_beside_default_admin(listen: SocketAddr) -> Result<(), String> {
    admin(DEFAULT_ADMIN, listen).map_err(|_| {
        format!("`{listen}`: where the admin pages are if nothing is said of them; expected another port, or `admin` beside it")
    })
}

pub(super) fn keepalive(keepalive: Duration, said: &str) -> Result<(), String> {
    (keepalive >= SHORTEST_KEEPALIVE).then_some(()).ok_or_else(|| format!("`{said}`: expected at least 10s"))
}

pub(super) fn default_origin(name: &str, origins: &[Origin]) -> Result<(), String> {
    let names: Vec<&str> = origins.iter().map(|origin| origin.name.as_str()).collect();
    let known = names.contains(&name);
    known.then_some(()).ok_or_else(|| format!("no origin `{name}`; expected one of {}", names.join(", ")))
}

pub(super) fn is_own(server: &str, place: &str) -> String {
    format!("`{server}`: {place}; expected another server")
}

/// `HOST:PORT`, `http://HOST:PORT`, or `https://HOST:PORT`.
pub(super) fn server_uri(text: &str) -> Result<Uri, &'static str> {
    const EXPECTED: &str =
        "expected HOST:PORT or http://HOST:PORT, or https://HOST:PORT for TLS, such as control-plane.example.com:18000";
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest.strip_suffix('/').unwrap_or(rest)),
        _ => ("http", text),
    };
    let authority = rest;
    let authority: http::uri::Authority = authority.parse().map_err(|_| EXPECTED)?;
    let port_given = authority.port_u16().is_some_and(|port| port != 0);
    if !port_given || authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(EXPECTED);
    }
    Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build().map_err(|_| EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        for (text, uri) in [
            ("127.0.0.1:18010", "http://127.0.0.1:18010/"),
            ("[::1]:18010", "http://[::1]:18010/"),
            ("control-plane.example.com:80", "http://control-plane.example.com:80/"),
            ("http://localhost:1", "http://localhost:1/"),
            ("http://localhost:1/", "http://localhost:1/"),
            ("https://localhost:1", "https://localhost:1/"),
        ] {
            assert_eq!(server_uri(text).unwrap().to_string(), uri);
        }
        for text in
            ["", "localhost", "localhost:0", "localhost:65536", ":1", "http://", "http://a:1/b", "u@a:1", "unix:/a"]
        {
            assert!(server_uri(text).is_err(), "{text}");
        }
    }
}
