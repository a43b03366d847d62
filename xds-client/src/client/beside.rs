//! What is said beside the names that are watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use xdstp_uri::{ContextParams, Locator, ParseError};

use super::Client;
use super::directory::{Place, canonical};
use super::inner::{Inner, Shared};
use crate::config_source::AdjacentSource;
use crate::resource::Content;
use crate::watch::Watch;

/// What is said of all that a handle watches.
#[derive(Clone, Default)]
pub(super) struct Beside {
    adjacent: Option<Adjacent>,
    /// The well-known attributes of resources, which their names have among their parameters.
    attributes: Arc<[(String, String)]>,
}

/// Authorities, as names have them, and the origin whose servers have their names.
#[derive(Clone)]
struct Adjacent {
    authorities: Arc<BTreeSet<String>>,
    origin: usize,
}

impl Client {
    /// The same client, for names that stand beside this source in what `parent` watches: those of the authorities that the source
    /// lists are asked of the servers that `parent` is from, though the bootstrap says others or none (TP1, *transport network
    /// addressing*). All other names are asked as otherwise. `ads` and `self` are the same (gRFC A47).
    ///
    /// It counts where `parent` is from now: of one resource, once that came. What is not of servers, as a file, has nothing to say of
    /// that, nor has a watch that cannot be; and a collection is from where the list or the glob is, wherever its members are. The
    /// servers are asked over a stream more, and nothing of it is kept over a restart.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::{AdjacentSource, Client, Event, test::Network};
    ///
    /// const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    /// const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
    /// let routes = "xdstp://routes/envoy.config.route.v3.RouteConfiguration/web";
    /// let network = Network::new(Instant::now());
    /// network.server("xds:1").put(ROUTES, routes, "1", b"");
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    ///
    /// let listener = client.watch(LISTENERS, "edge");
    /// // The `config_source` of its routes: { authorities: [{ name: routes }], ads: {} }.
    /// let source = AdjacentSource::parse(b"\x3a\x08\x0a\x06routes\x1a\x00")?;
    /// let mut watch = client.beside(&source, &listener).watch(ROUTES, routes);
    /// network.settle();
    /// assert!(matches!(watch.try_next(), Some(Event::Put { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn beside<R: Content>(&self, source: &AdjacentSource, parent: &Watch<R>) -> Self {
        let authorities = source.authorities.iter().map(|authority| canonical(authority)).collect();
        let adjacent = parent.origin().map(|origin| Adjacent { authorities: Arc::new(authorities), origin });
        self.with(Beside { adjacent, ..self.0.beside.clone() })
    }

    /// The same client, whose watches ask for what has these well-known attributes of its type: of each `xdstp:` name that it
    /// watches, and of its alternative, they are parameters (`xds.resource.KEY`, TP1), and its resource is called so. Old-style
    /// names have none, and their watches say so.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::{Client, Event, test::Network};
    ///
    /// const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    /// let asked = "xdstp://a/envoy.config.listener.v3.Listener/foo?bar=baz&xds.resource.vip=96.54.3.1";
    /// let network = Network::new(Instant::now());
    /// network.server("xds:1").put(LISTENERS, asked, "1", b"");
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure)).with_authority("a", Authority::default());
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    ///
    /// let of_vip = client.with_attributes([("vip", "96.54.3.1")]);
    /// let mut watch = of_vip.watch(LISTENERS, "xdstp://a/envoy.config.listener.v3.Listener/foo?bar=baz");
    /// network.settle();
    /// assert!(matches!(watch.try_next(), Some(Event::Put { name, .. }) if name.as_str() == asked));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_attributes<K: Into<String>, V: Into<String>>(
        &self,
        attributes: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let attributes = attributes.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.with(Beside { attributes, ..self.0.beside.clone() })
    }

    /// The same, beside those that it has: of one key, the later counts.
    pub(super) fn with_more_attributes<K: Into<String>, V: Into<String>>(
        &self,
        attributes: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let more = attributes.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.with_attributes(self.0.beside.attributes.iter().cloned().chain(more))
    }

    fn with(&self, beside: Beside) -> Self {
        let Inner { shared, own, .. } = &*self.0;
        Self(Arc::new(Inner { shared: shared.clone(), own: own.clone(), beside }))
    }
}

impl Beside {
    /// Where the names of an authority are, if a source beside them says so.
    pub(super) fn place(&self, shared: &Shared, authority: &str) -> Option<Place> {
        let adjacent = self.adjacent.as_ref().filter(|adjacent| adjacent.authorities.contains(authority))?;
        shared.directory.adjacent(adjacent.origin, authority)
    }

    /// Whether names are to have attributes.
    pub(super) fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// A locator of an `xdstp:` name with them.
    ///
    /// # Errors
    /// It would be too long.
    pub(super) fn attributed(&self, to: &Locator<'_>) -> Result<Locator<'static>, ParseError> {
        let attributes = self.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let params = ContextParams::compose(&ContextParams::default(), &to.context_params(), [], attributes)?;
        to.with_context_params(&params)
    }
}
