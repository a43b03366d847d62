//! The bootstrap: who a client is, which servers it has, and which authorities they answer for.
//!
//! The format is gRPC's (gRFC A27, A29, A36, A47, A65, A67, A71, A81, A88, A97, A102), with two words of its own: the server feature
//! `draft_dynamic_parameters` and an authority's `dpds_resource_name`. What is not known in it is ignored, as all
//! of gRPC does: one file serves clients of many versions. What is known and wrong is an error with its place.
//!
//! ```
//! use xdstp_client::bootstrap::{Bootstrap, ChannelCreds};
//!
//! let bootstrap = Bootstrap::from_json(
//!     r#"{
//!       "xds_servers": [{ "server_uri": "xds.example.com:443", "channel_creds": [{ "type": "tls" }] }],
//!       "node": { "id": "shop-1", "locality": { "zone": "a" } },
//!       "authorities": { "other.example.com": {} }
//!     }"#,
//! )?;
//! assert_eq!(bootstrap.servers()[0].uri(), "xds.example.com:443");
//! assert!(matches!(bootstrap.servers()[0].channel_creds(), ChannelCreds::Tls(_)));
//! // An authority without servers of its own has those of the top.
//! assert_eq!(bootstrap.servers_of(Some("other.example.com")).unwrap(), bootstrap.servers());
//! assert!(bootstrap.servers_of(Some("unknown.example.com")).is_none());
//!
//! let wrong = Bootstrap::from_json(r#"{ "xds_servers": [{ "channel_creds": [{ "type": "tls" }] }] }"#).unwrap_err();
//! assert_eq!(wrong.to_string(), "bootstrap:1:19: xds_servers[0]: server_uri is missing");
//! # Ok::<(), xdstp_client::bootstrap::BootstrapError>(())
//! ```

mod authority;
mod certificates;
mod creds;
mod duration;
mod environment;
mod error;
mod json;
mod node;
mod parameters;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use xds_transport::wire::Node;
use xdstp_uri::a47::{self, AuthorityEntry};

pub use self::authority::Authority;
pub use self::certificates::{CertificateFiles, CertificateProvider};
pub use self::creds::{CallCreds, ChannelCreds, TlsFiles};
pub use self::environment::{BOOTSTRAP, BOOTSTRAP_CONFIG};
pub use self::error::{BootstrapError, Wrong};
use self::json::Json;
pub use self::server::{Features, Server};

/// What a client is told before it asks anybody: see [the module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    servers: Vec<Server>,
    node: Node,
    authorities: BTreeMap<String, Authority>,
    certificate_providers: BTreeMap<String, CertificateProvider>,
    client_listener_template: Option<String>,
    server_listener_template: Option<String>,
    parameters: BTreeMap<String, String>,
}

impl Bootstrap {
    /// A bootstrap made in code: its first choice of a server.
    ///
    /// ```
    /// use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
    ///
    /// let bootstrap = Bootstrap::new(Server::new("127.0.0.1:18000", ChannelCreds::Insecure))
    ///     .with_server(Server::new("127.0.0.1:18001", ChannelCreds::Insecure))
    ///     .with_authority("example.com", Authority::default());
    /// assert_eq!(bootstrap.servers_of(Some("example.com")).unwrap().len(), 2);
    /// ```
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self {
            servers: vec![server],
            node: Node::default(),
            authorities: BTreeMap::new(),
            certificate_providers: BTreeMap::new(),
            client_listener_template: None,
            server_listener_template: None,
            parameters: BTreeMap::new(),
        }
    }

    /// A server for when those named before cannot be reached (gRFC A71).
    #[must_use]
    pub fn with_server(mut self, server: Server) -> Self {
        self.servers.push(server);
        self
    }

    /// Who the client is.
    #[must_use]
    pub fn with_node(self, node: Node) -> Self {
        Self { node, ..self }
    }

    /// An authority of `xdstp:` names (gRFC A47); the empty one is that of names without any.
    #[must_use]
    pub fn with_authority(mut self, name: impl Into<String>, authority: Authority) -> Self {
        self.authorities.insert(name.into(), authority);
        self
    }

    /// Old-style names are asked for with this dynamic parameter (TP2, gRFC A67). Those of authorities have their
    /// [own](Authority::with_parameter).
    #[must_use]
    pub fn with_parameter(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.insert(key.into(), value.into());
        self
    }

    /// All servers speak the draft of TP2.
    pub(crate) fn speaking_draft(self) -> Self {
        let authorities = self.authorities.into_iter().map(|(name, authority)| (name, authority.speaking_draft()));
        Self {
            servers: self.servers.into_iter().map(Server::speaking_draft).collect(),
            authorities: authorities.collect(),
            ..self
        }
    }

    /// Reads what the environment names: [`BOOTSTRAP`], a file, or else [`BOOTSTRAP_CONFIG`], the content of one. The
    /// environment is looked at now, not when the process started. A variable that is empty is not set.
    ///
    /// # Errors
    /// [`BootstrapError::NotConfigured`] when neither is set. A file that is named and cannot be read is an error, whatever
    /// the other variable says.
    pub fn from_env() -> Result<Self, BootstrapError> {
        environment::read(|name| std::env::var_os(name))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is wrong.
    pub fn from_file(file: impl AsRef<Path>) -> Result<Self, BootstrapError> {
        let file = file.as_ref();
        let text = fs::read_to_string(file)
            .map_err(|reason| BootstrapError::Unreadable { file: file.to_owned(), reason: reason.into() })?;
        Self::named(&file.display().to_string(), &text)
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn from_json(text: &str) -> Result<Self, BootstrapError> {
        Self::named("bootstrap", text)
    }

    /// The servers of old-style names, and of authorities that have none of their own: in the order in which they are
    /// preferred (gRFC A71). There is one at least.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The servers of an authority, or without one of old-style names; none when the authority is not configured: no server
    /// is asked for its names (gRFC A47).
    pub fn servers_of(&self, authority: Option<&str>) -> Option<&[Server]> {
        let Some(name) = authority else { return Some(&self.servers) };
        let own = self.authorities.get(name)?.servers();
        Some(if own.is_empty() { &self.servers } else { own })
    }

    /// Who the client is. What a client says of itself, its features and its name among it, is not read from a bootstrap.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// With which dynamic parameters old-style names are asked for.
    pub fn dynamic_parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The authorities of `xdstp:` names, by their names.
    pub fn authorities(&self) -> &BTreeMap<String, Authority> {
        &self.authorities
    }

    /// Where certificates come from that resources name by instance (gRFC A29).
    pub fn certificate_providers(&self) -> &BTreeMap<String, CertificateProvider> {
        &self.certificate_providers
    }

    fn named(from: &str, text: &str) -> Result<Self, BootstrapError> {
        Self::read(text).map_err(|wrong| BootstrapError::Wrong { from: from.to_owned(), wrong })
    }

    fn read(text: &str) -> Result<Self, Wrong> {
        let fields = Json::parse(text)?.object()?;
        let servers = server::list(&fields.required("xds_servers")?)?;
        if servers.is_empty() {
            return Err(fields.required("xds_servers")?.wrong("it names no server"));
        }
        let node = fields.member("node").map(node::read).transpose()?.unwrap_or_default();
        let authorities = fields.member("authorities").map(authority::all).transpose()?.unwrap_or_default();
        let parameters = fields.member("dynamic_parameters").map(parameters::read).transpose()?.unwrap_or_default();
        let providers = fields.member("certificate_providers").map(certificates::providers).transpose()?;
        Ok(Self {
            servers,
            node,
            authorities,
            parameters,
            certificate_providers: providers.unwrap_or_default(),
            client_listener_template: fields.string("client_default_listener_resource_name_template")?,
            server_listener_template: fields.string("server_listener_resource_name_template")?,
        })
    }
}

/// Names of listeners by the templates: see [`xdstp_uri::a47`].
impl a47::Bootstrap for Bootstrap {
    fn client_default_listener_resource_name_template(&self) -> Option<&str> {
        self.client_listener_template.as_deref()
    }

    fn server_listener_resource_name_template(&self) -> Option<&str> {
        self.server_listener_template.as_deref()
    }

    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
        self.authorities.get(name).map(Authority::entry)
    }
}
