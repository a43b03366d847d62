//! The rules of Envoy's own types.

use super::super::compiled::{TypeRules, Values};
use crate::file_origin::{Descriptors, load_embedded};

/// Why a rule cannot be used, if it or one within it cannot.
fn unusable(values: &Values) -> Option<&str> {
    match values {
        Values::Unusable(reason) => Some(reason),
        Values::List { of_items, .. } => of_items.as_deref().and_then(unusable),
        Values::Map { of_keys, of_values, .. } => {
            of_keys.as_deref().and_then(unusable).or_else(|| of_values.as_deref().and_then(unusable))
        }
        _ => None,
    }
}

#[test]
fn no_rule_of_the_built_in_types_is_one_that_cannot_be_used() {
    let types = Descriptors::built_in().unwrap().with_validation();
    let options = &types.validator.as_ref().unwrap().options;
    let (mut number, mut told) = (0, Vec::new());
    for message in types.pool.all_messages() {
        let rules = TypeRules::of(&message, options);
        number += rules.fields.len();
        for (field, values) in rules.fields.iter().filter_map(|of| Some((&of.field, of.values.as_ref()?))) {
            told.extend(unusable(values).map(|reason| format!("{}: {reason}", field.full_name())));
        }
    }
    assert_eq!(told, [""; 0]);
    assert!(number > 1000, "{number}");
}

#[test]
fn a_filter_that_is_discovered_needs_a_source_and_may_have_any() {
    let types = Descriptors::built_in().unwrap().with_validation();
    let refused = |discovery: &str| {
        let text = format!(
            "resources:\n- \"@type\": x/envoy.config.listener.v3.Listener\n  name: l\n  address: {{ pipe: {{ path: /s }} }}\n  \
             filter_chains: [{{ filters: [{{ name: f, config_discovery: {{ {discovery} }} }}] }}]\n"
        );
        load_embedded(&[("a.yaml", &text)], &types).err().map(|error| error.to_string())
    };
    let types_of = "type_urls: [type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy]";
    assert_eq!(refused(&format!("config_source: {{ ads: {{}} }}, {types_of}")), None);
    let told = refused(types_of).unwrap();
    assert!(told.contains("config_discovery.config_source: expected a value, found none"), "{told}");
}
