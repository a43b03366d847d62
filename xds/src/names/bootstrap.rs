//! What names depend on in a gRPC bootstrap file (gRFC A27, A47).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use xdstp_uri::a47::{self, AuthorityEntry};

use crate::input::read_file;
use crate::show::Problem;

/// Other fields are ignored, as gRPC does.
#[derive(Debug, Deserialize)]
pub(super) struct Bootstrap {
    #[serde(default)]
    pub(super) xds_servers: Vec<Server>,
    #[serde(default)]
    pub(super) authorities: BTreeMap<String, Authority>,
    client_default_listener_resource_name_template: Option<String>,
    server_listener_resource_name_template: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Authority {
    client_listener_resource_name_template: Option<String>,
    #[serde(default)]
    pub(super) xds_servers: Vec<Server>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Server {
    pub(super) server_uri: String,
    #[serde(default)]
    pub(super) channel_creds: Vec<ChannelCreds>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChannelCreds {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

impl Bootstrap {
    pub(super) fn read(file: &Path) -> Result<Self, Problem> {
        let text = read_file(file)?;
        serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column().max(1));
            let message = error.to_string();
            let place = format!(" at line {line} column {}", error.column());
            Problem::new(file, message.strip_suffix(&place).unwrap_or(&message)).at_byte(&text, line, column)
        })
    }

    /// What is wrong with the templates of authorities: each is to start with `xdstp://<authority>/`.
    pub(super) fn template_errors(&self) -> impl Iterator<Item = String> {
        self.authorities.iter().filter_map(|(name, entry)| {
            let template = entry.client_listener_resource_name_template.as_deref()?;
            let error = a47::check_template_prefix(name, template).err()?;
            Some(format!("authority {name:?}: {error}"))
        })
    }
}

impl a47::Bootstrap for Bootstrap {
    fn client_default_listener_resource_name_template(&self) -> Option<&str> {
        self.client_default_listener_resource_name_template.as_deref()
    }

    fn server_listener_resource_name_template(&self) -> Option<&str> {
        self.server_listener_resource_name_template.as_deref()
    }

    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
        self.authorities.get(name).map(|entry| {
            let template = entry.client_listener_resource_name_template.as_deref();
            AuthorityEntry::new(template, !entry.xds_servers.is_empty())
        })
    }
}
