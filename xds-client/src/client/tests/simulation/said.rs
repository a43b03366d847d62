//! What is said on the wire, read without the machines.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{
    Any, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource as Wrapper, ResourceError, Status,
    WireResourceName,
};

use super::super::lists::{self, LISTS};
use super::super::{CDS, Protocol, RDS};

pub(super) const REDIRECT: &str = "type.googleapis.com/xds.core.v3.ResourceLocator";

/// What a response says of one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Text(String),
    Redirect(String),
    List(Vec<String>),
    Gone,
    Error(i32),
}

/// What a response says.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) type_url: &'static str,
    pub(super) words: Vec<(String, Word)>,
    /// The names that it has, where what is not among them is not there.
    pub(super) all: Option<BTreeSet<String>>,
    pub(super) nonce: String,
}

/// What a request over SotW says.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) type_url: &'static str,
    pub(super) names: BTreeSet<String>,
    /// The response that it answers.
    pub(super) nonce: String,
}

impl Sent {
    pub(super) fn read(request: &[u8]) -> Self {
        let DiscoveryRequest { type_url, resource_names, response_nonce, .. } =
            DiscoveryRequest::decode(request).unwrap();
        Self { type_url: static_type(&type_url), names: resource_names.into_iter().collect(), nonce: response_nonce }
    }
}

impl Said {
    pub(super) fn read(protocol: Protocol, response: &[u8]) -> Self {
        match protocol {
            Protocol::Delta => Self::delta(DeltaDiscoveryResponse::decode(response).unwrap()),
            Protocol::Sotw => Self::sotw(DiscoveryResponse::decode(response).unwrap()),
        }
    }

    fn delta(response: DeltaDiscoveryResponse) -> Self {
        let came = response.resources.into_iter().map(of_wrapper);
        let gone = response.removed_resources.into_iter().map(|name| (name, Word::Gone));
        let errors = response.resource_errors.into_iter().map(of_error);
        let words = came.chain(gone).chain(errors).collect();
        Self { type_url: static_type(&response.type_url), words, all: None, nonce: response.nonce }
    }

    fn sotw(response: DiscoveryResponse) -> Self {
        let type_url = static_type(&response.type_url);
        let wrapped = |any: Any| Wrapper::decode(any.value).unwrap();
        let came = response.resources.into_iter().map(|any| of_wrapper(wrapped(any)));
        let words: Vec<_> = came.chain(response.resource_errors.into_iter().map(of_error)).collect();
        let names = words.iter().map(|(name, _)| name.clone()).collect();
        Self { type_url, words, all: (type_url == CDS).then_some(names), nonce: response.nonce }
    }
}

fn of_wrapper(wrapper: Wrapper) -> (String, Word) {
    let any = wrapper.resource.unwrap_or_default();
    let word = if any.type_url == REDIRECT {
        Word::Redirect(String::from_utf8_lossy(&any.value[2..]).into_owned())
    } else if any.type_url == LISTS {
        Word::List(lists::members(&any.value))
    } else {
        Word::Text(text(&any.value))
    };
    (wrapper.name, word)
}

fn of_error(error: ResourceError) -> (String, Word) {
    let name = error.resource_name.unwrap_or_default().name;
    (name, Word::Error(error.error_detail.unwrap_or_default().code))
}

#[derive(Clone, PartialEq, Message)]
struct Brought {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// A name and its version, as the first request of a stream has them.
pub(super) fn brought(entry: &Bytes) -> (String, String) {
    let Brought { name, version } = Brought::decode(entry.clone()).unwrap();
    (name, version)
}

/// What a program sees in a message.
pub(super) fn text(message: &[u8]) -> String {
    String::from_utf8_lossy(message).rsplit('=').next().unwrap_or_default().to_owned()
}

pub(super) fn error(name: &str, code: i32) -> ResourceError {
    ResourceError {
        resource_name: Some(WireResourceName { name: name.into(), ..Default::default() }),
        error_detail: Some(Status { code, message: "so it is".into() }),
    }
}

/// One of the types that there are.
pub(super) fn static_type(type_url: &str) -> &'static str {
    [CDS, RDS, LISTS].into_iter().find(|known| *known == type_url).unwrap()
}
