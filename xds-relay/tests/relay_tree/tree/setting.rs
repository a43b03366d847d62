//! How large the tree is, and how fast.
//!
//! A sample of the clients stands for all of them, and their relays are as much slower: so many new streams, messages and bytes a
//! second as are the sample's share. Between relays nothing is sampled.

use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::{RelayCore, ShareBy};
use xds_transport::Protocol;

use super::{Relay, Tree};
use crate::fault::Fault;
use crate::hop::{Bell, Dialer, Hop, Rung, Whose};
use crate::ledger::Ledger;
use crate::load::Load;
use crate::member::{Holds, Member};
use crate::origin::{CLUSTERS, GLOB, LISTENERS, Origin, node};
use crate::random::Random;
use crate::wire::Pipe;

pub(crate) const EDGES: usize = 28;
pub(crate) const REGIONALS: usize = 9;
pub(crate) const REGIONS: usize = 3;
/// Of which each has listeners of its own.
pub(crate) const GROUPS: usize = 4;
/// What there is for everybody, and for each group.
const SHARED: usize = 10;
const OWN: usize = 3;
/// As many clients there would be.
const FLEET: u64 = 1_000_000;
/// New streams that an edge takes in a second.
const NEW_STREAMS: u64 = 1000;
/// What a message costs a relay, on four cores, in ns: a quarter of what was measured on one (benches/README.md).
const MESSAGE: u64 = 3130;
/// And 1000 of its bytes: 10 Gbit/s.
const KILOBYTE: u64 = 800;
/// One message of so many is lost, and breaks its stream.
const LOSS: u64 = 2000;

#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) clients: u64,
    pub(crate) stream_age: Duration,
    pub(crate) fault: Option<Fault>,
    /// Messages get lost.
    pub(crate) has_loss: bool,
}

impl Setting {
    /// `TREE_CLIENTS` says how many clients, of whom there are 3000 otherwise.
    pub(crate) fn sampled() -> Self {
        let clients = std::env::var("TREE_CLIENTS").ok().and_then(|clients| clients.parse().ok()).unwrap_or(3000);
        Self { clients, stream_age: Duration::from_secs(24 * 3600), fault: None, has_loss: true }
    }

    /// How many new streams an edge takes in a second.
    pub(crate) fn new_streams(&self) -> u64 {
        (NEW_STREAMS * self.clients / FLEET).max(1)
    }

    pub(super) fn loses(&self, random: &mut Random) -> bool {
        self.has_loss && random.one_in(LOSS)
    }

    /// In µs, one way.
    pub(super) fn latency(&self, whose: Whose) -> u64 {
        match whose {
            Whose::Client(client) => 1000 + client as u64 % 20 * 1000,
            Whose::Relay(relay) if relay < REGIONALS => 40_000,
            Whose::Relay(..) => 15_000,
        }
    }

    /// 20 Mbit/s for a client, and 1 Gbit/s between relays.
    pub(super) fn bytes_per_ms(&self, whose: Whose) -> u64 {
        if let Whose::Client(_) = whose { 2500 } else { 125_000 }
    }

    fn pipe(&self, relay: usize) -> Pipe {
        let slower = if relay < REGIONALS { 1 } else { FLEET / self.clients };
        Pipe::new(MESSAGE * slower, KILOBYTE * slower)
    }

    /// A relay that knows nothing.
    pub(super) fn core(&self, dialer: Dialer) -> Arc<RelayCore> {
        let relay = dialer.relay;
        let mut text = "share_by: [cluster]\norigins:\n".to_owned();
        if relay < REGIONALS {
            let _ = write!(
                text,
                "  - {{ name: control-plane, server: '127.0.0.1:1' }}\nnode: {{ id: regional-{relay} }}\n"
            );
        } else {
            let _ = write!(text, "  - {{ name: regional, server: '127.0.0.1:1' }}\nnode: {{ id: edge-{relay} }}\n");
            let admits = if self.fault == Some(Fault::NoAdmission) { 1_000_000 } else { self.new_streams() };
            let _ = writeln!(text, "limits: {{ new_streams_per_second: {admits} }}");
        }
        let config = Config::parse("relay.yaml", &text).unwrap();
        let grouping = Box::new(ShareBy::new(config.share_by.clone().unwrap()));
        let metrics = Arc::new(Metrics::new([CLUSTERS, LISTENERS]));
        RelayCore::new(&config, grouping, Box::new(dialer), metrics)
    }
}

impl Tree {
    /// Clients come one after the other, three quarters as fast as they may.
    pub(crate) fn new(setting: Setting) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let (clock, rung, dialed) = (Arc::new(Mutex::new(start)), Rung::default(), Arc::<Mutex<Vec<Hop>>>::default());
        let relay = |relay| Relay {
            core: setting.core(Dialer { relay, rung: rung.clone(), dialed: dialed.clone(), now: clock.clone() }),
            is_alive: true,
            is_another: false,
            pipe: setting.pipe(relay),
            load: Load::default(),
        };
        let mut tree = Self {
            start,
            now: 0,
            relays: (0..REGIONALS + EDGES).map(relay).collect(),
            clock,
            random: Random::new(1),
            hops: Vec::new(),
            free: Vec::new(),
            agenda: BinaryHeap::new(),
            rung,
            dialed,
            origin: Origin::new(GROUPS),
            origin_pipe: Pipe::new(MESSAGE, KILOBYTE),
            origin_load: Load::default(),
            members: Vec::new(),
            ledger: Arc::new(Mutex::new(Ledger::default())),
            next_sweep: 1_000_000,
            setting,
        };
        for at in 0..SHARED {
            tree.put(None, &GLOB.replace('*', &format!("c{at}")));
        }
        for (group, at) in (0..GROUPS).flat_map(|group| (0..OWN).map(move |at| (group, at))) {
            tree.put(Some(group), &format!("listener-{at}"));
        }
        (0..tree.setting.clients as usize).for_each(|client| tree.come(client));
        tree
    }

    /// When the last client makes its first attempt.
    pub(crate) fn arrival(&self) -> Duration {
        let a_second = self.setting.new_streams() * EDGES as u64 * 3 / 4;
        Duration::from_micros(self.setting.clients * 1_000_000 / a_second)
    }

    /// A quarter of them speak SotW.
    fn come(&mut self, client: usize) {
        let (group, name) = (client % GROUPS, format!("client-{client}"));
        let protocol = if client % 16 < GROUPS { Protocol::Sotw } else { Protocol::Delta };
        let first = self.start + self.arrival() * client as u32 / self.setting.clients as u32;
        let holds = Arc::<Mutex<Holds>>::default();
        self.members.push((group, holds.clone()));
        let (start, ledger, node) = (self.start, self.ledger.clone(), node(&name, group));
        let member = Member { name, group, protocol, start, holds, ledger, has_asked: false };
        let bell = Bell::new(self.rung.clone());
        let hop = Hop::new(Whose::Client(client), protocol, node, Box::new(member), (bell, first));
        let at = self.add(hop);
        self.look_at(at);
    }
}
