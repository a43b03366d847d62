//! What servers of HTTP have as documents: what is at `http:` locators.

mod answer;
mod error;
mod fetch;
mod look;
mod open;
mod place;
pub(crate) mod reading;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use xdstp_uri::Locator;

pub use self::error::HttpError;
use self::fetch::Fetch;
use self::look::Watched;
use self::open::Open;
use self::place::Places;
use self::reading::Reading;
use crate::backoff::Backoff;
use crate::federation::{DocumentError, Documents, OpenDocument};
use crate::files::Decode;
#[cfg(feature = "rustls-any")]
use crate::tls::Tls;
use crate::upstream::now;

/// How often a document is asked for.
const EVERY: Duration = Duration::from_secs(30);
/// Nobody means a time between two questions that is longer.
const SELDOM: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an answer may take, from the first packet to the last.
const PATIENCE: Duration = Duration::from_secs(30);

/// What some servers have, by HTTP/1.1, for [`Builder::http`](crate::Builder::http).
///
/// A locator is asked for at the server that is its authority, if that is one of these: whoever writes locators has nobody else asked.
/// TP1 has no `https:`; that a server speaks TLS is said here, and its locators are written with `http:` all the same. A redirect (3xx)
/// is an error, since it would lead to whoever the server names; TP1 has redirects of its own.
///
/// | the answer | is |
/// |---|---|
/// | 200 | what the document holds |
/// | 304 | that it is as it was, also after an error |
/// | 404, 410 | that it is not there: what it had is gone |
/// | 200 with what cannot be read | an error beside what was there, until something else comes |
/// | any other, none in time, or one that is cut short | an error beside what was there: it is asked for again soon |
///
/// An answer says how long it is (`Content-Length`, or in chunks), since one of which the end is that of the connection may be a part.
/// It has 64 MiB at most, and is not compressed. What [decodes](Decode) it is given a name that ends in `.pb`, `.json` or `.yaml`,
/// as `Content-Type` says, or as the id of the locator ends where that is of no type in particular.
///
/// A document is asked for as long as it is watched, every half a minute, give or take a tenth, with `If-None-Match`, or with
/// `If-Modified-Since` where a server has no `ETag`; after an error by [backoff](Self::backoff), and not before `Retry-After`, of
/// which an hour counts. Each question has a connection of its own, sixteen at a time, and half a minute.
///
/// ```
/// use std::time::Instant;
///
/// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
/// use xdstp_client::test::Network;
/// use xdstp_client::{Client, DiscoveryResponse, Event, Http};
///
/// const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Nobody listens there.
/// let http = Http::of(["http://127.0.0.1:1"], DiscoveryResponse::default())?.by_hand();
/// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
/// let client = Client::builder(bootstrap).transport(Network::new(Instant::now())).http(http.clone()).build()?;
/// let mut watch = client.watch(CLUSTERS, "http://127.0.0.1:1/envoy.config.cluster.v3.ClusterCollection/all");
/// http.look(Instant::now()).await;
/// let Some(Event::Failed { error, .. }) = watch.try_next() else { panic!("it cannot be had") };
/// assert!(error.to_string().contains("refused"), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Http {
    places: Arc<Places>,
    fetch: Fetch,
    every: Duration,
    backoff: Backoff,
    by_hand: bool,
    /// Outside of a runtime it may be made, and nothing is asked by itself.
    runtime: Option<Handle>,
    open: Arc<Open>,
}

impl Http {
    /// Those of these servers, such as `https://cdn.example.com` or `http://127.0.0.1:8080`, read by this. It is made within a tokio
    /// runtime, which asks them.
    ///
    /// # Errors
    /// One is no server, or speaks TLS, and this is built without.
    pub fn of(servers: impl IntoIterator<Item = impl AsRef<str>>, decode: impl Decode) -> Result<Self, HttpError> {
        let places = servers.into_iter().map(|server| place::read(server.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self {
            places: Arc::new(Places(places)),
            fetch: Fetch::by(Arc::new(decode), PATIENCE),
            every: EVERY,
            backoff: Backoff::default(),
            by_hand: false,
            runtime: Handle::try_current().ok(),
            open: Arc::default(),
        })
    }

    /// Speaks TLS like this with those that are `https://`: with whom the system trusts otherwise.
    #[cfg(feature = "rustls-any")]
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.fetch.tls = tls;
        self
    }

    /// Asks for each document about this often: between a millisecond and a day.
    #[must_use]
    pub fn every(self, time: Duration) -> Self {
        Self { every: time.clamp(Duration::from_millis(1), SELDOM), ..self }
    }

    /// Waits like this after an error.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Gives an answer so much time, with all that it takes to get it.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.fetch.patience = time;
        self
    }

    /// The same servers, which are asked only by [`look`](Self::look).
    #[must_use]
    pub fn by_hand(self) -> Self {
        Self { by_hand: true, ..self }
    }

    /// Asks for the documents that are open and to be asked for by now, one after the other; that happens by itself, but for who
    /// does it [by hand](Self::by_hand). What is read is told before it returns.
    pub async fn look(&self, now: Instant) {
        self.open.look(now).await;
    }
}

impl Documents for Http {
    fn open(&self, locator: &Locator<'_>, document: OpenDocument) -> Box<dyn Any + Send + Sync> {
        let target = match self.places.find(locator) {
            Ok(target) => target,
            Err(reason) => {
                document.tell(Err(DocumentError::Unreadable(reason)), now());
                return Box::new(());
            }
        };
        let reading = Reading::new(self.every, self.backoff.clone());
        let watched = Watched::new(target, document, self.fetch.clone(), reading);
        if self.by_hand {
            return Box::new(self.open.add(watched));
        }
        let runtime = self.runtime.clone().or_else(|| Handle::try_current().ok());
        Box::new(self.open.drive(watched, runtime))
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("servers", &self.places)
            .field("every", &self.every)
            .field("by_hand", &self.by_hand)
            .finish_non_exhaustive()
    }
}
