//! Driving an upstream with tokio and tonic.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tonic::metadata::MetadataMap;
use xds_transport::Protocol;
use xds_transport::client::{Command, Event, Stream};
use xds_transport::grpc::client::Ads;

use super::connect::{self, Connected, Connecting};
use super::ended::{self, chain};
use super::go_away::GoAway;
use super::{Connection, Consumer, Upstream};
use crate::endpoint::Endpoint;

/// Drives `endpoint` for `consumer` until it is dropped. `wake` says that the consumer has new commands.
///
/// The attempts never end: an origin that is not there yet is one that is waited for.
pub async fn drive(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> Infallible {
    let transport = endpoint.transport.clone();
    drive_over(move || connect::tcp(transport.clone()), endpoint, consumer, wake).await
}

/// The same over connections that `connect` makes.
async fn drive_over(
    mut connect: impl FnMut() -> Connecting,
    endpoint: Endpoint,
    mut consumer: impl Consumer,
    wake: Arc<Notify>,
) -> Infallible {
    let stream = Stream::new(endpoint.protocol, endpoint.node.clone(), Arc::clone(&endpoint.rules))
        .with_silence(endpoint.silence)
        .with_max_request_size(endpoint.max_request_size);
    let stream = match endpoint.request_limit {
        Some(limit) => stream.limit_requests(limit),
        None => stream,
    };
    let mut upstream = Upstream::new(stream, endpoint.backoff.clone(), now());
    let mut link = Link::Down;
    loop {
        consumer.commands(now(), &mut |command| upstream.apply(command));
        if is_due(&consumer) {
            // What came in may be a reason to wait on.
            link.tell_received(&mut consumer);
            if is_due(&consumer) {
                consumer.handle_timeout(now());
            }
        }
        upstream.handle_timeout(now());
        deliver(&mut upstream, &mut consumer);
        if upstream.should_connect(now()) {
            if let Some(node) = consumer.node() {
                upstream.set_node(node);
            }
            link = Link::Connecting(connect());
        }

        let of_upstream = upstream.poll_timeout();
        let due = [of_upstream, consumer.poll_timeout()].into_iter().flatten().min();
        let transmit = || {
            let request = upstream.poll_transmit(now());
            if request.is_some() || upstream.poll_timeout() != of_upstream {
                // A request may start a timer, or wait for its turn: then `due` is not what it was.
                wake.notify_one();
            }
            request
        };
        let happened = tokio::select! {
            biased;
            // What came in before a time is over counts as before it.
            happened = link.next(endpoint.protocol, transmit) => happened,
            () = wake.notified() => continue,
            () = sleep_until(due) => continue,
        };
        let ended = match happened {
            Happened::Connected(Connected { channel, go_away }) => {
                let (protocol, limit) = (endpoint.protocol, endpoint.max_message_size);
                let ads = Ads::open_with_metadata(channel, protocol, limit, consumer.metadata());
                link = Link::Up { ads, opened: false, received_at: None, go_away };
                let connection = upstream.connected(now());
                consumer.connection(now(), connection);
                continue;
            }
            Happened::Opened(metadata) => {
                if let Err(error) = consumer.opened(&metadata) {
                    link.take_down();
                    let connection = upstream.declined(now(), error, random());
                    consumer.connection(now(), connection);
                }
                continue;
            }
            Happened::Message(message) => {
                link.tell_received(&mut consumer);
                match upstream.handle_message(now(), message) {
                    Ok(answered) => {
                        if let Some(connection) = answered {
                            consumer.connection(now(), connection);
                        }
                        deliver(&mut upstream, &mut consumer);
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            }
            Happened::Ended(error) => error,
        };
        let go_away = link.take_down();
        let error = [Some(ended), go_away.words()].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let mut connection = upstream.disconnected(now(), Some(error.clone()), random());
        if let Connection::Disconnected { error: told, .. } = &mut connection
            && go_away.is_complaint()
        {
            // That streams end is no error (rule 91); a complaint is about us, and will come again.
            *told = Some(error);
        }
        consumer.connection(now(), connection);
    }
}

/// [Drives](drive) the upstream in a task of its own, for as long as the driver is held.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn spawn(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> Driver {
    Driver(tokio::spawn(drive(endpoint, consumer, wake)).abort_handle())
}

/// A running upstream, which ends when this is dropped.
#[derive(Debug)]
pub struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Link {
    Down,
    Connecting(Connecting),
    Up {
        ads: Ads,
        /// The consumer was told what the origin answered the stream with.
        opened: bool,
        /// What the consumer was told last.
        received_at: Option<Instant>,
        go_away: GoAway,
    },
}

enum Happened {
    Connected(Connected),
    Opened(MetadataMap),
    Message(Bytes),
    Ended(String),
}

impl Link {
    /// Loses nothing when it is dropped.
    async fn next(&mut self, protocol: Protocol, transmit: impl FnMut() -> Option<Bytes>) -> Happened {
        match self {
            Self::Down => std::future::pending().await,
            Self::Connecting(connecting) => match connecting.await {
                Ok(connected) => Happened::Connected(connected),
                Err(error) => Happened::Ended(chain(&error)),
            },
            Self::Up { ads, opened: opened @ false, .. } => match ads.metadata(transmit).await {
                Ok(metadata) => {
                    *opened = true;
                    Happened::Opened(metadata)
                }
                Err(status) => Happened::Ended(ended::words(&status, protocol)),
            },
            Self::Up { ads, .. } => match ads.next(transmit).await {
                Ok(Some(message)) => Happened::Message(message),
                Ok(None) => Happened::Ended("the origin closed the stream".into()),
                Err(status) => Happened::Ended(ended::words(&status, protocol)),
            },
        }
    }

    /// Nothing is connected any more; what the origin said at the end, if there was a connection.
    fn take_down(&mut self) -> GoAway {
        match std::mem::replace(self, Self::Down) {
            Self::Up { go_away, .. } => go_away,
            Self::Down | Self::Connecting(_) => GoAway::default(),
        }
    }

    fn tell_received(&mut self, consumer: &mut impl Consumer) {
        let Self::Up { ads, received_at, .. } = self else { return };
        if *received_at != ads.received_at() {
            *received_at = ads.received_at();
            received_at.iter().for_each(|at| consumer.received(*at));
        }
    }
}

fn is_due(consumer: &impl Consumer) -> bool {
    consumer.poll_timeout().is_some_and(|due| due <= now())
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
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Enough for jitter: every `RandomState` has keys of its own.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
