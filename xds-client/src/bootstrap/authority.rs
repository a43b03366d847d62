//! The authorities of `xdstp:` names (gRFC A47).

use std::collections::BTreeMap;

use xds_transport::wire::SelectorsByType;
use xdstp_uri::ResourceName;
use xdstp_uri::a47::{self, AuthorityEntry};

use super::error::Wrong;
use super::json::Json;
use super::parameters;
use super::server::{self, Server};

/// What is configured of an authority: see [`Bootstrap::authorities`](super::Bootstrap::authorities).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    client_listener_template: Option<String>,
    servers: Vec<Server>,
    parameters: BTreeMap<String, String>,
    dpds: Option<ResourceName>,
}

impl Authority {
    /// It has a server of its own, for when those named before cannot be reached.
    #[must_use]
    pub fn with_server(mut self, server: Server) -> Self {
        self.servers.push(server);
        self
    }

    /// Its names are asked for with this dynamic parameter (TP2, gRFC A67).
    #[must_use]
    pub fn with_parameter(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.insert(key.into(), value.into());
        self
    }

    /// Its names are asked for as this resource says, which is asked for first: what TP2's draft calls DPDS. It may be
    /// another authority's.
    #[must_use]
    pub fn with_dpds(self, name: ResourceName) -> Self {
        Self { dpds: Some(name), ..self }
    }

    /// Its own servers, in the order in which they are preferred; those of the top when there are none.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// What names of its listeners are made of, when it is not the default.
    pub fn client_listener_resource_name_template(&self) -> Option<&str> {
        self.client_listener_template.as_deref()
    }

    /// With which dynamic parameters its names are asked for.
    pub fn dynamic_parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The resource that says with what else its names are asked for.
    pub fn dpds_resource_name(&self) -> Option<&ResourceName> {
        self.dpds.as_ref()
    }

    pub(super) fn speaking_draft(self) -> Self {
        Self { servers: self.servers.into_iter().map(Server::speaking_draft).collect(), ..self }
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
    let parameters = fields.member("dynamic_parameters").map(parameters::read).transpose()?.unwrap_or_default();
    let dpds = fields.member("dpds_resource_name").map(|json| dpds(&json)).transpose()?;
    Ok(Authority { client_listener_template: template, servers, parameters, dpds })
}

fn dpds(json: &Json<'_>) -> Result<ResourceName, Wrong> {
    let name = ResourceName::parse(&json.text()?).map_err(|error| json.wrong(error))?;
    match name.resource_type() {
        _ if name.is_glob() => Err(json.wrong("it is a collection, where one resource is expected")),
        Some(of) if !SelectorsByType::is_type(of) => {
            let message = SelectorsByType::TYPE_URL.rsplit('/').next().unwrap_or_default();
            Err(json.wrong(format_args!("it is the name of a {of}, not of a {message}")))
        }
        _ => Ok(name),
    }
}
