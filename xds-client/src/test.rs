//! Servers without sockets, for tests of programs: a [`Network`] of [`Server`]s that have what a test puts there, in a time
//! that passes when the test says so.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
//! use xdstp_client::test::Network;
//! use xdstp_client::{Client, Error, Event};
//!
//! const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
//! let network = Network::new(Instant::now());
//! let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
//! let client = Client::builder(bootstrap).transport(network.clone()).build()?;
//! let mut watch = client.watch(CLUSTERS, "web");
//!
//! network.server("xds:1").put(CLUSTERS, "web", "1", b"\x0a\x03web");
//! network.settle();
//! assert!(matches!(watch.try_next(), Some(Event::Put { version, .. }) if version.as_str() == "1"));
//!
//! let mut silent = client.watch(CLUSTERS, "who");
//! network.server("xds:1").be_silent(true);
//! network.pass(Duration::from_secs(15));
//! assert!(matches!(silent.try_next(), Some(Event::Failed { error: Error::Timeout { .. }, .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod link;
#[cfg(feature = "lrs")]
mod load;
mod server;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Protocol;

use self::link::{Handle, Link};
pub use self::server::Server;
use self::server::State;
use crate::bootstrap;
use crate::client::Transport;
use crate::federation::Dialed;
use crate::upstream::Consumer;

/// Servers, and the streams to them: a [`Transport`] of clients. Clones are the same network.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

struct Shared {
    world: Mutex<World>,
    /// Streams that were dialed since that was looked at: what happens in the world has more of them dialed.
    dialing: Mutex<Vec<Dialing>>,
}

struct Dialing {
    server: bootstrap::Server,
    node: Bytes,
    consumer: Box<dyn Consumer>,
    nudged: Weak<AtomicBool>,
}

struct World {
    now: Instant,
    protocol: Protocol,
    servers: BTreeMap<String, State>,
    links: Vec<Link>,
    #[cfg(feature = "lrs")]
    load: Vec<load::Link>,
    /// How often a stream was dialed.
    dialed: usize,
}

impl Network {
    /// A network in which it is this time. Its servers speak delta.
    pub fn new(now: Instant) -> Self {
        Self::speaking(Protocol::Delta, now)
    }

    /// The same, of servers that speak this protocol, as clients of theirs have to be [told](crate::Builder::protocol).
    pub fn speaking(protocol: Protocol, now: Instant) -> Self {
        let (servers, links) = (BTreeMap::new(), Vec::new());
        let world = Mutex::new(World {
            now,
            protocol,
            servers,
            links,
            #[cfg(feature = "lrs")]
            load: Vec::new(),
            dialed: 0,
        });
        Self(Arc::new(Shared { world, dialing: Mutex::default() }))
    }

    /// The server at an address, as a bootstrap has it. It is there, and has nothing yet.
    pub fn server(&self, uri: &str) -> Server {
        Server { network: self.clone(), uri: uri.to_owned() }
    }

    /// What time it is.
    pub fn now(&self) -> Instant {
        self.lock().now
    }

    /// How often a stream was dialed.
    pub fn dialed(&self) -> usize {
        self.lock().dialed
    }

    /// Lets happen what can happen now.
    pub fn settle(&self) {
        /// Whoever never comes to an end is a bug.
        const MOST: usize = 100_000;
        for _ in 0..MOST {
            let happened = self.lock().step();
            if !happened && !self.is_dialing() {
                return;
            }
        }
    }

    /// Lets time pass, and happen what happens meanwhile.
    pub fn pass(&self, time: Duration) {
        self.settle();
        let end = self.now() + time;
        loop {
            let next = self.lock().next().filter(|next| *next <= end);
            self.lock().now = next.unwrap_or(end);
            self.settle();
            if next.is_none() {
                return;
            }
        }
    }

    fn is_dialing(&self) -> bool {
        !lock(&self.0.dialing).is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        let mut world = lock(&self.0.world);
        let dialed = std::mem::take(&mut *lock(&self.0.dialing));
        dialed.into_iter().for_each(|dialed| world.dial(dialed));
        world
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn dial(&mut self, Dialing { server, node, consumer, nudged }: Dialing) {
        self.dialed += 1;
        self.links.push(Link::new(&server, self.protocol, node, (consumer, nudged), self.now));
    }

    /// Whether anything happened.
    fn step(&mut self) -> bool {
        let Self { now, servers, links, .. } = self;
        let mut happened = false;
        links.retain_mut(|link| {
            let server = servers.entry(link.server.clone()).or_insert_with(State::new);
            if link.is_dropped() {
                link.end(server);
                happened = true;
                return false;
            }
            happened |= link.drive(*now, server);
            true
        });
        #[cfg(feature = "lrs")]
        {
            happened |= load::drive(&mut self.load, self.now, &mut self.servers);
        }
        happened
    }

    /// When something happens by itself.
    fn next(&self) -> Option<Instant> {
        let due = self.links.iter().filter_map(Link::poll_timeout);
        #[cfg(feature = "lrs")]
        let due = due.chain(self.load.iter().filter_map(load::Link::poll_timeout));
        due.filter(|at| *at > self.now).min()
    }
}

impl Transport for Network {
    fn open(&self, server: &bootstrap::Server, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let (handle, nudged) = Handle::new();
        lock(&self.0.dialing).push(Dialing { server: server.clone(), node, consumer, nudged });
        Box::new(handle)
    }

    #[cfg(feature = "lrs")]
    fn open_load_reports(&self, server: &bootstrap::Server, stream: crate::LoadStream) -> Option<Box<dyn Dialed>> {
        let (handle, nudged) = Handle::new();
        self.lock().load.push(load::Link::new(server.uri(), nudged, stream));
        Some(Box::new(handle))
    }
}
