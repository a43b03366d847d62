//! One stream from a relay to an origin, or to another relay: what a driver does with sockets.

mod apart;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::metadata::MetadataMap;
use xds_relay::config::{self, Methods, OriginKind};
use xds_relay::relay_core::{AdmitError, Admitted, Dial, Dialed, Position, RelayCore, Routes};
use xds_transport::client::{Command, Event, Silence};
use xds_transport::server::{Stream, Transmit};
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::TypeUrl;
use xdstp_client::Backoff;
use xdstp_client::upstream::{Consumer, Upstream};

use crate::support::origin::Origin;
use crate::support::{Ended, Feeder, Flag, Relay, SECOND, World};

/// What is spoken with an origin: its protocol, its form of TP2, and by which methods.
pub(crate) type Speaks = (Protocol, Dialect, Methods);

pub(crate) fn spoken_with(origin: &config::Origin) -> Speaks {
    let protocol = match origin.kind {
        OriginKind::Server { protocol, .. } => protocol,
        _ => Protocol::Delta,
    };
    (protocol, origin.dynamic_parameters, origin.methods)
}

/// How many servers an origin has.
pub(crate) fn servers_of(origin: &config::Origin) -> usize {
    if let OriginKind::Server { servers, .. } = &origin.kind { servers.len() } else { 1 }
}

/// Hands every stream that the relay opens to the world.
pub(crate) struct Dialer {
    pub(crate) speaks: Vec<Speaks>,
    /// Where the servers of each origin begin among what feeds the relay.
    pub(crate) first: Vec<usize>,
    pub(crate) dialed: Arc<Mutex<Vec<Link>>>,
    pub(crate) now: Instant,
    /// The relays above may end its streams.
    pub(crate) is_ended: bool,
}

impl Dial for Dialer {
    fn dial(&self, Position { origin, server }: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let nudged = Arc::new(Flag::default());
        nudged.set();
        // One that came later is spoken to as most are, and has one server.
        let most = (Protocol::Delta, Dialect::Final, Methods::Ads);
        let (protocol, dialect, methods) = self.speaks.get(origin).copied().unwrap_or(most);
        let stream = xds_transport::client::Stream::new(protocol, node.clone(), Arc::new(TypeRules::envoy()))
            .with_silence(Silence::IsNoAnswer)
            .selecting(dialect, consumer.selector())
            .unwrap();
        let is_per_type = methods == Methods::PerType;
        let stream = if is_per_type { stream.per_type() } else { stream };
        let link = Link {
            origin: self.first.get(origin).copied().unwrap_or(origin) + server,
            protocol,
            dialect,
            is_per_type,
            node,
            nudged: Arc::downgrade(&nudged),
            consumer,
            upstream: Upstream::new(stream, Backoff::default(), self.now),
            far_end: None,
            far_end_speaks: true,
            is_stuck: false,
            is_ended: self.is_ended,
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
    pub(crate) origin: usize,
    protocol: Protocol,
    dialect: Dialect,
    /// Each type has a stream there.
    is_per_type: bool,
    pub(crate) node: Bytes,
    /// Gone when the relay dropped its end.
    nudged: Weak<Flag>,
    consumer: Box<dyn Consumer>,
    upstream: Upstream,
    far_end: Option<FarEnd>,
    far_end_speaks: bool,
    /// Nothing that is said on it arrives any more.
    pub(crate) is_stuck: bool,
    is_ended: bool,
}

struct FarEnd {
    stream: Stream,
    /// Those of types, in its place.
    apart: BTreeMap<TypeUrl, Stream>,
    /// When it may say something again.
    ready_at: Option<Instant>,
    /// A response on its way, with when it is all there.
    coming: Option<(Instant, Bytes)>,
    /// `None`: the cache of the origin.
    routes: Option<Routes>,
    admitted: Option<Admitted>,
    woken: Arc<Flag>,
    /// How the relay it is at ended it, if it did.
    ended: Arc<Ended>,
}

impl FarEnd {
    fn transmit(&mut self, now: Instant, origin: Option<&mut Origin>, node: &Bytes) -> Option<Bytes> {
        let transmit = match (&mut self.routes, origin) {
            (Some(routes), _) => self.stream.poll_transmit(now, routes),
            (None, Some(origin)) => self.stream.poll_transmit(now, origin.cache_of(node)),
            (None, None) => unreachable!(),
        };
        transmit.unwrap().map(Transmit::into_bytes)
    }
}

impl Link {
    pub(crate) fn is_open(&self) -> bool {
        self.far_end.is_some()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.nudged.strong_count() == 0
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let far = self.far_end.as_ref();
        let streams = far.into_iter().flat_map(|far| far.apart.values().chain([&far.stream]));
        let says = streams.filter_map(Stream::poll_timeout).min().filter(|_| self.far_end_speaks);
        let ready = far.and_then(|far| far.ready_at);
        [self.upstream.poll_timeout(), self.consumer.poll_timeout(), says, ready].into_iter().flatten().min()
    }

    /// The far end learns that the stream is over.
    pub(crate) fn end(&mut self, origin: Option<&mut Origin>) {
        let Some(mut far) = self.far_end.take() else { return };
        match (&mut far.routes, origin) {
            (Some(routes), _) => far.stream.close(routes),
            (None, Some(origin)) => {
                for stream in far.apart.values_mut().chain([&mut far.stream]) {
                    stream.close(origin.cache_of(&self.node));
                }
                origin.streams -= 1;
            }
            (None, None) => unreachable!(),
        }
    }

    /// What a driver does where its server is another one from now on.
    fn lead_elsewhere(&mut self, now: Instant, origin: Option<&mut Origin>) {
        self.end(origin);
        let connection = self.upstream.lead_elsewhere(now);
        self.consumer.connection(now, connection);
        self.consumer.another_server(now);
    }

    pub(crate) fn drive(
        &mut self,
        now: Instant,
        mut origin: Option<&mut Origin>,
        upper: Option<&Arc<RelayCore>>,
        hears: &mut dyn FnMut(Bytes) -> Bytes,
    ) -> bool {
        let mut progress = self.nudged.upgrade().is_some_and(|nudged| nudged.take());
        let up = origin.as_ref().map_or(upper.is_some(), |origin| origin.up);
        let hangs_up = origin.as_ref().is_some_and(|origin| origin.hangs_up);
        let speaks = origin.as_ref().is_none_or(|origin| !origin.silent && !origin.hangs_up);
        self.far_end_speaks = speaks && !self.is_stuck;
        let ended = self.far_end.as_ref().filter(|_| self.is_ended).and_then(|far| far.ended.0.lock().unwrap().clone());
        if self.far_end.is_some() && (!up || hangs_up || ended.is_some()) {
            self.end(origin.as_deref_mut());
            let error = ended.unwrap_or_else(|| "cut".into());
            let connection = self.upstream.disconnected(now, Some(error), u64::MAX);
            self.consumer.connection(now, connection);
            progress = true;
        }
        self.turn(now);
        if self.upstream.should_connect(now) {
            progress = true;
            if let Some(node) = self.consumer.node() {
                self.upstream.set_node(node.clone());
                self.node = node;
            }
            if up {
                let connection = self.upstream.connected(now);
                self.consumer.connection(now, connection);
                self.open(now, origin.as_deref_mut(), upper);
            } else {
                let connection = self.upstream.disconnected(now, Some("refused".into()), u64::MAX);
                self.consumer.connection(now, connection);
            }
            self.turn(now);
        }
        progress |= self.consumer.has_more_commands();
        if self.is_per_type {
            return self.drive_apart(now, origin.expect("no relay")) || progress;
        }
        let Some(far) = &mut self.far_end else { return progress };
        while !self.consumer.has_more_commands()
            && let Some(request) = self.upstream.poll_transmit(now)
        {
            progress = true;
            match (&mut far.routes, origin.as_deref_mut()) {
                (Some(routes), _) => far.stream.handle_message(now, request, routes).unwrap(),
                (None, Some(origin)) => {
                    origin.note(self.protocol, self.dialect, &self.node, &request);
                    far.stream.handle_message(now, request, origin.cache_of(&self.node)).unwrap();
                }
                (None, None) => unreachable!(),
            }
            far.woken.set();
        }
        if !self.far_end_speaks {
            return progress;
        }
        if far.ready_at.is_some_and(|at| at > now) {
            return progress;
        }
        far.ready_at = None;
        if far.coming.is_some() {
            // Some of its bytes.
            self.upstream.received(now);
            self.consumer.received(now);
        }
        let arrived = match far.coming.take() {
            Some((at, response)) if at > now => {
                far.coming = Some((at, response));
                far.ready_at = Some(at.min(now + SECOND));
                return true;
            }
            Some((_, response)) => Some(response),
            None => None,
        };
        // An origin with a cache is asked whenever it may have changed; a relay only when it wakes.
        let due = far.stream.poll_timeout().is_some_and(|due| due <= now);
        let (pace, slowness) = origin.as_ref().map_or_else(Default::default, |origin| (origin.pace, origin.slowness));
        let asks = far.routes.is_none() || far.woken.take() || due;
        let arrived_before = arrived.is_some();
        let transmit = || if asks { far.transmit(now, origin.as_deref_mut(), &self.node) } else { None };
        let response = arrived.or_else(transmit);
        if let Some(response) = response {
            progress = true;
            if !arrived_before && slowness > Duration::ZERO {
                far.coming = Some((now + slowness, response));
                far.ready_at = Some(now + slowness.min(SECOND));
                return true;
            }
            far.ready_at = (pace > Duration::ZERO).then(|| now + pace);
            // One response at a time: what comes of it, is seen before the next.
            far.woken.set();
            match self.upstream.handle_message(now, hears(response)) {
                Ok(answered) => answered.into_iter().for_each(|connection| self.consumer.connection(now, connection)),
                Err(error) => {
                    assert!(origin.as_ref().is_some_and(|origin| origin.is_hostile), "{error}");
                    self.end(origin);
                    let connection = self.upstream.disconnected(now, Some(error.to_string()), u64::MAX);
                    self.consumer.connection(now, connection);
                }
            }
            deliver(now, &mut self.upstream, &mut *self.consumer);
            self.turn(now);
        }
        progress
    }

    /// What a driver does whenever it runs.
    fn turn(&mut self, now: Instant) {
        let Self { upstream, consumer, .. } = self;
        consumer.commands(now, &mut |command| upstream.apply(command));
        if consumer.poll_timeout().is_some_and(|due| due <= now) {
            consumer.handle_timeout(now);
        }
        assert!(consumer.poll_timeout().is_none_or(|due| due > now), "the same timeout again");
        upstream.handle_timeout(now);
        deliver(now, upstream, &mut **consumer);
    }

    fn open(&mut self, now: Instant, mut origin: Option<&mut Origin>, upper: Option<&Arc<RelayCore>>) {
        let said = self.consumer.metadata();
        let ended = match self.connect(now, origin.as_deref_mut(), upper, &said) {
            Ok(far) => {
                let heard = far.admitted.as_ref().map_or_else(MetadataMap::new, |admitted| admitted.metadata.clone());
                self.far_end = Some(far);
                let all = origin.as_deref().map_or(&[][..], |origin| &origin.says_of_itself);
                all.iter().for_each(|said| self.consumer.opened(said).unwrap());
                let Err(error) = self.consumer.opened(&heard) else { return };
                self.end(origin);
                self.upstream.declined(now, error, u64::MAX)
            }
            Err(refused) => self.upstream.disconnected(now, Some(refused.to_string()), u64::MAX),
        };
        self.consumer.connection(now, ended);
    }

    fn connect(
        &self,
        now: Instant,
        origin: Option<&mut Origin>,
        upper: Option<&Arc<RelayCore>>,
        said: &MetadataMap,
    ) -> Result<FarEnd, AdmitError> {
        let admitted = upper.map(|core| core.admit(now, said)).transpose()?;
        let woken = Arc::new(Flag::default());
        if let Some(origin) = origin {
            origin.streams += 1;
        }
        let ended = Arc::new(Ended::default());
        let routes = upper.map(|core| core.open_stream(self.protocol, woken.waker(), Some(ended.clone())));
        let mut settings = upper.map_or_else(xds_transport::server::Settings::default, |core| core.settings());
        if upper.is_none() {
            settings.dialect = self.dialect;
        }
        let stream = Stream::new(self.protocol, settings);
        Ok(FarEnd { stream, apart: BTreeMap::new(), ready_at: None, coming: None, routes, admitted, woken, ended })
    }
}

impl World {
    /// Another feeder takes the place of a server of a relay, as where its configuration changes.
    pub(crate) fn lead_elsewhere(&mut self, relay: usize, server: usize, to: Feeder) {
        let Relay { dialed, links, fed_by, .. } = &mut self.relays[relay];
        links.append(&mut dialed.lock().unwrap());
        let before = std::mem::replace(&mut fed_by[server], to);
        for link in links.iter_mut().filter(|link| link.origin == server) {
            let origin = match before {
                Feeder::Origin(at) => Some(&mut self.origins[at]),
                Feeder::Relay(_) => None,
            };
            link.lead_elsewhere(self.now, origin);
        }
        self.settle();
    }
}

fn deliver(now: Instant, upstream: &mut Upstream, consumer: &mut dyn Consumer) {
    while let Some(Event::Update(update)) = upstream.poll_event() {
        let id = update.id;
        let verdict = consumer.update(now, update);
        upstream.apply(Command::Finish(id, verdict));
    }
}
