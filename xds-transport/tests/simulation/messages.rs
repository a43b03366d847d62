//! Requests and responses of both variants in one form, decoded apart from the machines.

use bytes::Bytes;
use prost::Message;
use xds_transport::server::Variant;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, RESOURCE_TYPE_URL,
    Resource, Status,
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
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) name: String,
    /// Of the resource itself; empty where it is bare.
    pub(crate) version: String,
    pub(crate) any: Any,
    wrapped: bool,
}

impl Request {
    pub(crate) fn decode(protocol: Variant, message: &Bytes) -> Self {
        match protocol {
            Variant::Delta => {
                let request = DeltaDiscoveryRequest::decode(message.clone()).unwrap();
                let text = |entry: &Bytes, field| text_at(entry, &[field]).unwrap_or_default().to_owned();
                let initial =
                    request.initial_resource_versions.iter().map(|entry| (text(entry, 1), text(entry, 2))).collect();
                Self {
                    type_url: request.type_url,
                    node: request.node,
                    nonce: request.response_nonce,
                    error: request.error_detail,
                    version: String::new(),
                    names: request.resource_names_subscribe,
                    unsubscribe: request.resource_names_unsubscribe,
                    initial,
                }
            }
            Variant::Sotw => {
                let request = DiscoveryRequest::decode(message.clone()).unwrap();
                Self {
                    type_url: request.type_url,
                    node: request.node,
                    nonce: request.response_nonce,
                    error: request.error_detail,
                    version: request.version_info,
                    names: request.resource_names,
                    ..Self::default()
                }
            }
        }
    }

    pub(crate) fn encode(&self, protocol: Variant) -> Bytes {
        let Self { type_url, node, nonce, error, version, names, unsubscribe, initial } = self.clone();
        match protocol {
            Variant::Delta => DeltaDiscoveryRequest {
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
            Variant::Sotw => DiscoveryRequest {
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

impl Response {
    pub(crate) fn decode(protocol: Variant, message: &Bytes) -> Self {
        match protocol {
            Variant::Delta => {
                let response = DeltaDiscoveryResponse::decode(message.clone()).unwrap();
                let resources = response.resources.into_iter().map(|resource| Sent::of(resource, false)).collect();
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.system_version_info,
                    resources,
                    removed: response.removed_resources,
                }
            }
            Variant::Sotw => {
                let response = DiscoveryResponse::decode(message.clone()).unwrap();
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.version_info,
                    resources: response.resources.into_iter().map(Sent::of_any).collect(),
                    removed: Vec::new(),
                }
            }
        }
    }

    pub(crate) fn encode(&self, protocol: Variant) -> Bytes {
        let Self { type_url, nonce, version, resources, removed } = self.clone();
        match protocol {
            Variant::Delta => DeltaDiscoveryResponse {
                system_version_info: version,
                resources: resources.into_iter().map(Sent::into_resource).collect(),
                type_url,
                nonce,
                removed_resources: removed,
                ..Default::default()
            }
            .encode_to_vec(),
            Variant::Sotw => DiscoveryResponse {
                version_info: version,
                resources: resources.into_iter().map(Sent::into_any).collect(),
                type_url,
                nonce,
                ..Default::default()
            }
            .encode_to_vec(),
        }
        .into()
    }
}

impl Sent {
    fn of(resource: Resource, wrapped: bool) -> Self {
        Self { name: resource.name, version: resource.version, any: resource.resource.unwrap_or_default(), wrapped }
    }

    fn of_any(any: Any) -> Self {
        if any.type_url == RESOURCE_TYPE_URL {
            return Self::of(Resource::decode(any.value).unwrap(), true);
        }
        Self { name: read(&any.value).0, version: String::new(), any, wrapped: false }
    }

    fn into_resource(self) -> Resource {
        Resource { name: self.name, version: self.version, resource: Some(self.any), ..Default::default() }
    }

    fn into_any(self) -> Any {
        if !self.wrapped {
            return self.any;
        }
        let value = self.into_resource().encode_to_vec().into();
        Any { type_url: RESOURCE_TYPE_URL.into(), value }
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
    let Response { type_url, nonce, version, resources, removed } = response;
    let short = type_url.rsplit('.').next().unwrap_or_default();
    let resources: Vec<_> = resources.iter().map(|sent| format!("{}={}", sent.name, sent.body())).collect();
    format!("{short} nonce:{nonce:?} version:{version:?} {resources:?} removed:{removed:?}")
}
