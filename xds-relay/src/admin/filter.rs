//! What of a dump is shown.

use serde::Deserialize;

use crate::api::{any_of, is_type};
use crate::snapshot::ConfigDump;

/// What of a dump somebody wants to see: the query of `/config_dump`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpFilter {
    /// A type URL or its end: `Cluster`, `cluster.v3.Cluster`; or a [short name](crate::api::type_url), where it is read.
    #[serde(default, rename = "type", deserialize_with = "any_of")]
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
        for origin in &mut self.origins {
            origin.content.retain_mut(|held| {
                held.resources.retain(|resource| filter.admits_name(&resource.name));
                filter.admits_type(&held.type_url) && (!held.resources.is_empty() || !with_name)
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
        self.type_url.as_ref().is_none_or(|end| is_type(type_url, end))
    }

    fn admits_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }
}
