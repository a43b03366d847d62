//! The authorities of `xdstp:` names (gRFC A47).

use std::collections::BTreeMap;

use xdstp_uri::a47::{self, AuthorityEntry};

use super::error::Wrong;
use super::json::Json;
use super::server::{self, Server};

/// What is configured of an authority: see [`Bootstrap::authorities`](super::Bootstrap::authorities).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    client_listener_template: Option<String>,
    servers: Vec<Server>,
}

impl Authority {
    /// It has a server of its own, for when those named before cannot be reached.
    #[must_use]
    pub fn with_server(mut self, server: Server) -> Self {
        self.servers.push(server);
        self
    }

    /// Its own servers, in the order in which they are preferred; those of the top when there are none.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// What names of its listeners are made of, when it is not the default.
    pub fn client_listener_resource_name_template(&self) -> Option<&str> {
        self.client_listener_template.as_deref()
    }

    pub(super) fn entry(&self) -> AuthorityEntry<'_> {
        AuthorityEntry::new(self.client_listener_template.as_deref(), !self.servers.is_empty())
    }
}

pub(super) fn all(json: Json<'_>) -> Result<BTreeMap<String, Authority>, Wrong> {
    let fields = json.object()?;
    fields.iter().map(|(name, json)| Ok((name.to_owned(), read(name, json)?))).collect()
}

fn read(name: &str, json: Json<'_>) -> Result<Authority, Wrong> {
    const TEMPLATE: &str = "client_listener_resource_name_template";
    let fields = json.object()?;
    let template = fields.string(TEMPLATE)?;
    if let (Some(text), Some(json)) = (&template, fields.member(TEMPLATE)) {
        a47::check_template_prefix(name, text).map_err(|error| json.wrong(error))?;
    }
    let servers = fields.member("xds_servers").map(|json| server::list(&json)).transpose()?.unwrap_or_default();
    Ok(Authority { client_listener_template: template, servers })
}
