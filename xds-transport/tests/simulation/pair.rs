//! A client and an origin of two replicas in virtual time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::client::{self, Command, Event, UpdateId, Verdict};
use xds_transport::server::{self, Settings};
use xdstp_cache::Interest;

use crate::consumer::{Cause, Consumer};
use crate::faults::{self, Books, ClientShim, Fault, ServerShim};
use crate::history::{History, Step};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::order::Order;
use crate::origin::Origin;
use crate::random::Random;
use crate::requests::{Accepted, Requests};
use crate::world::{Of, World};

/// After the last change all comes to rest within this time and this many messages.
const REST: u64 = 60_000;
const REST_MESSAGES: u64 = 400;

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
    client: client::Stream,
    client_shim: ClientShim,
    consumer: Consumer,
    /// The update that the client's user is busy with, until when, and what it will think of it.
    busy: Option<(u64, Unfinished)>,
    cause: Cause,
    accepted: Accepted,
    connections: Vec<Connection>,
    /// When the client connects; `None` while it is connected, or stays away.
    connect_at: Option<u64>,
    outage_until: u64,
    counts: Counts,
    log: Option<&'a mut String>,
}

struct Unfinished {
    id: UpdateId,
    of: Of,
    version: String,
    verdict: Verdict,
}

struct Connection {
    /// The client uses it.
    attached: bool,
    /// When an end notices that the connection broke.
    client_notices: Option<u64>,
    server_notices: Option<u64>,
    replica: usize,
    /// `None` once the server is gone.
    server: Option<server::Stream>,
    /// There may be something to send.
    armed: bool,
    shim: ServerShim,
    ledger: Ledger,
    order: Order,
    requests: Requests,
    /// What each response was sent for, by nonce.
    causes: BTreeMap<String, Cause>,
    up: Link,
    down: Link,
}

impl<'a> Pair<'a> {
    fn new(history: &History, fault: Option<Fault>, log: Option<&'a mut String>) -> Self {
        let world = World::new(history.setup.clone());
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        Self {
            client: client::Stream::new(world.setup.protocol, node(&world), world.rules.clone()),
            origin: Origin::new(&world),
            world,
            fault,
            random: Random::new(history.seed ^ 0x5eed),
            start,
            now: 0,
            client_shim: ClientShim::default(),
            consumer: Consumer::default(),
            busy: None,
            cause: Cause::default(),
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
            let pause = self.random.pick(&[0, 0, 1, 5, 50]);
            self.run_until(self.now + pause)?;
        }
        self.settle()?;
        self.leave()?;
        self.counts.virtual_ms = self.now;
        Ok(self.counts)
    }

    fn apply(&mut self, step: Step) -> Result<(), String> {
        let now = self.instant();
        match step {
            Step::Subscribe(of, what) => self.subscribe(of, what),
            Step::Unsubscribe(of, what) => self.unsubscribe(of, &self.world.kinds[of].interests[what].clone()),
            Step::Put(of, name, body) => self.origin.put(&self.world, of, name, body, now),
            Step::Replace { new, old, route, body } => {
                self.origin.remove(&self.world, 0, old, now);
                self.origin.put(&self.world, 3, route, body, now);
                self.origin.put(&self.world, 0, new, body, now);
            }
            Step::Remove(of, name) => self.origin.remove(&self.world, of, name, now),
            Step::Touch(of, name) => self.origin.touch(&self.world, of, name),
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
        self.consumer.subscribe(of, interest);
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
        while let Some(next) = self.next() {
            if next > deadline || self.counts.messages > limit {
                return Err("it does not come to rest".into());
            }
            self.now = self.now.max(next);
            self.process()?;
        }
        self.say(|| "at rest".into());
        self.consumer.check_converged(&self.world, &self.origin)?;
        for connection in self.connections.iter().filter(|one| one.attached) {
            connection.requests.check_answered()?;
            connection.ledger.check_at_rest(&self.origin)?;
            for of in 0..World::KINDS {
                let (asked, wanted) = (connection.ledger.interests(of), self.consumer.wants(of));
                if asked != wanted {
                    return Err(format!("{of}: {asked:?} is asked for, and {wanted:?} is wanted"));
                }
            }
        }
        Ok(())
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
        while let Some(next) = self.next().filter(|next| *next <= until) {
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
        ];
        let window = self.world.setup.window;
        let connections = self.connections.iter().flat_map(|one| {
            let writable = one.server.as_ref().filter(|_| one.down.has_room(window));
            [
                one.client_notices,
                one.server_notices,
                one.up.next().filter(|_| one.server.is_some()),
                one.down.next().filter(|_| one.attached && idle),
                writable.and_then(server::Stream::poll_timeout).map(|at| self.ms(at)),
            ]
        });
        client.into_iter().chain(connections).flatten().min()
    }

    /// Everything that is due now.
    fn process(&mut self) -> Result<(), String> {
        if self.connect_at.is_some_and(|at| at <= self.now) && self.outage_until <= self.now {
            self.connect();
        }
        let now = self.instant();
        self.client.handle_timeout(now);
        if let Some((_, unfinished)) = self.busy.take_if(|(until, _)| *until <= self.now) {
            self.finish(unfinished);
        }
        for at in 0..self.connections.len() {
            self.process_connection(at)?;
        }
        self.connections.retain(|one| one.attached || one.server.is_some());
        self.pump()
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
                let cache = &mut self.origin.replicas[connection.replica].cache;
                server.close(&mut Books { cache, fault: self.fault });
            }
        }
        while self.connections[at].server.is_some()
            && let Some(message) = self.connections[at].up.receive(self.now)
        {
            self.serve(at, &message)?;
        }
        while self.connections[at].attached
            && self.busy.is_none()
            && let Some(message) = self.connections[at].down.receive(self.now)
        {
            let response = Response::decode(self.world.setup.protocol, &message);
            self.say(|| format!("-> client  {}", describe_response(&response)));
            self.connections[at].requests.response(&self.world, &response);
            self.cause = self.connections[at].causes.remove(&response.nonce).unwrap_or_default();
            self.client_shim.response(&response);
            self.client.handle_message(self.instant(), message).map_err(|error| error.to_string())?;
            self.deliver()?;
        }
        Ok(())
    }

    /// A request arrives at the server.
    fn serve(&mut self, at: usize, message: &Bytes) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        let mut request = Request::decode(protocol, message);
        self.say(|| format!("-> server  {}", describe_request(&request)));
        let connection = &mut self.connections[at];
        connection.ledger.request(&self.world, &self.origin, &request);
        connection.shim.request(self.fault, protocol, &mut request);
        connection.armed = true;
        let cache = &mut self.origin.replicas[connection.replica].cache;
        let Some(server) = &mut connection.server else { return Ok(()) };
        server
            .handle_message(now, request.encode(protocol), &mut Books { cache, fault: self.fault })
            .map_err(|error| error.to_string())
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

    /// Events go to the client's user, one at a time.
    fn deliver(&mut self) -> Result<(), String> {
        while self.busy.is_none()
            && let Some(Event::Update(update)) = self.client.poll_event()
        {
            let of = self.world.of(update.type_url.as_str()).ok_or("an update of no type")?;
            let (id, version) = (update.id, update.version.clone());
            let verdict = self.consumer.take(&self.world, &self.origin, of, update, &self.cause)?;
            let unfinished = Unfinished { id, of, version, verdict };
            match self.world.setup.think {
                0 => self.finish(unfinished),
                think => self.busy = Some((self.now + self.random.below(think), unfinished)),
            }
        }
        Ok(())
    }

    fn finish(&mut self, Unfinished { id, of, version, verdict }: Unfinished) {
        match &verdict {
            Verdict::Accept => drop(self.accepted.insert((of, version))),
            Verdict::Reject { .. } => self.counts.nacks += 1,
        }
        self.client.apply(Command::Finish(id, verdict));
    }

    /// Only streams that the cache names, or that wait for their time, are asked.
    fn wake(&mut self) {
        for (index, replica) in self.origin.replicas.iter_mut().enumerate() {
            for id in replica.woken.drain(..) {
                if self.fault == Some(Fault::LoseWake) && self.random.one_in(4) {
                    continue;
                }
                for connection in self.connections.iter_mut().filter(|one| one.replica == index) {
                    let server = connection.server.iter();
                    connection.armed |= server.flat_map(server::Stream::sessions).any(|one| one.subscriber == id);
                }
            }
        }
        let now = self.instant();
        for connection in &mut self.connections {
            let due = connection.server.as_ref().and_then(server::Stream::poll_timeout);
            connection.armed |= due.is_some_and(|due| due <= now);
        }
    }

    /// The client writes.
    fn ask(&mut self, at: usize) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        while self.connections[at].up.has_room(self.world.setup.window)
            && let Some(message) = self.client.poll_transmit(now)
        {
            let request = Request::decode(protocol, &message);
            for request in self.client_shim.request(self.fault, protocol, request) {
                self.counts.messages += 1;
                self.say(|| format!("client ->  {}", describe_request(&request)));
                let connection = &mut self.connections[at];
                connection.requests.request(&self.world, &self.consumer, &self.accepted, &request)?;
                let arrives = self.now + self.random.below(self.world.setup.latency);
                let lane = if self.world.setup.reorder { &*request.type_url } else { "" };
                connection.up.send(arrives, lane, request.encode(protocol));
            }
        }
        Ok(())
    }

    /// The server writes.
    fn respond(&mut self, at: usize) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        loop {
            let connection = &mut self.connections[at];
            connection.order.tick(self.now, &self.world, &self.origin, &connection.ledger);
            let cache = &mut self.origin.replicas[connection.replica].cache;
            let mut source = Books { cache, fault: self.fault };
            let Some(server) = &mut connection.server else { return Ok(()) };
            if !connection.armed || !connection.down.has_room(self.world.setup.window) {
                return Ok(());
            }
            let transmit = match server.poll_transmit(now, &mut source) {
                Ok(Some(transmit)) => transmit,
                Ok(None) => {
                    connection.armed = false;
                    return Ok(());
                }
                Err(error) => {
                    server.close(&mut source);
                    connection.server = None;
                    connection.cut(&mut self.random, self.now, 10, 0);
                    self.say(|| format!("server closes: {error}"));
                    return Ok(());
                }
            };
            let mut response = Response::decode(protocol, &transmit.into_bytes());
            let imagined = connection.shim.response(self.fault, &self.world, &mut response);
            self.counts.messages += 1;
            self.say(|| format!("server ->  {}", describe_response(&response)));
            let connection = &mut self.connections[at];
            connection.order.response(self.now, &self.world, &self.origin, &connection.ledger, &response)?;
            connection.ledger.response(&self.world, &mut self.origin, &response)?;
            let cause = Cause {
                moment: self.origin.moment,
                asked: self.world.of(&response.type_url).map(|of| connection.ledger.interests(of)).unwrap_or_default(),
                removed: response.removed.iter().flat_map(|name| name.parse()).collect(),
            };
            connection.causes.insert(response.nonce.clone(), cause);
            let arrives = self.now + self.random.below(self.world.setup.latency);
            let lane = if self.world.setup.reorder { &*response.type_url } else { "" };
            connection.down.send(arrives, lane, response.encode(protocol));
            if let (Some(request), Some(server)) = (imagined, &mut connection.server) {
                let cache = &mut self.origin.replicas[connection.replica].cache;
                let mut source = Books { cache, fault: self.fault };
                server.handle_message(now, request.encode(protocol), &mut source).map_err(|error| error.to_string())?;
            }
        }
    }

    fn connect(&mut self) {
        self.connect_at = None;
        self.counts.streams += 1;
        let mut settings = Settings::default();
        settings.rules = faults::rules(&self.world, self.fault);
        let replica = self.random.index(self.origin.replicas.len());
        self.connections.push(Connection {
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

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{:>7} {}", self.now, line());
        }
    }
}

impl Connection {
    fn cut(&mut self, random: &mut Random, now: u64, client: u64, server: u64) {
        if self.client_notices.is_some() {
            return;
        }
        self.up.cut(random);
        self.down.cut(random);
        self.client_notices = self.attached.then_some(now + client);
        self.server_notices = Some(now + server);
    }
}

/// An encoded node that lists the client's features.
fn node(world: &World) -> Bytes {
    let mut node = vec![1 << 3 | 2, 2, b'm', b'e'];
    let feature = b"xds.config.resource-in-sotw";
    if world.setup.wrapped {
        node.extend([10 << 3 | 2, feature.len() as u8]);
        node.extend_from_slice(feature);
    }
    node.into()
}
