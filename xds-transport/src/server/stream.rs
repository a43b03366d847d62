//! One gRPC stream of a server: its sessions, their order, and the node they share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xdstp_cache::{SubscriberId, TypeUrl};
use xdstp_uri::{MAX_LEN, ResourceName};

use crate::Protocol;
use crate::frame::Frame;
use crate::rate::{Bucket, RateLimit};
use crate::server::error::ProtocolError;
use crate::server::order::{self, Say, Standing, Turn};
use crate::server::outgoing::{Features, Outgoing, Tells};
use crate::server::refusals::Refusals;
use crate::server::source::Source;
use crate::server::transmit::Transmit;
use crate::server::wanted::Names;
use crate::server::weight::weight;
use crate::server::{ack, delta, entries, sotw};
use crate::type_rules::{TypeRule, TypeRules};
use crate::wire::names::Split;
use crate::wire::walk::{FieldValue, Fields};
use crate::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};

/// A request of no more bytes is decoded as it is.
const SHORT: usize = 512;

/// A request of more bytes takes long to read, however few names it has: five milliseconds for each MiB of the smallest fields.
const LONG: usize = 1 << 20;

/// What every stream of a server shares.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The rules of the resource types.
    pub rules: Arc<TypeRules>,
    /// `control_plane.identifier` of every response (rule 139).
    pub identifier: String,
    /// How many types one stream may ask for.
    pub types_per_stream: usize,
    /// How many names one stream may ask for, of all types together, and how many it may bring versions of. No list of one
    /// request may be longer.
    pub names_per_stream: usize,
    /// How long a name may be, in bytes, and a type URL or a version: at most 64 KiB. A longer name is answered as the name of
    /// nothing (rule 109), the others end the stream.
    pub name_bytes: usize,
    /// How long a node may be, in bytes.
    pub node_bytes: usize,
    /// How many requests one stream may send, beside one for each response. Without a limit, what bounds it is that
    /// requests are handled one by one.
    pub requests: Option<RateLimit>,
    /// Whether a TTL is sent over SotW to clients that understand it. Envoy does, but over SotW it does not take its
    /// heartbeats for what they are, and has crashed when endpoints expired (rules 113, 114).
    pub ttl_in_sotw: bool,
    /// How long the removal of clusters and endpoints waits for listeners and routes, on streams that ask for any: of a
    /// source that does not hear of one change at once, as a relay from its origin, what stops using them may come later
    /// (rule 122). And a gRPC client asks for the cluster that it goes to only once it has the route. Zero by default.
    pub removals_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: Arc::new(TypeRules::envoy()),
            identifier: String::new(),
            types_per_stream: 64,
            names_per_stream: 1_000_000,
            name_bytes: MAX_LEN,
            node_bytes: 64 << 10,
            requests: None,
            ttl_in_sotw: false,
            removals_wait: Duration::ZERO,
        }
    }
}

/// One stream, as a server sees it. Sans-I/O:
///
/// - [`handle_message`](Self::handle_message) for every request;
/// - [`poll_transmit`](Self::poll_transmit) whenever the stream is writable, until it has nothing to say;
///   call it again after a request, after the source changed, and at the time
///   [`poll_timeout`](Self::poll_timeout) names;
/// - [`close`](Self::close) at the end.
///
/// ```
/// use std::time::Instant;
/// use bytes::Bytes;
/// use prost::Message;
/// use xds_transport::{Protocol, server::{Settings, Stream}};
/// use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
/// use xds_transport::{Frame, Put, TypeRules};
/// use xdstp_cache::{Cache, Options};
///
/// let now = Instant::now();
/// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let mut cache = Cache::new(Options::default());
/// // A Cluster's field 1 is its name.
/// let resource = Frame::of_message(&clusters, b"\x0a\x07backend").into_resource(None);
/// cache.put(&TypeRules::envoy(), &clusters, &"backend".parse().unwrap(), resource, now, &mut Vec::new()).unwrap();
///
/// let mut stream = Stream::new(Protocol::Delta, Settings::default());
/// let request = DeltaDiscoveryRequest { type_url: clusters.to_string(), ..Default::default() };
/// stream.handle_message(now, request.encode_to_vec().into(), &mut cache).unwrap();
/// let response = stream.poll_transmit(now, &mut cache).unwrap().unwrap().into_bytes();
/// assert_eq!(DeltaDiscoveryResponse::decode(response).unwrap().resources[0].name, "backend");
/// ```
pub struct Stream {
    settings: Settings,
    protocol: Protocol,
    /// The type of a stream that serves just one.
    only_type: Option<TypeUrl>,
    node: Option<Bytes>,
    features: Features,
    nonces: u64,
    /// By rank.
    types: Vec<Type>,
    /// How each of the types stands in the order.
    standings: Vec<Standing>,
    refusals: Refusals,
    /// When somebody who waits for another type waits no more.
    held_until: Option<Instant>,
    /// When a type that is next paused before it had found what to say: nobody else may say anything before it has.
    paused_at: Option<Instant>,
    /// The last response was no session's, or has sessions send something again.
    looks_again: bool,
    requests: Option<Bucket>,
    /// The last request was an ACK, and nobody waited for it.
    awaited_by_nobody: bool,
    /// Responses that may still be answered: a busy source has its clients send many an ACK.
    answers: u32,
    ends: Option<Instant>,
    /// When the first request must be here, and how long it may take.
    first: Option<(Instant, Duration)>,
    half_closed: bool,
}

/// Every type of a stream has versions, nonces and subscriptions of its own (rule 7). There is no list of types: any
/// type URL that was asked for has one (rule 11), and what was not asked for has none to be sent by (rule 10).
struct Type {
    url: TypeUrl,
    rule: TypeRule,
    session: Session,
}

enum Session {
    Sotw(sotw::Session),
    Delta(delta::Session),
}

/// How many names one type of a stream may have, by their weight.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    pub(crate) names: usize,
    /// How many it may bring along.
    pub(crate) brought: usize,
    /// All types together.
    pub(crate) limit: usize,
    /// How long each may be, in bytes.
    pub(crate) name_bytes: usize,
}

impl Room {
    pub(crate) fn check(self, names: usize) -> Result<(), ProtocolError> {
        self.compare(names, self.names)
    }

    pub(crate) fn check_brought(self, names: usize) -> Result<(), ProtocolError> {
        self.compare(names, self.brought)
    }

    fn compare(self, names: usize, most: usize) -> Result<(), ProtocolError> {
        if names <= most { Ok(()) } else { Err(ProtocolError::TooMany { what: "names", limit: self.limit }) }
    }
}

/// A name that a resource refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    type_url: TypeUrl,
    name: String,
}

impl Reference {
    pub(crate) fn collect(rule: &TypeRule, frame: &Frame, into: &mut Vec<Self>) {
        for dependent in &rule.dependents {
            if let Some(name) = rule.reference_of(dependent, frame.any()) {
                into.push(Self { type_url: dependent.type_url.clone(), name: name.to_owned() });
            }
        }
    }
}

/// What one session did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Requests handled.
    pub requests: u64,
    /// Responses sent.
    pub responses: u64,
    /// Resources sent.
    pub resources: u64,
    /// Removals sent.
    pub removed: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Responses the client accepted.
    pub acks: u64,
    /// Responses the client rejected.
    pub nacks: u64,
    /// The last rejection.
    pub last_nack: Option<Nack>,
}

/// A response that a client rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nack {
    /// What the client said.
    pub message: String,
    /// When it said so.
    pub at: Instant,
}

impl Tally {
    /// Adds what another session did.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.responses += other.responses;
        self.resources += other.resources;
        self.removed += other.removed;
        self.bytes += other.bytes;
        self.acks += other.acks;
        self.nacks += other.nacks;
        if other.last_nack.as_ref().map(|nack| nack.at) > self.last_nack.as_ref().map(|nack| nack.at) {
            self.last_nack.clone_from(&other.last_nack);
        }
    }

    pub(crate) fn sent(&mut self, transmit: &Transmit) {
        self.responses += 1;
        self.bytes += transmit.remaining() as u64;
        self.resources += transmit.resources as u64;
        self.removed += transmit.removed as u64;
    }

    /// Rule 21: a NACK is an error detail, whatever its code.
    pub(crate) fn answered(&mut self, now: Instant, error: Option<&Status>) {
        match error {
            None => self.acks += 1,
            Some(error) => {
                self.nacks += 1;
                self.last_nack = Some(Nack { message: error.message.chars().take(1024).collect(), at: now });
            }
        }
    }
}

/// One session of a stream, as an admin page shows it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionView<'a> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// Its subscriber at the source.
    pub subscriber: SubscriberId,
    /// Whether it asked for everything.
    pub wildcard: bool,
    /// What it did so far.
    pub tally: &'a Tally,
}

impl Stream {
    /// A stream that may carry any type, as ADS does.
    pub fn new(protocol: Protocol, settings: Settings) -> Self {
        Self {
            requests: settings.requests.map(Bucket::new),
            answers: 0,
            awaited_by_nobody: false,
            ends: None,
            first: None,
            half_closed: false,
            settings,
            protocol,
            only_type: None,
            node: None,
            features: Features::default(),
            nonces: 0,
            types: Vec::new(),
            standings: Vec::new(),
            refusals: Refusals::default(),
            held_until: None,
            paused_at: None,
            looks_again: false,
        }
    }

    /// A stream of one type, as the per-type services have it: requests need not name it (rule 3).
    pub fn of_type(protocol: Protocol, type_url: TypeUrl, settings: Settings) -> Self {
        Self { only_type: Some(type_url), ..Self::new(protocol, settings) }
    }

    /// Ends the stream at `at`, so that a fleet spreads over its servers again: let each stream have a time of its own,
    /// or all clients come back at once (rule 93). [`poll_transmit`](Self::poll_transmit) fails then.
    pub fn end_at(&mut self, at: Instant) {
        self.ends = Some(at);
    }

    /// Ends the stream if no request comes `within` this time. [`poll_transmit`](Self::poll_transmit) fails then.
    pub fn expect_request(&mut self, now: Instant, within: Duration) {
        self.first = now.checked_add(within).map(|at| (at, within));
    }

    /// The client sends no more requests: what it asked for is sent to it without a wait for ACKs. The stream is over
    /// when [`poll_transmit`](Self::poll_transmit) has nothing more, and has not [paused](Self::has_paused).
    pub fn half_closed(&mut self) {
        self.half_closed = true;
    }

    /// The encoded node of the client, once it is known (rule 4).
    pub fn node(&self) -> Option<&Bytes> {
        self.node.as_ref()
    }

    /// Which protocol it speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its sessions, in their order.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView<'_>> {
        self.types.iter().map(|of| {
            let (subscriber, wildcard, tally) = match &of.session {
                Session::Sotw(session) => (session.id, session.is_wildcard(), &session.tally),
                Session::Delta(session) => (session.id, session.is_wildcard(), &session.tally),
            };
            SessionView { type_url: &of.url, subscriber, wildcard, tally }
        })
    }

    /// Handles an encoded request.
    ///
    /// # Errors
    /// What ends the stream. A NACK, a stale nonce or an unknown name does not.
    pub fn handle_message(
        &mut self,
        now: Instant,
        message: Bytes,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        self.handle_request(now, message, true, source).map(drop).inspect_err(|error| source.ends(error))
    }

    /// The same, unless it takes long: a request that lists more than a thousand names, or has more than a MiB, is given back,
    /// so that it can be [handled](Self::handle_message) where nobody waits. The ACKs of a SotW client repeat all its names,
    /// and do not take long.
    ///
    /// # Errors
    /// As [`handle_message`](Self::handle_message).
    pub fn handle_quickly(
        &mut self,
        now: Instant,
        message: Bytes,
        source: &mut impl Source,
    ) -> Result<Option<Bytes>, ProtocolError> {
        self.handle_request(now, message, false, source).inspect_err(|error| source.ends(error))
    }

    /// How many names it asks for, of all types together.
    pub fn names(&self) -> usize {
        self.types.iter().map(|of| of.session.names()).sum()
    }

    /// Gives the request back if it may not take long and would.
    fn handle_request(
        &mut self,
        now: Instant,
        message: Bytes,
        may_take_long: bool,
        source: &mut impl Source,
    ) -> Result<Option<Bytes>, ProtocolError> {
        self.awaited_by_nobody = false;
        let malformed = |error: prost::DecodeError| ProtocolError::Malformed(error.to_string());
        let (protocol, limit) = (self.protocol, self.settings.names_per_stream);
        // What is apart already is read once more for how much it lists.
        let takes_long = |message: &[u8]| {
            if may_take_long {
                entries::are_many(protocol, message, limit).map(|_| false)
            } else {
                Ok(message.len() > LONG || entries::are_many(protocol, message, limit)?)
            }
        };
        match protocol {
            Protocol::Delta => {
                if self.is_acknowledged(now, &message)? {
                    return unless_refused(source);
                }
                if takes_long(&message)? {
                    return Ok(Some(message));
                }
                self.admit(now)?;
                // An ACK is short: there is nothing to take apart.
                let split = (message.len() > SHORT).then(|| Split::of(&message)).flatten();
                let listed = split.as_ref().and_then(|split| Some((split.texts()?, split)));
                let request = match &listed {
                    Some((_, split)) => DeltaDiscoveryRequest::decode(split.others()),
                    None => DeltaDiscoveryRequest::decode(message.clone()),
                };
                let request = request.map_err(malformed)?;
                let names = listed.map_or_else(|| texts_of(&request.resource_names_subscribe), |(names, _)| names);
                self.check_lengths(&request.node, &request.type_url, delta::versions(&request))?;
                self.identify(&request.node, source)?;
                let room = self.room_for_names(&request.type_url);
                match self.open_type(&request.type_url)? {
                    Some(Type { session: Session::Delta(session), .. }) => {
                        session.handle_request(now, &request, &names, room, source)?;
                    }
                    Some(_) => {}
                    None => self.open_delta(now, &request, &names, room, source)?,
                }
            }
            Protocol::Sotw => {
                if !may_take_long && message.len() > LONG {
                    return Ok(Some(message));
                }
                let split = Split::of(&message);
                let others = split.as_ref().map(|split| DiscoveryRequest::decode(split.others())).transpose();
                let encoded = split.as_ref().map(|split| &*split.names);
                if let (Ok(Some(others)), Some(encoded)) = (&others, encoded)
                    && self.repeats(&others.type_url, encoded)
                {
                    self.admit(now)?;
                    self.check_lengths(&others.node, &others.type_url, [&*others.version_info])?;
                    if let Some(Type { session: Session::Sotw(session), rule, .. }) =
                        self.open_type(&others.type_url)?
                    {
                        session.handle_request(now, others, &Names::Repeated, Room::default(), rule, source)?;
                    }
                    return Ok(None);
                }
                if takes_long(&message)? {
                    return Ok(Some(message));
                }
                self.admit(now)?;
                let listed = split.as_ref().and_then(Split::texts);
                let request = match (others, &listed) {
                    (Ok(Some(others)), Some(_)) => others,
                    _ => DiscoveryRequest::decode(message.clone()).map_err(malformed)?,
                };
                let names = listed.unwrap_or_else(|| texts_of(&request.resource_names));
                self.check_lengths(&request.node, &request.type_url, [&*request.version_info])?;
                self.identify(&request.node, source)?;
                let room = self.room_for_names(&request.type_url);
                let names = Names::Listed(&names, encoded);
                match self.open_type(&request.type_url)? {
                    Some(Type { session: Session::Sotw(session), rule, .. }) => {
                        session.handle_request(now, &request, &names, room, rule, source)?;
                    }
                    Some(_) => {}
                    None => self.open_sotw(&request, &names, room, source)?,
                }
            }
        }
        unless_refused(source)
    }

    /// Whether this is an ACK of a type that is open, and nothing else: then it is done with.
    fn is_acknowledged(&mut self, now: Instant, message: &[u8]) -> Result<bool, ProtocolError> {
        let Some((type_url, nonce)) = self.node.as_ref().and_then(|_| ack::of_delta(message)) else { return Ok(false) };
        let Some(at) = self.types.iter().position(|of| of.url.as_str().as_bytes() == type_url) else {
            return Ok(false);
        };
        self.admit(now)?;
        let may_continue = self.may_continue();
        if let Some(Type { session: Session::Delta(session), .. }) = self.types.get_mut(at) {
            let had_room = session.has_room();
            session.accepted(now, nonce);
            self.awaited_by_nobody = had_room && !may_continue && session.next_refresh().is_none();
        }
        Ok(true)
    }

    /// Whether a list of names is the last one of its type again.
    fn repeats(&mut self, type_url: &str, encoded: &[u8]) -> bool {
        match self.open_type(type_url) {
            Ok(Some(Type { session: Session::Sotw(session), .. })) => session.repeats(encoded),
            _ => false,
        }
    }

    /// A request is to be handled: there may be so many in a time.
    fn admit(&mut self, now: Instant) -> Result<(), ProtocolError> {
        self.first = None;
        if self.answers > 0 {
            self.answers -= 1;
        } else if let Some(requests) = &mut self.requests {
            if !requests.has_token(now) {
                let RateLimit { burst, every } = requests.limit();
                return Err(ProtocolError::TooOften { burst, every });
            }
            requests.take();
        }
        Ok(())
    }

    /// The next response. Newest state only: what changed twice since the last call is sent once. Where thousands of
    /// names are to be looked at before there is one, it [pauses](Self::has_paused).
    ///
    /// # Errors
    /// When the stream must end: see [`ProtocolError::Aged`].
    pub fn poll_transmit(&mut self, now: Instant, source: &mut impl Source) -> Result<Option<Transmit>, ProtocolError> {
        let polled = self.poll_response(now, source).inspect_err(|error| source.ends(error))?;
        self.answers = self.answers.saturating_add(u32::from(polled.is_some()));
        Ok(polled)
    }

    /// Whether the last [`poll_transmit`](Self::poll_transmit) found nothing only because it stopped looking, so that
    /// others have their turn. Its driver lets them, and polls again: the [time](Self::poll_timeout) for it has come.
    pub fn has_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    fn poll_response(&mut self, now: Instant, source: &mut impl Source) -> Result<Option<Transmit>, ProtocolError> {
        (self.paused_at, self.looks_again) = (None, false);
        if self.ends.is_some_and(|at| at <= now) {
            return Err(ProtocolError::Aged);
        }
        if let Some((_, within)) = self.first.filter(|(at, _)| *at <= now) {
            return Err(ProtocolError::NoRequest { within });
        }
        if self.half_closed {
            self.types.iter_mut().for_each(|of| of.session.expect_no_answer());
        }
        if let Some(type_url) = self.refusals.due() {
            self.looks_again = true;
            let Self { settings, nonces, refusals, .. } = self;
            return Ok(refusals.tell(&type_url, &settings.identifier, nonces));
        }
        self.observe(now, source);
        self.held_until = None;
        loop {
            let (at, say) = match order::next(now, &self.standings, self.settings.removals_wait) {
                Turn::Of(at, say) => (at, say),
                Turn::Nobody(next) => {
                    self.held_until = next;
                    return Ok(None);
                }
            };
            let transmit = self.poll_type(at, say, now, source)?;
            if transmit.is_some() || self.has_paused() {
                return Ok(transmit);
            }
        }
    }

    /// Whether there may be another response, right after one: mostly there is not, and
    /// [`poll_transmit`](Self::poll_transmit) need not be asked before something happens.
    pub fn may_continue(&self) -> bool {
        let waits = |of: &Standing| of.additions.is_some() || of.removals.is_some();
        self.looks_again || self.half_closed || self.refusals.due().is_some() || self.standings.iter().any(waits)
    }

    /// Whether, after a request, [`poll_transmit`](Self::poll_transmit) is to be asked for the sake of it. Most are ACKs for which
    /// nobody waited. What changed in the source meanwhile is for the source to tell.
    pub fn leaves_work(&mut self, now: Instant, source: &impl Source) -> bool {
        if self.awaited_by_nobody {
            return false;
        }
        let work = self.has_work(source);
        if !work {
            // What is not asked is not known to have nothing any more, and what comes next would have waited since then.
            self.observe(now, source);
        }
        work
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) may have something to send.
    pub fn has_work(&self, source: &impl Source) -> bool {
        let may = |session: &Session| session.has_work(source) || session.next_refresh().is_some();
        self.types.iter().any(|of| of.session.has_room() && may(&of.session)) || self.refusals.due().is_some()
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) although nothing happened: what was held back goes out, what
    /// lives for a time is refreshed, or the stream is over.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let types = self.types.iter().zip(&self.standings);
        let first = self.first.map(|(at, _)| at);
        // An ACK comes first where one is missing, and who is held back waits for that.
        let free = types.filter(|(of, standing)| of.session.has_room() && standing.additions.is_none());
        free.filter_map(|(of, _)| of.session.next_refresh())
            .chain(self.held_until)
            .chain(self.paused_at)
            .chain(self.ends)
            .chain(first)
            .min()
    }

    /// The stream is over: nothing of it stays behind (rule 12).
    pub fn close(&mut self, source: &mut impl Source) {
        self.standings.clear();
        for of in self.types.drain(..) {
            source.close(of.session.id(), of.session.tally());
        }
    }

    /// How each type stands now.
    fn observe(&mut self, now: Instant, source: &impl Source) {
        for (of, standing) in self.types.iter().zip(&mut self.standings) {
            of.observe(standing, now, source);
            of.join(standing, now, source);
        }
    }

    /// What one type says at its turn, if it has anything to say after all.
    fn poll_type(
        &mut self,
        at: usize,
        say: Say,
        now: Instant,
        source: &mut impl Source,
    ) -> Result<Option<Transmit>, ProtocolError> {
        let Self { settings, features, nonces, types, standings, paused_at, .. } = self;
        let (Some(of), Some(standing)) = (types.get_mut(at), standings.get_mut(at)) else { return Ok(None) };
        let mut references = Vec::new();
        let defers = of.defers();
        let Type { url, rule, session } = of;
        let mut outgoing = Outgoing {
            type_url: url,
            identifier: &settings.identifier,
            now,
            features: *features,
            name_bytes: settings.name_bytes,
            nonces,
            references: &mut references,
        };
        let first = match say {
            Say::Additions if defers => Tells::Additions { errors: true },
            Say::Alone if defers => Tells::Additions { errors: false },
            _ => Tells::All,
        };
        let mut transmit = session.poll_transmit(first, rule, &mut outgoing, source)?;
        if transmit.is_none() && defers && say == Say::Alone && !session.is_paused() {
            transmit = session.poll_transmit(Tells::All, rule, &mut outgoing, source)?;
        }
        if transmit.is_none() && session.is_paused() {
            *paused_at = Some(now);
            return Ok(None);
        }
        standing.told(*nonces, say, transmit.is_some());
        // Mostly that was all.
        let work = of.session.has_work(source);
        let additions = transmit.is_some() && work && of.has_additions(source);
        let removals = of.defers() && work && (transmit.is_some() || say == Say::Additions);
        standing.observe(now, additions, (!additions).then_some(removals), of.session.has_room());
        of.join(standing, now, source);
        self.looks_again = !references.is_empty();
        for Reference { type_url, name } in references {
            if let (Some(of), Ok(name)) = (self.types.iter().find(|of| of.url == type_url), ResourceName::parse(&name))
            {
                source.resend(of.session.id(), &name);
            }
        }
        Ok(transmit)
    }

    fn identify(&mut self, node: &Bytes, source: &mut impl Source) -> Result<(), ProtocolError> {
        // Rules 4, 6: the first node counts for the whole stream.
        if self.node.is_some() {
            return Ok(());
        }
        // It is a slice of the request, which is large where a client resumes, and lives as long as the stream.
        let node = Bytes::copy_from_slice(node);
        source.identify(&node)?;
        self.features = features(&node);
        self.features.ttl &= self.protocol == Protocol::Delta || self.settings.ttl_in_sotw;
        self.node = Some(node);
        Ok(())
    }

    /// How many names a type may have beside those of the others.
    fn room_for_names(&self, type_url: &str) -> Room {
        let is_other = |url: &TypeUrl| self.only_type.is_none() && url.as_str() != type_url;
        let others = || self.types.iter().filter(|of| is_other(&of.url));
        let names: usize = others().map(|of| of.session.names()).sum();
        let brought: usize = others().map(|of| of.session.brought()).sum();
        let Settings { names_per_stream: limit, name_bytes, .. } = self.settings;
        let names = limit.saturating_sub(names + self.refusals.names_but_of(type_url));
        Room { names, brought: limit.saturating_sub(brought), limit, name_bytes }
    }

    /// What is kept of a stream is bounded: a name that is longer is none, and answered as such (rule 109).
    fn check_lengths<'a>(
        &self,
        node: &[u8],
        type_url: &str,
        versions: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ProtocolError> {
        let Settings { name_bytes, node_bytes, .. } = self.settings;
        let lengths = [("node", node.len(), node_bytes), ("type URL", type_url.len(), name_bytes)];
        let versions = versions.into_iter().map(|version| ("version", version.len(), name_bytes));
        match lengths.into_iter().chain(versions).find(|(_, length, limit)| length > limit) {
            Some((what, length, limit)) => Err(ProtocolError::TooLong { what, length, limit }),
            None => Ok(()),
        }
    }

    /// The open session of a request's type; `None` when this is its first request.
    fn open_type(&mut self, asked: &str) -> Result<Option<&mut Type>, ProtocolError> {
        if let Some(served) = &self.only_type
            && !asked.is_empty()
            && asked != served.as_str()
        {
            return Err(ProtocolError::WrongType { served: served.clone(), asked: asked.into() });
        }
        let asked = self.only_type.as_ref().map_or(asked, TypeUrl::as_str);
        if asked.is_empty() {
            return Err(ProtocolError::MissingType);
        }
        let position = self.types.iter().position(|of| of.url.as_str() == asked);
        let opens = position.is_none() && !self.refusals.knows(asked);
        if opens && self.types.len() + self.refusals.types() >= self.settings.types_per_stream {
            return Err(ProtocolError::TooMany { what: "types", limit: self.settings.types_per_stream });
        }
        Ok(position.and_then(|at| self.types.get_mut(at)))
    }

    fn open_delta(
        &mut self,
        now: Instant,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let url = self.opened_type(&request.type_url);
        let rule = self.settings.rules.of(&url).clone();
        let (session, opened) =
            delta::Session::open(&url, request, names, &rule, self.features.ttl.then_some(now), room, source);
        self.insert(Type { url, rule, session: Session::Delta(session) });
        opened
    }

    fn open_sotw(
        &mut self,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let url = self.opened_type(&request.type_url);
        let rule = self.settings.rules.of(&url).clone();
        if rule.delta_only {
            if let Names::Listed(names, _) = names {
                room.check(names.iter().map(|name| weight(name)).sum())?;
                self.refusals.ask(url, names);
            }
            return Ok(());
        }
        let (session, opened) = sotw::Session::open(&url, request, names, &rule, self.features, room, source);
        self.insert(Type { url, rule, session: Session::Sotw(session) });
        opened
    }

    fn opened_type(&self, asked: &str) -> TypeUrl {
        self.only_type.clone().unwrap_or_else(|| asked.into())
    }

    fn insert(&mut self, of: Type) {
        let at = self.types.partition_point(|before| before.rule.rank <= of.rule.rank);
        // A stream has few types, and a session is large: no room for those that never come.
        self.standings.reserve_exact(1);
        self.types.reserve_exact(1);
        self.standings.insert(at, Standing::new(of.rule.rank, of.rule.waits_for_lower_ranks));
        self.types.insert(at, of);
    }
}

impl Type {
    /// Whether its removals go last. Its first response is the whole answer, and over SotW only a full state can say that
    /// something is gone.
    fn defers(&self) -> bool {
        let says_removals = match &self.session {
            Session::Sotw(session) => self.rule.full_state_in_sotw && session.has_responded(),
            Session::Delta(session) => session.has_responded(),
        };
        self.rule.removals_last && says_removals
    }

    fn has_additions(&self, source: &impl Source) -> bool {
        match &self.session {
            Session::Sotw(session) if self.defers() || !self.rule.full_state_in_sotw => session.has_additions(source),
            Session::Delta(session) if self.defers() => session.has_additions(source),
            session => session.has_work(source),
        }
    }

    /// Each removal waits, and those that wait wait with it.
    fn join(&self, standing: &mut Standing, now: Instant, source: &impl Source) {
        if standing.removals.is_some() {
            standing.join(now, source.newest_removal(self.session.id()));
        }
    }

    fn observe(&self, standing: &mut Standing, now: Instant, source: &impl Source) {
        let room = self.session.has_room();
        let work = self.session.has_work(source);
        // With room it is asked, and then it is known.
        let additions = match room {
            true => work || self.session.next_refresh().is_some_and(|due| due <= now),
            false => work && self.has_additions(source),
        };
        standing.observe(now, additions, (!work || !self.defers()).then_some(false), room);
    }
}

impl Session {
    fn id(&self) -> SubscriberId {
        match self {
            Self::Sotw(session) => session.id,
            Self::Delta(session) => session.id,
        }
    }

    fn expect_no_answer(&mut self) {
        match self {
            Self::Sotw(session) => session.expect_no_answer(),
            Self::Delta(session) => session.expect_no_answer(),
        }
    }

    fn tally(&self) -> &Tally {
        match self {
            Self::Sotw(session) => &session.tally,
            Self::Delta(session) => &session.tally,
        }
    }

    fn has_work(&self, source: &impl Source) -> bool {
        match self {
            Self::Sotw(session) => session.has_work(source),
            Self::Delta(session) => session.has_work(source),
        }
    }

    fn next_refresh(&self) -> Option<Instant> {
        match self {
            Self::Sotw(session) => session.next_refresh(),
            Self::Delta(session) => session.next_refresh(),
        }
    }

    /// Whether a response may go out before another is acknowledged.
    fn has_room(&self) -> bool {
        match self {
            Self::Sotw(session) => session.has_room(),
            Self::Delta(session) => session.has_room(),
        }
    }

    fn poll_transmit(
        &mut self,
        tells: Tells,
        rule: &TypeRule,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Result<Option<Transmit>, ProtocolError> {
        match self {
            Self::Sotw(session) => Ok(session.poll_transmit(tells, rule, outgoing, source)),
            Self::Delta(session) => session.poll_transmit(tells, rule, outgoing, source),
        }
    }

    fn is_paused(&self) -> bool {
        match self {
            Self::Sotw(session) => session.is_paused(),
            Self::Delta(session) => session.is_paused(),
        }
    }

    fn names(&self) -> usize {
        match self {
            Self::Sotw(session) => session.names(),
            Self::Delta(session) => session.names(),
        }
    }

    fn brought(&self) -> usize {
        match self {
            Self::Sotw(_) => 0,
            Self::Delta(session) => session.brought(),
        }
    }
}

/// A request is handled, and nothing of it is given back: unless it, or what came before, asks for more than is served.
fn unless_refused(source: &mut impl Source) -> Result<Option<Bytes>, ProtocolError> {
    source.refused().map_or(Ok(None), |refused| Err(refused.into()))
}

fn texts_of(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The `client_features` entry by which a relay says that others hold what it does not: a full state that is no more than a
/// piece of the answer would take it from them (rule 151).
pub const ASKS_FOR_OTHERS: &str = "xds.config.asks-for-others";

/// `client_features`, field 10 of the node, as far as responses depend on them.
fn features(node: &Bytes) -> Features {
    let mut found = Features::default();
    for field in Fields::of(node).flatten() {
        let (10, FieldValue::Bytes(feature)) = (field.number, field.value) else { continue };
        match feature {
            b"xds.config.resource-in-sotw" | b"xds.config.supports-resource-in-sotw" => found.wrapped = true,
            b"xds.config.supports-resource-ttl" => found.ttl = true,
            feature if feature == ASKS_FOR_OTHERS.as_bytes() => found.for_others = true,
            _ => {}
        }
    }
    found
}
