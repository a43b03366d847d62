//! Driving an upstream with tokio and tonic.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tonic::transport::{Channel, Error};
use xds_transport::client::{Command, Event, Stream};
use xds_transport::grpc::client::Ads;

use super::{Consumer, Upstream};
use crate::endpoint::Endpoint;

/// Drives `endpoint` for `consumer` until it is dropped. `wake` says that the consumer has new commands.
///
/// The attempts never end: an origin that is not there yet is one that is waited for.
pub async fn drive(endpoint: Endpoint, consumer: impl Consumer, wake: Arc<Notify>) -> Infallible {
    let transport = endpoint.transport.clone();
    let connect = move || -> Connecting {
        let transport = transport.clone();
        Box::pin(async move { transport.connect().await })
    };
    drive_over(connect, endpoint, consumer, wake).await
}

/// The same over connections that `connect` makes.
async fn drive_over(
    mut connect: impl FnMut() -> Connecting,
    endpoint: Endpoint,
    mut consumer: impl Consumer,
    wake: Arc<Notify>,
) -> Infallible {
    let stream = Stream::new(endpoint.protocol, endpoint.node.clone(), Arc::clone(&endpoint.rules))
        .with_silence(endpoint.silence);
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

        let due = [upstream.poll_timeout(), consumer.poll_timeout()].into_iter().flatten().min();
        let transmit = || {
            let request = upstream.poll_transmit(now());
            if request.is_some() {
                // A request may start a timer: then `due` is not what it was.
                wake.notify_one();
            }
            request
        };
        let happened = tokio::select! {
            biased;
            // What came in before a time is over counts as before it.
            happened = link.next(transmit) => happened,
            () = wake.notified() => continue,
            () = sleep_until(due) => continue,
        };
        let ended = match happened {
            Happened::Connected(channel) => {
                let ads = Ads::open(channel, endpoint.protocol, endpoint.max_message_size);
                link = Link::Up { ads, received_at: None };
                let connection = upstream.connected(now());
                consumer.connection(now(), connection);
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
        link = Link::Down;
        let connection = upstream.disconnected(now(), Some(ended), random());
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

type Connecting = Pin<Box<dyn Future<Output = Result<Channel, Error>> + Send>>;

enum Link {
    Down,
    Connecting(Connecting),
    Up {
        ads: Ads,
        /// What the consumer was told last.
        received_at: Option<Instant>,
    },
}

enum Happened {
    Connected(Channel),
    Message(Bytes),
    Ended(String),
}

impl Link {
    /// Loses nothing when it is dropped.
    async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Happened {
        match self {
            Self::Down => std::future::pending().await,
            Self::Connecting(connecting) => match connecting.await {
                Ok(channel) => Happened::Connected(channel),
                Err(error) => Happened::Ended(chain(&error)),
            },
            Self::Up { ads, .. } => match ads.next(transmit).await {
                Ok(Some(message)) => Happened::Message(message),
                Ok(None) => Happened::Ended("the origin closed the stream".into()),
                Err(status) => Happened::Ended(format!("{:?}: {}", status.code(), status.message())),
            },
        }
    }

    fn tell_received(&mut self, consumer: &mut impl Consumer) {
        let Self::Up { ads, received_at } = self else { return };
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

/// An error and its causes: tonic's own texts say "transport error" only.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
