//! A client of a relay: the real client machine, at the other end of the relay's real server machine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_relay::config::ClientRule;
use xds_relay::relay_core::{RelayCore, Routes, ServedStream};
use xds_transport::client::{Command, Event, Interest, Silence, Update, Verdict};
use xds_transport::server::Stream;
use xds_transport::wire::{DeltaDiscoveryRequest, Node};
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::Selector;
use xdstp_uri::ResourceName;

use crate::support::Flag;
use crate::support::origin::{body_of, short};

pub(crate) struct Client {
    protocol: Protocol,
    machine: xds_transport::client::Stream,
    served: Option<(Arc<Mutex<Stream>>, Routes)>,
    woken: Arc<Flag>,
    /// What it may ask for.
    rule: Option<Arc<Limited>>,
    /// It does not read.
    pub(crate) stalled: bool,
    /// It reads, and answers nothing.
    pub(crate) is_mute: bool,
    /// How its stream is can be looked at.
    is_shown: bool,
    /// It refuses everything.
    pub(crate) refuses: bool,
    /// By a fault that was planted: then it refuses what it cannot read, and goes on.
    pub(crate) is_told_nonsense: bool,
    /// One line for every update: `Cluster a@1 -b`, and `ok` where a collection was answered.
    pub(crate) told: Vec<String>,
    /// What it holds: type and name, to body.
    pub(crate) holds: BTreeMap<(String, String), String>,
    /// The versions of the responses, or of the resources, in order.
    pub(crate) versions: Vec<String>,
    /// What was said beside resources over delta.
    pub(crate) system_versions: Vec<String>,
    /// The chunks of every response, as they went out.
    pub(crate) chunks: Vec<Vec<Bytes>>,
}

impl Client {
    pub(crate) fn new(protocol: Protocol, node: Bytes) -> Self {
        Self {
            protocol,
            machine: machine(protocol, node),
            served: None,
            woken: Arc::default(),
            rule: None,
            stalled: false,
            is_mute: false,
            is_shown: false,
            refuses: false,
            is_told_nonsense: false,
            told: Vec::new(),
            holds: BTreeMap::new(),
            versions: Vec::new(),
            system_versions: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// One that asks for everything with this.
    pub(crate) fn selecting(self, dialect: Dialect, selector: Selector) -> Self {
        Self { machine: self.machine.selecting(dialect, selector).unwrap(), ..self }
    }

    pub(crate) fn under(self, rule: ClientRule) -> Self {
        Self { rule: Some(Arc::new(Limited::under(rule))), ..self }
    }

    /// One whose stream others can look at.
    pub(crate) fn shown(self) -> Self {
        Self { is_shown: true, ..self }
    }

    /// Another rule is for it, once it is looked at again.
    pub(crate) fn is_under_next(&self, rule: ClientRule) {
        self.rule.as_ref().unwrap().rules.lock().unwrap().push_back(Arc::new(rule));
    }

    /// How the relay ended its stream since the last time, if it did.
    pub(crate) fn ended(&self) -> Option<String> {
        self.rule.as_ref().unwrap().ended.lock().unwrap().take()
    }

    pub(crate) fn connect(&mut self, relay: &Arc<RelayCore>, now: Instant) {
        self.disconnect(now);
        let stream = Arc::new(Mutex::new(Stream::new(self.protocol, relay.settings())));
        let shown = self.is_shown.then(|| Arc::new(Shown(stream.clone())) as Arc<dyn ServedStream>);
        let outside = self.rule.clone().map(|rule| rule as Arc<dyn ServedStream>).or(shown);
        let routes = relay.open_stream(self.protocol, self.woken.waker(), outside);
        self.served = Some((stream, routes));
        self.machine.connected(now);
    }

    pub(crate) fn disconnect(&mut self, now: Instant) {
        if let Some((stream, mut routes)) = self.served.take() {
            stream.lock().unwrap().close(&mut routes);
            self.machine.disconnected(now);
        }
    }

    /// It started again, and knows nothing.
    pub(crate) fn restart(&mut self, now: Instant, node: &Node) {
        self.disconnect(now);
        self.machine = machine(self.protocol, node.encode_to_vec().into());
        self.holds.clear();
    }

    pub(crate) fn subscribe(&mut self, of: &str, names: &[&str]) {
        for name in names {
            self.machine.apply(Command::Subscribe(of.into(), interest(name)));
        }
    }

    pub(crate) fn unsubscribe(&mut self, of: &str, names: &[&str]) {
        for name in names {
            self.machine.apply(Command::Unsubscribe(of.into(), interest(name)));
        }
    }

    /// Says what its machine need not: that it asks for what it asked for already, over delta (rule 48).
    pub(crate) fn ask_again(&mut self, now: Instant, of: &str, names: &[&str]) {
        let resource_names_subscribe = names.iter().map(|&name| name.into()).collect();
        self.say(now, DeltaDiscoveryRequest { type_url: of.into(), resource_names_subscribe, ..Default::default() });
    }

    /// Says what its machine does not, over delta.
    pub(crate) fn say(&mut self, now: Instant, request: DeltaDiscoveryRequest) {
        let (stream, routes) = self.served.as_mut().unwrap();
        stream.lock().unwrap().handle_message(now, request.encode_to_vec().into(), routes).unwrap();
        self.woken.set();
    }

    /// The bodies of a type that it holds, in order of names.
    pub(crate) fn bodies(&self, of: &str) -> Vec<&str> {
        self.holds.iter().filter(|((type_url, _), _)| type_url == of).map(|(_, body)| body.as_str()).collect()
    }

    /// The names of a type that it holds, with their bodies.
    pub(crate) fn held(&self, of: &str) -> Vec<String> {
        let of = self.holds.iter().filter(|((type_url, _), _)| type_url == of);
        of.map(|((_, name), body)| format!("{name}@{body}")).collect()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let served = self
            .served
            .as_ref()
            .and_then(|(stream, _)| stream.lock().unwrap().poll_timeout())
            .filter(|_| !self.stalled);
        [served, self.machine.poll_timeout()].into_iter().flatten().min()
    }

    /// Whether anything happened.
    pub(crate) fn drive(&mut self, now: Instant, hears: &mut dyn FnMut(Bytes) -> Bytes) -> bool {
        self.machine.handle_timeout(now);
        let mut progress = self.deliver();
        let Some((stream, routes)) = &mut self.served else { return progress };
        while !self.is_mute
            && let Some(request) = self.machine.poll_transmit(now)
        {
            progress = true;
            let mut stream = stream.lock().unwrap();
            if let Err(error) = stream.handle_message(now, request, routes) {
                self.told.push(format!("ended {}: {error}", error.code()));
                drop(stream);
                self.disconnect(now);
                return true;
            }
            // As the gRPC layer does: else nobody looks.
            if stream.leaves_work(now, routes) {
                self.woken.set();
            }
        }
        let stream = stream.clone();
        let due = stream.lock().unwrap().poll_timeout().is_some_and(|due| due <= now);
        if self.stalled || !(self.woken.take() || due) {
            return progress;
        }
        let mut responses = Vec::new();
        loop {
            let polled = stream.lock().unwrap().poll_transmit(now, routes);
            match polled {
                Ok(Some(mut transmit)) => {
                    responses.push(std::iter::from_fn(|| transmit.next_chunk()).collect::<Vec<_>>());
                }
                Ok(None) => break,
                Err(error) => {
                    self.told.push(format!("ended {}: {error}", error.code()));
                    self.disconnect(now);
                    return true;
                }
            }
        }
        for chunks in responses {
            progress = true;
            self.machine.handle_message(now, hears(chunks.concat().into())).unwrap();
            self.chunks.push(chunks);
            self.deliver();
        }
        progress
    }

    fn deliver(&mut self) -> bool {
        let mut any = false;
        while let Some(Event::Update(update)) = self.machine.poll_event() {
            any = true;
            let id = update.id;
            assert!(self.is_told_nonsense || update.rejected.is_empty(), "{:?}", update.rejected);
            let verdict = if self.refuses {
                Verdict::Reject { reasons: vec![xds_transport::Rejected::new("a", "refused")] }
            } else {
                Verdict::Accept
            };
            self.take(update);
            self.machine.apply(Command::Finish(id, verdict));
        }
        any
    }

    fn take(&mut self, update: Update) {
        let of = update.type_url.to_string();
        match self.protocol {
            Protocol::Sotw => self.versions.push(update.version.clone()),
            Protocol::Delta => {
                self.system_versions.extend(Some(update.version.clone()).filter(|_| !update.changed.is_empty()));
                self.versions.extend(update.changed.iter().map(|changed| changed.resource.version.to_string()));
            }
        }
        let mut line = vec![short(&of).to_owned()];
        for changed in &update.changed {
            let body = body_of(changed.resource.value.any());
            line.push(format!("{}@{body}{}", changed.name, if changed.touched { " again" } else { "" }));
            self.holds.insert((of.clone(), changed.name.to_string()), body);
        }
        for name in update.removed.iter().chain(&update.missing) {
            line.push(format!("-{name}"));
            self.holds.remove(&(of.clone(), name.to_string()));
        }
        line.extend(update.errors.iter().map(|(name, error)| format!("-!{name}:{}", error.code)));
        line.sort_by_key(|word| (word.starts_with('-'), word.clone()));
        if !update.answered.is_empty() {
            line.push("ok".into());
        }
        if line.len() > 1 {
            line.sort_by_key(|word| word != short(&of));
            self.told.push(line.join(" "));
        }
    }
}

/// A stream as the gRPC layer shows it.
struct Shown(Arc<Mutex<Stream>>);

impl ServedStream for Shown {
    fn peer(&self) -> &str {
        "somewhere"
    }

    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        look(&self.0.lock().unwrap());
    }

    fn end(&self, _: &str) {}
}

/// A stream of a client that may not ask for everything.
struct Limited {
    /// The one that counts, and those that are to.
    rules: Mutex<VecDeque<Arc<ClientRule>>>,
    ended: Mutex<Option<String>>,
}

impl Limited {
    fn under(rule: ClientRule) -> Self {
        Self { rules: Mutex::new([Arc::new(rule)].into()), ended: Mutex::default() }
    }
}

impl ServedStream for Limited {
    fn peer(&self) -> &str {
        "somebody"
    }

    fn rule(&self) -> Option<Arc<ClientRule>> {
        self.rules.lock().unwrap().front().cloned()
    }

    fn judge(&self) -> Result<(), String> {
        let mut rules = self.rules.lock().unwrap();
        if rules.len() > 1 {
            rules.pop_front();
        }
        Ok(())
    }

    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

    fn end(&self, reason: &str) {
        *self.ended.lock().unwrap() = Some(reason.to_owned());
    }

    fn deny(&self, reason: &str) {
        *self.ended.lock().unwrap() = Some(format!("denied: {reason}"));
    }
}

/// What it is told is what the relay says, and not what it concludes itself.
fn machine(protocol: Protocol, node: Bytes) -> xds_transport::client::Stream {
    let silence = if protocol == Protocol::Delta { Silence::IsNoAnswer } else { Silence::IsAbsence };
    xds_transport::client::Stream::new(protocol, node, Arc::new(TypeRules::envoy())).with_silence(silence)
}

fn interest(name: &str) -> Interest {
    Interest::from(name.parse::<ResourceName>().unwrap())
}
