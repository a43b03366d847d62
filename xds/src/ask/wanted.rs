//! What is asked for: resources of one type, by name.

use xdstp_cache::Interest;
use xdstp_uri::{Locator, ResourceName, member_type};

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
    #[arg(value_name = "TYPE", value_parser = types::type_url, help = types::help())]
    type_url: String,
    /// Names, globs, or `*` for everything; lists (`TYPECollection`), and names with `#alt=` or `#entry=`
    #[arg(value_name = "NAME", default_value = "*")]
    names: Vec<String>,
}

impl Wanted {
    pub(crate) fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The names, as they were given and as they are asked for, or why one cannot be.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, Result<Name, String>)> {
        self.names.iter().map(|text| (text.as_str(), self.name(text)))
    }

    fn name(&self, text: &str) -> Result<Name, String> {
        let message = self.type_url.rsplit('/').next().unwrap_or_default();
        let (text, directives) = match text.split_once('#').filter(|_| text.starts_with("xdstp:")) {
            Some((name, _)) => {
                let locator = Locator::parse(text).map_err(|error| error.to_string())?;
                (name, locator.directives().map(|directive| directive.to_string()).collect())
            }
            None => (text, Vec::new()),
        };
        let name = ResourceName::parse(text).map_err(|error| error.to_string())?;
        let named = name.resource_type();
        let is_list = named.and_then(member_type) == Some(message);
        if let Some(named) = named.filter(|named| *named != message && !is_list) {
            return Err(format!("it is the name of a {}, not of a {}", visible(named), visible(message)));
        }
        let has_entry = directives.iter().any(|directive: &String| directive.starts_with("entry="));
        let name = attribute::add(name, &self.attributes)?;
        let separator = if directives.is_empty() { "" } else { "#" };
        let text = format!("{name}{separator}{}", directives.join(","));
        Ok(Name { name, text, is_list: is_list && !has_entry })
    }
}

/// Something that is asked for.
#[derive(Debug)]
pub(crate) struct Name {
    name: ResourceName,
    /// With its directives.
    text: String,
    is_list: bool,
}

impl Name {
    /// Without directives.
    pub(crate) fn name(&self) -> &ResourceName {
        &self.name
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it stands for any number of resources.
    pub(crate) fn is_collection(&self) -> bool {
        self.is_list || Interest::from(self.name.clone()).is_collection()
    }
}

#[cfg(test)]
impl From<ResourceName> for Name {
    fn from(name: ResourceName) -> Self {
        Self { text: name.to_string(), name, is_list: false }
    }
}
