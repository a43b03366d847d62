//! Watches that wait for what their names are made of.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use xdstp_cache::TypeUrl;

use super::Client;
use crate::error::Error;
use crate::resolver::resolve;
use crate::resource::{Content, Resource};
use crate::watch::{Awaited, Watch};

/// Asks for what a [watch on demand](Client::watch_on_demand) is of, once its attributes are known.
#[must_use = "a watch on demand says that it cannot be once this is dropped"]
pub struct OnDemand {
    client: Client,
    type_url: TypeUrl,
    name: String,
    awaited: Arc<Mutex<Awaited>>,
}

impl Client {
    /// A watch of an `xdstp:` name whose [attributes](Self::with_attributes) are not known yet (TP1): nobody is asked, and nothing is
    /// heard, before they are.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::{Client, Event, test::Network};
    ///
    /// const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    /// let name = "xdstp://a/envoy.config.listener.v3.Listener/foo";
    /// let network = Network::new(Instant::now());
    /// network.server("xds:1").put(LISTENERS, &format!("{name}?xds.resource.vip=96.54.3.1"), "1", b"");
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure)).with_authority("a", Authority::default());
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    ///
    /// let (on_demand, mut watch) = client.watch_on_demand(LISTENERS, name);
    /// network.settle();
    /// assert!(watch.try_next().is_none());
    /// // Somebody connects to an address that nothing is known of.
    /// on_demand.ask([("vip", "96.54.3.1")]);
    /// network.settle();
    /// assert!(matches!(watch.try_next(), Some(Event::Put { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch_on_demand(&self, type_url: impl Into<TypeUrl>, name: &str) -> (OnDemand, Watch) {
        self.awaiting(type_url.into(), name)
    }

    /// The same of resources of a type that the program reads, as by [`watch_as`](Self::watch_as).
    pub fn watch_on_demand_as<R: Resource>(&self, name: &str) -> (OnDemand, Watch<R>) {
        let type_url = self.reads::<R>();
        self.awaiting(type_url, name)
    }

    fn awaiting<R: Content>(&self, type_url: TypeUrl, name: &str) -> (OnDemand, Watch<R>) {
        let awaited = Arc::<Mutex<Awaited>>::default();
        let watch = Watch::awaiting(awaited.clone());
        (OnDemand { client: self.clone(), type_url, name: name.to_owned(), awaited }, watch)
    }
}

impl OnDemand {
    /// Asks for what has these attributes, beside those of the client that the watch was opened by.
    pub fn ask<K: Into<String>, V: Into<String>>(self, attributes: impl IntoIterator<Item = (K, V)>) {
        let client = self.client.with_more_attributes(attributes);
        self.find(resolve(&client.0, &self.type_url, &self.name));
    }

    fn find(&self, found: Result<Box<dyn crate::resolver::Find>, Error>) {
        // Not under the lock: whoever is woken may look at once.
        let waker = self.awaited.lock().find(found);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for OnDemand {
    fn drop(&mut self) {
        if self.awaited.lock().is_awaited() {
            let reason = format!("{}: nobody said what its attributes are", self.name);
            self.find(Err(Error::BadName { reason: reason.into() }));
        }
    }
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").field("name", &self.name).finish_non_exhaustive()
    }
}
