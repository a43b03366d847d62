//! What a client shows of itself: by its connection, and with its call.

use std::net::IpAddr;

use http::request::Parts;
use tonic::transport::server::TcpConnectInfo;
#[cfg(unix)]
use tonic::transport::server::UdsConnectInfo;
use xds_transport::grpc::server::ClientCertificate;

use crate::bearers::{Shown as ShownToken, shown as shown_token};
use crate::config::{ClientMatch, ClientRule};
use crate::relay_core::Identity;

/// What a client showed: enough to find its rule, again where the rules change while it is served.
pub(crate) struct Shown {
    address: Option<IpAddr>,
    unix: bool,
    certificate: Option<ClientCertificate>,
    /// Not the token itself.
    pub(super) token: Option<ShownToken>,
}

impl Shown {
    /// With a call.
    pub(crate) fn of(call: &Parts) -> Self {
        let extensions = &call.extensions;
        Self {
            address: extensions.get().and_then(TcpConnectInfo::remote_addr).map(|address| address.ip()),
            unix: came_by_unix_socket(call),
            certificate: extensions.get().cloned(),
            token: shown_token(&call.headers),
        }
    }

    /// Who that is, under a rule for it, where there are rules: by what it cannot have made up. Of tokens only one that the rule asks
    /// for was looked at.
    pub(crate) fn identity(&self, rule: Option<&ClientRule>) -> Identity {
        let token = self.token.as_ref().filter(|_| rule.is_some_and(|rule| rule.matches.token.is_some()));
        match (&self.certificate, token, self.address) {
            (Some(certificate), ..) => Identity::Certificate(name(certificate).into()),
            (None, Some(token), _) => Identity::Token(token.hash()),
            (None, None, Some(address)) => Identity::of_address(address),
            (None, None, None) => Identity::Local,
        }
    }

    /// Whether that is all that a rule is for, but for a token.
    pub(super) fn is_that(&self, matches: &ClientMatch) -> bool {
        (!matches.unix || self.unix)
            && matches.is_from(self.address)
            && (!matches.needs_certificate() || has_name(matches, self.certificate.as_ref()))
    }
}

/// Who a client is, for people: an address, or the process behind a unix socket; and whom it proved to be.
pub(crate) fn peer(call: &Parts) -> String {
    let address = call.extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
    let mut peer = address.map_or_else(String::new, |peer| peer.to_string());
    #[cfg(unix)]
    if let Some(socket) = call.extensions.get::<UdsConnectInfo>() {
        peer = match socket.peer_cred.and_then(|process| process.pid()) {
            Some(process) => format!("unix, process {process}"),
            None => "unix".to_owned(),
        };
    }
    if let Some(certificate) = call.extensions.get::<ClientCertificate>() {
        // Who vouches for a client need not mind what a line of a log is.
        peer = format!("{peer} {}", name(certificate).escape_debug());
    }
    peer
}

/// The first of its names, or who it is of where it has none.
fn name(certificate: &ClientCertificate) -> &str {
    let names = [certificate.uri_names(), certificate.dns_names()];
    names.into_iter().flatten().next().map_or_else(|| certificate.subject(), String::as_str)
}

fn has_name(matches: &ClientMatch, certificate: Option<&ClientCertificate>) -> bool {
    let Some(certificate) = certificate else { return false };
    let ClientMatch { san, spiffe, .. } = matches;
    let has_san = || {
        // The name of a host is the same however its letters are.
        let mut hosts = certificate.dns_names().iter().map(|name| name.to_ascii_lowercase());
        let is_host = |name: &str| san.iter().any(|glob| !glob.is_of_uris() && glob.matches(name));
        let is_uri = |uri: &String| san.iter().any(|glob| glob.is_of_uris() && glob.matches(uri));
        hosts.any(|name| is_host(&name)) || certificate.uri_names().iter().any(is_uri)
    };
    let id = certificate.spiffe_id();
    let has_spiffe = id.is_some_and(|id| spiffe.iter().any(|glob| glob.matches(id)));
    (san.is_empty() || has_san()) && (spiffe.is_empty() || has_spiffe)
}

#[cfg(unix)]
fn came_by_unix_socket(call: &Parts) -> bool {
    call.extensions.get::<UdsConnectInfo>().is_some()
}

#[cfg(not(unix))]
fn came_by_unix_socket(_: &Parts) -> bool {
    false
}
