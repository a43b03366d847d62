//! Who may hold what, and who must: told from what the origin says to the first relay, and when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryResponse, Resource};

use super::history::RELAYS;
use crate::support::{DELTA, Hearer};

/// A version, and when it is over if it ever is.
type Life = (String, Option<Instant>);

#[derive(Default)]
pub(crate) struct Oracle {
    /// What the origin said last of each name.
    said: BTreeMap<String, Life>,
    /// When each version is over, by the last word of the origin.
    over: BTreeMap<(String, String), Option<Instant>>,
    /// What it said since everybody was looked at last, and when.
    new: Vec<(Instant, String, Life)>,
    /// What is on its way to whom, and when it is surely there if nothing breaks.
    coming: BTreeMap<Hearer, Vec<(Instant, String, Life)>>,
    /// What has surely reached whom.
    known: BTreeMap<Hearer, BTreeMap<String, Life>>,
    /// Who was sent a body on the stream that it has now: of which version, and when it is over as far as it was told.
    bodies: BTreeMap<(Hearer, String), Life>,
    clients: Vec<Client>,
    /// Relays that nobody reaches.
    stopped: [bool; RELAYS],
    wrong: Option<String>,
}

struct Client {
    relay: usize,
    understands: bool,
    protocol: Protocol,
    /// What it held when it was looked at last, with the versions.
    held: BTreeMap<String, String>,
    /// It has had the time to be served what its relay has.
    served_at: Instant,
}

/// A relay that was restarted may wait for so long before it serves what it kept.
const SERVED: Duration = Duration::from_secs(5);

fn resources(response: &Bytes) -> Vec<Resource> {
    DeltaDiscoveryResponse::decode(response.clone()).unwrap().resources
}

fn ttl(resource: &Resource) -> Option<Duration> {
    resource.ttl.as_ref().map(|ttl| Duration::new(ttl.seconds as u64, ttl.nanos as u32))
}

impl Oracle {
    pub(crate) fn comes(&mut self, now: Instant, relay: usize, understands: bool, protocol: Protocol) {
        let served_at = now + SERVED;
        self.clients.push(Client { relay, understands, protocol, held: BTreeMap::new(), served_at });
    }

    pub(crate) fn origin_says(&mut self, now: Instant, response: &Bytes) {
        for resource in resources(response) {
            let over = ttl(&resource).map(|ttl| now + ttl);
            let life = (resource.version.clone(), over);
            self.over.insert((resource.name.clone(), resource.version), over);
            self.said.insert(resource.name.clone(), life.clone());
            self.new.push((now, resource.name, life));
        }
    }

    /// Rule 112: what lives on comes without a body; rule 148: with what remains of its time.
    pub(crate) fn hears(&mut self, now: Instant, hearer: Hearer, response: &Bytes) {
        let understands = match hearer {
            Hearer::Client(client) => self.clients[client].understands,
            Hearer::Relay(_) => true,
        };
        for resource in resources(response) {
            let (name, version) = (resource.name.clone(), resource.version.clone());
            let over = self.over.get(&(name.clone(), version.clone())).copied().flatten();
            let left = over.filter(|_| understands).map(|over| over.saturating_duration_since(now));
            let told = ttl(&resource);
            // Less is told by who has not heard yet that it lives on.
            let is_more = told.zip(left).is_some_and(|(told, left)| told > left + Duration::from_millis(1));
            if hearer != Hearer::Relay(0) && (is_more || told.is_some() != left.is_some()) {
                let what = format!("{told:?} of {name}@{version}, of which {left:?} is left");
                self.is_wrong(format!("rule 148: {hearer:?} is told {what}"));
            }
            let before = self.bodies.get(&(hearer, name.clone()));
            let before = before.filter(|(_, over)| over.is_none_or(|over| over > now)).map(|(version, _)| version);
            match resource.resource {
                None if before.is_some_and(|before| *before != version) => {
                    self.is_wrong(format!(
                        "rule 112: {hearer:?} is told that {name}@{version} lives and has {before:?}"
                    ));
                }
                Some(_) if before == Some(&version) => {
                    self.is_wrong(format!("rule 112: {hearer:?} is sent {name}@{version} again"));
                }
                _ => {}
            }
            self.bodies.insert((hearer, name), (version, told.map(|told| now + told)));
        }
        let removed = DeltaDiscoveryResponse::decode(response.clone()).unwrap().removed_resources;
        removed.into_iter().for_each(|name| _ = self.bodies.remove(&(hearer, name)));
    }

    fn is_wrong(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    /// It has a new stream, on which it may be sent what it has.
    pub(crate) fn begins_anew(&mut self, hearer: Hearer) {
        // What it brings along may live on without a body.
        self.bodies.retain(|(of, _), _| *of != hearer);
    }

    pub(crate) fn stops(&mut self, relay: usize) {
        self.stopped[relay] = true;
        for relay in relay..RELAYS {
            self.begins_anew(Hearer::Relay(relay));
        }
    }

    /// Another relay knows what was kept of what is not over yet.
    pub(crate) fn starts(&mut self, now: Instant, relay: usize, keeps: bool) {
        self.stopped[relay] = false;
        let known = self.known.entry(Hearer::Relay(relay)).or_default();
        known.retain(|_, (_, over)| keeps && over.is_none_or(|over| over > now));
        for client in self.clients.iter_mut().filter(|client| client.relay == relay) {
            client.served_at = now + SERVED;
        }
    }

    /// What everybody is to have in the end.
    pub(crate) fn current(&self) -> Vec<String> {
        self.said.iter().map(|(name, (version, _))| format!("{name}@{version}")).collect()
    }

    /// Whether what it hears is delta.
    pub(crate) fn hears_delta(&self, hearer: Hearer) -> bool {
        !matches!(hearer, Hearer::Client(client) if self.clients[client].protocol != DELTA)
    }

    /// Each hop passes on that something lives on when a third of what it told has passed.
    fn arrives(&mut self, now: Instant, fed: [bool; RELAYS]) {
        let relays = (0..RELAYS).map(|relay| (Hearer::Relay(relay), relay, relay as u32));
        let clients = self.clients.iter().enumerate();
        let clients = clients.map(|(at, client)| (Hearer::Client(at), client.relay, client.relay as u32 + 1));
        for (hearer, relay, hops) in relays.chain(clients) {
            let coming = self.coming.entry(hearer).or_default();
            if !fed[relay] {
                coming.clear();
                continue;
            }
            coming.extend(self.new.iter().map(|(said, name, life)| {
                let third = life.1.map_or(Duration::ZERO, |over| over.saturating_duration_since(*said) / 3);
                (*said + hops * third, name.clone(), life.clone())
            }));
            let there = coming.extract_if(.., |(at, ..)| *at <= now).map(|(_, name, life)| (name, life));
            self.known.entry(hearer).or_default().extend(there);
        }
        self.new.clear();
    }

    /// A second has passed in which the origin was heard by those relays: everybody holds what they may, and must.
    pub(crate) fn check(&mut self, now: Instant, fed: [bool; RELAYS], held: &[Vec<String>]) -> Result<(), String> {
        self.arrives(now, fed);
        let over = |name: &String, version: &String| self.over.get(&(name.clone(), version.clone())).copied();
        for (at, client) in self.clients.iter_mut().enumerate() {
            let holds = held[at].iter().filter_map(|text| text.rsplit_once('@'));
            let holds: BTreeMap<_, _> = holds.map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
            let none = BTreeMap::new();
            let relay = self.known.get(&Hearer::Relay(client.relay)).unwrap_or(&none);
            for (name, version) in &holds {
                let Some(over) = over(name, version) else { return Err(format!("{name}@{version} was never said")) };
                // Who has to be told is told by a relay that knows.
                let knows = !self.stopped[client.relay] && relay.get(name).is_some_and(|(known, _)| known == version);
                let is_told = client.understands || knows;
                if is_told && over.is_some_and(|over| over <= now) {
                    return Err(format!("rule 115: client {at} holds {name}@{version}, which is over"));
                }
            }
            // Who knows another version than the last may know that one.
            let lives = |name: &String, (version, over): &Life| {
                over.is_none_or(|over| over > now) && self.said.get(name).is_some_and(|(last, _)| last == version)
            };
            let own = self.known.get(&Hearer::Client(at)).unwrap_or(&none);
            for (name, version) in client.held.iter().filter(|(name, _)| !holds.contains_key(*name)) {
                if own.get(name).filter(|life| lives(name, life)).is_some_and(|(known, _)| known == version) {
                    return Err(format!("rule 111: client {at} has lost {name}@{version}, which lives on"));
                }
            }
            if client.served_at <= now
                && !self.stopped[client.relay]
                && let Some((name, life)) =
                    relay.iter().find(|(name, life)| lives(name, life) && !holds.contains_key(*name))
            {
                return Err(format!("client {at} is not served {name}@{}, which its relay has", life.0));
            }
            client.held = holds;
        }
        self.wrong.take().map_or(Ok(()), Err)
    }
}
