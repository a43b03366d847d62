//! A stream between a client and a server, over a link that takes its time and bears a few messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::TypeRules;
use xds_transport::client::{Command, Event, Silence, Stream};

use super::super::Protocol;
use super::books::Books;
use super::said::Sent;
use super::server::{Server, Session};
use crate::backoff::Backoff;
use crate::bootstrap;
use crate::client::{Transport, patience};
use crate::federation::Dialed;
use crate::upstream::{Consumer, Upstream};

/// What clients dial by: what is dialed is taken up when the world goes on.
#[derive(Clone, Default)]
pub(super) struct Port(Arc<Mutex<Vec<Dialing>>>);

pub(super) struct Dialing {
    server: bootstrap::Server,
    node: Bytes,
    consumer: Box<dyn Consumer>,
    nudged: Weak<AtomicBool>,
}

struct Handle(Arc<AtomicBool>);

impl Port {
    pub(super) fn take(&self) -> Vec<Dialing> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Transport for Port {
    fn open(&self, server: &bootstrap::Server, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let nudged = Arc::new(AtomicBool::new(true));
        let weak = Arc::downgrade(&nudged);
        self.0.lock().unwrap().push(Dialing { server: server.clone(), node, consumer, nudged: weak });
        Box::new(Handle(nudged))
    }
}

impl Dialed for Handle {
    fn nudge(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) struct Link {
    /// It is known by this, and never by another.
    pub(super) id: usize,
    pub(super) server: usize,
    protocol: Protocol,
    /// How many messages are under way in one direction at most.
    window: usize,
    nudged: Weak<AtomicBool>,
    consumer: Box<dyn Consumer>,
    upstream: Upstream,
    session: Option<Session>,
    up: VecDeque<(Instant, Bytes)>,
    down: VecDeque<(Instant, Bytes)>,
}

impl Link {
    pub(super) fn new(id: usize, (protocol, window): (Protocol, usize), dialing: Dialing, now: Instant) -> Self {
        let Dialing { server, node, consumer, nudged } = dialing;
        let stream = Stream::new(protocol, node, Arc::new(TypeRules::envoy()));
        let silence = Silence::IsAbsenceAfter(patience(server.features()));
        let stream = stream.with_silence(silence).following_redirects();
        let server = super::history::server_at(server.uri());
        let upstream = Upstream::new(stream, Backoff::default(), now);
        let (up, down) = (VecDeque::new(), VecDeque::new());
        Self { id, server, protocol, window, nudged, consumer, upstream, session: None, up, down }
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.nudged.strong_count() == 0
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let arrivals = [self.up.front(), self.down.front()].into_iter().flatten().map(|(at, _)| *at);
        let due = [self.upstream.poll_timeout(), self.consumer.poll_timeout()].into_iter().flatten();
        arrivals.chain(due).min()
    }

    /// The stream is over, if there is one.
    pub(super) fn cut(&mut self, now: Instant, books: &mut Books, why: &str) -> bool {
        let is_open = self.session.take().is_some();
        if is_open {
            self.up.clear();
            self.down.clear();
            books.ended(self.id, now);
            let ended = self.upstream.disconnected(now, Some(why.to_owned()), u64::MAX);
            self.consumer.connection(now, ended);
        }
        is_open
    }

    /// Whether anything happened.
    pub(super) fn drive(&mut self, now: Instant, server: &Server, books: &mut Books) -> bool {
        let mut happened = self.nudged.upgrade().is_some_and(|nudged| nudged.swap(false, Ordering::Relaxed));
        if !server.up {
            happened |= self.cut(now, books, "away");
        }
        self.turn(now, books);
        if self.upstream.should_connect(now) {
            happened = true;
            self.connect(now, server, books);
            self.turn(now, books);
        }
        happened |= self.consumer.has_more_commands();
        happened |= self.send(now, server, books);
        happened | self.receive(now, books)
    }

    fn connect(&mut self, now: Instant, server: &Server, books: &mut Books) {
        let connection = if server.up {
            self.session = Some(Session::new(self.protocol));
            books.opened(self.id, now);
            self.upstream.connected(now)
        } else {
            books.ended(self.id, now);
            self.upstream.disconnected(now, Some("away".to_owned()), u64::MAX)
        };
        self.consumer.connection(now, connection);
    }

    /// Requests on their way, and what comes of those that arrived.
    fn send(&mut self, now: Instant, server: &Server, books: &mut Books) -> bool {
        let Some(session) = &mut self.session else { return false };
        let (mut happened, latency) = (false, Duration::from_millis(server.latency));
        while self.up.len() < self.window
            && !self.consumer.has_more_commands()
            && let Some(request) = self.upstream.poll_transmit(now)
        {
            happened = true;
            if self.protocol == Protocol::Sotw {
                books.sent(self.id, Sent::read(&request));
            }
            self.up.push_back((now + latency, request));
        }
        while let Some(request) = arrived(&mut self.up, now) {
            happened = true;
            session.request(&request);
        }
        while !server.silent
            && self.down.len() < self.window
            && let Some(response) = session.respond(server)
        {
            happened = true;
            self.down.push_back((now + latency, response.into()));
        }
        happened
    }

    fn receive(&mut self, now: Instant, books: &mut Books) -> bool {
        let Some(response) = arrived(&mut self.down, now) else { return false };
        books.heard(self.id, &super::said::Said::read(self.protocol, &response), now);
        self.consumer.received(now);
        match self.upstream.handle_message(now, response) {
            Ok(Some(answered)) => self.consumer.connection(now, answered),
            Ok(None) => {}
            Err(error) => _ = self.cut(now, books, &error.to_string()),
        }
        self.deliver(now);
        self.turn(now, books);
        true
    }

    /// What a driver does whenever it runs.
    fn turn(&mut self, now: Instant, books: &mut Books) {
        let Self { id, upstream, consumer, .. } = self;
        consumer.commands(now, &mut |command| {
            books.told(*id, &command, now);
            upstream.apply(command);
        });
        if consumer.poll_timeout().is_some_and(|due| due <= now) {
            consumer.handle_timeout(now);
        }
        upstream.handle_timeout(now);
        self.deliver(now);
    }

    fn deliver(&mut self, now: Instant) {
        let Self { upstream, consumer, .. } = self;
        while let Some(Event::Update(update)) = upstream.poll_event() {
            let id = update.id;
            let verdict = consumer.update(now, update);
            upstream.apply(Command::Finish(id, verdict));
        }
    }
}

fn arrived(queue: &mut VecDeque<(Instant, Bytes)>, now: Instant) -> Option<Bytes> {
    let is_there = queue.front().is_some_and(|(at, _)| *at <= now);
    is_there.then(|| queue.pop_front()).flatten().map(|(_, message)| message)
}
