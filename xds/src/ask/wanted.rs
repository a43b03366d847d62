//! What is asked for: resources of one type, by name.

use xdstp_uri::ResourceName;

use super::attribute;
use super::key_value::KeyValue;
use super::types;
use crate::show::visible;

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Wanted {
    /// An attribute of the resource, as clients compute them: the parameter xds.resource.KEY of every (xdstp:) name
    #[arg(long = "attribute", value_name = "KEY=VALUE")]
    attributes: Vec<KeyValue>,
    /// A type URL, or: cluster, endpoint, extension, listener, locality-endpoint, route, runtime, scoped-route,
    /// secret, virtual-host
    #[arg(value_name = "TYPE", value_parser = types::type_url)]
    type_url: String,
    /// Names, globs, or `*` for everything
    #[arg(value_name = "NAME", default_value = "*")]
    names: Vec<String>,
}

impl Wanted {
    pub(crate) fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The names, as they were given and as they are asked for, or why one cannot be.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, Result<ResourceName, String>)> {
        self.names.iter().map(|text| (text.as_str(), self.name(text)))
    }

    fn name(&self, text: &str) -> Result<ResourceName, String> {
        let name = ResourceName::parse(text).map_err(|error| error.to_string())?;
        let message = self.type_url.rsplit('/').next().unwrap_or_default();
        if let Some(named) = name.resource_type().filter(|named| *named != message) {
            return Err(format!("it is the name of a {}, not of a {}", visible(named), visible(message)));
        }
        attribute::add(name, &self.attributes)
    }
}
