//! A stream: of a client or a relay to who is above it, from both of its ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Instant;

use bytes::Bytes;
use xds_relay::relay_core::{Admitted, Dial, Dialed, Position, Routes, ServedStream};
use xds_transport::client::{Command, Event, Silence};
use xds_transport::{Protocol, TypeRules, client, server};
use xdstp_client::Backoff;
use xdstp_client::upstream::{Consumer, Upstream};

use crate::wire::Wire;

/// Whose stream it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Client(usize),
    Relay(usize),
}

/// Whom it is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Origin,
    Relay(usize),
}

/// Which hops were woken: nobody else is looked at before its time.
pub(crate) type Rung = Arc<Mutex<Vec<usize>>>;

/// Has a hop looked at.
pub(crate) struct Bell {
    pub(crate) hop: AtomicUsize,
    is_rung: AtomicBool,
    /// Who opened the stream let go of it.
    pub(crate) is_dropped: AtomicBool,
    rung: Rung,
}

impl Bell {
    pub(crate) fn new(rung: Rung) -> Arc<Self> {
        let (is_rung, is_dropped) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { hop: AtomicUsize::new(usize::MAX), is_rung, is_dropped, rung })
    }

    pub(crate) fn ring(&self) {
        let hop = self.hop.load(Ordering::Relaxed);
        if hop != usize::MAX && !self.is_rung.swap(true, Ordering::Relaxed) {
            self.rung.lock().unwrap().push(hop);
        }
    }

    pub(crate) fn silence(&self) {
        self.is_rung.store(false, Ordering::Relaxed);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

pub(crate) struct Hop {
    pub(crate) whose: Whose,
    pub(crate) protocol: Protocol,
    pub(crate) node: Bytes,
    pub(crate) upstream: Upstream,
    pub(crate) consumer: Box<dyn Consumer>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) far: Option<Far>,
    /// When the attempt that is made arrives.
    pub(crate) opens_at: Option<u64>,
    /// When it is looked at next, if nobody wakes it.
    pub(crate) due: Option<u64>,
}

pub(crate) struct Far {
    pub(crate) to: To,
    pub(crate) stream: server::Stream,
    /// `None`: the cache of the origin.
    pub(crate) routes: Option<Routes>,
    pub(crate) ended: Arc<Ended>,
    pub(crate) up: Wire,
    pub(crate) down: Wire,
    /// Something was lost: nothing arrives any more, and both ends notice then.
    pub(crate) breaks_at: Option<u64>,
    pub(crate) _admitted: Option<Admitted>,
}

impl Hop {
    pub(crate) fn new(
        whose: Whose,
        protocol: Protocol,
        node: Bytes,
        consumer: Box<dyn Consumer>,
        (bell, first_attempt): (Arc<Bell>, Instant),
    ) -> Self {
        let stream =
            client::Stream::new(protocol, node.clone(), Arc::new(TypeRules::envoy())).with_silence(Silence::IsNoAnswer);
        let upstream = Upstream::new(stream, Backoff::default(), first_attempt);
        Self { whose, protocol, node, upstream, consumer, bell, far: None, opens_at: None, due: None }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.bell.is_dropped.load(Ordering::Relaxed)
    }

    /// What a driver does whenever it runs.
    pub(crate) fn turn(&mut self, now: Instant) {
        let Self { upstream, consumer, .. } = self;
        consumer.commands(now, &mut |command| upstream.apply(command));
        if consumer.poll_timeout().is_some_and(|due| due <= now) {
            consumer.handle_timeout(now);
        }
        upstream.handle_timeout(now);
        self.deliver(now);
    }

    pub(crate) fn deliver(&mut self, now: Instant) {
        let Self { upstream, consumer, .. } = self;
        while let Some(Event::Update(update)) = upstream.poll_event() {
            let id = update.id;
            let verdict = consumer.update(now, update);
            upstream.apply(Command::Finish(id, verdict));
        }
    }

    /// The stream is over, or none came to be.
    pub(crate) fn disconnected(&mut self, now: Instant, error: &str, random: u64) {
        let connection = self.upstream.disconnected(now, Some(error.to_owned()), random);
        self.consumer.connection(now, connection);
    }
}

/// Hands every stream that a relay opens to the tree.
pub(crate) struct Dialer {
    pub(crate) relay: usize,
    pub(crate) rung: Rung,
    pub(crate) dialed: Arc<Mutex<Vec<Hop>>>,
    pub(crate) now: Arc<Mutex<Instant>>,
}

impl Dial for Dialer {
    fn dial(&self, _: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let bell = Bell::new(self.rung.clone());
        let now = *self.now.lock().unwrap();
        let whose = Whose::Relay(self.relay);
        let hop = Hop::new(whose, Protocol::Delta, node, consumer, (bell.clone(), now));
        self.dialed.lock().unwrap().push(hop);
        Box::new(Handle(bell))
    }
}

struct Handle(Arc<Bell>);

impl Dialed for Handle {
    fn nudge(&self) {
        self.0.ring();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::Relaxed);
        self.0.ring();
    }
}

/// How a relay ends a stream that it serves.
pub(crate) struct Ended {
    pub(crate) reason: Mutex<Option<String>>,
    bell: Arc<Bell>,
}

impl Ended {
    pub(crate) fn new(bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self { reason: Mutex::default(), bell })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(self.bell.clone())
    }
}

impl ServedStream for Ended {
    fn peer(&self) -> &str {
        "somewhere"
    }

    fn inspect(&self, _: &mut dyn FnMut(&server::Stream)) {}

    fn end(&self, reason: &str) {
        *self.reason.lock().unwrap() = Some(reason.to_owned());
        self.bell.ring();
    }
}
