//! By which names the admin pages are reached: a page in a browser, whose name somebody else leads here, is not let in (DNS
//! rebinding).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::admin_access::AdminAccess;

/// Whether pages of these names, beside addresses, are reached by this: nobody can lead addresses elsewhere.
fn answers_to(names: &[String], authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = host.strip_suffix('.').unwrap_or(host);
    address.parse::<IpAddr>().is_ok() || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Answers a request for a host that is none of these. One that names no host is from no browser.
pub(super) async fn check(State(access): State<Arc<AdminAccess>>, request: Request, next: Next) -> Response {
    let names = access.hosts();
    let named = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let unknown = named.chain(request.uri().authority().map(Authority::as_str)).find(|host| !answers_to(&names, host));
    match unknown {
        None => next.run(request).await,
        Some(host) => {
            let words =
                format!("these pages are not on {host:?}: admin_hosts of the configuration says where they are\n");
            (StatusCode::MISDIRECTED_REQUEST, words).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_answer_to_addresses_and_to_names_they_know() {
        let names = ["localhost".to_owned(), "relay.example".to_owned()];
        for known in
            ["localhost", "LocalHost:18001", "localhost.", "127.0.0.1:1", "10.1.2.3", "[::1]:18001", "relay.example"]
        {
            assert!(answers_to(&names, known), "{known}");
        }
        for unknown in [
            "",
            "evil.example",
            "localhost.evil.example",
            "relay.example@evil.example",
            "127.0.0.1.evil.example",
            "a b",
            "é",
        ] {
            assert!(!answers_to(&names, unknown), "{unknown}");
        }
    }
}
