//! The client that programs use: a driver, a store, and watches on it.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use xdstp_cache::TypeUrl;
use xdstp_uri::{ParseError, ResourceName};

use crate::endpoint::Endpoint;
use crate::store::{Feed, Store};
use crate::upstream::{self, Connection, Driver};
use crate::watch::Watch;

/// A client of one origin: one stream, however many watches.
///
/// Clones share the stream. It ends when the last of them and of their watches is dropped.
///
/// ```no_run
/// use xdstp_client::{Client, Endpoint, Event};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect(Endpoint::new("127.0.0.1:18000")?);
/// let mut clusters = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "*")?;
/// while let Event::Put { name, version, body } = clusters.changed().await {
///     println!("{name} is at {version}, {} bytes", body.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    store: Arc<Store>,
    driver: Arc<Driver>,
}

impl Client {
    /// A client of the origin at `endpoint`, which need not be there yet.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(endpoint: Endpoint) -> Self {
        let store = Arc::new(Store::default());
        let wake: Arc<Notify> = store.wake();
        let driver = upstream::spawn(endpoint, Feed::new(Arc::clone(&store)), wake);
        Self { store, driver: Arc::new(driver) }
    }

    /// Watches a name, a glob, or everything (`*`) of a type, until the watch is dropped.
    ///
    /// # Errors
    /// When `name` starts with `xdstp:` and is not a name.
    pub fn watch(&self, type_url: impl Into<TypeUrl>, name: &str) -> Result<Watch, ParseError> {
        let interest = ResourceName::parse(name)?.into();
        Ok(Watch::new(Arc::clone(&self.store), Arc::clone(&self.driver), type_url.into(), interest))
    }

    /// The state of the stream, and its changes; `None` before the first attempt is over.
    pub fn connection(&self) -> watch::Receiver<Option<Connection>> {
        self.store.connection()
    }
}
