//! What is served: resources whose names, versions and bodies follow from an index and a round.

use bytes::Bytes;
use clap::ValueEnum;
use xds_transport::wire::walk::{FieldValue, Fields};
use xds_transport::wire::{Any, Resource};

use crate::Error;

/// The one type served. What it is does not matter, because nobody on the way opens a payload; it is a
/// type of Envoy's so that the rules of a type that is really pushed often apply.
pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The path of ADS where every response is the state of the world.
pub const SOTW_PATH: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// The encoded length of a resource's `Any` but for its type URL and name, in bytes, where it has one KiB.
const FILLER: usize = 860;

/// The field of a body that has the round.
const ROUND: u32 = 999;

/// How resources are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Naming {
    /// They are one collection of one authority.
    #[default]
    Pool,
    /// They are a collection each of ten authorities, in turn.
    Authorities,
    /// Their names are opaque, and no collection holds them.
    OldStyle,
    /// Their names are opaque, and a wildcard holds them.
    Wildcard,
}

impl Naming {
    /// The authorities that there are.
    pub fn authorities(self) -> Vec<String> {
        match self {
            Self::Pool => vec!["fan-out.example".to_owned()],
            Self::Authorities => (0..10).map(|number| format!("fan-out-{number}.example")).collect(),
            Self::OldStyle | Self::Wildcard => Vec::new(),
        }
    }

    /// The name of a resource.
    pub fn name(self, index: usize) -> String {
        match self {
            Self::OldStyle | Self::Wildcard => format!("pool/{index}"),
            _ => self.within(self.collection_of(index), &index.to_string()),
        }
    }

    /// The names of the collections that hold all of them.
    pub fn collections(self) -> Vec<String> {
        match self {
            Self::Wildcard => vec!["*".to_owned()],
            _ => (0..self.authorities().len()).map(|collection| self.within(collection, "*")).collect(),
        }
    }

    /// The collection of a resource, by its place among all.
    pub fn collection_of(self, index: usize) -> usize {
        index.checked_rem(self.authorities().len()).unwrap_or(0)
    }

    /// What to subscribe to, for so many resources: by the collections where there are any, unless each is to be named.
    pub fn interest(self, resources: usize, exact: bool) -> Vec<String> {
        match self.collections() {
            collections if !exact && !collections.is_empty() => collections,
            _ => (0..resources).map(|index| self.name(index)).collect(),
        }
    }

    /// A resource as it is after `round` changed it; its version is the round.
    pub fn resource(self, index: usize, round: u64) -> Resource {
        self.resource_of(1, index, round)
    }

    /// The same of so many KiB.
    pub fn resource_of(self, kibibytes: usize, index: usize, round: u64) -> Resource {
        let name = self.name(index);
        let filler = FILLER + kibibytes.saturating_sub(1) * 1024;
        let any = Any { type_url: TYPE_URL.into(), value: body(&name, filler, index, round) };
        Resource { name, version: round.to_string(), resource: Some(any), ..Resource::default() }
    }

    fn within(self, collection: usize, id: &str) -> String {
        let authority = &self.authorities()[collection];
        format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/pool/{id}")
    }
}

/// The round of a resource's body.
///
/// # Errors
/// It has none, or is no message.
pub fn round_of(body: &[u8]) -> Result<u64, Error> {
    for field in Fields::of(body) {
        let field = field?;
        if let (ROUND, FieldValue::Varint(round)) = (field.number, field.value) {
            return Ok(round);
        }
    }
    Err("a body without a round".into())
}

/// A message with a name in field 1, and in fields that the type does not have the round and noise.
fn body(name: &str, filler: usize, index: usize, round: u64) -> Bytes {
    let mut body = Vec::with_capacity(name.len() + filler + 16);
    prost::encoding::string::encode(1, &name.to_owned(), &mut body);
    prost::encoding::uint64::encode(ROUND, &round, &mut body);
    let mut noise = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (round + 1);
    let filler: Vec<u8> = std::iter::repeat_with(|| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    })
    .take(filler)
    .collect();
    prost::encoding::bytes::encode(1000, &filler, &mut body);
    body.into()
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_resource_is_about_a_kibibyte_and_every_round_changes_it() {
        let resource = |index, round| Naming::Pool.resource(index, round);
        let before = resource(7, 1);
        assert!((1000..1200).contains(&before.encoded_len()), "{}", before.encoded_len());
        assert!((10_000..10_500).contains(&Naming::Pool.resource_of(10, 7, 1).encoded_len()));
        assert_ne!(before.resource, resource(7, 2).resource);
        assert_ne!(before.resource, resource(8, 1).resource);
    }
}
