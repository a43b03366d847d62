//! Relays one behind the other, of which each may die and come back knowing nothing.

use super::{DELTA, Feeder, Origin, Protocol, World};

/// The first asks the origin, and each further one the one before.
pub(crate) struct Chain {
    pub(crate) world: World,
    texts: Vec<String>,
    /// Of which relay each client is.
    homes: Vec<usize>,
}

impl Chain {
    /// One relay for each protocol, which is what it speaks upstream, with more configuration.
    pub(crate) fn new(protocols: &[Protocol], more: &str) -> Self {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        world.relays_end_streams = true;
        let mut chain = Self { world, texts: Vec::new(), homes: Vec::new() };
        let mut feeder = Feeder::Origin(0);
        for protocol in protocols {
            feeder = Feeder::Relay(chain.add(feeder, *protocol, more));
        }
        chain
    }

    /// A further relay, behind any other.
    pub(crate) fn add(&mut self, feeder: Feeder, protocol: Protocol, more: &str) -> usize {
        let protocol = if protocol == DELTA { "delta" } else { "sotw" };
        let text = format!("origins: [{{ name: up, server: '127.0.0.1:1', protocol: {protocol} }}]\n{more}\n");
        let relay = self.world.add_relay(&text, vec![feeder]);
        self.texts.push(text);
        relay
    }

    pub(crate) fn client(&mut self, relay: usize, protocol: Protocol, node: &str) -> usize {
        self.homes.push(relay);
        self.world.client_of(relay, protocol, node)
    }

    /// A relay is gone, and its clients notice.
    pub(crate) fn kill(&mut self, relay: usize) {
        self.world.stop(relay);
        for client in self.clients_of(relay) {
            self.world.disconnect(client);
        }
    }

    /// Another takes its place, and its clients come back with what they hold.
    pub(crate) fn revive(&mut self, relay: usize) {
        self.world.start_cold(relay, &self.texts[relay]);
        for client in self.clients_of(relay) {
            self.world.connect(client, relay);
        }
    }

    fn clients_of(&self, relay: usize) -> Vec<usize> {
        self.homes.iter().enumerate().filter(|(_, home)| **home == relay).map(|(client, _)| client).collect()
    }

    /// What all clients were told since the last time, if anything, by client.
    pub(crate) fn told(&mut self) -> Vec<String> {
        (0..self.homes.len()).map(|client| self.world.told(client).join("; ")).collect()
    }
}
