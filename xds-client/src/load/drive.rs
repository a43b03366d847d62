//! Driving a stream of load reports with tokio and tonic.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use xds_transport::grpc::client::Lrs;

use super::stream::LoadStream;
use crate::federation::Dialed;
use crate::upstream::{Place, Pool, Unreachable, chain, now, random};

/// What a server asks for may measure so much.
const MAX_MESSAGE_SIZE: usize = 4 << 20;

/// Opens the stream over a connection of `pool` whenever it is due, in a task of its own, until the result is dropped.
pub(crate) fn spawn(pool: Pool, stream: LoadStream) -> Box<dyn Dialed> {
    let nudged = Arc::new(Notify::new());
    let task = tokio::spawn(drive(pool, stream, nudged.clone())).abort_handle();
    Box::new(Driven { nudged, task })
}

struct Driven {
    nudged: Arc<Notify>,
    task: AbortHandle,
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

async fn drive(pool: Pool, mut stream: LoadStream, nudged: Arc<Notify>) -> Infallible {
    let mut link = Link::Down;
    loop {
        stream.handle_timeout(now());
        if stream.should_connect(now()) {
            let pool = pool.clone();
            link = Link::Connecting(Box::pin(async move { pool.place().await }));
        }
        let due = stream.poll_timeout();
        let happened = tokio::select! {
            biased;
            happened = link.next(|| stream.poll_transmit(now())) => happened,
            () = nudged.notified() => continue,
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
        self.nudged.notify_one();
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
