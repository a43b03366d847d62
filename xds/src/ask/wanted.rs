//! What is asked for: resources of one type, by name.

use xdstp_cache::Interest;
use xdstp_uri::{Locator, ResourceName, Scheme, member_type};

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
    /// Names, globs, or `*` for everything; lists (`TYPECollection`), and names with `#alt=` or `#entry=`; with --files and --http
    /// locators of documents (`file:///PATH`, `http://HOST/TYPE/ID`)
    #[arg(value_name = "NAME", default_value = "*")]
    names: Vec<String>,
}

impl Wanted {
    pub(crate) fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The names, as they were given and as they are asked for, or why one cannot be. What looks like a locator is a name but where
    /// documents of its scheme are read.
    pub(crate) fn names(&self, schemes: &[Scheme]) -> impl Iterator<Item = (&str, Result<Name, String>)> {
        self.names.iter().map(|text| (text.as_str(), self.name(text, schemes)))
    }

    fn name(&self, text: &str, schemes: &[Scheme]) -> Result<Name, String> {
        let message = self.type_url.rsplit('/').next().unwrap_or_default();
        if let Some(scheme) = schemes.iter().find(|scheme| text.split(':').next() == Some(scheme.as_str())) {
            return document(text, *scheme, message);
        }
        if schemes.contains(&Scheme::Http) && text.starts_with("https:") {
            return Err(
                "locators have no https: (TP1); write http:, and --http https://HOST says how it is asked".to_owned()
            );
        }
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
        Ok(Name { name, text, is_list: is_list && !has_entry, is_document: false })
    }
}

/// A file has what it has, and its name does not say what.
fn document(text: &str, scheme: Scheme, message: &str) -> Result<Name, String> {
    let locator = Locator::parse(text).map_err(|error| error.to_string())?;
    let name = ResourceName::parse(&locator.without_directives().to_canonical()).map_err(|error| error.to_string())?;
    let is_list = scheme == Scheme::File || member_type(&locator.resource_type()) == Some(message);
    let is_list = is_list && locator.entry().is_none();
    Ok(Name { name, text: locator.to_canonical().into_owned(), is_list, is_document: true })
}

/// Something that is asked for.
#[derive(Debug)]
pub(crate) struct Name {
    name: ResourceName,
    /// With its directives.
    text: String,
    is_list: bool,
    is_document: bool,
}

impl Name {
    /// Without directives.
    pub(crate) fn name(&self) -> &ResourceName {
        &self.name
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is read where it is, and not asked for by its name.
    pub(crate) fn is_document(&self) -> bool {
        self.is_document
    }

    /// Whether it is one resource that has others in it, or is as good as one.
    pub(crate) fn is_list(&self) -> bool {
        self.is_list
    }

    /// Whether it stands for any number of resources.
    pub(crate) fn is_collection(&self) -> bool {
        self.is_list || Interest::from(self.name.clone()).is_collection()
    }
}

#[cfg(test)]
impl From<ResourceName> for Name {
    fn from(name: ResourceName) -> Self {
        let is_list = name.resource_type().and_then(member_type).is_some();
        Self { text: name.to_string(), name, is_list, is_document: false }
    }
}
