//! A client that asks for each name with several parameters on one stream: it has several variants of a name, and which of
//! them is gone only the words of the removal say.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::relay_core::Routes;
use xds_transport::Dialect;
use xds_transport::server::Stream;
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

use super::removals::{named, variant};
use super::varied::{Sends, Varied};
use crate::support::{CLUSTERS, DELTA, World, body_of};

pub(super) struct Several {
    stream: Stream,
    routes: Routes,
    names: &'static [&'static str],
    /// By name and constraints.
    holds: BTreeMap<(String, Bytes), String>,
    /// Of which name it has something, by which of its parameters; and had nothing to lose at some time since.
    has: BTreeSet<(&'static str, usize)>,
    was_without: BTreeSet<(&'static str, usize)>,
}

impl Several {
    const SENDS: [Sends; 3] = [Sends::ALL[0], Sends::ALL[1], Sends::ALL[3]];

    pub(super) fn new(world: &World, relay: usize, names: &'static [&'static str]) -> Self {
        let core = &world.relays[relay].core;
        let mut stream = Stream::new(DELTA, core.settings());
        let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
        let locator =
            |name: &str, sends: Sends| Locator::new(name, sends.selector(false)).encode(Dialect::Final).unwrap();
        let node = Node { id: "n".into(), cluster: "c".into(), ..Node::default() };
        let request = DeltaDiscoveryRequest {
            node: node.encode_to_vec().into(),
            type_url: CLUSTERS.into(),
            resource_locators_subscribe: names
                .iter()
                .flat_map(|name| Self::SENDS.map(|sends| locator(name, sends)))
                .collect(),
            ..Default::default()
        };
        stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes).unwrap();
        let (has, was_without) = (BTreeSet::new(), BTreeSet::new());
        Self { stream, routes, names, holds: BTreeMap::new(), has, was_without }
    }

    /// Takes and accepts what there is.
    pub(super) fn read(&mut self, now: Instant) {
        while let Some(transmit) = self.stream.poll_transmit(now, &mut self.routes).unwrap() {
            let response = DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap();
            for gone in &response.removed_resource_names {
                self.holds.remove(&variant(gone));
            }
            for gone in &response.removed_resources {
                self.holds.retain(|(name, _), _| name != gone);
            }
            for resource in &response.resources {
                let any = resource.resource.as_ref().unwrap().encode_to_vec().into();
                self.holds.insert(named(resource), body_of(&any));
            }
            let (type_url, response_nonce) = (response.type_url, response.nonce);
            let ack = DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() };
            self.stream.handle_message(now, ack.encode_to_vec().into(), &mut self.routes).unwrap();
        }
    }

    /// What came was for it, and what it has by each of its parameters was not taken away.
    pub(super) fn check(&mut self, varied: &Varied) -> Result<(), String> {
        for ((name, _), body) in &self.holds {
            if !Self::SENDS.iter().any(|sends| varied.is_for(name, body, *sends)) {
                return Err(format!("another's variant: {body} of {name} on a stream of several"));
            }
        }
        for name in self.names {
            for (at, sends) in Self::SENDS.into_iter().enumerate() {
                let (key, due) = ((*name, at), varied.bodies(name, sends));
                let bodies = || self.holds.iter().filter(|((of, _), _)| of == name).map(|(_, body)| body);
                if due.is_empty() {
                    self.was_without.insert(key);
                }
                if bodies().any(|body| due.contains(&body.as_str())) {
                    self.has.insert(key);
                    self.was_without.remove(&key);
                } else if !bodies().any(|body| varied.is_for(name, body, sends))
                    && self.has.remove(&key)
                    && !self.was_without.contains(&key)
                {
                    return Err(format!("taken away: {name} of {sends:?} on a stream of several"));
                }
            }
        }
        Ok(())
    }

    /// All that there is for it, and nothing else.
    pub(super) fn end(&self, varied: &Varied) -> Result<(), String> {
        for name in self.names {
            let holds: Vec<_> = self.holds.iter().filter(|((of, _), _)| of == name).map(|(_, body)| body).collect();
            let due = Self::SENDS.map(|sends| varied.bodies(name, sends));
            let has = |due: &Vec<&str>| due.is_empty() || holds.iter().any(|body| due.contains(&body.as_str()));
            let is_due = |body: &&String| due.iter().any(|due| due.contains(&body.as_str()));
            if !due.iter().all(has) || !holds.iter().all(is_due) {
                return Err(format!("the end: on a stream of several {holds:?} of {name}, not {due:?}"));
            }
        }
        Ok(())
    }
}
