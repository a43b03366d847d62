//! The relays of a world: how they are made, killed, and replaced.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::{EveryNode, NodeGrouping, RelayCore, ShareBy};
use xds_relay::state::{State, Store, identities, keys};

use self::followed::FollowedServer;
use crate::support::link::{self, Dialer, Link};
use crate::support::{CLUSTERS, DELTA, ENDPOINTS, Feeder, LISTENERS, Origin, Protocol, World};

pub(crate) struct Relay {
    pub(crate) core: Arc<RelayCore>,
    /// What its origins are, in the order of its configuration, each server of them.
    pub(crate) fed_by: Vec<Feeder>,
    pub(super) dialed: Arc<Mutex<Vec<Link>>>,
    pub(super) links: Vec<Link>,
    /// Its origins that it follows.
    pub(super) followed: Vec<FollowedServer>,
    /// Nobody reaches it, and it does nothing.
    pub(crate) stopped: bool,
}

pub(crate) type GroupingOf = Box<dyn FnOnce(Box<dyn NodeGrouping>) -> Box<dyn NodeGrouping>>;

impl World {
    /// A further relay of the same origin; it starts cold.
    pub(crate) fn add_relay_before(&mut self, feeder: Feeder, protocol: Protocol) -> usize {
        let protocol = if protocol == DELTA { "delta" } else { "sotw" };
        let text = format!("origins:\n  - name: up\n    server: 127.0.0.1:1\n    protocol: {protocol}\n");
        self.add_relay(&text, vec![feeder])
    }

    pub(crate) fn add_relay(&mut self, text: &str, fed_by: Vec<Feeder>) -> usize {
        self.add_relay_grouped(text, fed_by, None)
    }

    /// One that groups nodes by what is made of what its configuration says.
    pub(crate) fn add_relay_grouped(
        &mut self,
        text: &str,
        fed_by: Vec<Feeder>,
        grouping_of: Option<GroupingOf>,
    ) -> usize {
        type NoState = fn(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State;
        let relay = self.make_relay(text, fed_by, grouping_of, None::<NoState>);
        self.relays.push(relay);
        self.relays.len() - 1
    }

    /// A relay takes the place of another, which was killed; it knows what that one kept.
    pub(crate) fn restart(&mut self, relay: usize, text: &str, store: impl Store) {
        self.restart_with(relay, text, |config, grouping, now, wall| {
            State::open(store, identities(config, grouping), keys(config).unwrap(), now, wall).unwrap()
        });
    }

    /// The same, with what a function makes of the store.
    pub(crate) fn restart_with(
        &mut self,
        relay: usize,
        text: &str,
        state: impl FnOnce(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State,
    ) {
        for client in &mut self.clients {
            client.disconnect(self.now);
        }
        self.take_place(relay, text, Some(state));
        self.settle();
    }

    /// A relay is killed. Its clients are for the caller to disconnect.
    pub(crate) fn stop(&mut self, relay: usize) {
        self.relays[relay].stopped = true;
        self.settle();
    }

    /// Another relay takes the place of one that was stopped, with what a function makes of a store if it has one.
    pub(crate) fn start(
        &mut self,
        relay: usize,
        text: &str,
        state: Option<impl FnOnce(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State>,
    ) {
        self.take_place(relay, text, state);
        self.settle();
    }

    /// The same, of one that knows nothing.
    pub(crate) fn start_cold(&mut self, relay: usize, text: &str) {
        type NoState = fn(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State;
        self.start(relay, text, None::<NoState>);
    }

    fn take_place(
        &mut self,
        relay: usize,
        text: &str,
        state: Option<impl FnOnce(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State>,
    ) {
        let fed_by = self.relays[relay].fed_by.clone();
        let made = self.make_relay(text, fed_by, None, state);
        let mut before = std::mem::replace(&mut self.relays[relay], made);
        before.end_links(&mut self.origins);
    }

    /// Whether every stream of a relay is open.
    pub(crate) fn is_fed(&self, relay: usize) -> bool {
        let Relay { links, stopped, .. } = &self.relays[relay];
        !stopped && !links.is_empty() && links.iter().all(Link::is_open)
    }

    fn make_relay(
        &self,
        text: &str,
        fed_by: Vec<Feeder>,
        grouping_of: Option<GroupingOf>,
        state: Option<impl FnOnce(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State>,
    ) -> Relay {
        let config = Config::parse("relay.yaml", text).unwrap();
        let grouping: Box<dyn NodeGrouping> = match &config.share_by {
            Some(fields) => Box::new(ShareBy::new(fields.clone())),
            None => Box::new(EveryNode),
        };
        let grouping = match grouping_of {
            Some(grouping_of) => grouping_of(grouping),
            None => grouping,
        };
        let dialed = Arc::new(Mutex::new(Vec::new()));
        let speaks = config.origins.iter().map(link::spoken_with).collect();
        let first = config.origins.iter().scan(0, |next, origin| {
            let first = *next;
            *next += link::servers_of(origin);
            Some(first)
        });
        let (first, is_ended) = (first.collect(), self.relays_end_streams);
        let dialer = Dialer { speaks, first, dialed: dialed.clone(), now: self.now, is_ended };
        let metrics = Arc::new(Metrics::new([LISTENERS, CLUSTERS, ENDPOINTS]));
        let state = state.map(|state| state(&config, &*grouping, self.now, self.wall()));
        let core = RelayCore::with_state(&config, grouping, Box::new(dialer), metrics, state);
        let follow = |at| FollowedServer::new(&config, at, &core, std::task::Waker::noop().clone()).unwrap();
        let followed = (0..config.origins.len()).filter_map(follow).collect();
        Relay { core, fed_by, dialed, links: Vec::new(), followed, stopped: false }
    }
}

impl Relay {
    /// Goes on with the origins that it follows. Whether there was anything to do.
    pub(super) fn follow(&mut self, now: Instant) -> bool {
        let followed = self.followed.iter_mut().filter(|_| !self.stopped);
        followed.map(|followed| followed.poll(now)).filter(|is_news| *is_news).count() > 0
    }

    pub(super) fn follows_at(&self) -> Option<Instant> {
        self.followed.iter().filter(|_| !self.stopped).filter_map(FollowedServer::poll_timeout).min()
    }

    /// Whoever it asked learns that its streams are over. Whether there were any.
    pub(super) fn end_links(&mut self, origins: &mut [Origin]) -> bool {
        let mut links = std::mem::take(&mut self.links);
        links.append(&mut self.dialed.lock().unwrap());
        for link in &mut links {
            let origin = match self.fed_by[link.origin] {
                Feeder::Origin(at) => Some(&mut origins[at]),
                Feeder::Relay(_) => None,
            };
            link.end(origin);
        }
        !links.is_empty()
    }
}

#[cfg(feature = "file-origin")]
mod followed {
    pub(crate) use xds_relay::followed_server::FollowedServer;
}

/// Without files nothing is followed.
#[cfg(not(feature = "file-origin"))]
mod followed {
    use super::*;

    pub(crate) struct FollowedServer;

    impl FollowedServer {
        pub(crate) fn new(_: &Config, _: usize, _: &Arc<RelayCore>, _: std::task::Waker) -> Result<Option<Self>, ()> {
            Ok(None)
        }

        pub(crate) fn poll(&mut self, _: Instant) -> bool {
            false
        }

        pub(crate) fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }
}
