//! One origin, and the stream to it: the part of a client, and of a relay, that looks upstream.
//!
//! [`Upstream`] decides without I/O when to connect; [`drive`] does it, with tonic, for a [`Consumer`].

mod apart;
mod calls;
pub(crate) mod connect;
mod drive;
mod ended;
mod frames;
mod go_away;
mod heard;
mod last_words;
mod own;
mod pool;

use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::metadata::MetadataMap;
use xds_transport::client::{Command, Event, ProtocolError, Stream, Update, Verdict};
use xdstp_cache::{ResourceError, Selector, TypeUrl};

#[cfg(any(feature = "http", feature = "lrs"))]
pub(crate) use drive::now;
#[cfg(any(feature = "http", feature = "lrs", feature = "etcd"))]
pub(crate) use drive::random;
pub use drive::{Driver, drive, spawn};
pub(crate) use ended::chain;
#[cfg(all(feature = "http", feature = "rustls-any"))]
pub(crate) use last_words::LastWords;
pub use pool::{Place, Pool, Unreachable};

use self::apart::Apart;
use crate::backoff::Backoff;

/// Who uses what comes from an origin. All of it is called from the one future that drives the upstream, between
/// two messages: it returns soon, and what it cannot do at once it keeps in a form that coalesces.
pub trait Consumer: Send + 'static {
    /// Called whenever the driver runs: pass every new command to `apply`.
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command));

    /// Whether the last call passed only a part of the new commands, because there are thousands. Others have their turn
    /// then, messages are read and acknowledged, and other requests wait until all is passed.
    fn has_more_commands(&self) -> bool {
        false
    }

    /// The origin sent something. The next message is not read before this returns.
    fn update(&mut self, now: Instant, update: Update) -> Verdict;

    /// The stream to the origin began, was answered, or ended.
    fn connection(&mut self, now: Instant, connection: Connection);

    /// Where [each type has a stream](crate::Endpoint::with_per_type_methods): that of a type ended with an error, and those of others
    /// go on. It is opened again after a time. All that came of it was passed on before.
    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError);

    /// That of a type was answered, if not yet with a response.
    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl);

    /// The next stream is to another server: see [`Pool::lead_elsewhere`]. The one that there was has ended, and all that came of
    /// it was passed on before this.
    fn another_server(&mut self, _now: Instant) {}

    /// Asked before every attempt to connect: another encoded `Node` to name from this stream on, if there is one.
    fn node(&mut self) -> Option<Bytes> {
        None
    }

    /// Asked once, before anything: by what all that it asks for selects among variants (TP2), in the form that the
    /// [endpoint](crate::Endpoint::with_dialect) speaks.
    fn selector(&self) -> Selector {
        Selector::default()
    }

    /// Asked for every stream: what the origin is told before any request.
    fn metadata(&mut self) -> MetadataMap {
        MetadataMap::new()
    }

    /// What the origin answered a stream with, before any response.
    ///
    /// # Errors
    /// Why this origin must not be asked: the stream ends, and the next attempt waits as long as any.
    fn opened(&mut self, _metadata: &MetadataMap) -> Result<(), String> {
        Ok(())
    }

    /// Bytes of a message came in last `at` this time, whole or not: a large response over a slow link is no silence.
    /// Said before [`update`](Self::update) and before [`handle_timeout`](Self::handle_timeout), when there is news.
    fn received(&mut self, _at: Instant) {}

    /// A message was longer than the endpoint [takes](crate::Endpoint::with_max_message_size): the stream ends for it, as is told next.
    fn too_long(&mut self) {}

    /// When to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) gave has come: it must not give the same again.
    fn handle_timeout(&mut self, _now: Instant) {}
}

impl Consumer for Box<dyn Consumer> {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        (**self).commands(now, apply);
    }

    fn has_more_commands(&self) -> bool {
        (**self).has_more_commands()
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        (**self).update(now, update)
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        (**self).connection(now, connection);
    }

    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        (**self).type_ended(now, type_url, error);
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        (**self).type_opened(now, type_url);
    }

    fn another_server(&mut self, now: Instant) {
        (**self).another_server(now);
    }

    fn node(&mut self) -> Option<Bytes> {
        (**self).node()
    }

    fn selector(&self) -> Selector {
        (**self).selector()
    }

    fn metadata(&mut self) -> MetadataMap {
        (**self).metadata()
    }

    fn opened(&mut self, metadata: &MetadataMap) -> Result<(), String> {
        (**self).opened(metadata)
    }

    fn received(&mut self, at: Instant) {
        (**self).received(at);
    }

    fn too_long(&mut self) {
        (**self).too_long();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }
}

/// Whether there is a stream to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// A stream is open. Who listens there may be a balancer that ends it soon.
    Connected,
    /// The first response came on it: the origin is there (rule 156).
    Answered,
    /// There is none.
    Disconnected {
        /// Why; `None` after a stream that had a response: such streams end all the time (rule 91). What the origin
        /// finds fault with (a GOAWAY with an error) is said nevertheless.
        error: Option<String>,
        /// When the next attempt is made.
        retry_at: Instant,
    },
}

/// `google.rpc.Code.UNIMPLEMENTED`.
const UNIMPLEMENTED: i32 = 12;

/// The machine of a stream, and when to open one.
#[derive(Debug)]
pub struct Upstream {
    stream: Stream,
    backoff: Backoff,
    apart: Apart,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Down { retry_at: Instant },
    Connecting,
    Up { responded: bool },
}

impl Upstream {
    /// An upstream that connects as soon as it is asked to.
    pub fn new(stream: Stream, backoff: Backoff, now: Instant) -> Self {
        let apart = Apart::new(backoff.clone());
        Self { stream, backoff, apart, link: Link::Down { retry_at: now } }
    }

    /// Whether a connection should be made now. It says so once: answer with [`connected`](Self::connected) or
    /// [`disconnected`](Self::disconnected).
    pub fn should_connect(&mut self, now: Instant) -> bool {
        let due = matches!(self.link, Link::Down { retry_at } if retry_at <= now);
        if due {
            self.link = Link::Connecting;
        }
        due
    }

    /// A stream is open.
    pub fn connected(&mut self, now: Instant) -> Connection {
        self.link = Link::Up { responded: false };
        self.stream.connected(now);
        Connection::Connected
    }

    /// The stream ended, or none came to be. `random` is uniform over its range.
    ///
    /// Backoff grows only after streams without any response (rule 89).
    pub fn disconnected(&mut self, now: Instant, error: Option<String>, random: u64) -> Connection {
        let responded = matches!(self.link, Link::Up { responded: true });
        let wait = self.backoff.next(random);
        self.down(now, error.filter(|_| !responded), wait)
    }

    /// The stream was ended from here, because this origin must not be asked: the next attempt waits as long as any.
    pub fn declined(&mut self, now: Instant, error: String, random: u64) -> Connection {
        let wait = self.backoff.longest(random);
        self.down(now, Some(error), wait)
    }

    /// There is no connection, for this stream or any other to the origin, before `retry_at`.
    pub fn lost(&mut self, now: Instant, error: Option<String>, retry_at: Instant) -> Connection {
        let responded = matches!(self.link, Link::Up { responded: true });
        self.down(now, error.filter(|_| !responded), retry_at.saturating_duration_since(now))
    }

    /// Another server is to be connected to, now: what came of attempts at the one before says nothing of it, and no version that
    /// that gave is named to it (see [`Stream::of_another_server`]).
    pub fn lead_elsewhere(&mut self, now: Instant) -> Connection {
        self.backoff.reset();
        let connection = self.down(now, None, Duration::ZERO);
        self.stream.of_another_server(now);
        connection
    }

    /// The origin is there again: if it is waited for, then no longer than until `at`.
    pub fn retry_by(&mut self, at: Instant) {
        if let Link::Down { retry_at } = &mut self.link {
            *retry_at = at.min(*retry_at);
        }
    }

    fn down(&mut self, now: Instant, error: Option<String>, wait: Duration) -> Connection {
        let retry_at = now + wait;
        self.link = Link::Down { retry_at };
        self.apart.clear();
        self.stream.disconnected(now);
        Connection::Disconnected { error, retry_at }
    }

    /// What ended just now did because the origin has no method for any type that was asked for, where [each has
    /// one](Stream::per_type). Another one that is asked for meanwhile is a reason to try at once: of each type once.
    pub fn has_no_method(&mut self, now: Instant) {
        self.apart.lack(now, self.stream.types_asked().cloned());
    }

    /// Tells the machine to do something.
    pub fn apply(&mut self, command: Command) {
        let asks_for = match &command {
            Command::Subscribe(type_url, _) => self.apart.may_have(type_url).map(|since| (type_url.clone(), since)),
            _ => None,
        };
        self.stream.apply(command);
        if let Some((type_url, since)) = asks_for
            && self.stream.types_asked().any(|of| *of == type_url)
        {
            self.retry_by(since);
        }
    }

    /// Takes a response in; the first of a stream says that it is answered.
    ///
    /// # Errors
    /// When the stream must be closed.
    pub fn handle_message(&mut self, now: Instant, message: Bytes) -> Result<Option<Connection>, ProtocolError> {
        self.stream.handle_message(now, message)?;
        Ok(self.responded())
    }

    /// The news that there was a response, if it was the first.
    fn responded(&mut self) -> Option<Connection> {
        let first = !matches!(self.link, Link::Up { responded: true });
        self.link = Link::Up { responded: true };
        self.backoff.reset();
        self.apart.has_methods();
        first.then_some(Connection::Answered)
    }

    /// The same of what came on the stream of a type, where [each has one](Stream::per_type).
    ///
    /// # Errors
    /// When the stream of the type must be closed: say that it [ended](Self::type_ended).
    pub fn handle_message_of(
        &mut self,
        now: Instant,
        type_url: &TypeUrl,
        message: Bytes,
    ) -> Result<Option<Connection>, ProtocolError> {
        self.stream.handle_message_of(now, type_url, message)?;
        self.apart.answered(type_url);
        Ok(self.responded())
    }

    /// The stream of a type was answered, if not yet with a response.
    pub fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.apart.opened(now, type_url);
    }

    /// The stream of a type ended, and those of others go on. It is opened again by a backoff of its own, which only a response for
    /// the type resets, or that a stream lasts. Until then it is as if the origin were away, for that. Only that there is no method for it
    /// (`UNIMPLEMENTED`) is an error of what is wanted of it (see [`Stream::refuse_type`]), if it was said again 15 s later, never answered,
    /// and others are. Whether those go on: not where each stream ended by now, and none was answered.
    #[must_use]
    pub fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: ResourceError, random: u64) -> bool {
        let is_lacking = self.apart.ended(now, type_url, error.code == UNIMPLEMENTED, random);
        let is_answered = matches!(self.link, Link::Up { responded: true });
        if is_lacking && is_answered {
            self.stream.refuse_type(type_url, error);
        } else {
            self.stream.type_ended(type_url);
        }
        is_answered || !self.stream.types_asked().all(|of| self.apart.ended_since(of))
    }

    /// Names another encoded `Node` from the next stream on.
    pub fn set_node(&mut self, node: Bytes) {
        self.stream.set_node(node);
    }

    /// Bytes came in last `at` this time, as [`Consumer::received`] is told.
    pub fn received(&mut self, at: Instant) {
        self.stream.received(at);
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.apart.take_due(now).iter().for_each(|type_url| self.stream.ask_again(type_url));
        self.stream.handle_timeout(now);
    }

    /// Whether the next request acknowledges a response, or refuses it.
    pub fn has_answer(&self) -> bool {
        self.stream.has_answer()
    }

    /// The same of a type whose stream has `room`.
    pub fn has_answer_by_type(&self, room: impl FnMut(&TypeUrl) -> bool) -> bool {
        self.stream.has_answer_by_type(room)
    }

    /// The next request, encoded.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        self.stream.poll_transmit(now)
    }

    /// The next request of a type whose stream has `room`: see [`Stream::poll_transmit_by_type`].
    pub fn poll_transmit_by_type(
        &mut self,
        now: Instant,
        room: impl FnMut(&TypeUrl) -> bool,
    ) -> Option<(TypeUrl, Bytes)> {
        self.stream.poll_transmit_by_type(now, room)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.stream.poll_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`should_connect`](Self::should_connect).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let retry_at = match self.link {
            Link::Down { retry_at } => Some(retry_at),
            Link::Connecting | Link::Up { .. } => None,
        };
        [retry_at, self.apart.poll_timeout(), self.stream.poll_timeout()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use xds_transport::{Protocol, TypeRules};

    use super::*;

    fn upstream(now: Instant) -> Upstream {
        Upstream::new(Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy())), Backoff::default(), now)
    }

    fn wait(connection: &Connection, now: Instant) -> Duration {
        match connection {
            Connection::Disconnected { retry_at, .. } => *retry_at - now,
            _ => panic!("not disconnected"),
        }
    }

    #[test]
    fn rule_089_only_a_response_resets_the_backoff() {
        let now = Instant::now();
        let mut upstream = upstream(now);
        assert!(upstream.should_connect(now) && !upstream.should_connect(now));
        let mut waits = Vec::new();
        for respond in [false, false, true, true, false] {
            upstream.connected(now);
            if respond {
                upstream.handle_message(now, Bytes::new()).unwrap();
            }
            waits.push(wait(&upstream.disconnected(now, None, u64::MAX), now).as_millis());
        }
        assert_eq!(waits, [500, 1000, 500, 500, 1000]);
        assert!(!upstream.should_connect(now + Duration::from_millis(999)));
        assert!(upstream.should_connect(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_wait_for_an_origin_that_is_back_is_cut_short() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut upstream = upstream(now);
        upstream.retry_by(at(9));
        assert_eq!(upstream.poll_timeout(), Some(now));
        assert!(upstream.should_connect(now));
        upstream.retry_by(now);
        assert!(!upstream.should_connect(now));
        upstream.connected(now);
        let lost = upstream.lost(now, Some("gone".into()), at(30));
        assert_eq!(lost, Connection::Disconnected { error: Some("gone".into()), retry_at: at(30) });
        upstream.retry_by(at(5));
        assert!(!upstream.should_connect(at(4)) && upstream.should_connect(at(5)));
    }

    #[test]
    fn another_server_is_connected_to_at_once_however_long_the_one_before_was_waited_for() {
        let now = Instant::now();
        let mut upstream = upstream(now);
        for _ in 0..9 {
            upstream.connected(now);
            upstream.disconnected(now, None, u64::MAX);
        }
        assert!(!upstream.should_connect(now));
        assert_eq!(upstream.lead_elsewhere(now), Connection::Disconnected { error: None, retry_at: now });
        assert!(upstream.should_connect(now));
        assert_eq!(wait(&upstream.disconnected(now, None, u64::MAX), now).as_millis(), 500);
    }

    #[test]
    fn an_origin_that_is_declined_is_asked_again_late_whatever_came_before() {
        let now = Instant::now();
        let mut upstream = upstream(now);
        for respond in [false, true] {
            upstream.connected(now);
            if respond {
                upstream.handle_message(now, Bytes::new()).unwrap();
            }
            let declined = upstream.declined(now, "it is us".into(), u64::MAX);
            assert_eq!(wait(&declined, now).as_secs(), 30);
            assert!(matches!(declined, Connection::Disconnected { error: Some(error), .. } if error == "it is us"));
        }
    }

    #[test]
    fn rule_156_the_first_response_of_every_stream_says_that_the_origin_is_there() {
        let now = Instant::now();
        let mut upstream = upstream(now);
        for _ in 0..2 {
            assert_eq!(upstream.connected(now), Connection::Connected);
            assert_eq!(upstream.handle_message(now, Bytes::new()), Ok(Some(Connection::Answered)));
            assert_eq!(upstream.handle_message(now, Bytes::new()), Ok(None));
            upstream.disconnected(now, None, 0);
        }
    }

    #[test]
    fn rule_091_a_stream_that_ends_after_a_response_is_no_error() {
        let now = Instant::now();
        let mut upstream = upstream(now);
        for (respond, expected) in [(false, Some("gone".to_owned())), (true, None)] {
            upstream.connected(now);
            if respond {
                upstream.handle_message(now, Bytes::new()).unwrap();
            }
            let Connection::Disconnected { error, .. } = upstream.disconnected(now, Some("gone".into()), 0) else {
                panic!("not disconnected")
            };
            assert_eq!(error, expected);
        }
    }
}
