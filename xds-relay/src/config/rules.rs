//! What holds for the values of a configuration, however it was made: an error is what is wrong and what was expected.

use std::path::Path;
use std::time::Duration;

use http::Uri;
use xdstp_client::UnixAddress;

use super::{Address, DEFAULT_ADMIN, ListenTls, NodeField, Origin, OriginTls, ServerAddress};

/// What gRPC's own clients allow (gRFC A8); more pings than that tell nothing.
const SHORTEST_KEEPALIVE: Duration = Duration::from_secs(10);

/// Nobody may share by nothing.
pub(super) const NO_PARTS: &str = "empty; expected at least one part of the node, or no share_by to share nothing";

pub(super) const NO_PARAMETERS: &str =
    "empty; expected at least one parameter, such as version: metadata.version, or no node_parameters";

/// Whether a part of a node may be the value of a parameter.
pub(super) fn parameter(key: &str, field: &NodeField) -> Result<(), String> {
    match field {
        _ if key.is_empty() => Err("a parameter without a key; expected one such as version".to_owned()),
        field => part(field),
    }
}

/// Whether a part of a node is one text.
pub(super) fn part(field: &NodeField) -> Result<(), String> {
    match field {
        NodeField::Locality => {
            Err("`locality` is three; expected locality.region, locality.zone or locality.sub_zone".to_owned())
        }
        _ => Ok(()),
    }
}

pub(super) const NO_SERVERS: &str = "empty; expected at least one server";

/// Whether a server may stand behind these, with which it shares how it is spoken to. A unix socket says nothing of that: it is
/// spoken to as the others are.
pub(super) fn is_one_more(server: &ServerAddress, before: &[ServerAddress]) -> Result<(), String> {
    let text = server.target();
    if let Some(other) = before.iter().position(|other| other.target() == text) {
        return Err(format!("`{text}` is servers[{other}] already"));
    }
    let says = |server: &ServerAddress| matches!(server, ServerAddress::Http(_)).then(|| server.is_https());
    match (before.iter().find_map(says), says(server)) {
        (Some(true), Some(false)) => Err(format!("`{text}`: expected https://, as those before it have")),
        (Some(false), Some(true)) => Err(format!("`{text}`: expected no https://, as those before it have none")),
        _ => Ok(()),
    }
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

pub(super) fn admin(admin: &Address, listen: &Address) -> Result<(), String> {
    let apart = match (admin, listen) {
        (Address::Tcp(admin), Address::Tcp(listen)) => {
            let everywhere = admin.ip().is_unspecified() || listen.ip().is_unspecified();
            admin.port() != listen.port() || admin.port() == 0 || (admin.ip() != listen.ip() && !everywhere)
        }
        _ => admin != listen,
    };
    apart.then_some(()).ok_or_else(|| "the same address as listen; expected another one".to_owned())
}

/// Whether other machines may reach it.
pub(super) fn is_reached(address: &Address) -> bool {
    address.tcp().is_some_and(|address| !address.ip().to_canonical().is_loopback())
}

/// What others reach shows who is served what to whoever asks: that is to be somebody.
pub(super) fn admin_reach(
    address: Option<&Address>,
    tls: Option<&ListenTls>,
    token: Option<&Path>,
    write_token: Option<&Path>,
) -> Result<(), String> {
    let Some(address) = address else {
        let unused = tls.is_some() || token.is_some() || write_token.is_some();
        return if unused { Err("there are no admin pages; expected no tls and no token".to_owned()) } else { Ok(()) };
    };
    let is_known = token.is_some() || tls.is_some_and(|tls| tls.client_ca.is_some());
    if !is_reached(address) || tls.is_some() && is_known {
        return Ok(());
    }
    Err(format!(
        "`{address}`: other machines reach it; expected tls and a token (or tls.client_ca) beside it, \
         or a loopback address, or unix:PATH"
    ))
}

/// What is wrong with sending a token to an origin that is spoken to so.
pub(super) fn token(tls: Option<&OriginTls>) -> Option<&'static str> {
    tls.is_none().then_some("a token goes over TLS only; expected tls, or https://HOST:PORT")
}

/// Whether a socket can be made there, as far as files tell: one of a relay that runs is no obstacle.
pub(super) fn socket(address: &UnixAddress) -> Result<(), String> {
    let Some(path) = address.path() else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(format!("no directory {} to make it in", parent.display()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let there = std::fs::symlink_metadata(path).ok();
        if there.is_some_and(|there| !there.file_type().is_socket()) {
            return Err(format!("{} is there and no socket", path.display()));
        }
    }
    Ok(())
}

/// Where nothing is said of the admin pages.
pub(super) fn listen_beside_default_admin(listen: &Address) -> Result<(), String> {
    admin(&DEFAULT_ADMIN, listen).map_err(|_| {
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

/// `unix:PATH`, or as [`server_uri`] has it.
pub(super) fn server(text: &str) -> Result<ServerAddress, String> {
    if UnixAddress::has_scheme(text) {
        return text.parse();
    }
    server_uri(text).map(ServerAddress::Http).map_err(|problem| format!("`{text}`: {problem}"))
}

/// `HOST:PORT`, `http://HOST:PORT`, or `https://HOST:PORT`.
fn server_uri(text: &str) -> Result<Uri, &'static str> {
    const EXPECTED: &str = "expected HOST:PORT or http://HOST:PORT, https://HOST:PORT for TLS, or unix:PATH, such as control-plane.example.com:18000";
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
