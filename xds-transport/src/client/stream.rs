//! One ADS stream of a client: its sessions, and whose turn it is to ask.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Interest, Selector, TypeUrl};

use crate::client::command::Command;
use crate::client::error::ProtocolError;
use crate::client::failure;
use crate::client::intern::Intern;
use crate::client::over::Over;
use crate::client::room::DEFAULT_MAX_REQUEST_SIZE;
use crate::client::selecting::Selecting;
use crate::client::session::{Session, Silence};
use crate::client::update::{Event, Update, UpdateId};
use crate::rate::{Bucket, RateLimit};
use crate::types::TypeRules;
use crate::wire::parameters::LocatorError;
use crate::{Dialect, Protocol};

/// The sessions of one ADS stream, one a type.
#[derive(Debug)]
pub struct Stream {
    pub(super) protocol: Protocol,
    node: Bytes,
    pub(super) rules: Arc<TypeRules>,
    connected: bool,
    node_sent: bool,
    /// Of an origin that has a method for each type: those whose stream is over.
    pub(super) over: Option<BTreeMap<TypeUrl, Over>>,
    /// In the order that requests are sent in: by rank, then by type.
    pub(super) sessions: BTreeMap<(u8, TypeUrl), Session>,
    pub(super) events: VecDeque<Event>,
    updates: u64,
    keep_deleted: bool,
    pub(super) follows_redirects: bool,
    silence: Silence,
    pub(super) dialect: Dialect,
    selecting: Option<Arc<Selecting>>,
    pub(super) intern: Option<Arc<dyn Intern>>,
    max_request_size: usize,
    limit: Option<Bucket>,
    /// A request may wait for its turn.
    throttled: bool,
    /// Why the transport's stream must be closed.
    pub(super) failed: Option<ProtocolError>,
}

impl Stream {
    /// A stream that is not connected and wants nothing. `node` is an encoded `Node`.
    pub fn new(protocol: Protocol, node: Bytes, rules: Arc<TypeRules>) -> Self {
        Self {
            protocol,
            node,
            rules,
            connected: false,
            node_sent: false,
            over: None,
            sessions: BTreeMap::new(),
            events: VecDeque::new(),
            updates: 0,
            keep_deleted: false,
            follows_redirects: false,
            silence: Silence::default(),
            dialect: Dialect::Final,
            selecting: None,
            intern: None,
            max_request_size: DEFAULT_MAX_REQUEST_SIZE,
            limit: None,
            throttled: false,
            failed: None,
        }
    }

    /// Keeps resources in use that the origin says are gone, until it sends them anew or nobody wants them: gRFC A53's
    /// `ignore_resource_deletion`, and A88 without `fail_on_data_errors` (rule 77). It is told once, in
    /// [`Update::kept`]. A resource whose TTL ran out is not kept.
    #[must_use]
    pub fn keep_deleted(mut self) -> Self {
        self.keep_deleted = true;
        self
    }

    /// Takes redirects of TP1 for resources, as which its user [reads](crate::wire::collection::redirect) and follows them. They
    /// are refused otherwise: who does not know them would be sent them.
    #[must_use]
    pub fn following_redirects(mut self) -> Self {
        self.follows_redirects = true;
        self
    }

    /// What it says of a name that the origin is silent about it.
    #[must_use]
    pub fn with_silence(mut self, silence: Silence) -> Self {
        self.silence = silence;
        self
    }

    /// Asks for everything with these parameters or constraints (TP2), of a server that speaks a dialect: of each name the
    /// variant comes that is for them, as [`Frame::variant`](crate::Frame::variant) says, and the next one takes its place. Who wants others has
    /// another stream for them.
    ///
    /// # Errors
    /// When the dialect cannot say them: the final form has no ranges, and nothing that is inverted.
    pub fn selecting(mut self, dialect: Dialect, selector: Selector) -> Result<Self, LocatorError> {
        self.dialect = dialect;
        let is_default = selector.is_default();
        let selecting = Selecting::new(dialect, selector)?;
        self.selecting = (!is_default).then(|| Arc::new(selecting));
        Ok(self)
    }

    /// Sends no more requests than this, but for acknowledgements, which neither wait nor count: the server waits for
    /// them. What is subscribed meanwhile is one request in the end (rule 135).
    #[must_use]
    pub fn limit_requests(mut self, limit: RateLimit) -> Self {
        self.limit = Some(Bucket::new(limit));
        self
    }

    /// Sends requests of up to this many bytes: 4 MiB otherwise. What is more goes in several over delta; over SotW, where
    /// a request names all that is wanted of its type, it is not asked for, and an [`Update`] says so.
    #[must_use]
    pub fn with_max_request_size(mut self, bytes: usize) -> Self {
        self.max_request_size = bytes;
        self
    }

    /// The protocol it speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Names another encoded `Node`, from the next stream on: the one that is open has named its own.
    pub fn set_node(&mut self, node: Bytes) {
        self.node = node;
    }

    /// The transport has a new stream to the origin: requests may be sent.
    pub fn connected(&mut self, now: Instant) {
        if self.connected {
            self.disconnected(now);
        }
        self.connected = true;
    }

    /// The transport's stream is gone. What is held stays, and is what the next stream starts from.
    pub fn disconnected(&mut self, _now: Instant) {
        self.connected = false;
        self.failed = None;
        self.node_sent = false;
        self.sessions.retain(|_, session| !session.is_unused());
        self.ask_again_for_all();
        for session in self.sessions.values_mut() {
            session.disconnected();
        }
    }

    /// The next stream is to another server, which has what it is asked for, or has not: what is held stays in use, and what the one
    /// before called it says nothing to this one. It is asked for all that is wanted, and to say of all that is held that it is
    /// there, or gone. A stream that is open is over.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Instant};
    /// # use bytes::Bytes;
    /// # use xds_transport::{Protocol, TypeRules, client::{Command, Interest, Stream}};
    /// let mut stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
    /// stream.apply(Command::Subscribe("example.com/T".into(), Interest::Wildcard));
    /// let now = Instant::now();
    /// stream.connected(now);
    /// assert!(stream.poll_transmit(now).is_some());
    /// stream.of_another_server(now);
    /// assert!(stream.poll_transmit(now).is_none());
    /// stream.connected(now);
    /// assert!(stream.poll_transmit(now).is_some());
    /// ```
    pub fn of_another_server(&mut self, now: Instant) {
        if self.connected {
            self.disconnected(now);
        }
        self.sessions.values_mut().for_each(Session::of_another_server);
    }

    /// Does what its user asks.
    pub fn apply(&mut self, command: Command) {
        match command {
            Command::Subscribe(type_url, interest) => {
                let rule = self.rules.of(&type_url);
                if rule.delta_only && self.protocol == Protocol::Sotw {
                    return self.refuse(type_url, interest);
                }
                let key = (rule.rank, type_url.clone());
                let (protocol, keep_deleted, silence) = (self.protocol, self.keep_deleted, self.silence);
                let session = self.sessions.entry(key).or_insert_with_key(|(_, url)| {
                    Session::new(protocol, url.clone(), rule, keep_deleted, silence, self.selecting.clone())
                });
                let interest = normal(interest);
                if !session.has_room(&interest, self.max_request_size) {
                    return self.turn_away(type_url, &interest);
                }
                let asked_apart = self.over.is_some().then(|| interest.clone());
                session.subscribe(interest);
                self.tell_if_refused(type_url, asked_apart);
            }
            Command::Unsubscribe(type_url, interest) => self.unsubscribe(type_url, interest),
            Command::Undecided(type_url, names) => {
                if let Some(session) = self.session(type_url) {
                    session.undecided(names);
                }
            }
            Command::Hold(type_url, resources, collections) => {
                if let Some(session) = self.session(type_url) {
                    session.hold(resources, &collections);
                }
            }
            Command::Forget(type_url) => {
                if let Some(session) = self.session(type_url) {
                    session.forget();
                }
            }
            Command::Drop(type_url, names) => {
                if let Some(session) = self.session(type_url) {
                    session.drop_held(&names);
                }
            }
            Command::Intern(intern) => self.intern = Some(intern),
            Command::Finish(id, verdict) => {
                for session in self.sessions.values_mut() {
                    if session.has_unfinished(id) {
                        return session.finish(id, verdict);
                    }
                }
            }
        }
    }

    /// Bytes came in last `at` this time, and may be part of an answer: to who takes [silence for no answer](Silence) it is
    /// none while they come. To be said before [`handle_timeout`](Self::handle_timeout).
    pub fn received(&mut self, at: Instant) {
        self.sessions.values_mut().for_each(|session| session.received(at));
    }

    /// Lets time pass: see [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Instant) {
        for session in self.sessions.values_mut() {
            self.updates += 1;
            let update = session.handle_timeout(now, UpdateId(self.updates));
            self.events.extend(update.map(Event::Update));
        }
    }

    /// The next request, encoded: ask when there is room for one, and take it as sent once it is here.
    /// Acknowledgements come first; what was subscribed since the last request of a type is one request.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        self.poll_request(now, |_| true).map(|(_, request)| request)
    }

    /// The same of one of the types that there is `room` for.
    pub(super) fn poll_request(
        &mut self,
        now: Instant,
        mut room: impl FnMut(&TypeUrl) -> bool,
    ) -> Option<(&TypeUrl, Bytes)> {
        if !self.may_send() {
            return None;
        }
        let answers = self.has_answer_by_type(&mut room);
        let mut may = |of: &TypeUrl| {
            let over = self.over.as_ref().and_then(|over| over.get(of));
            over.is_none_or(|over| over.is_asked) && room(of)
        };
        if !answers {
            // A request that is no answer goes within the limit.
            self.throttled = self.limit.as_mut().is_some_and(|limit| !limit.has_token(now));
            if self.throttled {
                return None;
            }
        }
        for ((_, of), session) in &mut self.sessions {
            if answers && !session.has_answer() || !may(of) {
                continue;
            }
            // Only the first request of a stream names the node (rule 5), be it of one type.
            let is_named = if self.over.is_some() { session.is_opened() } else { self.node_sent };
            let node = if is_named { Bytes::new() } else { self.node.clone() };
            let Some(request) = session.poll_transmit(now, node, self.max_request_size) else { continue };
            self.node_sent = true;
            if let Some(limit) = self.limit.as_mut().filter(|_| !answers) {
                limit.take();
            }
            return Some((of, request));
        }
        None
    }

    /// Whether the next request acknowledges a response, or refuses it: these must not wait (rule 20).
    pub fn has_answer(&self) -> bool {
        self.may_send() && self.sessions.values().any(Session::has_answer)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.next_refused())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and then [`poll_transmit`](Self::poll_transmit).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let turn = self.limit.as_ref().filter(|_| self.throttled && self.may_send()).and_then(Bucket::next);
        self.sessions.values().filter_map(Session::poll_timeout).chain(turn).min()
    }

    /// Whether an update waits to be finished: until then the next message is better left unread, so that a slow user
    /// holds the server back and not memory (rule 130).
    pub fn has_unfinished(&self) -> bool {
        self.sessions.values().any(Session::has_any_unfinished)
    }

    pub(super) fn may_send(&self) -> bool {
        self.connected && self.failed.is_none()
    }

    pub(super) fn session(&mut self, type_url: TypeUrl) -> Option<&mut Session> {
        let rank = self.rules.of(&type_url).rank;
        self.sessions.get_mut(&(rank, type_url))
    }

    fn unsubscribe(&mut self, type_url: TypeUrl, interest: Interest) {
        let key = (self.rules.of(&type_url).rank, type_url);
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let interest = normal(interest);
        session.unsubscribe(&interest);
        for Event::Update(update) in &mut self.events {
            if update.type_url == key.1 {
                session.leave_out_what_was_left(update);
            }
        }
        self.forget_refused(&key.1, &interest);
    }

    /// Rule 2: an origin that is asked over SotW could send such a type, but never say that something of it is gone.
    fn refuse(&mut self, type_url: TypeUrl, interest: Interest) {
        let mut update = Update::new(self.update_id(), type_url);
        update.errors.extend(failure::without_sotw(&update.type_url, &interest));
        self.events.push_back(Event::Update(update));
    }

    fn turn_away(&mut self, type_url: TypeUrl, interest: &Interest) {
        let mut update = Update::new(self.update_id(), type_url);
        update.errors.extend(failure::without_room(&update.type_url, interest, self.max_request_size));
        self.events.push_back(Event::Update(update));
    }

    pub(super) fn update_id(&mut self) -> UpdateId {
        self.updates += 1;
        UpdateId(self.updates)
    }
}

/// The name `*` is the wildcard, whoever wrote it as a name.
fn normal(interest: Interest) -> Interest {
    match interest {
        Interest::Name(name) => name.into(),
        Interest::Wildcard => interest,
    }
}
