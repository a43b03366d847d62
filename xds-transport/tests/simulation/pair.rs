//! A client and an origin of two replicas in virtual time.

mod client;
mod connection;
mod server;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::client::{Command, Stream, Update};
use xdstp_cache::Interest;

use self::client::Unfinished;
use self::connection::Connection;
use crate::consumer::{Cause, Consumer};
use crate::faults::{Books, ClientShim, Fault};
use crate::history::{History, Step};
use crate::origin::{Origin, Replica};
use crate::random::Random;
use crate::requests::Accepted;
use crate::world::{Of, World};

/// After the last change all comes to rest within this time and this many messages.
const REST: u64 = 60_000;
const REST_MESSAGES: u64 = 400;
/// How often something may be due at one time.
const SPINS: u64 = 1000;
/// Where something lives for a time, it is at rest when nothing else was said for this long.
const QUIET: u64 = 3000;

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) streams: u64,
    pub(crate) nacks: u64,
    pub(crate) virtual_ms: u64,
}

/// Runs a history.
pub(crate) fn run(history: &History, fault: Option<Fault>) -> Result<Counts, String> {
    Pair::new(history, fault, None).run(&history.steps)
}

/// Runs a history and writes down all that is said.
pub(crate) fn transcript(history: &History, fault: Option<Fault>) -> String {
    let mut transcript = String::new();
    let result = Pair::new(history, fault, Some(&mut transcript)).run(&history.steps);
    let _ = writeln!(transcript, "{result:?}");
    transcript
}

struct Pair<'a> {
    world: World,
    fault: Option<Fault>,
    random: Random,
    start: Instant,
    /// In ms.
    now: u64,
    origin: Origin,
    client: Stream,
    client_shim: ClientShim,
    consumer: Consumer,
    /// The update that the client's user is busy with, until when, and what it will think of it.
    busy: Option<(u64, Unfinished)>,
    /// What happened, and why, until the user is not busy any more.
    events: VecDeque<(Update, Cause)>,
    /// When something was said that is more than that something lives on.
    news_at: u64,
    /// Nothing is wrong: nothing that the origin has may be over.
    steady: bool,
    accepted: Accepted,
    connections: Vec<Connection>,
    /// When the client connects; `None` while it is connected, or stays away.
    connect_at: Option<u64>,
    outage_until: u64,
    counts: Counts,
    log: Option<&'a mut String>,
}

/// A client that says what it selects, if it does.
fn selecting(world: &World, client: Stream) -> Stream {
    match world.setup.variants.filter(|form| form.on_wire) {
        Some(form) => client.selecting(form.dialect(), form.selector().clone()).unwrap(),
        None => client,
    }
}

impl<'a> Pair<'a> {
    fn new(history: &History, fault: Option<Fault>, log: Option<&'a mut String>) -> Self {
        let world = World::new(history.setup.clone());
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        Self {
            client: selecting(&world, Stream::new(world.setup.protocol, node(&world), world.rules.clone())),
            origin: Origin::new(&world),
            world,
            fault,
            random: Random::new(history.seed ^ 0x5eed),
            start,
            now: 0,
            client_shim: ClientShim::default(),
            consumer: Consumer::default(),
            busy: None,
            events: VecDeque::new(),
            news_at: 0,
            steady: false,
            accepted: Accepted::new(),
            connections: Vec::new(),
            connect_at: Some(0),
            outage_until: 0,
            counts: Counts::default(),
            log,
        }
    }

    fn run(mut self, steps: &[Step]) -> Result<Counts, String> {
        for step in steps {
            self.say(|| format!("{step:?}"));
            self.apply(*step)?;
            self.vary()?;
            let pause = self.random.pick(&[0, 0, 1, 5, 50]);
            self.run_until(self.now + pause)?;
        }
        self.settle()?;
        self.live_on()?;
        self.leave()?;
        self.counts.virtual_ms = self.now;
        Ok(self.counts)
    }

    fn apply(&mut self, step: Step) -> Result<(), String> {
        let now = self.instant();
        self.origin.now = self.now;
        match step {
            Step::Subscribe(of, what) => self.subscribe(of, what),
            Step::Unsubscribe(of, what) => self.unsubscribe(of, &self.world.kinds[of].interests[what].clone()),
            Step::Put(of, name, body, ttl) => self.origin.put(&self.world, of, name, body, ttl, now),
            Step::Fail(of, what, code) => self.origin.fail(&self.world, of, what, code, now),
            Step::Lend(of, name, body, ttl) => self.origin.lend(&self.world, of, name, body, ttl, now),
            Step::Answer(of, what) => self.origin.answer(&self.world, of, what, now),
            Step::Replace { new, old, route, body } => {
                self.origin.remove(&self.world, 0, old, now);
                self.origin.put(&self.world, 3, route, body, None, now);
                self.origin.put(&self.world, 0, new, body, None, now);
            }
            Step::Remove(of, name) => self.origin.remove(&self.world, of, name, now),
            Step::Touch(of, name) => self.origin.touch(&self.world, of, name, now),
            Step::Cut { client, server } => self.cut(client, server),
            Step::Stall { up, ms } => {
                if let Some(connection) = self.connections.iter_mut().find(|one| one.attached) {
                    let link = if up { &mut connection.up } else { &mut connection.down };
                    link.stalled_until = self.now + ms;
                }
            }
            Step::Outage(ms) => self.outage_until = self.now + ms,
            Step::Restart(replica) => {
                self.origin.restart(&self.world, replica, now, self.fault);
                for connection in self.connections.iter_mut().filter(|one| one.replica == replica) {
                    connection.server = None;
                    connection.cut(&mut self.random, self.now, 10, 0);
                }
            }
            Step::Wait(ms) => self.run_until(self.now + ms)?,
            Step::Settle => self.settle()?,
        }
        self.process()
    }

    fn subscribe(&mut self, of: Of, what: usize) {
        let interest = self.world.kinds[of].interests[what].clone();
        if self.consumer.wants(of).contains(&interest) && self.random.one_in(2) {
            // Given up and wanted anew before anything is said: it is to be sent again.
            self.unsubscribe(of, &interest);
        }
        let kind = &self.world.kinds[of];
        self.client.apply(Command::Subscribe(kind.url.clone(), interest.clone()));
        self.consumer.subscribe(of, interest, self.now);
    }

    fn unsubscribe(&mut self, of: Of, interest: &Interest) {
        self.client.apply(Command::Unsubscribe(self.world.kinds[of].url.clone(), interest.clone()));
        self.consumer.unsubscribe(&self.world, of, interest);
    }

    fn cut(&mut self, client: u64, server: u64) {
        if let Some(connection) = self.connections.iter_mut().find(|one| one.attached) {
            connection.cut(&mut self.random, self.now, client, server);
        }
    }

    /// The link heals; soon nobody has anything to say, and the client holds what the origin has for it.
    fn settle(&mut self) -> Result<(), String> {
        self.outage_until = self.now;
        for connection in &mut self.connections {
            (connection.up.stalled_until, connection.down.stalled_until) = (0, 0);
        }
        if self.connect_at.is_some() {
            self.connect_at = Some(self.now);
        }
        let (deadline, limit) = (self.now + REST, self.counts.messages + REST_MESSAGES);
        self.process()?;
        self.news_at = self.now;
        let mut spins = 0;
        while let Some(next) = self.next() {
            let quiet = self.world.tells_ttl() && self.news_at + QUIET < next && self.consumer.is_answered();
            if quiet && self.busy.is_none() && self.connections.iter().all(Connection::is_idle) {
                break;
            }
            spins = if next > self.now { 0 } else { spins + 1 };
            if next > deadline || spins > SPINS || self.counts.messages > limit {
                return Err("it does not come to rest".into());
            }
            self.now = self.now.max(next);
            self.process()?;
        }
        self.say(|| "at rest".into());
        self.consumer.check_converged(&self.world, &self.origin)?;
        for connection in self.connections.iter().filter(|one| one.attached) {
            connection.requests.check_answered()?;
            connection.ledger.check_at_rest(&self.world, &self.origin)?;
            for of in 0..World::KINDS {
                let (asked, wanted) = (connection.ledger.interests(of), self.consumer.wants(of));
                if asked != wanted {
                    return Err(format!("{of}: {asked:?} is asked for, and {wanted:?} is wanted"));
                }
            }
        }
        Ok(())
    }

    /// What lives for a time is not over while nothing is wrong.
    fn live_on(&mut self) -> Result<(), String> {
        if self.consumer.next_expiry().is_none() {
            return Ok(());
        }
        self.steady = true;
        self.run_until(self.now + 2 * World::TTLS[World::TTLS.len() - 1])?;
        self.steady = false;
        self.settle()
    }

    /// The client gives up everything, then goes: nothing of it stays.
    fn leave(&mut self) -> Result<(), String> {
        for of in 0..World::KINDS {
            for interest in self.consumer.wants(of) {
                self.unsubscribe(of, &interest);
            }
        }
        self.settle()?;
        for connection in &self.connections {
            let Some(server) = &connection.server else { continue };
            let cache = &self.origin.replicas[connection.replica].cache;
            if let Some(session) = server.sessions().find(|one| cache.interests(one.subscriber).next().is_some()) {
                return Err(format!("the server still keeps interests in {}", session.type_url));
            }
        }
        self.cut(0, 0);
        self.process()?;
        self.connect_at = None;
        while let Some(next) = self.next() {
            self.now = self.now.max(next);
            self.process()?;
        }
        self.client.connected(self.instant());
        if self.client.poll_transmit(self.instant()).is_some() {
            return Err("rule 61: a client that wants nothing asks for something".into());
        }
        self.origin.check_at_rest(&self.world)
    }

    fn run_until(&mut self, until: u64) -> Result<(), String> {
        self.process()?;
        let mut spins = 0;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            spins = if next > self.now { 0 } else { spins + 1 };
            if spins > SPINS {
                return Err("it is always due, and does nothing".into());
            }
            self.now = self.now.max(next);
            self.process()?;
        }
        self.now = until;
        Ok(())
    }

    /// When something happens by itself.
    fn next(&self) -> Option<u64> {
        let idle = self.busy.is_none();
        let client = [
            self.connect_at.map(|at| at.max(self.outage_until)),
            self.busy.as_ref().map(|(until, _)| *until),
            self.client.poll_timeout().map(|at| self.ms(at)),
            self.origin.next_expiry(),
            // The user's own clock: what is over is found by it if the machine forgets.
            self.consumer.next_expiry().filter(|at| *at > self.now && idle),
        ];
        let window = self.world.setup.window;
        let connections = self.connections.iter().flat_map(|one| {
            let writable = one.server.as_ref().filter(|_| one.down.has_room(window));
            [
                one.client_notices,
                one.server_notices,
                one.up.next().filter(|_| one.server.is_some()),
                one.down.next().filter(|_| one.attached && idle),
                writable.and_then(xds_transport::server::Stream::poll_timeout).map(|at| self.ms(at)),
            ]
        });
        client.into_iter().chain(connections).flatten().min()
    }

    /// Everything that is due now.
    fn process(&mut self) -> Result<(), String> {
        if self.connect_at.is_some_and(|at| at <= self.now) && self.outage_until <= self.now {
            self.connect();
        }
        if let Some((_, unfinished)) = self.busy.take_if(|(until, _)| *until <= self.now) {
            self.finish(unfinished);
        }
        let now = self.instant();
        self.origin.now = self.now;
        self.origin.expire(&self.world, now);
        self.client.handle_timeout(now);
        self.note_events(&Cause::default());
        for at in 0..self.connections.len() {
            self.process_connection(at)?;
        }
        self.connections.retain(|one| one.attached || one.server.is_some());
        self.pump()?;
        let over = self.consumer.next_expiry().filter(|until| *until <= self.now && self.busy.is_none());
        over.map_or(Ok(()), |until| Err(format!("rule 115: something was over at {until}, and its user was not told")))
    }

    fn process_connection(&mut self, at: usize) -> Result<(), String> {
        let now = self.instant();
        let connection = &mut self.connections[at];
        if connection.client_notices.is_some_and(|notices| notices <= self.now) {
            (connection.client_notices, connection.attached) = (None, false);
            self.client.disconnected(now);
            self.connect_at = Some(self.now + self.random.below(500));
        }
        let connection = &mut self.connections[at];
        if connection.server_notices.is_some_and(|notices| notices <= self.now) {
            connection.server_notices = None;
            if let Some(mut server) = connection.server.take() {
                let Replica { cache, memory, .. } = &mut self.origin.replicas[connection.replica];
                server.close(&mut Books { cache, memory, fault: self.fault });
            }
        }
        while self.connections[at].server.is_some()
            && let Some(message) = self.connections[at].up.receive(self.now)
        {
            self.serve(at, &message)?;
        }
        self.receive(at)
    }

    /// Whoever may write does.
    fn pump(&mut self) -> Result<(), String> {
        self.deliver()?;
        self.wake();
        for at in 0..self.connections.len() {
            if self.connections[at].attached {
                self.ask(at)?;
            }
            self.respond(at)?;
        }
        Ok(())
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_micros().div_ceil(1000) as u64
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{:>7} {}", self.now, line());
        }
    }
}

/// An encoded node that lists the client's features.
fn node(world: &World) -> Bytes {
    let mut node = vec![1 << 3 | 2, 2, b'm', b'e'];
    let features =
        [(world.setup.wrapped, "xds.config.resource-in-sotw"), (world.setup.ttl, "xds.config.supports-resource-ttl")];
    for (_, feature) in features.iter().filter(|(has, _)| *has) {
        node.extend([10 << 3 | 2, feature.len() as u8]);
        node.extend_from_slice(feature.as_bytes());
    }
    node.into()
}
