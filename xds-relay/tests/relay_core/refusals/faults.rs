//! Mistakes that a relay before another could make, planted on the way between them.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse, ResourceError};

use crate::support::Protocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Beside what is sent it is not said why the rest is not.
    SayNothingBeside,
    /// Nothing is refused.
    LoseRefusals,
    /// What was refused once is for good.
    RefuseForGood,
}

/// The errors of a response, and how many resources it has.
type Change = Box<dyn FnMut(usize, &mut Vec<ResourceError>)>;

impl Fault {
    pub(crate) const ALL: [Self; 3] = [Self::SayNothingBeside, Self::LoseRefusals, Self::RefuseForGood];

    /// How what is wrong with it begins.
    pub(crate) fn found_by(self) -> &'static str {
        "refusal: 1"
    }

    pub(crate) fn plant(self) -> impl FnMut(Protocol, Bytes) -> Bytes {
        let mut change = self.change();
        move |protocol, bytes| match protocol {
            Protocol::Delta => {
                let mut response = DeltaDiscoveryResponse::decode(bytes).unwrap();
                change(response.resources.len(), &mut response.resource_errors);
                response.encode_to_vec().into()
            }
            Protocol::Sotw => {
                let mut response = DiscoveryResponse::decode(bytes).unwrap();
                change(response.resources.len(), &mut response.resource_errors);
                response.encode_to_vec().into()
            }
        }
    }

    fn change(self) -> Change {
        let mut before = BTreeMap::new();
        Box::new(move |resources, errors| match self {
            Self::SayNothingBeside if resources > 0 => errors.clear(),
            Self::SayNothingBeside => {}
            Self::LoseRefusals => errors.clear(),
            Self::RefuseForGood => {
                let name = |error: &ResourceError| error.resource_name.as_ref().map(|name| name.name.clone());
                before.extend(errors.iter().map(|error| (name(error), error.clone())));
                *errors = before.values().cloned().collect();
            }
        })
    }
}
