//! Which type of resources somebody means who asks for one.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use xds_transport::TypeRules;

const PREFIX: &str = "type.googleapis.com/";

/// What somebody calls a type is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no type {text:?}: give a type URL or one of {}", short_types().join(", "))]
pub struct NoType {
    /// What it is called.
    pub text: String,
}

/// The type URL that somebody means: by itself, without what is before its `/`, or by a short name, and one of Envoy's by its end, too.
///
/// # Errors
/// It is no short name.
///
/// ```
/// let full = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// for text in ["cluster", "Cluster", "cluster.v3.Cluster", "envoy.config.cluster.v3.Cluster", full] {
///     assert_eq!(xds_relay::api::type_url(text).as_deref(), Ok(full));
/// }
/// assert_eq!(xds_relay::api::type_url("own.Type").as_deref(), Ok("type.googleapis.com/own.Type"));
/// assert!(xds_relay::api::type_url("clusterr").is_err());
/// ```
pub fn type_url(text: &str) -> Result<String, NoType> {
    if text.contains('/') {
        return Ok(text.to_owned());
    }
    let mut types = by_short_names();
    if let Some(known) = types.remove(text).or_else(|| types.into_values().find(|known| is_type(known, text))) {
        return Ok(known);
    }
    if text.contains('.') { Ok(format!("{PREFIX}{text}")) } else { Err(NoType { text: text.to_owned() }) }
}

/// The short names that there are: of Envoy's types.
pub fn short_types() -> Vec<String> {
    by_short_names().into_keys().collect()
}

/// Whether a type URL is what somebody calls it: itself or its end, such as `Cluster` or `cluster.v3.Cluster`.
pub(crate) fn is_type(type_url: &str, end: &str) -> bool {
    type_url.strip_suffix(end).is_some_and(|front| front.is_empty() || front.ends_with(['.', '/']))
}

/// A field of a query that says one type.
pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    type_url(&String::deserialize(from)?).map_err(de::Error::custom)
}

/// The same of one that may be left out.
pub(super) fn one_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| type_url(&text)).transpose().map_err(de::Error::custom)
}

/// A field that says which types are meant: one of any by its end, too, so that what is no short name stays as it is.
pub(crate) fn any_of<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.map(|text| by_short_names().remove(&text).unwrap_or(text)))
}

/// Envoy's types.
fn by_short_names() -> BTreeMap<String, String> {
    TypeRules::envoy()
        .services()
        .map(|(type_url, service)| (short_name(service.resources()), type_url.to_string()))
        .collect()
}

/// One of what a service calls so: `VirtualHosts` is `virtual-host`. That they are configuration, as `ExtensionConfigs`, goes
/// without saying.
fn short_name(resources: &str) -> String {
    let one = resources.trim_end_matches('s').trim_end_matches("Config");
    let mut name = String::new();
    for letter in one.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_envoy_has_is_short_and_stays_what_it_is_called() {
        let short = short_types();
        let known = "cluster, dynamic-parameter-constraint, endpoint, extension, listener, locality-endpoint, route, \
                     runtime, scoped-route, secret, virtual-host";
        assert!(known.split(", ").all(|name| short.iter().any(|short| short == name)), "{short:?}");
        assert_eq!(short.len(), TypeRules::envoy().services().count(), "two have one name");
    }

    #[test]
    fn no_end_of_one_type_of_envoy_is_that_of_another() {
        let known: Vec<_> = by_short_names().into_values().collect();
        for one in &known {
            let end = super::super::short_type(one);
            assert_eq!(known.iter().filter(|other| is_type(other, end)).count(), 1, "{end}");
        }
    }
}
