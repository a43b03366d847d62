//! A stream between a client and a server: what a driver does with sockets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::client::{Command, Event, Silence};
use xds_transport::server::{Settings, Stream};
use xds_transport::{Dialect, Protocol, TypeRules};

use super::server::State;
use crate::backoff::Backoff;
use crate::bootstrap;
use crate::federation::Dialed;
use crate::upstream::{Consumer, Upstream};

/// The client's end; dropping it ends the stream.
pub(super) struct Handle(Arc<AtomicBool>);

impl Handle {
    pub(super) fn new() -> (Self, Weak<AtomicBool>) {
        let nudged = Arc::new(AtomicBool::new(true));
        let weak = Arc::downgrade(&nudged);
        (Self(nudged), weak)
    }
}

impl Dialed for Handle {
    fn nudge(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) struct Link {
    pub(super) server: String,
    protocol: Protocol,
    dialect: Dialect,
    nudged: Weak<AtomicBool>,
    consumer: Box<dyn Consumer>,
    upstream: Upstream,
    far_end: Option<Stream>,
}

impl Link {
    pub(super) fn new(
        server: &bootstrap::Server,
        protocol: Protocol,
        node: Bytes,
        (consumer, nudged): (Box<dyn Consumer>, Weak<AtomicBool>),
        now: Instant,
    ) -> Self {
        let dialect = match server.features().draft_dynamic_parameters {
            true => Dialect::Draft,
            false => Dialect::Final,
        };
        let stream = || xds_transport::client::Stream::new(protocol, node.clone(), Arc::new(TypeRules::envoy()));
        // What cannot be said, no watch asks for.
        let stream = stream().selecting(dialect, consumer.selector()).unwrap_or_else(|_| stream());
        let patience = crate::client::patience(server.features());
        let stream = stream.with_silence(Silence::IsAbsenceAfter(patience)).following_redirects();
        Self {
            server: server.uri().to_owned(),
            protocol,
            dialect,
            nudged,
            consumer,
            upstream: Upstream::new(stream, Backoff::grpc(), now),
            far_end: None,
        }
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.nudged.strong_count() == 0
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let far = self.far_end.as_ref().and_then(Stream::poll_timeout);
        [self.upstream.poll_timeout(), self.consumer.poll_timeout(), far].into_iter().flatten().min()
    }

    /// The server learns that the stream is over.
    pub(super) fn end(&mut self, server: &mut State) {
        if let Some(mut far) = self.far_end.take() {
            far.close(&mut server.cache);
            server.streams -= 1;
        }
    }

    /// The server ends the stream, if there is one.
    pub(super) fn cut(&mut self, now: Instant, server: &mut State) -> bool {
        let reason = server.reason.clone();
        self.over(now, server, reason)
    }

    /// The stream is over, if there is one.
    fn over(&mut self, now: Instant, server: &mut State, reason: String) -> bool {
        let is_open = self.far_end.is_some();
        if is_open {
            self.end(server);
            // Without jitter.
            let ended = self.upstream.disconnected(now, Some(reason), u64::MAX);
            self.consumer.connection(now, ended);
        }
        is_open
    }

    /// A response is there, if there is a stream.
    pub(super) fn receive(&mut self, now: Instant, server: &mut State, response: Bytes) {
        if self.far_end.is_none() {
            return;
        }
        match self.upstream.handle_message(now, response) {
            Ok(Some(answered)) => self.consumer.connection(now, answered),
            Ok(None) => {}
            Err(error) => _ = self.over(now, server, error.to_string()),
        }
        // Before what is left meanwhile is said to the stream, as a driver does it.
        self.deliver(now);
        self.turn(now);
    }

    /// Whether anything happened.
    pub(super) fn drive(&mut self, now: Instant, server: &mut State) -> bool {
        let mut happened = self.nudged.upgrade().is_some_and(|nudged| nudged.swap(false, Ordering::Relaxed));
        if !server.up {
            happened |= self.cut(now, server);
        }
        self.turn(now);
        if self.upstream.should_connect(now) {
            happened = true;
            self.connect(now, server);
            self.turn(now);
        }
        happened |= self.consumer.has_more_commands();
        happened | self.exchange(now, server)
    }

    fn connect(&mut self, now: Instant, server: &mut State) {
        if !server.up {
            let refused = self.upstream.disconnected(now, Some(server.reason.clone()), u64::MAX);
            return self.consumer.connection(now, refused);
        }
        server.streams += 1;
        server.opened += 1;
        let mut settings = Settings::default();
        settings.dialect = self.dialect;
        self.far_end = Some(Stream::new(self.protocol, settings));
        let connected = self.upstream.connected(now);
        self.consumer.connection(now, connected);
    }

    /// Requests there, and a response back: what comes of it is seen before the next.
    fn exchange(&mut self, now: Instant, server: &mut State) -> bool {
        let Some(far) = &mut self.far_end else { return false };
        let mut happened = false;
        while !self.consumer.has_more_commands()
            && let Some(request) = self.upstream.poll_transmit(now)
        {
            happened = true;
            server.note((self.protocol, self.dialect), &request);
            let _ = far.handle_message(now, request, &mut server.cache);
        }
        if server.silent {
            return happened;
        }
        let response = far.poll_transmit(now, &mut server.cache).ok().flatten();
        // It may have paused before it had found what to say.
        happened |= far.poll_timeout().is_some_and(|due| due <= now);
        if let Some(response) = response {
            happened = true;
            self.receive(now, server, response.into_bytes());
        }
        happened
    }

    /// What a driver does whenever it runs.
    fn turn(&mut self, now: Instant) {
        let Self { upstream, consumer, .. } = self;
        consumer.commands(now, &mut |command| upstream.apply(command));
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
