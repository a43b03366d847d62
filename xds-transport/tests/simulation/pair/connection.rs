//! One connection: a stream of the client, and a stream of a replica.

use std::collections::BTreeMap;

use xds_transport::server::{self, Settings};

use super::Pair;
use crate::consumer::Cause;
use crate::faults::{self, ServerShim};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::order::Order;
use crate::random::Random;
use crate::requests::Requests;
use crate::variants::Form;

pub(super) struct Connection {
    /// Which one it is of all that there were.
    pub(super) number: u64,
    /// The client uses it.
    pub(super) attached: bool,
    /// When an end notices that the connection broke.
    pub(super) client_notices: Option<u64>,
    pub(super) server_notices: Option<u64>,
    pub(super) replica: usize,
    /// `None` once the server is gone.
    pub(super) server: Option<server::Stream>,
    /// There may be something to send.
    pub(super) armed: bool,
    pub(super) shim: ServerShim,
    pub(super) ledger: Ledger,
    pub(super) order: Order,
    pub(super) requests: Requests,
    /// What each response was sent for, by nonce.
    pub(super) causes: BTreeMap<String, Cause>,
    pub(super) up: Link,
    pub(super) down: Link,
}

impl Pair<'_> {
    pub(super) fn connect(&mut self) {
        self.connect_at = None;
        self.counts.streams += 1;
        let mut settings = Settings::default();
        settings.rules = faults::rules(&self.world, self.fault);
        settings.ttl_in_sotw = true;
        settings.dialect = self.world.setup.variants.map(Form::dialect).unwrap_or_default();
        let replica = self.random.index(self.origin.replicas.len());
        self.connections.push(Connection {
            number: self.counts.streams,
            attached: true,
            client_notices: None,
            server_notices: None,
            replica,
            server: Some(server::Stream::new(self.world.setup.protocol, settings)),
            armed: false,
            shim: ServerShim::default(),
            ledger: Ledger::default(),
            order: Order::default(),
            requests: Requests::default(),
            causes: BTreeMap::new(),
            up: Link::default(),
            down: Link::default(),
        });
        self.client_shim.connected();
        self.client.connected(self.instant());
        self.say(|| format!("connected to replica {replica}"));
    }
}

impl Connection {
    /// Nothing is on its way, nor to be answered.
    pub(super) fn is_idle(&self) -> bool {
        let flies = self.up.next().is_some() || self.down.next().is_some();
        !flies && self.requests.check_answered().is_ok()
    }

    pub(super) fn cut(&mut self, random: &mut Random, now: u64, client: u64, server: u64) {
        if self.client_notices.is_some() {
            return;
        }
        self.up.cut(random);
        self.down.cut(random);
        self.client_notices = self.attached.then_some(now + client);
        self.server_notices = Some(now + server);
    }
}
