//! One line for each response.

use prost::Message;
use xds_transport::wire::{Any, DeltaDiscoveryResponse, DiscoveryResponse, RESOURCE_TYPE_URL, Resource, ResourceError};

use super::{CLUSTERS, ENDPOINTS, LISTENERS, Payload, ROUTES};

fn letter(type_url: &str) -> &str {
    match type_url {
        LISTENERS => "L",
        ROUTES => "R",
        CLUSTERS => "C",
        ENDPOINTS => "E",
        other => other,
    }
}

pub(super) fn describe_delta(response: &DeltaDiscoveryResponse) -> String {
    let mut words: Vec<_> = response.resources.iter().map(|one| format!("{}@{}", one.name, one.version)).collect();
    words.sort();
    let mut removed: Vec<_> = response.removed_resources.iter().map(|name| format!("-{name}")).collect();
    removed.sort();
    words.insert(0, letter(&response.type_url).into());
    words.extend(removed);
    words.extend(response.resource_errors.iter().map(describe_error));
    words.join(" ")
}

pub(super) fn describe_sotw(response: &DiscoveryResponse) -> String {
    let mut words: Vec<_> = response.resources.iter().map(describe_any).collect();
    words.sort();
    words.insert(0, letter(&response.type_url).into());
    words.extend(response.resource_errors.iter().map(describe_error));
    words.join(" ")
}

fn describe_error(error: &ResourceError) -> String {
    let status = error.error_detail.as_ref().unwrap();
    let name = &error.resource_name.as_ref().unwrap().name;
    // The words that these tests have a source give need not be repeated in each.
    match status.message.as_str() {
        "why" => format!("!{name}:{}", status.code),
        other => format!("!{name}:{} ({other})", status.code),
    }
}

fn describe_any(any: &Any) -> String {
    let inside = match any.type_url.as_str() {
        RESOURCE_TYPE_URL => Resource::decode(&*any.value).unwrap().resource.unwrap(),
        _ => any.clone(),
    };
    let payload = Payload::decode(&*inside.value).unwrap();
    format!("{}@{}", payload.name, payload.body)
}
