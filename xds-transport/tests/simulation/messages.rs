//! Requests and responses of both protocols in one form, decoded apart from the machines.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{
    self, Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, RESOURCE_TYPE_URL,
    Resource, ResourceError, Status, WireResourceName,
};

use crate::world::read;

#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) type_url: String,
    pub(crate) node: Bytes,
    pub(crate) nonce: String,
    pub(crate) error: Option<Status>,
    /// SotW: `version_info`.
    pub(crate) version: String,
    /// SotW: all names; delta: those subscribed to.
    pub(crate) names: Vec<String>,
    pub(crate) unsubscribe: Vec<String>,
    pub(crate) initial: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    pub(crate) type_url: String,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<Sent>,
    pub(crate) removed: Vec<String>,
    pub(crate) errors: Vec<Failed>,
}

/// Why something is not sent (TP3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) name: String,
    pub(crate) code: i32,
    pub(crate) message: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) name: String,
    /// Of the resource itself; empty where it is bare.
    pub(crate) version: String,
    pub(crate) any: Any,
    pub(crate) aliases: Vec<String>,
    pub(crate) ttl: Option<Duration>,
    /// It says that the resource lives on, and holds none (rule 112).
    pub(crate) heartbeat: bool,
    /// It has no name beside the one in it.
    bare: bool,
}

impl Request {
    pub(crate) fn decode(protocol: Protocol, message: &Bytes) -> Self {
        match protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(message.clone()).unwrap();
                let text = |entry: &Bytes, field| text_at(entry, &[field]).unwrap_or_default().to_owned();
                let initial =
                    request.initial_resource_versions.iter().map(|entry| (text(entry, 1), text(entry, 2))).collect();
                let located = |locators: &[Bytes]| locators.iter().map(|one| text(one, 1)).collect::<Vec<_>>();
                let subscribed = located(&request.resource_locators_subscribe);
                let left = located(&request.resource_locators_unsubscribe);
                Self {
                    type_url: request.type_url,
                    node: request.node,
                    nonce: request.response_nonce,
                    error: request.error_detail,
                    version: String::new(),
                    names: [request.resource_names_subscribe, subscribed].concat(),
                    unsubscribe: [request.resource_names_unsubscribe, left].concat(),
                    initial,
                }
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(message.clone()).unwrap();
                let name = |locator: &Bytes| text_at(locator, &[1]).unwrap_or_default().to_owned();
                let located = request.resource_locators.iter().map(name).collect();
                Self {
                    type_url: request.type_url,
                    node: request.node,
                    nonce: request.response_nonce,
                    error: request.error_detail,
                    version: request.version_info,
                    names: [request.resource_names, located].concat(),
                    ..Self::default()
                }
            }
        }
    }

    pub(crate) fn encode(&self, protocol: Protocol) -> Bytes {
        let Self { type_url, node, nonce, error, version, names, unsubscribe, initial } = self.clone();
        match protocol {
            Protocol::Delta => DeltaDiscoveryRequest {
                node,
                type_url,
                resource_names_subscribe: names,
                resource_names_unsubscribe: unsubscribe,
                initial_resource_versions: initial.iter().map(entry).collect(),
                response_nonce: nonce,
                error_detail: error,
                ..Default::default()
            }
            .encode_to_vec(),
            Protocol::Sotw => DiscoveryRequest {
                version_info: version,
                node,
                resource_names: names,
                type_url,
                response_nonce: nonce,
                error_detail: error,
                ..Default::default()
            }
            .encode_to_vec(),
        }
        .into()
    }
}

fn entry((name, version): &(String, String)) -> Bytes {
    Entry { name: name.clone(), version: version.clone() }.encode_to_vec().into()
}

/// An entry of `initial_resource_versions`.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// The names of which variants are gone: of several that a client may have had, each is told, and the name is gone once.
fn gone_variants(encoded: &[Bytes]) -> Vec<String> {
    let (mut names, mut told) = (Vec::new(), BTreeSet::new());
    for variant in encoded {
        let name = text_at(variant, &[1]).unwrap_or_default();
        let twice = !told.insert(variant);
        if twice || !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

impl Response {
    pub(crate) fn decode(protocol: Protocol, message: &Bytes) -> Self {
        match protocol {
            Protocol::Delta => {
                let response = DeltaDiscoveryResponse::decode(message.clone()).unwrap();
                let resources: Vec<_> = response.resources.into_iter().map(Sent::of).collect();
                // That a variant is gone beside another that comes is one change.
                let mut gone = gone_variants(&response.removed_resource_names);
                gone.retain(|name| !resources.iter().any(|sent| sent.name == *name));
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.system_version_info,
                    resources,
                    removed: [response.removed_resources, gone].concat(),
                    errors: response.resource_errors.into_iter().map(Failed::of).collect(),
                }
            }
            Protocol::Sotw => {
                let response = DiscoveryResponse::decode(message.clone()).unwrap();
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.version_info,
                    resources: response.resources.into_iter().map(Sent::of_any).collect(),
                    removed: Vec::new(),
                    errors: response.resource_errors.into_iter().map(Failed::of).collect(),
                }
            }
        }
    }

    pub(crate) fn encode(&self, protocol: Protocol) -> Bytes {
        let Self { type_url, nonce, version, resources, removed, errors } = self.clone();
        let resource_errors = errors.into_iter().map(Failed::into_error).collect();
        match protocol {
            Protocol::Delta => DeltaDiscoveryResponse {
                system_version_info: version,
                resources: resources.into_iter().map(Sent::into_resource).collect(),
                type_url,
                nonce,
                removed_resources: removed,
                resource_errors,
                ..Default::default()
            }
            .encode_to_vec(),
            Protocol::Sotw => DiscoveryResponse {
                version_info: version,
                resources: resources.into_iter().map(Sent::into_any).collect(),
                type_url,
                nonce,
                resource_errors,
                ..Default::default()
            }
            .encode_to_vec(),
        }
        .into()
    }
}

impl Failed {
    fn of(error: ResourceError) -> Self {
        let status = error.error_detail.unwrap_or_default();
        Self { name: error.resource_name.unwrap_or_default().name, code: status.code, message: status.message }
    }

    fn into_error(self) -> ResourceError {
        let Self { name, code, message } = self;
        ResourceError {
            resource_name: Some(WireResourceName { name, ..Default::default() }),
            error_detail: Some(Status { code, message }),
        }
    }
}

impl Sent {
    fn of(resource: Resource) -> Self {
        let Resource { mut name, version, aliases, ttl, resource: any, resource_name, .. } = resource;
        if name.is_empty() {
            text_at(&resource_name, &[1]).unwrap_or_default().clone_into(&mut name);
        }
        let ttl = ttl.map(|ttl| Duration::new(ttl.seconds as u64, ttl.nanos as u32));
        Self { name, version, aliases, ttl, heartbeat: any.is_none(), any: any.unwrap_or_default(), bare: false }
    }

    fn of_any(any: Any) -> Self {
        if any.type_url == RESOURCE_TYPE_URL {
            return Self::of(Resource::decode(any.value).unwrap());
        }
        let name = read(&any.value).0;
        Self { name, version: String::new(), aliases: Vec::new(), ttl: None, heartbeat: false, any, bare: true }
    }

    fn into_resource(self) -> Resource {
        let Self { name, version, any, aliases, ttl, heartbeat, .. } = self;
        let ttl = ttl.map(|ttl| wire::Duration { seconds: ttl.as_secs() as i64, nanos: ttl.subsec_nanos() as i32 });
        Resource { name, version, aliases, ttl, resource: (!heartbeat).then_some(any), ..Default::default() }
    }

    fn into_any(self) -> Any {
        if self.bare {
            return self.any;
        }
        let value = self.into_resource().encode_to_vec().into();
        Any { type_url: RESOURCE_TYPE_URL.into(), value }
    }

    /// The name that stands beside the resource, and not in it.
    #[allow(dead_code, reason = "of use to the simulation of a relay")]
    pub(crate) fn own_name(&self) -> Option<&String> {
        Some(&self.name).filter(|_| !self.bare)
    }

    /// The number that is its body.
    pub(crate) fn body(&self) -> u8 {
        read(&self.any.value).1
    }
}

/// One line of a transcript.
pub(crate) fn describe_request(request: &Request) -> String {
    let Request { type_url, node, nonce, error, version, names, unsubscribe, initial } = request;
    let short = type_url.rsplit('.').next().unwrap_or_default();
    let answer = if error.is_some() { "NACK" } else { "ack" };
    format!(
        "{short} node:{} {answer}:{nonce:?} version:{version:?} names:{names:?} unsubscribe:{unsubscribe:?} initial:{initial:?}",
        !node.is_empty()
    )
}

/// One line of a transcript.
pub(crate) fn describe_response(response: &Response) -> String {
    let Response { type_url, nonce, version, resources, removed, errors } = response;
    let short = type_url.rsplit('.').next().unwrap_or_default();
    let resources = resources.iter().map(|sent| {
        let ttl = sent.ttl.map(|ttl| format!(" for {ttl:?}")).unwrap_or_default();
        let body = if sent.heartbeat { "lives".to_owned() } else { sent.body().to_string() };
        format!("{}={body}{ttl}", sent.name)
    });
    let resources: Vec<_> = resources.collect();
    let errors: Vec<_> = errors.iter().map(|failed| format!("{}: {}", failed.name, failed.code)).collect();
    format!("{short} nonce:{nonce:?} version:{version:?} {resources:?} removed:{removed:?} errors:{errors:?}")
}
