//! What lives for a time, through a relay behind a relay, in histories drawn from seeds: rules 110 to 115, and 148.
//!
//! An origin says a resource with a TTL and refreshes it for as long as it speaks. It falls silent and is away, relays are killed
//! and come back with what they kept or with nothing, and clients come late. Second by second, nobody may hold something for longer
//! than the origin let it live, and nobody may lose it sooner than what reached it says.
//!
//! `LIVES_SEED=n` runs one history, and `LIVES_SEEDS=n` so many.

mod faults;
mod history;
mod oracle;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use xds_relay::state::{Memory, State, identities, keys};
use xds_transport::wire::Node;

use faults::Fault;
use history::{History, NAMES, RELAYS, Step};
use oracle::Oracle;

use crate::support::{CLUSTERS, DELTA, Feeder, Hearer, Origin, Protocol, SECOND, SOTW, World, cluster};

/// How many seeds the gate runs.
const SEEDS: u64 = 24;
/// In how many a planted fault is looked for.
const SOUGHT: u64 = 60;
/// Longer than any relay waits before it comes back to its origin.
const QUIET: u32 = 40;
const TEXT: &str =
    "origins: [{ name: up, server: '127.0.0.1:1', protocol: delta, authorities: [a] }]\nshare_by: [cluster]\n";
/// The clients that are there from the beginning: the relay of each, what it speaks, and whether it understands TTLs.
const CLIENTS: [(usize, Protocol, bool); 4] = [(1, DELTA, true), (1, SOTW, false), (1, DELTA, false), (0, DELTA, true)];

#[test]
fn what_lives_for_a_time_does_so_at_every_hop() {
    let number = |variable: &str| std::env::var(variable).ok()?.parse().ok();
    let seeds = number("LIVES_SEED").map_or(0..number("LIVES_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    for seed in seeds {
        let history = History::random(seed);
        if let Err(wrong) = run(&history, None) {
            let rule = |wrong: &str| wrong.split(':').next().map(str::to_owned);
            let same = |other: String| rule(&other) == rule(&wrong);
            let least = history.shrunk(|shorter| run(shorter, None).err().is_some_and(same));
            panic!("seed {seed}: {wrong}\nleast: {least:#?}\n{:?}", run(&least, None));
        }
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Fault::ALL {
        let wrong = |seed| run(&History::random(seed), Some(fault)).err();
        let found = (0..SOUGHT)
            .find_map(|seed| Some((seed, wrong(seed)?)).filter(|(_, wrong)| wrong.starts_with(fault.found_by())));
        let (seed, wrong) = found.unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?}: seed {seed}: {wrong}");
    }
}

fn run(history: &History, fault: Option<Fault>) -> Result<(), String> {
    let mut lives = Lives::new(fault);
    for step in &history.steps {
        lives.apply(step)?;
    }
    lives.converge()
}

struct Lives {
    world: World,
    oracle: Arc<Mutex<Oracle>>,
    fault: Option<Fault>,
    stores: [Memory; RELAYS],
    /// The relay of each client.
    relay_of: Vec<usize>,
    serial: u64,
}

impl Lives {
    fn new(fault: Option<Fault>) -> Self {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let oracle = Arc::new(Mutex::new(Oracle::default()));
        let (hears, mut faulty) = (oracle.clone(), fault.map(Fault::plant));
        world.between = Some(Box::new(move |now, hearer, response: Bytes| {
            let mut oracle = hears.lock().unwrap();
            if hearer == Hearer::Relay(0) {
                oracle.origin_says(now, &response);
            }
            if !oracle.hears_delta(hearer) {
                return response;
            }
            let response = match &mut faulty {
                Some(faulty) => faulty(hearer, response),
                None => response,
            };
            if fault.is_none_or(Fault::is_overheard) {
                oracle.hears(now, hearer, &response);
            }
            response
        }));
        for relay in 0..RELAYS {
            let feeder = relay.checked_sub(1).map_or(Feeder::Origin(0), Feeder::Relay);
            world.add_relay(TEXT, vec![feeder]);
        }
        let stores = std::array::from_fn(|_| Memory::default());
        let mut lives = Self { world, oracle, fault, stores, relay_of: Vec::new(), serial: 0 };
        for relay in 0..RELAYS {
            lives.stop(relay);
            lives.start(relay, true);
        }
        for (relay, protocol, understands) in CLIENTS {
            lives.join(relay, protocol, understands);
        }
        lives
    }

    fn apply(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Put { name, ttl } => self.put(NAMES[name], ttl),
            Step::Silence(silent) => self.world.origins[0].silent = silent,
            Step::Away(away) => {
                self.oracle.lock().unwrap().begins_anew(Hearer::Relay(0));
                self.world.set_up(0, !away);
            }
            Step::Restart { relay, keeps, after } => {
                self.stop(relay);
                self.pass(after)?;
                self.start(relay, keeps);
            }
            Step::Join(relay) => self.join(relay, DELTA, true),
            Step::Return(client) => {
                let relay = self.relay_of[client];
                self.oracle.lock().unwrap().begins_anew(Hearer::Client(client));
                self.world.connect(client, relay);
            }
            Step::Wait(seconds) => self.pass(seconds)?,
        }
        self.world.settle();
        Ok(())
    }

    fn put(&mut self, name: &str, ttl: Option<u32>) {
        self.serial += 1;
        let version = self.serial.to_string();
        let frame = cluster(name, &version).with_wrapper(Bytes::new(), ttl.map(|ttl| ttl * SECOND), false);
        let now = self.world.now;
        self.world.origins[0].put_frame(now, "", CLUSTERS, name, &version, frame);
    }

    fn join(&mut self, relay: usize, protocol: Protocol, understands: bool) {
        let feature = understands.then(|| "xds.config.supports-resource-ttl".to_owned());
        let client_features = feature.into_iter().collect();
        let node = Node { id: "n".into(), cluster: "c".into(), client_features, ..Node::default() };
        let client = self.world.client_with(relay, protocol, &node);
        self.world.clients[client].is_told_nonsense = self.fault.is_some();
        self.oracle.lock().unwrap().comes(self.world.now, relay, understands, protocol);
        self.relay_of.push(relay);
        self.world.subscribe(client, CLUSTERS, &NAMES);
    }

    /// What was heard is kept before, as at the next moment it would be.
    fn stop(&mut self, relay: usize) {
        let (now, wall) = (self.world.now, self.world.wall());
        _ = self.world.relays[relay].core.save(now, wall);
        for client in self.clients_of(relay) {
            self.world.disconnect(client);
        }
        self.world.stop(relay);
        self.oracle.lock().unwrap().stops(relay);
    }

    fn start(&mut self, relay: usize, keeps: bool) {
        if !keeps {
            self.stores[relay] = Memory::default();
        }
        let store = self.stores[relay].clone();
        // A clock that goes on as if no time had passed.
        let slow = SECOND * if self.fault == Some(Fault::StandStill) { 20 } else { 0 };
        self.oracle.lock().unwrap().starts(self.world.now, relay, keeps);
        let state = move |config: &xds_relay::Config, grouping: &dyn xds_relay::relay_core::NodeGrouping, now, wall| {
            let identities = identities(config, grouping);
            State::open(store, identities, keys(config).unwrap(), now, wall - slow).unwrap()
        };
        self.world.start(relay, TEXT, Some(state));
        for client in self.clients_of(relay) {
            self.oracle.lock().unwrap().begins_anew(Hearer::Client(client));
            self.world.connect(client, relay);
        }
    }

    fn clients_of(&self, relay: usize) -> Vec<usize> {
        (0..self.relay_of.len()).filter(|client| self.relay_of[*client] == relay).collect()
    }

    /// Lets seconds pass, and looks at everybody after each.
    fn pass(&mut self, seconds: u32) -> Result<(), String> {
        for _ in 0..seconds {
            let before = self.fed();
            self.world.advance(SECOND);
            let after = self.fed();
            let fed = std::array::from_fn(|relay| before[relay] && after[relay]);
            let held: Vec<_> = self.world.clients.iter().map(|client| client.held(CLUSTERS)).collect();
            self.oracle.lock().unwrap().check(self.world.now, fed, &held)?;
        }
        Ok(())
    }

    /// Of each relay, whether what the origin says reaches it.
    fn fed(&self) -> [bool; RELAYS] {
        let mut all = !self.world.origins[0].silent;
        std::array::from_fn(|relay| {
            all &= self.world.is_fed(relay);
            all
        })
    }

    /// Everybody speaks again: soon all hold what the origin has.
    fn converge(mut self) -> Result<(), String> {
        self.world.origins[0].silent = false;
        self.world.set_up(0, true);
        self.pass(QUIET)?;
        for (client, there) in self.world.clients.iter().enumerate() {
            let mut expected = self.oracle.lock().unwrap().current();
            expected.sort();
            if there.held(CLUSTERS) != expected {
                return Err(format!("client {client} holds {:?} of {expected:?} in the end", there.held(CLUSTERS)));
            }
        }
        Ok(())
    }
}
