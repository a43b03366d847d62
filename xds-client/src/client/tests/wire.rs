//! What a client sends, message by message, and what a server sends that a test scripts.

use prost::Message;
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node,
};
use xds_transport::wire::{RESOURCE_TYPE_URL, Resource as Wrapper};

use super::*;

/// A request, of either protocol.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) type_url: String,
    /// The names: over delta those that are new.
    pub(super) names: Vec<String>,
    /// The version that is in use, over SotW.
    pub(super) version: String,
    /// The versions of what is held, over delta, by names.
    pub(super) versions: Vec<(String, String)>,
    pub(super) nonce: String,
    /// The code and the words of a NACK.
    pub(super) error: Option<(i32, String)>,
    /// The node that it names, if any.
    pub(super) node: Option<Node>,
}

/// What a server got since this was looked at last.
pub(super) fn requests(server: &crate::test::Server, protocol: Protocol) -> Vec<Request> {
    let node = |node: Bytes| (!node.is_empty()).then(|| Node::decode(node).unwrap());
    let read = |bytes: Bytes| match protocol {
        Protocol::Delta => {
            let request = DeltaDiscoveryRequest::decode(bytes).unwrap();
            Request {
                type_url: request.type_url,
                names: request.resource_names_subscribe,
                version: String::new(),
                versions: request.initial_resource_versions.into_iter().map(entry).collect(),
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| (error.code, error.message)),
                node: node(request.node),
            }
        }
        Protocol::Sotw => {
            let request = DiscoveryRequest::decode(bytes).unwrap();
            Request {
                type_url: request.type_url,
                names: request.resource_names,
                version: request.version_info,
                versions: Vec::new(),
                nonce: request.response_nonce,
                error: request.error_detail.map(|error| (error.code, error.message)),
                node: node(request.node),
            }
        }
    };
    server.take_requests().into_iter().map(read).collect()
}

/// An entry of a map from text to text, which an `Any` has the fields of.
fn entry(entry: Bytes) -> (String, String) {
    let Any { type_url: key, value } = Any::decode(entry).unwrap();
    (key, String::from_utf8_lossy(&value).into_owned())
}

/// The one request there is.
pub(super) fn request(server: &crate::test::Server, protocol: Protocol) -> Request {
    let mut requests = requests(server, protocol);
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

/// The answer to a response of this nonce: one request, which names it.
pub(super) fn answer(server: &crate::test::Server, protocol: Protocol, nonce: &str) -> Request {
    let answer = request(server, protocol);
    assert_eq!(answer.nonce, nonce, "{answer:?}");
    answer
}

/// A resource as its type has it.
pub(super) fn body(type_url: &str, name: &str, version: &str) -> Any {
    Any { type_url: type_url.into(), value: message(name, version).into() }
}

pub(super) fn wrapper(name: &str, version: &str, resource: Any) -> Wrapper {
    Wrapper { name: name.into(), version: version.into(), resource: Some(resource), ..Wrapper::default() }
}

/// A response with what a delta server has of it: over SotW each resource is wrapped.
pub(super) fn response(
    protocol: Protocol,
    type_url: &str,
    (version, nonce): (&str, &str),
    resources: &[Wrapper],
) -> Vec<u8> {
    match protocol {
        Protocol::Delta => DeltaDiscoveryResponse {
            type_url: type_url.into(),
            nonce: nonce.into(),
            resources: resources.to_vec(),
            ..DeltaDiscoveryResponse::default()
        }
        .encode_to_vec(),
        Protocol::Sotw => {
            let wrap = |of: &Wrapper| Any { type_url: RESOURCE_TYPE_URL.into(), value: of.encode_to_vec().into() };
            bare(type_url, (version, nonce), resources.iter().map(wrap).collect())
        }
    }
}

/// A response of SotW whose resources are as their types have them.
pub(super) fn bare(type_url: &str, (version, nonce): (&str, &str), resources: Vec<Any>) -> Vec<u8> {
    let response = DiscoveryResponse {
        type_url: type_url.into(),
        version_info: version.into(),
        nonce: nonce.into(),
        resources,
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

/// A resource of one of the four [types](TYPES), read as a [`Cluster`] is.
#[derive(Debug)]
pub(super) struct Read<const TYPE: usize>(String);

impl<const TYPE: usize> Read<TYPE> {
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl<const TYPE: usize> Resource for Read<TYPE> {
    fn type_url() -> String {
        TYPES[TYPE].into()
    }

    fn decode(message: Bytes) -> Result<Self, Reason> {
        // Each of the four has a name in field 1, as this has a text.
        Any::decode(message.clone()).map_err(|error| Reason::new(error.to_string()))?;
        Cluster::decode(message).map(|Cluster(content)| Self(content))
    }
}

/// What a watch hears, and what it makes of resources, whatever their versions: a bare resource of SotW has none of its own.
pub(super) fn told<const TYPE: usize>(watch: &mut Watch<Read<TYPE>>) -> Vec<String> {
    let of = |event: Event<std::sync::Arc<Read<TYPE>>>| match event {
        Event::Put { name, resource, .. } => format!("put {name} {}", resource.0),
        event => words(&event),
    };
    std::iter::from_fn(|| watch.try_next()).map(of).collect()
}
