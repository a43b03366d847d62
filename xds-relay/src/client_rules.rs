//! Which rule of `clients` a client is under, by what its connection and its call say of it.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use tonic::Status;
use tonic::transport::server::TcpConnectInfo;
#[cfg(unix)]
use tonic::transport::server::UdsConnectInfo;
use xds_transport::grpc::server::ClientCertificate;

use crate::bearers::Bearers;
use crate::config::{ClientMatch, ClientRule, Config};
use crate::error::Error;
use crate::metrics::{AUDIT, Denial, Metrics};

/// The rules, in their order.
pub(crate) struct ClientRules(Vec<Known>);

struct Known {
    rule: Arc<ClientRule>,
    tokens: Option<Arc<Bearers>>,
}

impl ClientRules {
    /// Reads their files; none where all may ask for everything.
    ///
    /// # Errors
    /// A file is not good.
    pub(crate) fn load(config: &Config) -> Result<Option<Self>, Error> {
        let Some(rules) = &config.clients else { return Ok(None) };
        let known = |(index, rule): (usize, &ClientRule)| {
            let load = |file: &std::path::PathBuf| {
                let bad = |reason| Error::Field { field: format!("clients[{index}].match.token"), reason };
                Bearers::load(file).map(Arc::new).map_err(bad)
            };
            let tokens = rule.matches.token.as_ref().map(load).transpose()?;
            Ok::<_, Error>(Known { rule: Arc::new(rule.clone()), tokens })
        };
        Ok(Some(Self(rules.iter().enumerate().map(known).collect::<Result<_, _>>()?)))
    }

    /// The files of tokens among them.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Arc<Bearers>> {
        self.0.iter().filter_map(|known| known.tokens.clone())
    }

    /// The first rule for who makes a call.
    ///
    /// # Errors
    /// There is none: it is refused, which is counted and said.
    pub(crate) fn admit(&self, call: &Parts, peer: &str, metrics: &Metrics) -> Result<Arc<ClientRule>, Status> {
        self.of(call).inspect_err(|status| {
            metrics.downstream_denied(Denial::Client);
            tracing::warn!(target: AUDIT, %peer, path = call.uri.path(), "a client is denied: {}", status.message());
        })
    }

    fn of(&self, call: &Parts) -> Result<Arc<ClientRule>, Status> {
        if let Some(known) = self.0.iter().find(|known| known.is_for(call)) {
            return Ok(known.rule.clone());
        }
        let mut tokens = self.tokens().peekable();
        let may_show_one = tokens.peek().is_some() && !tokens.any(|tokens| tokens.accepts(&call.headers));
        Err(if may_show_one {
            Status::unauthenticated("no rule of `clients` is for this client, which carries no token that is known")
        } else {
            Status::permission_denied("no rule of `clients` is for this client")
        })
    }
}

/// The tokens of who may look at the admin pages, if not all may.
///
/// # Errors
/// The file is not good.
pub(crate) fn admin_tokens(config: &Config) -> Result<Option<Arc<Bearers>>, Error> {
    let bad = |reason| Error::Field { field: "admin.token".to_owned(), reason };
    config.admin_token.as_ref().map(|file| Bearers::load(file).map(Arc::new).map_err(bad)).transpose()
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
        let names = [certificate.uri_names(), certificate.dns_names()];
        let name = names.into_iter().flatten().next().map_or_else(|| certificate.subject(), String::as_str);
        // Who vouches for a client need not mind what a line of a log is.
        peer = format!("{peer} {}", name.escape_debug());
    }
    peer
}

impl Known {
    fn is_for(&self, call: &Parts) -> bool {
        let matches = &self.rule.matches;
        let has_token = || self.tokens.as_ref().is_none_or(|tokens| tokens.accepts(&call.headers));
        (!matches.unix || came_by_unix_socket(call))
            && matches.is_from(address(call))
            && (!matches.needs_certificate() || has_name(matches, call.extensions.get()))
            && has_token()
    }
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

fn address(call: &Parts) -> Option<IpAddr> {
    call.extensions.get::<TcpConnectInfo>()?.remote_addr().map(|address| address.ip())
}

#[cfg(unix)]
fn came_by_unix_socket(call: &Parts) -> bool {
    call.extensions.get::<UdsConnectInfo>().is_some()
}

#[cfg(not(unix))]
fn came_by_unix_socket(_: &Parts) -> bool {
    false
}
