//! One stream from the relay to an origin: what a driver does with sockets. The far end says what the script says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::relay_core::{Dial, Dialed, Position};
use xds_transport::Protocol;
use xds_transport::TypeRules;
use xds_transport::client::{Event, Silence, Stream};
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};
use xdstp_cache::Interest;
use xdstp_client::Backoff;
use xdstp_client::upstream::{Consumer, Upstream};
use xdstp_uri::ResourceName;

use super::faults::{Fault, Feed};
use super::flag::Flag;
use super::said::{SILENCE, Said, Voice};
use super::transcript;
use super::world::{ORIGINS, Who};

/// More than this at once is no end.
const MOST_REQUESTS: usize = 200;

/// Hands every stream that the relay opens to the script.
pub(crate) struct Dialer {
    pub(crate) protocols: [Protocol; ORIGINS],
    pub(crate) fault: Option<Fault>,
    pub(crate) start: Instant,
    pub(crate) dialed: Arc<Mutex<Vec<Link>>>,
}

impl Dial for Dialer {
    fn dial(&self, Position { origin, .. }: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let nudged = Arc::new(Flag::default());
        nudged.set();
        let protocol = self.protocols[origin];
        let stream =
            Stream::new(protocol, node.clone(), Arc::new(TypeRules::envoy())).with_silence(Silence::IsNoAnswer);
        let link = Link {
            protocol,
            voice: (origin, Who::of(&node)),
            number: 0,
            nudged: Arc::downgrade(&nudged),
            feed: Feed::new(consumer, self.fault),
            machine: Upstream::new(stream, Backoff::default(), self.start),
            far: None,
        };
        self.dialed.lock().unwrap().push(link);
        Box::new(Handle(nudged))
    }
}

struct Handle(Arc<Flag>);

impl Dialed for Handle {
    fn nudge(&self) {
        self.0.set();
    }
}

pub(crate) struct Link {
    pub(crate) protocol: Protocol,
    pub(crate) voice: Voice,
    /// No two have the same.
    pub(crate) number: u64,
    /// Gone when the relay dropped its end.
    nudged: Weak<Flag>,
    feed: Feed,
    machine: Upstream,
    pub(crate) far: Option<FarEnd>,
}

/// What the origin knows of an open stream.
#[derive(Default)]
pub(crate) struct FarEnd {
    pub(crate) asked: BTreeMap<String, BTreeSet<Interest>>,
    pub(crate) nonces: u64,
    heard_at: Option<Instant>,
}

impl Link {
    pub(crate) fn is_dropped(&self) -> bool {
        self.nudged.strong_count() == 0
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.machine.poll_timeout(), self.feed.poll_timeout()].into_iter().flatten().min()
    }

    /// Whether anything happened.
    pub(crate) fn drive(&mut self, now: Instant, up: bool) -> Result<bool, String> {
        let mut progress = self.nudged.upgrade().is_some_and(|nudged| nudged.take());
        if !up && self.far.is_some() {
            self.cut(now);
            progress = true;
        }
        self.turn(now)?;
        progress |= self.feed.has_more_commands();
        if self.machine.should_connect(now) {
            progress = true;
            if let Some(node) = self.feed.node() {
                let who = Who::of(&node);
                if who != self.voice.1 {
                    return Err(format!("a stream for {:?} is one for {who:?} from now on", self.voice.1));
                }
                self.machine.set_node(node);
            }
            if up {
                self.far = Some(FarEnd::default());
                let connection = self.machine.connected(now);
                self.feed.connection(now, connection);
            } else {
                self.cut(now);
            }
            self.turn(now)?;
        }
        let Some(far) = &mut self.far else { return Ok(progress) };
        for _ in 0..MOST_REQUESTS {
            let waits = self.feed.has_more_commands();
            let request = if waits { None } else { self.machine.poll_transmit(now) };
            let Some(request) = request else { return Ok(progress) };
            progress = true;
            transcript::request(&self.voice, self.protocol, &request);
            far.note(self.protocol, request)?;
        }
        Err("more requests than anybody reads".into())
    }

    /// The stream ends, or none came to be.
    pub(crate) fn cut(&mut self, now: Instant) {
        self.far = None;
        let connection = self.machine.disconnected(now, Some("cut".into()), u64::MAX);
        self.feed.connection(now, connection);
    }

    /// The origin says something.
    pub(crate) fn say(&mut self, now: Instant, message: Bytes, said: &mut Said) -> Result<(), String> {
        let Some(far) = &mut self.far else { return Ok(()) };
        far.heard_at = Some(now);
        transcript::response(&self.voice, self.protocol, &message);
        said.note(now, self.voice, self.number, self.protocol, &message);
        match self.machine.handle_message(now, message) {
            Ok(connection) => {
                if let Some(connection) = connection {
                    self.feed.connection(now, connection);
                }
                self.deliver(now);
                self.turn(now)
            }
            Err(_) => {
                self.cut(now);
                Ok(())
            }
        }
    }

    /// A part of a message comes in.
    pub(crate) fn say_a_byte(&mut self, now: Instant) {
        if let Some(far) = &mut self.far {
            far.heard_at = far.heard_at.map(|_| now);
            self.machine.received(now);
            self.feed.received(now);
        }
    }

    /// Whether the origin spoke, and has been silent for long now.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let heard_at = self.far.as_ref().and_then(|far| far.heard_at);
        heard_at.is_some_and(|at| now.saturating_duration_since(at) >= SILENCE)
    }

    /// What a driver does whenever it runs.
    fn turn(&mut self, now: Instant) -> Result<(), String> {
        let Self { machine, feed, .. } = self;
        feed.commands(now, &mut |command| machine.apply(command));
        if feed.poll_timeout().is_some_and(|due| due <= now) {
            feed.handle_timeout(now);
        }
        if feed.poll_timeout().is_some_and(|due| due <= now) {
            return Err("the same timeout again".into());
        }
        machine.handle_timeout(now);
        self.deliver(now);
        Ok(())
    }

    /// What came is taken before anything else is asked for.
    fn deliver(&mut self, now: Instant) {
        let Self { machine, feed, .. } = self;
        while let Some(Event::Update(update)) = machine.poll_event() {
            let id = update.id;
            let verdict = feed.update(now, update);
            machine.apply(xds_transport::client::Command::Finish(id, verdict));
        }
    }
}

impl FarEnd {
    fn note(&mut self, protocol: Protocol, request: Bytes) -> Result<(), String> {
        let wrong = |error: prost::DecodeError| format!("a request that cannot be read: {error}");
        let interests = |names: &[String]| -> Result<BTreeSet<Interest>, String> {
            let name = |text: &String| text.parse::<ResourceName>().map_err(|error| error.to_string());
            names.iter().map(|text| name(text).map(Interest::from)).collect()
        };
        match protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(request).map_err(wrong)?;
                let first = !self.asked.contains_key(&request.type_url);
                let asked = self.asked.entry(request.type_url).or_default();
                asked.extend(interests(&request.resource_names_subscribe)?);
                if first && asked.is_empty() {
                    asked.insert(Interest::Wildcard);
                }
                for left in interests(&request.resource_names_unsubscribe)? {
                    if !request.resource_names_subscribe.iter().any(|name| name == left.as_str()) {
                        asked.remove(&left);
                    }
                }
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(request).map_err(wrong)?;
                let mut names = interests(&request.resource_names)?;
                if names.is_empty() && !self.asked.contains_key(&request.type_url) {
                    names.insert(Interest::Wildcard);
                }
                if !names.is_empty() || !self.asked[&request.type_url].contains(&Interest::Wildcard) {
                    self.asked.insert(request.type_url, names);
                }
            }
        }
        Ok(())
    }
}
