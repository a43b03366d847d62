//! Driving a stream of load reports with tokio and tonic.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use xds_transport::grpc::client::Lrs;

use super::stream::LoadStream;
use crate::federation::Dialed;
use crate::upstream::{Place, Pool, Unreachable, chain, now, random};

/// What a server asks for may measure so much.
const MAX_MESSAGE_SIZE: usize = 4 << 20;

/// Opens the stream over a connection of `pool` whenever it is due, in a task of its own, until the result is dropped,
/// and the last report is out.
pub(crate) fn spawn(pool: Pool, stream: LoadStream) -> Box<dyn Dialed> {
    let driven = Arc::<Nudged>::default();
    tokio::spawn(drive(pool, stream, driven.clone()));
    Box::new(Driven(driven))
}

struct Driven(Arc<Nudged>);

#[derive(Default)]
struct Nudged {
    notify: Notify,
    /// Nobody has the handle any more.
    dropped: AtomicBool,
}

enum Link {
    Down,
    Connecting(Pin<Box<dyn Future<Output = Result<Place, Unreachable>> + Send>>),
    Up {
        // Before its place, which may be the last on a connection.
        lrs: Lrs,
        place: Place,
    },
}

enum Happened {
    Connected(Place),
    Message(Bytes),
    Ended(String),
}

async fn drive(pool: Pool, mut stream: LoadStream, nudged: Arc<Nudged>) {
    let mut link = Link::Down;
    loop {
        stream.handle_timeout(now());
        if nudged.dropped.load(Ordering::Acquire) {
            return end(link, stream).await;
        }
        if stream.should_connect(now()) {
            let pool = pool.clone();
            link = Link::Connecting(Box::pin(async move { pool.place().await }));
        }
        let due = stream.poll_timeout();
        let happened = tokio::select! {
            biased;
            happened = link.next(|| stream.poll_transmit(now())) => happened,
            () = nudged.notify.notified() => continue,
            () = sleep_until(due) => continue,
        };
        let ended = match (happened, &mut link) {
            (Happened::Connected(place), _) => {
                stream.connected();
                let lrs = Lrs::open(place.channel(), MAX_MESSAGE_SIZE, place.credentials());
                link = Link::Up { lrs, place };
                continue;
            }
            (Happened::Message(message), Link::Up { place, .. }) => match stream.handle_message(now(), message) {
                Ok(()) => {
                    place.answered();
                    continue;
                }
                Err(error) => chain(&error),
            },
            (Happened::Message(_), _) => continue,
            (Happened::Ended(reason), _) => reason,
        };
        link = Link::Down;
        tracing::debug!("a stream of load reports ended: {ended}");
        stream.disconnected(now(), &ended, random());
    }
}

/// Tells what was counted last. Of a stream that is dropped while a message is on its way, HTTP/2 drops that, too.
async fn end(link: Link, mut stream: LoadStream) {
    let until = stream.close(now());
    // The place goes last, which may be the last on a connection.
    let (Link::Up { lrs, place: _place }, Some(until)) = (link, until) else { return };
    match tokio::time::timeout_at(until.into(), lrs.finish(|| stream.poll_transmit(now()))).await {
        Ok(Ok(())) => {}
        Ok(Err(status)) => tracing::debug!("the last stream of load reports ended: {}", chain(&status)),
        Err(_) => tracing::debug!("the last report of load was not taken in time"),
    }
}

impl Link {
    /// Loses nothing when it is dropped.
    async fn next(&mut self, transmit: impl FnMut() -> Option<Bytes>) -> Happened {
        match self {
            Self::Down => std::future::pending().await,
            Self::Connecting(connecting) => match connecting.await {
                Ok(place) => Happened::Connected(place),
                Err(unreachable) => Happened::Ended(unreachable.error),
            },
            Self::Up { lrs, .. } => match lrs.next(transmit).await {
                Ok(Some(message)) => Happened::Message(message),
                Ok(None) => Happened::Ended("the server closed the stream".to_owned()),
                Err(status) => Happened::Ended(chain(&status)),
            },
        }
    }
}

impl Dialed for Driven {
    fn nudge(&self) {
        self.0.notify.notify_one();
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::Release);
        self.0.notify.notify_one();
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
