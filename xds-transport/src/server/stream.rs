//! One gRPC stream of a server: its sessions, their order, and the node they share.

mod ack;
mod entries;
mod refusals;
mod requests;
mod types;

use std::time::{Duration, Instant};

use bytes::Bytes;
use xdstp_cache::{SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::rate::Bucket;
use crate::server::error::ProtocolError;
use crate::server::features::Features;
use crate::server::order::{self, Say, Standing, Turn};
use crate::server::session::{Outgoing, Reference, Session, Tells};
use crate::server::settings::Settings;
use crate::server::source::Source;
use crate::server::stream::refusals::Refusals;
use crate::server::stream::types::{Type, Types};
use crate::server::transmit::Transmit;
use crate::server::view::SessionView;

/// One stream, as a server sees it. Sans-I/O:
///
/// - [`handle_message`](Self::handle_message) for every request;
/// - [`poll_transmit`](Self::poll_transmit) whenever the stream is writable, until it has nothing to say;
///   call it again after a request, after the source changed, and at the time
///   [`poll_timeout`](Self::poll_timeout) names;
/// - [`close`](Self::close) at the end, which is also when any of these fails: all that comes after fails alike.
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
/// let mut edit = cache.edit(now);
/// edit.put_checked(&TypeRules::envoy(), &clusters, &"backend".parse().unwrap(), resource).unwrap();
/// let _ = edit.finish();
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
    types: Types,
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
    /// Why it is over.
    failed: Option<ProtocolError>,
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
            failed: None,
            settings,
            protocol,
            only_type: None,
            node: None,
            features: Features::default(),
            nonces: 0,
            types: Types::default(),
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
        self.types.iter().map(|of| SessionView::new(&of.url, &of.session))
    }

    /// Handles an encoded request.
    ///
    /// # Errors
    /// What ends the stream: from then on every call fails with it. A NACK, a stale nonce or an unknown name does not.
    pub fn handle_message(
        &mut self,
        now: Instant,
        message: Bytes,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        self.is_alive()?;
        self.handle_request(now, message, true, source).map(drop).map_err(|error| self.fail(error, source))
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
        self.is_alive()?;
        self.handle_request(now, message, false, source).map_err(|error| self.fail(error, source))
    }

    /// How many names it asks for, of all types together.
    pub fn names(&self) -> usize {
        self.types.iter().map(|of| of.session.names()).sum()
    }

    /// The next response. Newest state only: what changed twice since the last call is sent once. Where thousands of
    /// names are to be looked at before there is one, it [pauses](Self::has_paused).
    ///
    /// # Errors
    /// When the stream must end, as with [`ProtocolError::Aged`], or did before.
    pub fn poll_transmit(&mut self, now: Instant, source: &mut impl Source) -> Result<Option<Transmit>, ProtocolError> {
        self.is_alive()?;
        if let Some(error) = self.end(now) {
            return Err(self.fail(error, source));
        }
        let polled = self.poll_response(now, source);
        // What is told may have to be fetched first, which may be refused.
        if let Some(refused) = source.refused() {
            return Err(self.fail(refused.into(), source));
        }
        self.answers = self.answers.saturating_add(u32::from(polled.is_some()));
        Ok(polled)
    }

    /// Why it is over by now.
    fn end(&self, now: Instant) -> Option<ProtocolError> {
        if self.ends.is_some_and(|at| at <= now) {
            return Some(ProtocolError::Aged);
        }
        let (_, within) = self.first.filter(|(at, _)| *at <= now)?;
        Some(ProtocolError::NoRequest { within })
    }

    /// Whether the last [`poll_transmit`](Self::poll_transmit) found nothing only because it stopped looking, so that
    /// others have their turn. Its driver lets them, and polls again: the [time](Self::poll_timeout) for it has come.
    pub fn has_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    fn poll_response(&mut self, now: Instant, source: &mut impl Source) -> Option<Transmit> {
        (self.paused_at, self.looks_again) = (None, false);
        if self.half_closed {
            self.types.iter_mut().for_each(|of| of.session.expect_no_answer());
        }
        if let Some(type_url) = self.refusals.due() {
            self.looks_again = true;
            let Self { settings, nonces, refusals, .. } = self;
            return refusals.tell(&type_url, &settings.identifier, nonces);
        }
        self.types.observe(now, source);
        self.held_until = None;
        loop {
            let (at, say) = match order::next(now, self.types.standings(), self.settings.removals_wait) {
                Turn::Of(at, say) => (at, say),
                Turn::Nobody(next) => {
                    self.held_until = next;
                    return None;
                }
            };
            let transmit = self.poll_type(at, say, now, source);
            if transmit.is_some() || self.has_paused() {
                return transmit;
            }
        }
    }

    /// Whether there may be another response, right after one: mostly there is not, and
    /// [`poll_transmit`](Self::poll_transmit) need not be asked before something happens.
    pub fn may_continue(&self) -> bool {
        let waits = |of: &Standing| of.additions.is_some() || of.removals.is_some();
        self.looks_again
            || self.half_closed
            || self.refusals.due().is_some()
            || self.types.standings().iter().any(waits)
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
            self.types.observe(now, source);
        }
        work
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) may have something to send.
    pub fn has_work(&self, source: &impl Source) -> bool {
        let may = |session: &Session| session.has_work(source) || session.next_refresh().is_some();
        let any = self.types.iter().any(|of| of.session.has_room() && may(&of.session));
        self.failed.is_none() && (any || self.refusals.due().is_some())
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) although nothing happened: what was held back goes out, what
    /// lives for a time is refreshed, or the stream is over.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.failed.is_some() {
            return None;
        }
        let first = self.first.map(|(at, _)| at);
        // An ACK comes first where one is missing, and who is held back waits for that.
        let free = self.types.standing().filter(|(of, standing)| of.session.has_room() && standing.additions.is_none());
        let refresh = free.filter_map(|(of, _)| of.session.next_refresh()).min();
        [refresh, self.held_until, self.paused_at, self.ends, first].into_iter().flatten().min()
    }

    /// Whether a subscriber of its source is one of its own: what happens to that concerns this stream.
    pub fn has_subscriber(&self, id: SubscriberId) -> bool {
        self.types.iter().any(|of| of.session.has_subscriber(id))
    }

    /// What failed stays failed, whatever its driver asks of it.
    #[inline]
    fn is_alive(&self) -> Result<(), ProtocolError> {
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    fn fail(&mut self, error: ProtocolError, source: &mut impl Source) -> ProtocolError {
        source.ends(&error);
        self.failed = Some(error.clone());
        error
    }

    /// The stream is over: nothing of it stays behind (rule 12).
    pub fn close(&mut self, source: &mut impl Source) {
        for of in self.types.drain() {
            of.session.end(source);
        }
    }

    /// What one type says at its turn, if it has anything to say after all.
    fn poll_type(&mut self, at: usize, say: Say, now: Instant, source: &mut impl Source) -> Option<Transmit> {
        let Self { settings, features, nonces, types, paused_at, .. } = self;
        let (of, standing) = types.at(at)?;
        let mut references = Vec::new();
        let defers = of.defers();
        let Type { url, rule, session } = of;
        let mut outgoing = Outgoing {
            type_url: url,
            rule,
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
        let mut transmit = session.poll_transmit(first, &mut outgoing, source);
        if transmit.is_none() && defers && say == Say::Alone && !session.is_paused() {
            transmit = session.poll_transmit(Tells::All, &mut outgoing, source);
        }
        if transmit.is_none() && session.is_paused() {
            *paused_at = Some(now);
            return None;
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
                of.session.resend(&name, source);
            }
        }
        transmit
    }
}
