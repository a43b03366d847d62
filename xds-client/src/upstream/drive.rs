//! Driving an upstream with tokio and tonic.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use xds_transport::client::{Command, Event, Stream};
use xds_transport::wire::parameters::LocatorError;
use xdstp_cache::{ResourceError, TypeUrl};

use super::calls::{Called, Calls, Requests};
use super::ended;
use super::pool::{Departure, Place, Pool, Unreachable};
use super::{Connection, Consumer, UNIMPLEMENTED, Upstream};
use crate::endpoint::{Endpoint, Methods};

/// As long as any process runs.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Over which time streams come back to an origin that is there again.
const SPREAD: Duration = Duration::from_millis(100);

/// Drives `endpoint` for `consumer` until it is dropped. `wake` says that the consumer has new commands.
///
/// The attempts never end: an origin that is not there yet is one that is waited for.
pub async fn drive(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> Infallible {
    let node = endpoint.node.clone();
    drive_from(Pool::new(endpoint), node, consumer, wake).await
}

/// What the consumer wants cannot be said to this endpoint, whenever it is tried.
async fn never_asked(consumer: &mut impl Consumer, error: &LocatorError) -> Infallible {
    let (error, retry_at) = (Some(error.to_string()), now() + NEVER);
    consumer.connection(now(), Connection::Disconnected { error, retry_at });
    std::future::pending().await
}

/// The same over a connection of `pool`.
pub(super) async fn drive_from(pool: Pool, node: Bytes, mut consumer: impl Consumer, wake: Arc<Notify>) -> Infallible {
    let endpoint = pool.endpoint();
    let stream = Stream::new(endpoint.protocol, node, Arc::clone(&endpoint.rules))
        .with_silence(endpoint.silence)
        .with_max_request_size(endpoint.max_request_size);
    let stream = if endpoint.follows_redirects { stream.following_redirects() } else { stream };
    let selector = Some(consumer.selector()).filter(|selector| !selector.is_default());
    let stream = match stream.selecting(endpoint.dialect, selector.unwrap_or_else(|| endpoint.selector.clone())) {
        Ok(stream) => stream,
        // To ask for something else in its place would be to answer with that.
        Err(error) => return never_asked(&mut consumer, &error).await,
    };
    let stream = match endpoint.request_limit {
        Some(limit) => stream.limit_requests(limit),
        None => stream,
    };
    let stream = if matches!(endpoint.methods, Methods::PerType) { stream.per_type() } else { stream };
    let mut upstream = Upstream::new(stream, endpoint.backoff.clone(), now());
    let (mut returned, mut replaced) = (pool.returned(), pool.replaced());
    let mut server = replaced.borrow().server;
    let mut link = Link::Down;
    loop {
        consumer.commands(now(), &mut |command| upstream.apply(command));
        let more = consumer.has_more_commands();
        if is_due(consumer.poll_timeout()) || is_due(upstream.poll_timeout()) {
            // What came in may be a reason to wait on.
            link.tell_received(&mut upstream, &mut consumer);
            if is_due(consumer.poll_timeout()) {
                consumer.handle_timeout(now());
            }
            upstream.handle_timeout(now());
        }
        deliver(&mut upstream, &mut consumer);
        if upstream.should_connect(now()) {
            if let Some(node) = consumer.node() {
                upstream.set_node(node);
            }
            let pool = pool.clone();
            link = Link::Connecting(Box::pin(async move { pool.place().await }));
        }

        let of_upstream = upstream.poll_timeout();
        let due = [of_upstream, consumer.poll_timeout()].into_iter().flatten().min();
        let requests = Requests { upstream: &mut upstream, more, due: of_upstream, wake: &wake };
        let happened = tokio::select! {
            biased;
            // The stream here has the other end.
            Ok(()) = replaced.changed() => {
                link.tell_received(&mut upstream, &mut consumer);
                link = Link::Down;
                returned = pool.returned();
                let next = replaced.borrow().server;
                let is_another = std::mem::replace(&mut server, next) != next;
                let connection =
                    if is_another { upstream.lead_elsewhere(now()) } else { upstream.lost(now(), None, now()) };
                consumer.connection(now(), connection);
                if is_another {
                    consumer.another_server(now());
                }
                continue;
            }
            // What came in before a time is over counts as before it.
            happened = link.next(&endpoint, requests) => happened,
            () = tokio::task::yield_now(), if more => continue,
            () = wake.notified(), if !more => continue,
            // The pool has the other end.
            Ok(()) = returned.changed() => {
                upstream.retry_by(now() + SPREAD.mul_f64(random() as f64 / u64::MAX as f64));
                continue;
            }
            () = sleep_until(due) => continue,
        };
        let mut has_no_method = false;
        let ended = match happened {
            Happened::Connected(place) => {
                let mut metadata = consumer.metadata();
                metadata.as_mut().extend(place.credentials().into_headers());
                link = Link::Up { calls: Calls::open(&endpoint, &place, metadata), received_at: None, place };
                let connection = upstream.connected(now());
                consumer.connection(now(), connection);
                continue;
            }
            Happened::Called(Called::Opened(of, metadata)) => {
                if let Err(error) = consumer.opened(&metadata) {
                    link = Link::Down;
                    let connection = upstream.declined(now(), error, random());
                    consumer.connection(now(), connection);
                } else if let Some(of) = of {
                    upstream.type_opened(now(), &of);
                    consumer.type_opened(now(), &of);
                }
                continue;
            }
            Happened::Called(Called::TypeEnded { of, error, is_too_long }) => {
                if is_too_long {
                    consumer.too_long();
                }
                link.tell_received(&mut upstream, &mut consumer);
                if ends_alone(&link, &of, error.clone(), &mut upstream, &mut consumer) {
                    continue;
                }
                has_no_method = error.code == UNIMPLEMENTED;
                error.message.to_string()
            }
            Happened::Called(Called::Message(of, message)) => {
                link.tell_received(&mut upstream, &mut consumer);
                let handled = match &of {
                    None => upstream.handle_message(now(), message),
                    Some(of) => upstream.handle_message_of(now(), of, message),
                };
                match handled {
                    Ok(answered) => {
                        if let Some(connection) = answered {
                            link.answered();
                            consumer.connection(now(), connection);
                        }
                        deliver(&mut upstream, &mut consumer);
                        continue;
                    }
                    Err(error) => {
                        let words = ended::chain(&error);
                        if of.is_some_and(|of| {
                            let is_last = link.close(&of);
                            !is_last && ends_alone(&link, &of, ended::unread(&words), &mut upstream, &mut consumer)
                        }) {
                            continue;
                        }
                        words
                    }
                }
            }
            Happened::Called(Called::Ended(error)) => error,
            Happened::Called(Called::NoMethod(error)) => {
                has_no_method = true;
                error
            }
            Happened::Called(Called::TooLong(error)) => {
                consumer.too_long();
                error
            }
            Happened::Unreachable(Unreachable { error, retry_at, is_lull }) => {
                link = Link::Down;
                let connection = upstream.lost(now(), Some(error), retry_at);
                if !is_lull {
                    consumer.connection(now(), connection);
                }
                continue;
            }
        };
        let Departure { go_away, retry_at } = link.take_down();
        let words = go_away.as_ref().map(ToString::to_string);
        let error = [Some(ended), words].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let mut connection = match retry_at {
            // Every stream on it is: one backoff is enough.
            Some(retry_at) => upstream.lost(now(), Some(error.clone()), retry_at),
            None => upstream.disconnected(now(), Some(error.clone()), random()),
        };
        if has_no_method {
            upstream.has_no_method(now());
        }
        if let Connection::Disconnected { error: told, .. } = &mut connection
            && go_away.is_some_and(|said| said.is_complaint())
        {
            // That streams end is no error (rule 91); a complaint is about us, and will come again.
            *told = Some(error);
        }
        consumer.connection(now(), connection);
        // What came before this was no news for a stream that was open.
        returned.mark_unchanged();
    }
}

/// [Drives](drive) the upstream in a task of its own, for as long as the driver is held.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn spawn(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> Driver {
    Driver::of(drive(endpoint, consumer, wake))
}

/// A running upstream, which ends when this is dropped.
#[derive(Debug)]
pub struct Driver(AbortHandle);

impl Driver {
    pub(super) fn of(driving: impl Future<Output = Infallible> + Send + 'static) -> Self {
        Self(tokio::spawn(driving).abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Link {
    Down,
    Connecting(Pin<Box<dyn Future<Output = Result<Place, Unreachable>> + Send>>),
    Up {
        // Before its place, which may be the last on a connection.
        calls: Calls,
        /// What the consumer and the machine were told last.
        received_at: Option<Instant>,
        place: Place,
    },
}

enum Happened {
    Connected(Place),
    Unreachable(Unreachable),
    Called(Called),
}

impl Link {
    /// Loses nothing when it is dropped.
    async fn next(&mut self, endpoint: &Endpoint, requests: Requests<'_>) -> Happened {
        match self {
            Self::Down => std::future::pending().await,
            Self::Connecting(connecting) => match connecting.await {
                Ok(place) => Happened::Connected(place),
                Err(unreachable) => Happened::Unreachable(unreachable),
            },
            Self::Up { calls, .. } => Happened::Called(calls.next(endpoint, requests).await),
        }
    }

    /// Whether its connection takes no more streams: what ends then is not opened again beside others.
    fn is_over(&self) -> bool {
        matches!(self, Self::Up { place, .. } if place.is_over())
    }

    /// Closes the stream of a type. Whether it was the last.
    fn close(&mut self, of: &TypeUrl) -> bool {
        if let Self::Up { calls, .. } = self { calls.close(of) } else { true }
    }

    fn answered(&mut self) {
        if let Self::Up { place, .. } = self {
            place.answered();
        }
    }

    /// Nothing is connected any more; what became of the connection, if there was one.
    fn take_down(&mut self) -> Departure {
        match std::mem::replace(self, Self::Down) {
            Self::Up { calls, place, .. } => {
                drop(calls);
                place.end()
            }
            Self::Down | Self::Connecting(_) => Departure::default(),
        }
    }

    fn tell_received(&mut self, upstream: &mut Upstream, consumer: &mut impl Consumer) {
        let Self::Up { calls, received_at, .. } = self else { return };
        if *received_at != calls.received_at() {
            *received_at = calls.received_at();
            for at in received_at.iter() {
                upstream.received(*at);
                consumer.received(*at);
            }
        }
    }
}

/// The stream of a type is over. Whether those of others go on, which what is opened beside them may: on a connection that takes no
/// more streams it may not.
fn ends_alone(
    link: &Link,
    of: &TypeUrl,
    error: ResourceError,
    upstream: &mut Upstream,
    consumer: &mut impl Consumer,
) -> bool {
    if link.is_over() {
        return false;
    }
    consumer.type_ended(now(), of, &error);
    upstream.type_ended(now(), of, error, random())
}

fn is_due(timeout: Option<Instant>) -> bool {
    timeout.is_some_and(|due| due <= now())
}

fn deliver(upstream: &mut Upstream, consumer: &mut impl Consumer) {
    while let Some(event) = upstream.poll_event() {
        if let Event::Update(update) = event {
            let id = update.id;
            let verdict = consumer.update(now(), update);
            upstream.apply(Command::Finish(id, verdict));
        }
    }
}

/// tokio's clock, which tests may stop.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Enough for jitter: every `RandomState` has keys of its own.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
