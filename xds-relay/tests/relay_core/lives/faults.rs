//! Relays that are wrong in one way each: what of their own words, or of what they hear, is another.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, Duration, Resource};

use crate::support::Hearer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Each hop counts the whole time of what it passes on.
    WholeAgain,
    /// Half of what remains is told.
    Half,
    /// What lives on is not passed on.
    LoseHeartbeats,
    /// What lives on is sent whole.
    HeartbeatsWithBodies,
    /// The first relay does not hear that something lives for a time.
    ForgetTtl,
    /// The first relay keeps what nobody refreshes for three more times.
    Patient,
    /// The first relay gives up what nobody refreshed after half of its time.
    Hasty,
    /// What had a TTL has it for ever, whatever its origin says since.
    KeepTtl,
    /// A relay that is back goes on as if no time had passed without it.
    StandStill,
}

impl Fault {
    pub(crate) const ALL: [Self; 9] = [
        Self::WholeAgain,
        Self::Half,
        Self::LoseHeartbeats,
        Self::HeartbeatsWithBodies,
        Self::ForgetTtl,
        Self::Patient,
        Self::Hasty,
        Self::KeepTtl,
        Self::StandStill,
    ];

    /// The rule that is broken.
    pub(crate) fn found_by(self) -> &'static str {
        match self {
            Self::WholeAgain => "rule 148",
            Self::HeartbeatsWithBodies => "rule 112",
            Self::ForgetTtl | Self::Patient | Self::StandStill => "rule 115",
            Self::Half | Self::LoseHeartbeats | Self::Hasty | Self::KeepTtl => "rule 111",
        }
    }

    /// Whether it is found in what is said: the others are to be found in what clients hold.
    pub(crate) fn is_overheard(self) -> bool {
        matches!(self, Self::WholeAgain | Self::HeartbeatsWithBodies)
    }

    /// What arrives of a response.
    pub(crate) fn plant(self) -> impl FnMut(Hearer, Bytes) -> Bytes + Send {
        let mut memory = Memory::default();
        move |hearer, response| {
            let mut changed = DeltaDiscoveryResponse::decode(response).unwrap();
            let first = hearer == Hearer::Relay(0);
            changed.resources.retain_mut(|resource| self.change(first, resource, &mut memory));
            changed.encode_to_vec().into()
        }
    }

    /// Whether something of it is said.
    fn change(self, first: bool, resource: &mut Resource, memory: &mut Memory) -> bool {
        let heartbeat = resource.resource.is_none();
        let key = (resource.name.clone(), resource.version.clone());
        if first {
            memory.whole.insert(key.clone(), resource.ttl);
        }
        let times = |ttl: Option<Duration>, times: f64| {
            ttl.map(|ttl| Duration { seconds: (ttl.seconds as f64 * times) as i64, nanos: ttl.nanos })
        };
        match self {
            Self::WholeAgain if !first && resource.ttl.is_some() => {
                resource.ttl = memory.whole.get(&key).copied().flatten();
            }
            Self::Half if !first => resource.ttl = times(resource.ttl, 0.5),
            Self::LoseHeartbeats => return first || !heartbeat,
            Self::HeartbeatsWithBodies if !first => {
                if heartbeat {
                    resource.resource = memory.bodies.get(&key).cloned();
                } else if let Some(body) = &resource.resource {
                    memory.bodies.insert(key, body.clone());
                }
            }
            Self::ForgetTtl if first => {
                resource.ttl = None;
                return !heartbeat;
            }
            Self::Patient if first => resource.ttl = times(resource.ttl, 4.0),
            Self::Hasty if first => resource.ttl = times(resource.ttl, 0.5),
            Self::KeepTtl if first => {
                let ttl = resource.ttl.or_else(|| memory.last.get(&resource.name).copied());
                ttl.into_iter().for_each(|ttl| _ = memory.last.insert(resource.name.clone(), ttl));
                resource.ttl = ttl;
            }
            _ => {}
        }
        true
    }
}

#[derive(Default)]
struct Memory {
    /// For how long the origin lets each version live.
    whole: BTreeMap<(String, String), Option<Duration>>,
    bodies: BTreeMap<(String, String), xds_transport::wire::Any>,
    /// The last TTL of each name.
    last: BTreeMap<String, Duration>,
}
