//! Faults that are planted, to see that they are found.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Edges let everybody in at once.
    NoAdmission,
    /// All streams of a relay live equally long.
    NoJitter,
    /// A relay that starts anew takes what it does not know for gone.
    Forgets,
    /// Relays do not hear what their clients hold.
    Resends,
}

impl Fault {
    /// What arrives of a request over delta.
    pub(crate) fn request(self, request: Bytes) -> Bytes {
        if self != Self::Resends {
            return request;
        }
        let mut heard = DeltaDiscoveryRequest::decode(request).unwrap();
        heard.initial_resource_versions.clear();
        heard.encode_to_vec().into()
    }

    /// What a relay that knows nothing answers a request with at once.
    pub(crate) fn answer(self, request: &Bytes) -> Option<Bytes> {
        let request = DeltaDiscoveryRequest::decode(request.clone()).ok().filter(|_| self == Self::Forgets)?;
        let held = request.initial_resource_versions.iter();
        let removed_resources: Vec<_> = held.map(|entry| text_at(entry, &[1]).unwrap_or_default().to_owned()).collect();
        let (type_url, nonce) = (request.type_url, "forgotten".to_owned());
        let says = !removed_resources.is_empty();
        let response = DeltaDiscoveryResponse { type_url, nonce, removed_resources, ..Default::default() };
        says.then(|| response.encode_to_vec().into())
    }
}
