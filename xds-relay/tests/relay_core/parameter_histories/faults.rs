//! Relays that are wrong in one way each: what of their words, or of what they hear, is another.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{Any, DeltaDiscoveryResponse, Resource};

use crate::support::Hearer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Whoever asks is served what somebody else was served last.
    ServeAnothers,
    /// Of a variant that is gone the name is said, and no more.
    NameOnly,
    /// That a variant takes the place of another is not said.
    KeepReplaced,
    /// A variant that takes the place of another comes without it.
    RemoveFirst,
    /// The relay hears of the first variant that its origin selects, and of no other.
    HearOnce,
    /// The relay does not hear that what it selected is gone.
    MissRemovals,
}

impl Fault {
    pub(super) const ALL: [Self; 6] = [
        Self::ServeAnothers,
        Self::NameOnly,
        Self::KeepReplaced,
        Self::RemoveFirst,
        Self::HearOnce,
        Self::MissRemovals,
    ];

    pub(super) fn found_by(self) -> &'static str {
        match self {
            Self::ServeAnothers => "another's variant",
            Self::NameOnly => "not said which variant",
            Self::KeepReplaced => "that is not removed",
            Self::RemoveFirst => "taken away",
            Self::HearOnce | Self::MissRemovals => "the end",
        }
    }

    /// What arrives of a response over delta.
    pub(super) fn plant(self) -> impl FnMut(Hearer, Bytes) -> Bytes + Send {
        let (mut bodies, mut heard) = (BTreeMap::new(), BTreeSet::new());
        move |hearer, response| {
            let mut changed = DeltaDiscoveryResponse::decode(response).unwrap();
            match hearer {
                Hearer::Client(client) => self.says(client, &mut changed, &mut bodies),
                Hearer::Relay(0) => self.hears(&mut changed, &mut heard),
                Hearer::Relay(_) => {}
            }
            changed.encode_to_vec().into()
        }
    }

    fn says(
        self,
        client: usize,
        response: &mut DeltaDiscoveryResponse,
        bodies: &mut BTreeMap<String, (usize, Option<Any>)>,
    ) {
        let removed = &mut response.removed_resource_names;
        let name_of = |removed: &Bytes| text_at(removed, &[1]).unwrap_or_default().to_owned();
        match self {
            Self::ServeAnothers => {
                for resource in &mut response.resources {
                    let before = bodies.insert(name(resource), (client, resource.resource.clone()));
                    resource.resource = match before {
                        Some((other, body)) if other != client => body,
                        _ => continue,
                    };
                }
            }
            Self::NameOnly => response.removed_resources.extend(removed.drain(..).map(|one| name_of(&one))),
            Self::KeepReplaced => {
                removed.retain(|one| response.resources.iter().all(|resource| name(resource) != name_of(one)));
            }
            Self::RemoveFirst => {
                let gone: Vec<_> = removed.iter().map(name_of).collect();
                response.resources.retain(|resource| !gone.contains(&name(resource)));
            }
            Self::HearOnce | Self::MissRemovals => {}
        }
    }

    fn hears(self, response: &mut DeltaDiscoveryResponse, heard: &mut BTreeSet<Bytes>) {
        match self {
            Self::HearOnce => {
                let mut is_first = |resource: &Resource| {
                    heard
                        .insert(resource.resource_name.clone().into_iter().chain(name(resource).into_bytes()).collect())
                };
                response.resources.retain(|resource| is_first(resource));
            }
            Self::MissRemovals => {
                response.removed_resource_names.clear();
                response.removed_resources.clear();
            }
            _ => {}
        }
    }
}

fn name(resource: &Resource) -> String {
    let name = text_at(&resource.resource_name, &[1]).filter(|name| !name.is_empty());
    name.unwrap_or(&resource.name).to_owned()
}
