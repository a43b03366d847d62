//! What holds of a relay, whatever clients and origins do to it: shared by the tests and the fuzz target.
//!
//! Bytes are read as a script. Two tenants have two clients each, two origins say what the script says, and everything
//! runs in virtual time. Of every response it is asked whether it holds what was made for another tenant, and whether
//! what it takes away was taken away by an origin.

mod answer;
mod client;
mod faults;
#[path = "../support/flag.rs"]
mod flag;
mod link;
mod said;
mod script;
mod told;
mod transcript;
mod world;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_relay::metrics::Metrics;
use xds_relay::relay_core::RelayCore;

use self::client::Client;
pub(crate) use self::faults::Fault;
use self::link::{Dialer, Link};
use self::said::Said;
use self::script::Script;
use self::told::Alone;
use self::world::{CLIENTS, ORIGINS, TYPES, World};

/// A script is as long as it is interesting.
const MOST_STEPS: usize = 400;
/// More rounds than this without anything else happening are no end.
const MOST_ROUNDS: usize = 200;
const WAITS: [u64; 8] = [1, 200, 1_000, 5_000, 15_000, 16_000, 31_000, 3_601_000];

/// Any bytes, read as what clients, origins and time do to a relay.
pub(crate) fn relay(bytes: &[u8]) {
    if let Err(wrong) = run(bytes, None) {
        panic!("{wrong}");
    }
}

/// The same, with a fault that is to be found.
pub(crate) fn run(bytes: &[u8], fault: Option<Fault>) -> Result<(), String> {
    let mut script = Script::new(bytes);
    let mut network = Network::new(&World::read(&mut script), fault);
    for _ in 0..MOST_STEPS {
        if script.is_over() {
            break;
        }
        network.step(&mut script)?;
    }
    network.end()
}

struct Network {
    now: Instant,
    relay: Arc<RelayCore>,
    dialed: Arc<Mutex<Vec<Link>>>,
    links: Vec<Link>,
    /// How many streams were dialed.
    dials: u64,
    up: [bool; ORIGINS],
    clients: Vec<Client>,
    /// The number of the last downstream stream.
    streams: u64,
    said: Said,
    alone: Alone,
}

impl Network {
    fn new(world: &World, fault: Option<Fault>) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let config = world.config();
        let dialed = Arc::default();
        let dialer = Dialer { protocols: world.up, fault, start, dialed: Arc::clone(&dialed) };
        let grouping = Fault::grouping(fault, config.share_by.as_ref());
        let relay = RelayCore::new(&config, grouping, Box::new(dialer), Arc::new(Metrics::new(TYPES)));
        let said = Said::of(&world.up);
        let clients = (0..CLIENTS.len()).map(|at| Client::new(world.down[at], world.node(at))).collect();
        let mut network = Self {
            now: start,
            relay,
            dialed,
            links: Vec::new(),
            dials: 0,
            up: [true; ORIGINS],
            clients,
            streams: 0,
            said,
            alone: Alone::default(),
        };
        (0..CLIENTS.len()).for_each(|at| network.connect(at));
        network
    }

    fn connect(&mut self, client: usize) {
        self.streams += 1;
        self.clients[client].connect(&self.relay, self.streams);
    }

    fn step(&mut self, script: &mut Script<'_>) -> Result<(), String> {
        let what = script.byte();
        let now = self.now;
        transcript::say(|| format!("step {what:#x}"));
        let client = usize::from(what >> 4) % CLIENTS.len();
        match what & 15 {
            0..=4 => {
                if !self.clients[client].is_connected() {
                    self.connect(client);
                }
                self.clients[client].ask(now, script, false);
            }
            5..=9 => self.answer(script, false)?,
            10 => self.pass(Duration::from_millis(WAITS[script.index(WAITS.len())]))?,
            11 => match script.byte() % 6 {
                0 => self.clients[client].disconnect(),
                1 | 2 => self.connect(client),
                3 => self.clients[client].lazy ^= true,
                4 => self.clients[client].refuses ^= true,
                _ => self.clients[client].stalled ^= true,
            },
            12 => {
                let (how, at) = (script.byte(), script.index(self.links.len()));
                match (how % 4, self.links.get_mut(at)) {
                    (0, Some(link)) if link.far.is_some() => link.cut(now),
                    (1, Some(link)) => link.say_a_byte(now),
                    (2, _) => self.up[at % ORIGINS] ^= true,
                    _ => self.relay.sweep(now),
                }
            }
            13 => self.clients[client].ask(now, script, true),
            14 => self.answer(script, true)?,
            _ => {
                let bytes = script.raw();
                match script.byte() % 2 {
                    0 => self.clients[client].send(now, bytes.into()),
                    _ => self.say_raw(script, bytes)?,
                }
            }
        }
        if what & 0x40 == 0 { self.settle() } else { Ok(()) }
    }

    /// An origin speaks on one of the streams to it.
    fn answer(&mut self, script: &mut Script<'_>, raw: bool) -> Result<(), String> {
        let at = script.index(self.links.len());
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        let Some(far) = &mut link.far else { return Ok(()) };
        let who = link.voice.1;
        let message = answer::compose(script, link.protocol, who, far, self.said.serial + 1);
        self.said.damaged |= raw;
        let message = if raw { script.mutated(message.to_vec()).into() } else { message };
        if who.must_not_see(&message).is_some() {
            return Ok(());
        }
        link.say(self.now, message, &mut self.said)
    }

    fn say_raw(&mut self, script: &mut Script<'_>, bytes: Vec<u8>) -> Result<(), String> {
        let at = script.index(self.links.len());
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        if link.voice.1.must_not_see(&bytes).is_some() {
            return Ok(());
        }
        self.said.damaged = true;
        link.say(self.now, bytes.into(), &mut self.said)
    }

    /// Runs until nobody has anything to say.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..MOST_ROUNDS {
            let mut progress = false;
            for mut link in self.dialed.lock().unwrap().drain(..) {
                self.dials += 1;
                link.number = self.dials;
                self.links.push(link);
            }
            for dropped in self.links.extract_if(.., |link| link.is_dropped()) {
                self.said.forget(dropped.number);
            }
            for link in &mut self.links {
                progress |= link.drive(self.now, self.up[link.voice.0])?;
            }
            for client in &mut self.clients {
                progress |= client.drive(self.now, &self.said, &mut self.alone)?;
            }
            if !progress {
                return Ok(());
            }
        }
        Err("it never comes to rest".into())
    }

    /// Lets time pass, from one timeout to the next.
    fn pass(&mut self, time: Duration) -> Result<(), String> {
        const MOST_TIMEOUTS: usize = 5_000;
        let until = self.now + time;
        for _ in 0..MOST_TIMEOUTS {
            self.settle()?;
            let links = self.links.iter().filter_map(Link::poll_timeout);
            let due = links.chain(self.clients.iter().filter_map(Client::poll_timeout)).min();
            self.now = due.map_or(until, |due| due.max(self.now)).min(until);
            self.said.expire(self.now);
            transcript::say(|| format!("{} ms left", (until - self.now).as_millis()));
            for link in self.links.iter().filter(|link| link.is_quiet(self.now)) {
                self.said.note_quiet(link.voice);
            }
            if self.now == until {
                self.settle()?;
                self.relay.sweep(until);
                return self.settle();
            }
        }
        Err("a timeout that never ends".into())
    }

    /// Everybody leaves, and nothing is left of it (rules 12, 141).
    fn end(mut self) -> Result<(), String> {
        self.settle()?;
        self.up = [true; ORIGINS];
        self.clients.iter_mut().for_each(Client::disconnect);
        for _ in 0..3 {
            // An origin that never answered is taken for one after a while.
            self.pass(Duration::from_secs(31))?;
        }
        self.settle()?;
        let dump = self.relay.config_dump(self.now);
        if !self.links.is_empty() || !dump.clients.is_empty() {
            let left: Vec<_> = self.links.iter().map(|link| link.voice).collect();
            return Err(format!("rule 12: streams of nobody to {left:?}, and for {}", dump.clients.len()));
        }
        Ok(())
    }
}
