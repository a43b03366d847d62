//! Clients, a relay and origins in virtual time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::RelayCore;
use xds_transport::client::{Command, Event};
use xds_transport::server::{self, Settings, Transmit, Variant};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_client::upstream::Consumer as _;

use crate::faults::Fault;
use crate::flag::Flag;
use crate::history::{History, Step};
use crate::hops::{Dialer, DownHop, FarEnd, Served, UpHop, Wire};
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::origin::{Origins, group_of, node};
use crate::random::Random;
use crate::world::{GROUPS, ORIGINS, Of, World, place_of};

/// After the last change all comes to rest within this time and this many messages.
const REST: u64 = 180_000;
const REST_MESSAGES: u64 = 1000;
/// The longest that a slow answer is on its way.
const SLOWEST: u64 = 40_000;
/// The time between two of its bytes.
const BYTE: u64 = 5000;
/// Longer than what nobody wants any more lingers upstream.
const LINGER: u64 = 30_000;

/// Runs a history. Returns how many messages were sent.
pub(crate) fn run(history: &History, fault: Option<Fault>) -> Result<u64, String> {
    Network::new(history, fault, None).run(&history.steps)
}

/// Runs a history and writes down all that is said.
pub(crate) fn transcript(history: &History, fault: Option<Fault>) -> String {
    let mut transcript = String::new();
    let result = Network::new(history, fault, Some(&mut transcript)).run(&history.steps);
    let _ = writeln!(transcript, "{result:?}");
    transcript
}

struct Network<'a> {
    world: World,
    fault: Option<Fault>,
    random: Random,
    start: Instant,
    /// In ms.
    now: u64,
    next_sweep: u64,
    core: Arc<RelayCore>,
    dialed: Arc<Mutex<Vec<UpHop>>>,
    up: Vec<UpHop>,
    down: Vec<DownHop>,
    origins: Origins,
    /// No stream to an origin is made before.
    away_until: [u64; ORIGINS],
    /// What an origin has to say waits until then.
    silent_until: [u64; ORIGINS],
    /// Streams to an origin end as they begin until then.
    hangs_up_until: [u64; ORIGINS],
    /// What an origin says takes long to come in until then.
    slow_until: [u64; ORIGINS],
    /// What a planted fault keeps open.
    leaked: Vec<Served>,
    messages: u64,
    log: Option<&'a mut String>,
}

impl<'a> Network<'a> {
    fn new(history: &History, fault: Option<Fault>, log: Option<&'a mut String>) -> Self {
        let world = World::new(history.setup.clone());
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let dialed = Arc::new(Mutex::new(Vec::new()));
        let core = relay(&world, fault, start, &dialed);
        let clients = GROUPS.iter().enumerate();
        let down =
            clients.map(|(client, group)| DownHop::new(&world, client, node(client, *group, world.setup.wrapped)));
        Self {
            down: down.collect(),
            world,
            fault,
            random: Random::new(history.seed ^ 0x5eed),
            start,
            now: 0,
            next_sweep: 1000,
            core,
            dialed,
            up: Vec::new(),
            origins: Origins::new(),
            away_until: [0; ORIGINS],
            silent_until: [0; ORIGINS],
            hangs_up_until: [0; ORIGINS],
            slow_until: [0; ORIGINS],
            leaked: Vec::new(),
            messages: 0,
            log,
        }
    }

    fn run(mut self, steps: &[Step]) -> Result<u64, String> {
        for step in steps {
            self.say(|| format!("{step:?}"));
            self.apply(*step)?;
            let pause = self.random.pick(&[0, 0, 1, 5, 50]);
            self.run_until(self.now + pause)?;
        }
        self.settle()?;
        self.leave()?;
        Ok(self.messages)
    }

    fn apply(&mut self, step: Step) -> Result<(), String> {
        let now = self.instant();
        match step {
            Step::Subscribe(client, of, what) => {
                let (url, interest) = self.interest(of, what);
                let DownHop { machine, consumer, .. } = &mut self.down[client];
                machine.apply(Command::Subscribe(url, interest.clone()));
                consumer.subscribe(of, interest);
            }
            Step::Unsubscribe(client, of, what) => self.unsubscribe(client, of, &self.interest(of, what).1),
            Step::Put { of, name, group, bad } => {
                let name = &self.world.kinds[of].names[name];
                self.origins.put(&self.world, of, name, place_of(name, group), bad, now);
            }
            Step::Remove { of, name, group } => {
                let name = &self.world.kinds[of].names[name];
                self.origins.remove(&self.world, of, name, place_of(name, group), now);
            }
            Step::CutClient(client) => self.cut_client(client),
            Step::CutOrigin(origin) => self.cut_origin(origin),
            Step::Outage(origin, ms) => {
                self.away_until[origin] = self.now + ms;
                self.cut_origin(origin);
            }
            Step::Restart(origin, replica) => {
                for hop in self.up.iter_mut().filter(|hop| hop.origin == origin) {
                    if let Some(far) = hop.far.take_if(|far| far.replica == replica) {
                        drop(far);
                        disconnected(hop, now, &mut self.random);
                    }
                }
                self.origins.restart(&self.world, origin, replica, now);
            }
            Step::RestartRelay => self.restart_relay(),
            Step::Silence(origin, ms) => self.silent_until[origin] = self.now + ms,
            Step::HangUp(origin, ms) => {
                self.hangs_up_until[origin] = self.now + ms;
                self.cut_origin(origin);
            }
            Step::Slow(origin, ms) => self.slow_until[origin] = self.now + ms,
            Step::Wait(ms) => self.run_until(self.now + ms)?,
            Step::Settle => self.settle()?,
        }
        self.process()
    }

    fn interest(&self, of: Of, what: usize) -> (TypeUrl, Interest) {
        let kind = &self.world.kinds[of];
        (kind.url.clone(), kind.interests[what].clone())
    }

    fn unsubscribe(&mut self, client: usize, of: Of, interest: &Interest) {
        let DownHop { machine, consumer, .. } = &mut self.down[client];
        machine.apply(Command::Unsubscribe(self.world.kinds[of].url.clone(), interest.clone()));
        consumer.unsubscribe(&self.world, of, interest);
    }

    fn cut_client(&mut self, client: usize) {
        if let Some(served) = &mut self.down[client].served {
            served.wire.cut(&mut self.random, self.now);
        }
    }

    fn cut_origin(&mut self, origin: usize) {
        for far in self.up.iter_mut().filter(|hop| hop.origin == origin).filter_map(|hop| hop.far.as_mut()) {
            far.wire.cut(&mut self.random, self.now);
        }
    }

    /// Another relay takes the place of this one: its clients come back, with what they hold.
    fn restart_relay(&mut self) {
        let now = self.instant();
        for hop in &mut self.down {
            if let Some(served) = hop.served.take() {
                close(served, self.fault, &mut self.leaked);
                hop.machine.disconnected(now);
                hop.connect_at = Some(self.now + self.random.below(500));
            }
        }
        let mut hops = std::mem::take(&mut self.up);
        hops.append(&mut self.dialed.lock().unwrap());
        for mut hop in hops {
            self.end(&mut hop);
        }
        self.core = relay(&self.world, self.fault, self.start, &self.dialed);
    }

    /// Everybody returns; soon nobody has anything to say, and every client holds what the origins have for it.
    fn settle(&mut self) -> Result<(), String> {
        for until in [&mut self.away_until, &mut self.silent_until, &mut self.hangs_up_until, &mut self.slow_until] {
            *until = [self.now; ORIGINS];
        }
        self.rest()?;
        self.say(|| "at rest".into());
        for hop in &mut self.down {
            hop.consumer.check_converged(&self.world, &self.origins)?;
        }
        self.check_demand()
    }

    fn rest(&mut self) -> Result<(), String> {
        let (deadline, limit) = (self.now + REST, self.messages + REST_MESSAGES);
        self.process()?;
        while let Some(next) = self.next() {
            if next > deadline || self.messages > limit {
                return Err("it does not come to rest".into());
            }
            self.pass(next);
            self.process()?;
        }
        Ok(())
    }

    /// Rule 141: what is subscribed upstream is what somebody wants.
    fn check_demand(&mut self) -> Result<(), String> {
        for hop in &self.up {
            let Some(far) = &hop.far else { continue };
            let (origin, group) = (hop.origin, group_of(&hop.node));
            let mut wanted = BTreeSet::new();
            for client in &self.down {
                for of in 0..World::KINDS {
                    let here = |interest: &Interest| match interest {
                        Interest::Wildcard => group == Some(client.group),
                        Interest::Name(name) => {
                            let place = place_of(name, client.group);
                            place.origin == origin && place.group == group
                        }
                    };
                    wanted.extend(client.consumer.wants(of).into_iter().filter(here).map(|interest| (of, interest)));
                }
            }
            let cache = self.origins.cache(origin, far.replica, &hop.node);
            let mut asked = BTreeSet::new();
            for session in far.server.sessions() {
                let of = self.world.of(session.type_url.as_str()).ok_or("a type that nobody asked for")?;
                asked.extend(cache.interests(session.subscriber).map(|interest| (of, interest)));
            }
            if asked != wanted {
                return Err(format!("rule 141: {asked:?} is subscribed upstream, and {wanted:?} is wanted"));
            }
        }
        Ok(())
    }

    /// The clients give up everything and go: nothing of them stays.
    fn leave(&mut self) -> Result<(), String> {
        for client in 0..self.down.len() {
            for of in 0..World::KINDS {
                for interest in self.down[client].consumer.wants(of) {
                    self.unsubscribe(client, of, &interest);
                }
            }
        }
        self.settle()?;
        for hop in &mut self.down {
            if let Some(served) = hop.served.take() {
                close(served, self.fault, &mut self.leaked);
            }
        }
        for _ in 0..2 {
            self.pass(self.now + LINGER);
            self.process()?;
        }
        let dump = self.core.config_dump(self.instant());
        if !dump.scopes.is_empty() || !dump.clients.is_empty() || !self.up.is_empty() {
            let scopes: Vec<_> = dump.scopes.iter().map(|scope| &scope.scope).collect();
            return Err(format!("{scopes:?} and {} streams are left of clients that went", self.up.len()));
        }
        self.origins.check_left()
    }

    fn run_until(&mut self, until: u64) -> Result<(), String> {
        self.process()?;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.pass(next);
            self.process()?;
        }
        self.pass(until);
        Ok(())
    }

    fn pass(&mut self, until: u64) {
        self.now = self.now.max(until);
        if self.next_sweep <= self.now {
            self.core.sweep(self.instant());
            self.next_sweep = self.now + 1000;
        }
    }

    /// When something happens by itself.
    fn next(&self) -> Option<u64> {
        let up = self.up.iter().flat_map(|hop| {
            let silent_until = self.silent_until[hop.origin];
            let silent = silent_until > self.now;
            let arrives = hop.far.as_ref().and_then(|far| far.wire.next());
            // What is long on its way comes byte by byte.
            let byte = arrives.filter(|at| *at > self.now + BYTE).map(|_| self.now + BYTE);
            [hop.poll_timeout(silent).map(|at| self.ms(at)), arrives, byte, silent.then_some(silent_until)]
        });
        let down = self.down.iter().flat_map(|hop| {
            let served = hop.served.as_ref();
            [
                hop.connect_at,
                hop.machine.poll_timeout().map(|at| self.ms(at)),
                served.and_then(|served| served.wire.next()),
                served.and_then(|served| served.server.poll_timeout()).map(|at| self.ms(at)),
            ]
        });
        up.chain(down).flatten().min()
    }

    /// Everything that is due now.
    fn process(&mut self) -> Result<(), String> {
        loop {
            let mut progress = false;
            let mut hops = std::mem::take(&mut self.up);
            hops.append(&mut self.dialed.lock().unwrap());
            for mut hop in hops {
                if hop.nudged.strong_count() == 0 {
                    // The relay dropped its end.
                    self.end(&mut hop);
                    progress = true;
                } else {
                    progress |= self.drive_up(&mut hop)?;
                    self.up.push(hop);
                }
            }
            let mut hops = std::mem::take(&mut self.down);
            for hop in &mut hops {
                progress |= self.drive_down(hop)?;
            }
            self.down = hops;
            if !progress {
                return Ok(());
            }
        }
    }

    /// The origin learns that a stream is over.
    fn end(&mut self, hop: &mut UpHop) {
        if let Some(mut far) = hop.far.take() {
            far.server.close(self.origins.cache(hop.origin, far.replica, &hop.node));
        }
    }

    fn drive_up(&mut self, hop: &mut UpHop) -> Result<bool, String> {
        let (now, away) = (self.instant(), self.away_until[hop.origin] > self.now);
        let mut progress = hop.nudged.upgrade().is_some_and(|nudged| nudged.take());
        if hop.far.as_ref().and_then(|far| far.wire.noticed_at).is_some_and(|at| at <= self.now) {
            progress = true;
            self.end(hop);
            disconnected(hop, now, &mut self.random);
        }
        hop.turn(now);
        if hop.machine.should_connect(now) {
            progress = true;
            if away {
                disconnected(hop, now, &mut self.random);
            } else if self.hangs_up_until[hop.origin] > self.now {
                let connection = hop.machine.connected(now);
                hop.feed.connection(now, connection);
                disconnected(hop, now, &mut self.random);
            } else {
                let (replica, server) = (self.random.index(2), server::Stream::new(hop.variant, Settings::default()));
                hop.far = Some(FarEnd { replica, server, wire: Wire::default() });
                let connection = hop.machine.connected(now);
                hop.feed.connection(now, connection);
                self.say(|| format!("relay connects to {replica} of origin {}", hop.origin));
            }
            hop.turn(now);
        }
        let label = format!("{}/{:?}", hop.origin, group_of(&hop.node));
        let UpHop { far: Some(far), machine, variant, .. } = hop else { return Ok(progress) };
        while let Some(message) = machine.poll_transmit(now) {
            let request = Request::decode(*variant, &message);
            self.say(|| format!("relay -> origin {label} {}", describe_request(&request)));
            if let Some(error) = request.error {
                return Err(format!("rule 145: the relay refuses what it can read: {}", error.message));
            }
            far.wire.up.send(self.arrival(), "", message);
            progress = true;
        }
        let cache = self.origins.cache(hop.origin, far.replica, &hop.node);
        while let Some(message) = far.wire.up.receive(self.now) {
            far.server.handle_message(now, message, cache).map_err(|error| error.to_string())?;
            progress = true;
        }
        let silent = self.silent_until[hop.origin] > self.now;
        let slow = self.slow_until[hop.origin] > self.now;
        while !silent && let Some(transmit) = far.server.poll_transmit(now, cache).map_err(|error| error.to_string())? {
            let message = transmit.into_bytes();
            // What is said is only written down where it is read.
            if let Some(log) = &mut self.log {
                let response = describe_response(&Response::decode(*variant, &message));
                let _ = writeln!(log, "{:>7} origin {label} -> {response}", self.now);
            }
            self.messages += 1;
            let slowness = if slow { self.random.below(SLOWEST) } else { 0 };
            let arrives = self.now + self.random.below(self.world.setup.latency) + slowness;
            far.wire.down.send(arrives, "", message);
            progress = true;
        }
        if hop.far.as_ref().is_some_and(|far| far.wire.down.next().is_some()) {
            hop.feed.received(now);
        }
        while let Some(far) = &mut hop.far
            && let Some(message) = far.wire.down.receive(self.now)
        {
            if let Some(connection) = hop.machine.handle_message(now, message).map_err(|error| error.to_string())? {
                hop.feed.connection(now, connection);
            }
            hop.turn(now);
            progress = true;
        }
        Ok(progress)
    }

    fn drive_down(&mut self, hop: &mut DownHop) -> Result<bool, String> {
        let now = self.instant();
        let mut progress = false;
        if hop.served.as_ref().and_then(|served| served.wire.noticed_at).is_some_and(|at| at <= self.now)
            && let Some(served) = hop.served.take()
        {
            close(served, self.fault, &mut self.leaked);
            hop.machine.disconnected(now);
            hop.connect_at = Some(self.now + self.random.below(500));
            progress = true;
        }
        if hop.connect_at.is_some_and(|at| at <= self.now) {
            hop.connect_at = None;
            let woken = Arc::new(Flag::default());
            let routes = self.core.open_stream(hop.variant, woken.waker(), None);
            hop.served = Some(Served::new(server::Stream::new(hop.variant, self.core.settings()), routes, woken));
            hop.machine.connected(now);
            progress = true;
        }
        hop.machine.handle_timeout(now);
        self.deliver(hop, &BTreeSet::new())?;
        let label = format!("{:?} {}", hop.variant, hop.consumer.client());
        let DownHop { served: Some(served), machine, variant, .. } = hop else { return Ok(progress) };
        while let Some(message) = machine.poll_transmit(now) {
            self.say(|| format!("client {label} -> {}", describe_request(&Request::decode(*variant, &message))));
            served.wire.up.send(self.arrival(), "", message);
            progress = true;
        }
        while let Some(message) = served.wire.up.receive(self.now) {
            served.note(&self.world, *variant, &Request::decode(*variant, &message));
            served.server.handle_message(now, message, &mut served.routes).map_err(|error| error.to_string())?;
            served.woken.set();
            progress = true;
        }
        let due = served.server.poll_timeout().is_some_and(|due| due <= now);
        let woken = served.woken.take() && !(self.fault == Some(Fault::LoseWake) && self.random.one_in(4));
        if woken || due {
            let transmits = std::iter::from_fn(|| served.server.poll_transmit(now, &mut served.routes).transpose());
            let transmits: Vec<_> = transmits.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
            for message in transmits.into_iter().map(Transmit::into_bytes) {
                let response = Response::decode(*variant, &message);
                self.say(|| format!("relay -> client {label} {}", describe_response(&response)));
                served.check(&self.world, hop.group, &response)?;
                served.wire.down.send(self.arrival(), "", message);
                progress = true;
            }
        }
        while let Some(served) = &mut hop.served
            && let Some(message) = served.wire.down.receive(self.now)
        {
            let asked = served.cause(&Response::decode(hop.variant, &message));
            hop.machine.handle_message(now, message).map_err(|error| error.to_string())?;
            self.deliver(hop, &asked)?;
            progress = true;
        }
        Ok(progress)
    }

    fn deliver(&self, hop: &mut DownHop, asked: &BTreeSet<Interest>) -> Result<(), String> {
        while let Some(Event::Update(update)) = hop.machine.poll_event() {
            let id = update.id;
            let verdict = hop.consumer.take(&self.world, &self.origins, update, asked)?;
            hop.machine.apply(Command::Finish(id, verdict));
        }
        Ok(())
    }

    /// When a message arrives that is sent now.
    fn arrival(&mut self) -> u64 {
        self.messages += 1;
        self.now + self.random.below(self.world.setup.latency)
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_nanos().div_ceil(1_000_000) as u64
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{:>7} {}", self.now, line());
        }
    }
}

/// A relay that knows nothing.
fn relay(world: &World, fault: Option<Fault>, start: Instant, dialed: &Arc<Mutex<Vec<UpHop>>>) -> Arc<RelayCore> {
    let mut text = String::from("default_origin: o0\nshare_by: [cluster]\norigins:\n");
    for (at, authority) in ["x", "y"].iter().enumerate() {
        let protocol = if world.setup.up[at] == Variant::Delta { "delta" } else { "sotw" };
        let _ = writeln!(text, "  - name: o{at}\n    server: 127.0.0.1:1\n    protocol: {protocol}");
        let _ = writeln!(text, "    authorities: [{authority}]");
    }
    let config = Config::parse("relay.yaml", &text).unwrap();
    let dialer = Dialer { variants: world.setup.up.into(), fault, start, dialed: dialed.clone() };
    let metrics = Arc::new(Metrics::new(world.kinds.iter().map(|kind| kind.url.as_str())));
    RelayCore::new(&config, Fault::grouping(fault), Box::new(dialer), metrics)
}

/// The relay notices that a stream to an origin is over, or that none can be made.
fn disconnected(hop: &mut UpHop, now: Instant, random: &mut Random) {
    let connection = hop.machine.disconnected(now, Some("cut".into()), random.below(u64::MAX));
    hop.feed.connection(now, connection);
}

/// The relay notices that a client went.
fn close(mut served: Served, fault: Option<Fault>, leaked: &mut Vec<Served>) {
    if fault == Some(Fault::LeakStream) {
        leaked.push(served);
    } else {
        served.server.close(&mut served.routes);
    }
}
