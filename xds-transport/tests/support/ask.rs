//! Requests, as bytes.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{DeltaDiscoveryRequest, Status};

/// What a client asks in one delta request.
#[derive(Clone, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) of: &'a str,
    pub(crate) subscribe: &'a [&'a str],
    pub(crate) unsubscribe: &'a [&'a str],
    pub(crate) holds: &'a [(&'a str, &'a str)],
    pub(crate) nonce: &'a str,
    pub(crate) error: Option<&'a str>,
    pub(crate) node: &'a [u8],
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

impl Ask<'_> {
    pub(crate) fn encode(&self) -> Bytes {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let entry = |(name, version): &(&str, &str)| {
            Entry { name: (*name).into(), version: (*version).into() }.encode_to_vec().into()
        };
        let request = DeltaDiscoveryRequest {
            node: Bytes::copy_from_slice(self.node),
            type_url: self.of.into(),
            resource_names_subscribe: owned(self.subscribe),
            resource_names_unsubscribe: owned(self.unsubscribe),
            initial_resource_versions: self.holds.iter().map(entry).collect(),
            response_nonce: self.nonce.into(),
            error_detail: self.error.map(status),
            ..Default::default()
        };
        request.encode_to_vec().into()
    }
}

pub(super) fn status(message: &str) -> Status {
    Status { code: 13, message: message.into() }
}
