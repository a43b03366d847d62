//! The connections to one origin, which its streams share.

mod places;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot, watch};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

pub use self::places::Unreachable;
use self::places::{Connection, Places};
use super::Consumer;
use super::connect::{self, Connected, Connecting};
use super::drive::{self, Driver, now, random};
use super::go_away::GoAway;
use super::own::Own;
use crate::endpoint::Endpoint;

/// How long a stream waits that has not what it is to carry.
const UNSAID: Duration = Duration::from_secs(1);

/// The connections to an origin, shared by the streams that are [spawned](Pool::spawn) from it.
///
/// A connection has as many streams as the endpoint [says](Endpoint::with_streams_per_connection) and the origin bears;
/// for more there is another, and one without streams is closed. When the origin cannot be reached, one attempt is made
/// for all. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(Arc<watch::Sender<Target>>);

/// Where the connections of a pool lead.
#[derive(Clone)]
pub(super) struct Target {
    /// Which server that is, of all that the pool has led to.
    pub(super) server: u64,
    shared: Arc<Shared>,
    /// Of all connections of the pool.
    own: Arc<Own>,
}

/// The connections to one endpoint.
pub(super) struct Shared {
    endpoint: Arc<Endpoint>,
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    state: Mutex<State>,
    /// An origin that answered no stream answered one.
    returned: watch::Sender<()>,
}

struct State {
    places: Places<Connected>,
    waiting: VecDeque<oneshot::Sender<Result<Place, Unreachable>>>,
}

/// A stream's place on a connection, until it is dropped.
pub struct Place {
    pool: Arc<Shared>,
    connection: Connection,
    connected: Connected,
    /// What calls on it carry.
    credentials: Arc<MetadataMap>,
    answered: bool,
    ended: bool,
}

/// What became of the connection of a stream that is over.
#[derive(Default)]
pub(super) struct Departure {
    pub(super) go_away: Option<GoAway>,
    /// It is no good any more: when the next is made.
    pub(super) retry_at: Option<Instant>,
}

impl Pool {
    /// Connections to `endpoint`, made when there are streams.
    pub fn new(endpoint: Endpoint) -> Self {
        let own = Arc::new(Own::default());
        let shared = Shared::counted(endpoint, &own);
        Self(Arc::new(watch::Sender::new(Target { server: 0, shared, own })))
    }

    /// The same over connections that `connect` makes, which are not counted.
    #[cfg(test)]
    pub(super) fn over(endpoint: Endpoint, connect: impl Fn() -> Connecting + Send + Sync + 'static) -> Self {
        let (shared, own) = (Shared::over(endpoint, connect), Arc::default());
        Self(Arc::new(watch::Sender::new(Target { server: 0, shared, own })))
    }

    /// From now on connections are to another endpoint of the same server. Streams that the pool opened lose their connection, and are opened again
    /// there, at once and with all that they know, as if their origin had ended them. How a stream goes on stays as it was when it
    /// was [spawned](Self::spawn): what it speaks, and its limits. Streams of other [places](Self::place) go on.
    ///
    /// ```
    /// use xdstp_client::{Endpoint, upstream::Pool};
    ///
    /// let pool = Pool::new(Endpoint::new("http://127.0.0.1:18010")?);
    /// let shared = pool.clone();
    /// pool.lead_to(Endpoint::new("http://127.0.0.1:18020")?);
    /// assert!(format!("{shared:?}").contains("18020"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lead_to(&self, endpoint: Endpoint) {
        self.lead(endpoint, false);
    }

    /// The same to another server, of which nothing is known by what the one before said: each stream asks it for all that is wanted
    /// without any version, and its consumer is [told](Consumer::another_server) before it is connected.
    ///
    /// ```
    /// use xdstp_client::{Endpoint, upstream::Pool};
    ///
    /// let pool = Pool::new(Endpoint::new("http://old.example:18010")?);
    /// pool.lead_elsewhere(Endpoint::new("http://new.example:18010")?);
    /// assert!(format!("{pool:?}").contains("new.example"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lead_elsewhere(&self, endpoint: Endpoint) {
        self.lead(endpoint, true);
    }

    fn lead(&self, endpoint: Endpoint, is_another_server: bool) {
        let own = self.0.borrow().own.clone();
        self.replace(Shared::counted(endpoint, &own), is_another_server);
    }

    /// Has the pool lead where `shared` does.
    fn replace(&self, shared: Arc<Shared>, is_another_server: bool) {
        self.0.send_modify(|target| {
            target.own.leave();
            target.shared = shared;
            target.server += u64::from(is_another_server);
        });
    }

    /// The same as another pool does.
    #[cfg(test)]
    pub(super) fn lead_as(&self, other: &Self, is_another_server: bool) {
        self.replace(other.current(), is_another_server);
    }

    fn current(&self) -> Arc<Shared> {
        self.0.borrow().shared.clone()
    }

    /// Tells that connections lead elsewhere.
    pub(super) fn replaced(&self) -> watch::Receiver<Target> {
        self.0.subscribe()
    }

    /// Opens a stream for `consumer` that says it is this encoded `Node`, and keeps it open in a task of its own for as
    /// long as the driver is held. `wake` says that the consumer has new commands.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(&self, node: Bytes, consumer: impl Consumer, wake: Arc<Notify>) -> Driver {
        Driver::of(drive::drive_from(self.clone(), node, consumer, wake))
    }

    pub(super) fn endpoint(&self) -> Arc<Endpoint> {
        self.current().endpoint.clone()
    }

    /// Tells of an origin that is back after it answered no stream.
    pub(super) fn returned(&self) -> watch::Receiver<()> {
        self.current().returned.subscribe()
    }

    /// A place for one stream, on a connection that is made if need be: for another service of the origin, whose streams
    /// the pool does not open by itself.
    ///
    /// # Errors
    /// Why there is no connection to be had.
    pub async fn place(&self) -> Result<Place, Unreachable> {
        // Without them there is no need for a connection.
        let current = self.current();
        let credentials = current.endpoint.call_credentials().await;
        let unsaid = |error| Unreachable { error, retry_at: now() + UNSAID, is_lull: false };
        let credentials = credentials.map_err(unsaid)?;
        let (sender, place) = oneshot::channel();
        current.lock().waiting.push_back(sender);
        current.serve();
        // Whoever waits is told, unless the pool is gone, and it is not.
        let place = place.await.unwrap_or_else(|_| {
            Err(Unreachable { error: "nobody connects".to_owned(), retry_at: now(), is_lull: false })
        });
        place.map(|mut place| {
            place.credentials = Arc::new(credentials);
            place
        })
    }
}

impl Shared {
    /// Over connections that are counted with its pool's `own`.
    fn counted(endpoint: Endpoint, own: &Arc<Own>) -> Arc<Self> {
        let (to, own) = (endpoint.clone(), own.clone());
        Self::over(endpoint, move || connect::of_pool(&to, &own))
    }

    fn over(endpoint: Endpoint, connect: impl Fn() -> Connecting + Send + Sync + 'static) -> Arc<Self> {
        let (most, each) = (endpoint.streams_per_connection.get(), endpoint.streams_each());
        let places = Places::new(most, each, endpoint.backoff.clone());
        let state = Mutex::new(State { places, waiting: VecDeque::new() });
        let (returned, _) = watch::channel(());
        Arc::new(Self { endpoint: Arc::new(endpoint), connect: Box::new(connect), state, returned })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives places to those who wait, and makes connections for who is left.
    fn serve(self: &Arc<Self>) {
        let mut served = Vec::new();
        let mut state = self.lock();
        let State { places, waiting } = &mut *state;
        waiting.retain(|waiting| !waiting.is_closed());
        while let Some(waits) = waiting.pop_front() {
            let Some((connection, connected)) = places.take() else {
                waiting.push_front(waits);
                break;
            };
            let (pool, credentials) = (self.clone(), Arc::default());
            let place = Place { pool, connection, connected, credentials, answered: false, ended: false };
            served.push((waits, Ok(place)));
        }
        let dials = if waiting.is_empty() { Ok(0) } else { places.dial(waiting.len(), now(), random()) };
        if let Err(unreachable) = &dials {
            served.extend(waiting.drain(..).map(|waits| (waits, Err(unreachable.clone()))));
        }
        drop(state);
        // Who went away meanwhile leaves the place again, which needs the lock.
        for (waits, place) in served {
            let _ = waits.send(place);
        }
        (0..dials.unwrap_or(0)).for_each(|_| self.dial());
    }

    fn dial(self: &Arc<Self>) {
        let (pool, connecting) = (Arc::downgrade(self), (self.connect)());
        tokio::spawn(async move {
            let dialed = connecting.await;
            if let Some(pool) = pool.upgrade() {
                pool.dialed(dialed);
            }
        });
    }

    fn dialed(self: &Arc<Self>, dialed: Result<Connected, String>) {
        let mut state = self.lock();
        match dialed {
            Ok(connected) => {
                let connection = state.places.dialed(connected.heard.clone(), connected);
                drop(state);
                self.serve();
                // Nobody waits any more.
                let closed = self.lock().places.remove_if_empty(connection);
                drop(closed);
            }
            Err(error) => {
                let Some(unreachable) = state.places.undialed(now(), error, random()) else { return };
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                for waits in waiting {
                    let _ = waits.send(Err(unreachable.clone()));
                }
            }
        }
    }
}

impl Place {
    /// The connection, for one stream. It is open for as long as there is a place on it, or a channel.
    pub fn channel(&self) -> Channel {
        self.connected.channel.clone()
    }

    /// What calls on it are to carry.
    pub fn credentials(&self) -> MetadataMap {
        (*self.credentials).clone()
    }

    /// Resolves when the connection takes no more streams.
    #[cfg(test)]
    pub(super) async fn left(&self) {
        self.connected.heard.over().await;
    }

    /// Whether the connection takes no more streams.
    pub(super) fn is_over(&self) -> bool {
        self.connected.heard.is_over()
    }

    /// The stream had its first response: the origin is there, and the next wait for it is short again.
    pub fn answered(&mut self) {
        if !std::mem::replace(&mut self.answered, true) && self.pool.lock().places.answered(self.connection) {
            self.pool.returned.send_replace(());
        }
    }

    /// The stream ended, not from here.
    pub(super) fn end(mut self) -> Departure {
        self.ended = true;
        let left = self.pool.lock().places.end(self.connection, self.answered, now(), random());
        self.pool.serve();
        Departure { go_away: self.connected.heard.go_away(), retry_at: left.retry_at }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let closed = {
            let places = &mut self.pool.lock().places;
            places.leave(self.connection, self.answered);
            places.remove_if_empty(self.connection)
        };
        drop(closed);
        self.pool.serve();
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("uri", &self.current().endpoint.uri()).finish_non_exhaustive()
    }
}
