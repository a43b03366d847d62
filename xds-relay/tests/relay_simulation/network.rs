//! Clients, a relay and origins in virtual time.

mod apart;
mod down;
mod lead;
mod switch;
mod up;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::RelayCore;
use xds_transport::Protocol;
use xds_transport::client::Command;
use xdstp_cache::{Interest, TypeUrl};

use crate::faults::{Fault, Spoken, Strays};
use crate::history::{History, Step};
use crate::hops::{Dialer, DownHop, Served, UpHop};
use crate::network::down::close;
use crate::network::switch::Busy;
use crate::network::up::disconnected;
use crate::order::heard::{Heard, Words};
use crate::origin::{Origins, node};
use crate::random::Random;
use crate::world::{ALL_SERVERS, AUTHORITIES, Body, GROUPS, ORIGINS, Of, Place, World, place_of};

/// After the last change all comes to rest within this time and this many messages.
const REST: u64 = 180_000;
const REST_MESSAGES: u64 = 1000;
/// As long as a type that nobody asks for any more is taken to be away after its stream.
const UNANSWERED: u64 = 300_000;
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
    heard: Heard,
    up: Vec<UpHop>,
    down: Vec<DownHop>,
    origins: Origins,
    /// No stream to a server is made before.
    away_until: [u64; ALL_SERVERS],
    /// What an origin has to say waits until then.
    silent_until: [u64; ALL_SERVERS],
    /// Streams to an origin end as they begin until then.
    hangs_up_until: [u64; ALL_SERVERS],
    /// What an origin says takes long to come in until then.
    slow_until: [u64; ALL_SERVERS],
    /// Streams of a type to a server end as they begin until then.
    ends_until: BTreeMap<(usize, TypeUrl), u64>,
    busy: Vec<Busy>,
    /// How often the second origin was another, and whether there is none.
    leads: usize,
    away: bool,
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
        let heard = Arc::new(Mutex::new(Words::new(&world)));
        let core = relay(&world, fault, start, &dialed, &heard);
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
            heard,
            up: Vec::new(),
            origins: Origins::new(),
            away_until: [0; ALL_SERVERS],
            silent_until: [0; ALL_SERVERS],
            hangs_up_until: [0; ALL_SERVERS],
            slow_until: [0; ALL_SERVERS],
            ends_until: BTreeMap::new(),
            busy: Vec::new(),
            leads: 0,
            away: false,
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
            Step::Put { of, name, at, bad, aliases } => {
                let may = if self.world.setup.aliases { World::aliases_of(name) } else { 0 };
                let name = &self.world.kinds[of].names[name];
                let place = at.place(&self.world.setup, name);
                // Only what is asked for by name has others.
                let aliases = if place == place_of(name, place.group.unwrap_or(0)) { aliases & may } else { 0 };
                self.origins.put(&self.world, of, name, place, Body { bad, aliases, ..Body::default() }, now);
            }
            Step::Switch { of, name, at, to, pace, backwards } => self.switch((of, name, at), to, pace, backwards)?,
            Step::Busy { of, name, at, ms } => {
                let name = self.world.kinds[of].names[name].clone();
                let place = at.place(&self.world.setup, &name);
                self.busy.push(Busy { next: self.now, until: self.now + ms, of, name, place });
            }
            Step::Remove { of, name, at } => {
                let name = &self.world.kinds[of].names[name];
                self.origins.remove(&self.world, of, name, at.place(&self.world.setup, name), now);
            }
            Step::CutClient(client) => self.cut_client(client),
            Step::CutOrigin(origin) => self.cut_origin(origin),
            Step::Outage(origin, ms) => {
                self.away_until[origin] = self.now + ms;
                self.cut_origin(origin);
            }
            Step::Restart(server, replica) => {
                let origin = server % ORIGINS;
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
            Step::EndType(server, of, ms) => self.end_type(server, of, ms),
            Step::Slow(origin, ms) => self.slow_until[origin] = self.now + ms,
            Step::Lead { away, rests } if self.world.setup.led => self.lead(away, rests)?,
            Step::Lead { .. } => {}
            Step::Wait(ms) => self.run_until(self.now + ms)?,
            Step::Settle => self.settle()?,
        }
        self.touch();
        self.process()
    }

    /// A step changed something: everybody looks.
    fn touch(&mut self) {
        self.up.iter_mut().for_each(|hop| hop.due_at = Some(0));
        self.down.iter_mut().for_each(|hop| hop.due_at = Some(0));
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
        self.down.iter_mut().for_each(|hop| hop.consumer.moves(&self.world));
        *self.heard.lock().unwrap() = Words::new(&self.world);
        self.core = relay(&self.world, self.fault, self.start, &self.dialed, &self.heard);
    }

    /// Everybody returns; soon nobody has anything to say, and every client holds what the origins have for it.
    fn settle(&mut self) -> Result<(), String> {
        for until in [&mut self.away_until, &mut self.silent_until, &mut self.hangs_up_until, &mut self.slow_until] {
            *until = [self.now; ALL_SERVERS];
        }
        self.ends_until.clear();
        self.busy.clear();
        if self.away {
            self.lead_to(false);
        }
        self.rest()?;
        if self.world.setup.apart.contains(&true) {
            // What nobody wants of a type that was away lingers from when its stream has lasted.
            self.run_until(self.now + self.world.setup.linger)?;
            self.rest()?;
        }
        self.say(|| "at rest".into());
        for hop in &mut self.down {
            hop.consumer.check_converged(&self.world, &self.origins)?;
            hop.consumer.rests(&self.world);
        }
        self.check_demand()
    }

    fn rest(&mut self) -> Result<(), String> {
        let away = if self.world.setup.apart.contains(&true) { UNANSWERED } else { 0 };
        let (deadline, limit) = (self.now + REST + away, self.messages + REST_MESSAGES);
        self.touch();
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
            let (origin, group) = (hop.origin, hop.group);
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
            let cache = self.origins.cache(origin, far.replica, group);
            let mut asked = BTreeSet::new();
            for session in far.sessions() {
                let of = self.world.of(session.type_url.as_str()).ok_or("a type that nobody asked for")?;
                asked.extend(cache.interests(session.subscriber).map(|interest| (of, interest)));
            }
            if hop.server > 0 && hop.protocol == Protocol::Delta && !asked.is_empty() {
                return Err(format!(
                    "client rule 69: server {} of origin {} is asked for {asked:?}",
                    hop.server, hop.origin
                ));
            }
            // Over SotW the first may have nothing to say to those who went on to another.
            if asked != wanted && (hop.server == 0 || !asked.is_subset(&wanted)) {
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
        let hops = self.up.iter().map(|hop| hop.due_at).chain(self.down.iter().map(|hop| hop.due_at)).flatten();
        hops.chain(self.busy.iter().map(|busy| busy.next)).min()
    }

    /// Everything that is due now. As in a driver, nothing is looked at that nobody woke and no timeout is due of.
    fn process(&mut self) -> Result<(), String> {
        self.be_busy();
        loop {
            let mut progress = false;
            let mut hops = std::mem::take(&mut self.up);
            let dialed = std::mem::take(&mut *self.dialed.lock().unwrap());
            check_choice(&hops, &dialed)?;
            hops.extend(dialed);
            for mut hop in hops {
                if hop.nudged.strong_count() == 0 {
                    // The relay dropped its end.
                    self.heard.lock().unwrap().forget(Place { origin: hop.origin, group: hop.group });
                    self.end(&mut hop);
                    progress = true;
                    continue;
                }
                if hop.is_due(self.now) {
                    let moved = self.drive_up(&mut hop)?;
                    hop.due_at = if moved { Some(self.now) } else { self.next_up(&hop) };
                    progress |= moved;
                }
                self.up.push(hop);
            }
            let mut hops = std::mem::take(&mut self.down);
            let now = self.now;
            for hop in hops.iter_mut().filter(|hop| hop.is_due(now)) {
                let moved = self.drive_down(hop)?;
                hop.due_at = if moved { Some(self.now) } else { self.next_down(hop) };
                progress |= moved;
            }
            self.down = hops;
            if !progress {
                return Ok(());
            }
        }
    }

    /// When a message arrives that is sent now.
    fn arrival(&mut self) -> u64 {
        self.messages += 1;
        self.now + self.random.below(self.world.setup.latency)
    }

    /// How many messages a link bears at a time.
    fn window(&self) -> usize {
        self.world.setup.narrow.map_or(usize::MAX, |narrow| narrow.window)
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

/// No server is asked before the one above it failed.
fn check_choice(hops: &[UpHop], dialed: &[UpHop]) -> Result<(), String> {
    let above = |hop: &UpHop| {
        let is_above =
            |other: &&UpHop| (other.origin, other.group) == (hop.origin, hop.group) && other.server + 1 == hop.server;
        hops.iter().find(is_above).is_some_and(|above| above.fails)
    };
    match dialed.iter().find(|hop| hop.server > 0 && !above(hop)) {
        Some(hop) => Err(format!(
            "client rule 66: server {} of origin {} is asked, and the one above did not fail",
            hop.server, hop.origin
        )),
        None => Ok(()),
    }
}

/// A relay that knows nothing.
fn relay(
    world: &World,
    fault: Option<Fault>,
    start: Instant,
    dialed: &Arc<Mutex<Vec<UpHop>>>,
    heard: &Heard,
) -> Arc<RelayCore> {
    let config = config(world, Some("o1"));
    let dialer = Dialer {
        protocols: world.setup.up.into(),
        fault,
        start,
        dialed: dialed.clone(),
        heard: heard.clone(),
        strays: Strays::default(),
        servers: world.setup.servers,
        led: world.setup.led,
        apart: world.setup.apart,
        spoken: Spoken::default(),
    };
    let metrics = Arc::new(Metrics::new(world.kinds.iter().map(|kind| kind.url.as_str())));
    RelayCore::new(&config, Fault::grouping(fault), Box::new(dialer), metrics)
}

/// Its configuration, by what the second origin is called, if there is one.
fn config(world: &World, second: Option<&str>) -> Config {
    let linger = world.setup.linger;
    let mut text = format!("default_origin: o0\nshare_by: [cluster]\nlinger: {linger}ms\n");
    let _ = writeln!(text, "limits: {{ names_per_turn: {} }}\norigins:", world.setup.names_per_turn);
    let names = [Some("o0"), second];
    for (at, (authorities, name)) in AUTHORITIES.iter().zip(names).enumerate() {
        let Some(name) = name else { continue };
        let protocol = if world.setup.up[at] == Protocol::Delta { "delta" } else { "sotw" };
        let servers =
            if world.setup.servers[at] == 1 { "server: 127.0.0.1:1" } else { "servers: [127.0.0.1:1, 127.0.0.1:2]" };
        let _ = writeln!(text, "  - name: {name}\n    {servers}\n    protocol: {protocol}");
        let methods = if world.setup.apart[at] { "per_type" } else { "ads" };
        let _ = writeln!(text, "    methods: {methods}\n    authorities: [{authorities}]");
    }
    Config::parse("relay.yaml", &text).unwrap()
}
