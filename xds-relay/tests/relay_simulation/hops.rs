//! The hops of a network: from a relay to an origin, and from a client to a relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;
use xds_relay::relay_core::{Dial, Dialed, Position, Routes};
use xds_transport::server;
use xds_transport::{Protocol, TypeRules, client};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_client::Backoff;
use xdstp_client::upstream::{Consumer as Feeds, Upstream};
use xdstp_uri::ResourceName;

use crate::consumer::Consumer;
use crate::faults::{Fault, Feed, Spoken, Starved, Strays};
use crate::flag::Flag;
use crate::link::Link;
use crate::messages::{Request, Response, Sent};
use crate::order::Books;
use crate::order::heard::Heard;
use crate::origin::group_of;
use crate::random::Random;
use crate::world::{Body, GROUPS, LED, Narrow, ORIGINS, Of, Place, World};

/// The two directions of a stream, in messages.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) up: Link,
    pub(crate) down: Link,
    /// It is broken, and both ends notice then.
    pub(crate) noticed_at: Option<u64>,
    /// When all that was sent down is on its way.
    free_at: u64,
}

impl Wire {
    pub(crate) fn cut(&mut self, random: &mut Random, now: u64) {
        if self.noticed_at.is_none() {
            self.up.cut(random);
            self.down.cut(random);
            self.noticed_at = Some(now + random.below(200));
        }
    }

    /// When a message is on its way down as a whole.
    pub(crate) fn sent(&mut self, now: u64, narrow: Option<Narrow>, bytes: usize) -> u64 {
        if let Some(Narrow { bytes_per_ms, .. }) = narrow {
            self.free_at = self.free_at.max(now) + bytes as u64 / bytes_per_ms;
        }
        self.free_at.max(now)
    }

    pub(crate) fn next(&self) -> Option<u64> {
        [self.up.next(), self.down.next(), self.noticed_at].into_iter().flatten().min()
    }
}

/// A stream that a relay keeps to an origin.
pub(crate) struct UpHop {
    pub(crate) origin: usize,
    /// Which of the origin's.
    pub(crate) server: usize,
    /// Which of its replicas it always is, where it comes and goes.
    pub(crate) replica: Option<usize>,
    /// The stream had a response.
    pub(crate) answered: bool,
    /// The last one that is over had none, or there was none.
    pub(crate) fails: bool,
    pub(crate) protocol: Protocol,
    /// Each type has a stream of its own.
    pub(crate) apart: bool,
    /// The node group it is for; the relay speaks for itself where names do not depend on the node.
    pub(crate) group: Option<usize>,
    /// Gone when the relay dropped its end.
    pub(crate) nudged: Weak<Flag>,
    pub(crate) feed: Feed,
    pub(crate) machine: Upstream,
    pub(crate) far: Option<FarEnd>,
    /// When there is something to do, if nobody nudges.
    pub(crate) due_at: Option<u64>,
}

pub(crate) struct FarEnd {
    pub(crate) replica: usize,
    pub(crate) server: server::Stream,
    pub(crate) wire: Wire,
    /// The streams of types, where each has one: what is above is of the connection then.
    pub(crate) apart: BTreeMap<TypeUrl, (server::Stream, Wire)>,
}

impl FarEnd {
    pub(crate) fn servers(&mut self) -> impl Iterator<Item = &mut server::Stream> {
        std::iter::once(&mut self.server).chain(self.apart.values_mut().map(|(server, _)| server))
    }

    /// What is asked for.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = server::SessionView<'_>> {
        self.server.sessions().chain(self.apart.values().flat_map(|(server, _)| server.sessions()))
    }

    pub(crate) fn wires(&self) -> impl Iterator<Item = &Wire> {
        std::iter::once(&self.wire).chain(self.apart.values().map(|(_, wire)| wire))
    }

    /// When the next response arrives.
    pub(crate) fn comes(&self) -> Option<u64> {
        self.wires().filter_map(|wire| wire.down.next()).min()
    }

    pub(crate) fn cut(&mut self, random: &mut Random, now: u64) {
        self.wire.cut(random, now);
        for (_, wire) in self.apart.values_mut() {
            wire.up.cut(random);
            wire.down.cut(random);
        }
    }
}

impl UpHop {
    /// What a driver does whenever it runs.
    pub(crate) fn turn(&mut self, now: Instant) {
        let Self { machine, feed, .. } = self;
        feed.commands(now, &mut |command| machine.apply(command));
        if feed.poll_timeout().is_some_and(|due| due <= now) {
            feed.handle_timeout(now);
        }
        machine.handle_timeout(now);
        self.deliver(now);
    }

    /// What came is taken before anything else is asked for.
    pub(crate) fn deliver(&mut self, now: Instant) {
        let Self { machine, feed, .. } = self;
        while let Some(client::Event::Update(update)) = machine.poll_event() {
            let id = update.id;
            let verdict = feed.update(now, update);
            machine.apply(client::Command::Finish(id, verdict));
        }
    }

    /// Among the servers of all origins.
    pub(crate) fn number(&self) -> usize {
        self.origin + ORIGINS * self.server
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.due_at.is_some_and(|at| at <= now) || self.nudged.upgrade().is_some_and(|nudged| nudged.is_set())
    }

    pub(crate) fn poll_timeout(&self, silent: bool) -> Option<Instant> {
        let apart = |far: &FarEnd| far.apart.values().filter_map(|(server, _)| server.poll_timeout()).min();
        let far = self.far.as_ref().filter(|_| !silent);
        let (server, apart) = (far.and_then(|far| far.server.poll_timeout()), far.and_then(apart));
        [self.machine.poll_timeout(), self.feed.poll_timeout(), server, apart].into_iter().flatten().min()
    }
}

/// Hands every stream that the relay opens to the network.
pub(crate) struct Dialer {
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) fault: Option<Fault>,
    pub(crate) start: Instant,
    pub(crate) dialed: Arc<Mutex<Vec<UpHop>>>,
    pub(crate) heard: Heard,
    pub(crate) strays: Strays,
    /// How many servers each origin has.
    pub(crate) servers: [usize; ORIGINS],
    /// The second comes and goes: at further positions it is that, too.
    pub(crate) led: bool,
    /// Which origins have a method for each type.
    pub(crate) apart: [bool; ORIGINS],
    pub(crate) spoken: Spoken,
}

impl Dial for Dialer {
    fn dial(
        &self,
        Position { origin: position, server }: Position,
        node: Bytes,
        consumer: Box<dyn Feeds>,
    ) -> Box<dyn Dialed> {
        let origin = position.min(LED);
        let nudged = Arc::new(Flag::default());
        nudged.set();
        let protocol = self.protocols[origin];
        let group = group_of(&node);
        let stream =
            client::Stream::new(protocol, node, Arc::new(TypeRules::envoy())).with_silence(client::Silence::IsNoAnswer);
        let stream = if self.apart[origin] { stream.per_type() } else { stream };
        let led = self.led && origin == LED;
        let several = if led { Some(position) } else { (self.servers[origin] > 1).then_some(server) };
        let of = (Place { origin, group }, several, self.spoken.clone());
        let hop = UpHop {
            origin,
            server,
            replica: led.then_some(position % 2),
            answered: false,
            fails: false,
            protocol,
            apart: self.apart[origin],
            group,
            nudged: Arc::downgrade(&nudged),
            feed: Feed::new(consumer, self.fault, of, self.heard.clone(), self.strays.clone()),
            machine: Upstream::new(stream, Backoff::default(), self.start),
            far: None,
            due_at: Some(0),
        };
        self.dialed.lock().unwrap().push(hop);
        Box::new(Handle(nudged))
    }
}

struct Handle(Arc<Flag>);

impl Dialed for Handle {
    fn nudge(&self) {
        self.0.set();
    }
}

/// A client, and its stream to the relay.
pub(crate) struct DownHop {
    pub(crate) protocol: Protocol,
    pub(crate) group: usize,
    /// It speaks as Envoy does.
    pub(crate) envoy: bool,
    pub(crate) machine: client::Stream,
    pub(crate) consumer: Consumer,
    pub(crate) served: Option<Served>,
    /// When it connects, if it is not.
    pub(crate) connect_at: Option<u64>,
    /// When there is something to do, if nobody wakes.
    pub(crate) due_at: Option<u64>,
}

pub(crate) struct Served {
    pub(crate) server: server::Stream,
    pub(crate) routes: Routes,
    pub(crate) woken: Arc<Flag>,
    pub(crate) wire: Wire,
    /// The link is full, and the relay was not asked for all it has to say.
    pub(crate) blocked: bool,
    pub(crate) starved: Starved,
    pub(crate) books: Books,
    /// Everything that was ever asked for on this stream.
    asked: BTreeMap<Of, BTreeSet<Interest>>,
    /// What is asked for now.
    current: BTreeMap<Of, BTreeSet<Interest>>,
    /// Wildcards and globs of which nothing was said (delta): even an empty response answers one.
    owed: BTreeMap<Of, BTreeSet<Interest>>,
    /// How the client spells what it asks for by name.
    spelled: BTreeMap<(Of, ResourceName), String>,
    /// What the client said it holds, or was sent.
    held: BTreeSet<(Of, ResourceName)>,
    /// What was asked for when each response was sent, by nonce.
    causes: BTreeMap<String, BTreeSet<Interest>>,
}

impl DownHop {
    pub(crate) fn new(world: &World, client: usize, node: Bytes) -> Self {
        let protocol = world.setup.down[client];
        // What a client concludes from silence must not hide that a relay that could say it did not.
        let silence = match protocol {
            Protocol::Delta => client::Silence::IsNoAnswer,
            Protocol::Sotw => client::Silence::IsAbsence,
        };
        Self {
            protocol,
            group: GROUPS[client],
            envoy: world.setup.envoy[client],
            machine: client::Stream::new(protocol, node, Arc::new(TypeRules::envoy())).with_silence(silence),
            consumer: Consumer::new(client),
            served: None,
            connect_at: Some(0),
            due_at: Some(0),
        }
    }
}

impl DownHop {
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.due_at.is_some_and(|at| at <= now) || self.served.as_ref().is_some_and(|served| served.woken.is_set())
    }
}

impl Served {
    pub(crate) fn new(server: server::Stream, routes: Routes, woken: Arc<Flag>, group: usize) -> Self {
        Self {
            blocked: false,
            starved: Starved::default(),
            books: Books::new(server.protocol(), group),
            server,
            routes,
            woken,
            wire: Wire::default(),
            asked: BTreeMap::new(),
            current: BTreeMap::new(),
            owed: BTreeMap::new(),
            spelled: BTreeMap::new(),
            held: BTreeSet::new(),
            causes: BTreeMap::new(),
        }
    }

    /// A request arrives at the relay.
    pub(crate) fn note(&mut self, world: &World, protocol: Protocol, request: &Request) {
        let Some(of) = world.of(&request.type_url) else { return };
        let parsed = |name: &String| name.parse::<ResourceName>().unwrap();
        let interest = |name: &String| Interest::from(parsed(name));
        self.spelled.extend(request.names.iter().map(|name| ((of, parsed(name)), name.clone())));
        self.held.extend(request.initial.iter().map(|(name, _)| (of, parsed(name))));
        let asked = self.asked.entry(of).or_insert_with(|| {
            // Rule 40.
            let legacy = world.kinds[of].full_state && request.names.is_empty();
            let asked: BTreeSet<_> = legacy.then_some(Interest::Wildcard).into_iter().collect();
            self.owed.insert(of, asked.clone());
            asked
        });
        let owed = self.owed.entry(of).or_default();
        owed.extend(request.names.iter().map(interest).filter(Interest::is_collection));
        owed.retain(|one| !request.unsubscribe.iter().any(|left| interest(left) == *one));
        let current = self.current.entry(of).or_insert_with(|| asked.clone());
        if protocol == Protocol::Sotw && !request.names.is_empty() {
            current.clear();
        }
        current.extend(request.names.iter().map(interest));
        for left in &request.unsubscribe {
            current.remove(&interest(left));
        }
        asked.extend(request.names.iter().map(interest));
    }

    /// Whether the relay was told, or told the client itself, that the client holds it.
    pub(crate) fn holds(&self, of: Of, name: &ResourceName) -> bool {
        self.held.contains(&(of, name.clone()))
    }

    pub(crate) fn asks_for(&self, of: Of, interest: &Interest) -> bool {
        self.current.get(&of).is_some_and(|asked| asked.contains(interest))
    }

    /// What was asked for when a response was sent that arrives now.
    pub(crate) fn cause(&mut self, response: &Response) -> BTreeSet<Interest> {
        self.causes.remove(&response.nonce).unwrap_or_default()
    }

    /// A response leaves the relay.
    pub(crate) fn check(&mut self, world: &World, group: usize, response: &Response) -> Result<(), String> {
        let of = world.of(&response.type_url).ok_or("rule 10: a response of a type nobody knows")?;
        let asked = self.asked.get(&of).ok_or("rule 10: a type that was not asked for on this stream")?;
        self.causes.insert(response.nonce.clone(), self.current.get(&of).cloned().unwrap_or_default());
        for name in response.removed.iter().chain(response.resources.iter().filter_map(Sent::own_name)) {
            let parsed: ResourceName = name.parse().map_err(|_| format!("{name:?} is no name"))?;
            let asked = self.asks_for(of, &Interest::Name(parsed.clone()));
            let spelled = self.spelled.get(&(of, parsed)).filter(|_| asked);
            if spelled.is_some_and(|spelled| spelled != name) {
                return Err(format!("rule 95: {name} is not spelled as it was asked for"));
            }
        }
        for sent in &response.resources {
            let name: ResourceName = sent.name.parse().map_err(|_| format!("{:?} is no name", sent.name))?;
            let body: Body = prost::Message::decode(sent.any.value.clone()).unwrap();
            if !body.is_for(&name, group) {
                return Err(format!("rules 147, 153: {name} is sent to group {group} as {body:?}"));
            }
            if !asked.iter().any(|interest| world.serves(of, interest, &name, &body)) {
                return Err(format!("rule 63: {name} is sent unasked"));
            }
            self.held.insert((of, name));
        }
        Ok(())
    }

    /// Rules 37 and 86: a response that says nothing is the first answer to a wildcard or glob. Of who asked for anything
    /// else of the type, what came may have been for that.
    pub(crate) fn check_owed(&mut self, world: &World, response: &Response) -> Result<(), String> {
        let Self { owed, asked, .. } = self;
        let Some(of) = world.of(&response.type_url).filter(|_| self.server.protocol() == Protocol::Delta) else {
            return Ok(());
        };
        let owed = owed.entry(of).or_default();
        let says = !response.resources.is_empty() || !response.removed.is_empty() || !response.errors.is_empty();
        let only = asked.get(&of).is_some_and(|asked| asked.len() == 1);
        if !says && only && owed.is_empty() {
            return Err("rule 37: an empty response that is not owed".into());
        }
        if !says || !response.resources.is_empty() {
            owed.clear();
        }
        Ok(())
    }
}
