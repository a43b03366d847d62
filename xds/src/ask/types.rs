//! The types of resources, by short names.

use std::collections::BTreeMap;

use xds_transport::TypeRules;

const PREFIX: &str = "type.googleapis.com/";

/// The type URL that somebody means.
///
/// # Errors
/// It is no short name.
pub(crate) fn type_url(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return Ok(text.to_owned());
    }
    if text.contains('.') {
        return Ok(format!("{PREFIX}{text}"));
    }
    let mut types = by_short_names();
    types.remove(text).ok_or_else(|| format!("no type {text:?}: give a type URL or one of {}", listed(&types)))
}

/// What may be given.
pub(crate) fn help() -> String {
    format!("A type URL, or: {}", listed(&by_short_names()))
}

fn listed(types: &BTreeMap<String, String>) -> String {
    types.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
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
    fn types_are_given_short_or_in_full() {
        let full = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        for text in ["cluster", "envoy.config.cluster.v3.Cluster", full] {
            assert_eq!(type_url(text).as_deref(), Ok(full));
        }
        assert!(type_url("clusterr").is_err_and(|error| error.contains("\"clusterr\"")));
    }

    #[test]
    fn every_type_that_envoy_has_is_short_and_stays_what_it_is_called() {
        let short: Vec<String> = by_short_names().into_keys().collect();
        let known = "cluster, dynamic-parameter-constraint, endpoint, extension, listener, locality-endpoint, route, \
                     runtime, scoped-route, secret, virtual-host";
        assert!(known.split(", ").all(|name| short.iter().any(|short| short == name)), "{short:?}");
        assert_eq!(short.len(), TypeRules::envoy().services().count(), "two have one name");
    }
}
