use serde::{Deserialize, Serialize};

/// Everything a relay holds, of whom, and for whom; no bodies, as they may hold secrets.
///
/// The fields are the ones of the JSON at `/config_dump`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfigDump {
    /// What the relay goes by among relays.
    pub instance: String,
    /// In the order of the configuration.
    pub origins: Vec<OriginDump>,
    /// What is held, by scope.
    pub scopes: Vec<ScopeDump>,
    /// Who is connected.
    pub clients: Vec<ClientDump>,
}

/// An origin and the streams to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OriginDump {
    /// From the configuration.
    pub name: String,
    /// `delta`, `sotw` or `files`.
    pub protocol: String,
    /// The streams, connected or waiting to be.
    pub streams: Vec<UpstreamDump>,
}

/// A stream to an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpstreamDump {
    /// The node group it speaks for, or `xdstp`.
    pub group: String,
    /// Whether it is up, and the origin answered on it.
    pub connected: bool,
    /// If the origin is a relay: its instance, and after commas those behind it, with `|` between some equally near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relays: Option<String>,
    /// Why it is not, or was not the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What an operator should look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'static str>,
    /// Names, globs and wildcards subscribed to.
    pub subscriptions: usize,
}

/// What is held of one authority, or for one node group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScopeDump {
    /// The authority, or the label of the node group.
    pub scope: String,
    /// By type URL.
    pub types: Vec<ScopeTypeDump>,
}

/// What is held of one type in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScopeTypeDump {
    /// The type URL.
    pub type_url: String,
    /// By name.
    pub resources: Vec<ResourceDump>,
    /// Names that somebody asked for and the origin does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Globs subscribed to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Whether all of the type is subscribed to.
    pub wildcard: bool,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResourceDump {
    /// In canonical form.
    pub name: String,
    /// As subscribers are told it.
    pub version: String,
    /// The length of the body.
    pub bytes: usize,
    /// Since the body changed last.
    pub last_changed_seconds_ago: u64,
}

/// A subscriber's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientDump {
    /// Its address.
    pub peer: String,
    /// What it calls itself.
    pub node_id: String,
    /// `delta` or `sotw`.
    pub protocol: String,
    /// A long request of its is being handled: of its types nothing is said meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// What it is subscribed to, by type URL.
    pub types: Vec<ClientTypeDump>,
}

/// What a subscriber wants of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientTypeDump {
    /// The type URL.
    pub type_url: String,
    /// Whether it wants all of the type.
    pub wildcard: bool,
    /// The names it wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The globs it wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Responses it accepted.
    pub acked: u64,
    /// Responses it rejected.
    pub nacked: u64,
    /// The last rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_nack: Option<NackDump>,
}

/// A rejected response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NackDump {
    /// What the subscriber said.
    pub message: String,
    /// When.
    pub seconds_ago: u64,
}

/// What of a dump somebody wants to see: the query of `/config_dump`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpFilter {
    /// A type URL or its end: `Cluster`, `cluster.v3.Cluster`.
    #[serde(rename = "type")]
    pub type_url: Option<String>,
    /// A part of a name; the page is for people, so this one compares text.
    pub name: Option<String>,
}

impl ConfigDump {
    /// Leaves out what the filter does not ask for, with the scopes and clients that are empty then.
    pub fn retain(&mut self, filter: &DumpFilter) {
        if *filter == DumpFilter::default() {
            return;
        }
        let with_name = filter.name.is_some();
        for scope in &mut self.scopes {
            scope.types.retain_mut(|held| {
                held.resources.retain(|resource| filter.admits_name(&resource.name));
                held.absent.retain(|name| filter.admits_name(name));
                held.globs.retain(|glob| filter.admits_name(glob));
                let left = !held.resources.is_empty() || !held.absent.is_empty() || !held.globs.is_empty();
                filter.admits_type(&held.type_url) && (left || !with_name)
            });
        }
        for client in &mut self.clients {
            client.types.retain_mut(|wanted| {
                wanted.names.retain(|name| filter.admits_name(name));
                wanted.globs.retain(|glob| filter.admits_name(glob));
                // Whoever wants all of a type wants this name, too.
                let left = wanted.wildcard || !wanted.names.is_empty() || !wanted.globs.is_empty();
                filter.admits_type(&wanted.type_url) && (left || !with_name)
            });
        }
        self.scopes.retain(|scope| !scope.types.is_empty());
        self.clients.retain(|client| !client.types.is_empty());
    }
}

impl DumpFilter {
    fn admits_type(&self, type_url: &str) -> bool {
        self.type_url.as_ref().is_none_or(|end| {
            type_url.strip_suffix(end.as_str()).is_some_and(|front| front.is_empty() || front.ends_with(['.', '/']))
        })
    }

    fn admits_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }
}
