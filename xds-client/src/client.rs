//! The client that programs use.

mod beside;
mod brought;
mod builder;
mod counting;
mod directory;
mod inner;
#[cfg(feature = "state")]
mod kept;
#[cfg(feature = "lrs")]
mod load;
mod metrics;
mod on_demand;
mod on_terms;
mod one_server;
mod origins;
mod parameters;
#[cfg(feature = "metrics")]
mod recorded;
#[cfg_attr(not(feature = "lrs"), path = "client/no_reporters.rs")]
mod reporters;
mod servers;
mod single;
mod status;
mod sweeper;

use std::fmt;
#[cfg(feature = "state")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "state")]
use std::time::SystemTime;
use std::time::{Duration, Instant};

use xds_transport::wire::Node;
use xdstp_cache::{Selector, TypeUrl};

pub use self::builder::{BuildError, Builder};
pub(crate) use self::directory::Place;
pub(crate) use self::inner::Inner;
#[cfg(feature = "state")]
pub use self::kept::NotKept;
pub use self::metrics::{Metrics, ResourceCount};
pub use self::on_demand::OnDemand;
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::origins::patience;
pub(crate) use self::parameters::Dpds;
#[cfg(feature = "metrics")]
pub use self::recorded::Recorded;
pub use self::servers::Transport;
pub use self::single::Single;
use crate::bootstrap::Bootstrap;
use crate::endpoint::Endpoint;
use crate::resolver::resolve;
use crate::resource::{Content, Resource, validator};
#[cfg(feature = "state")]
use crate::state::{Saved, StoreError};
use crate::watch::Watch;

/// How long a stream stays open that nobody watches anything of.
const IDLE: Duration = Duration::from_secs(60);

/// A client of the servers of a [bootstrap](Bootstrap): one stream to each that is wanted, however many watches.
///
/// Clones are the same client. Its streams end when the last of them and of their watches is dropped.
///
/// ```no_run
/// use xdstp_client::bootstrap::Bootstrap;
/// use xdstp_client::{Client, Event};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::from_bootstrap(Bootstrap::from_env()?)?;
/// let mut clusters = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "*");
/// while let Event::Put { name, version, resource } = clusters.changed().await {
///     println!("{name} is at {version}, {} bytes", resource.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

impl Client {
    /// A client of the servers that a bootstrap names, which need not be there yet: none is connected to before something
    /// of it is watched.
    ///
    /// # Errors
    /// Outside of a tokio runtime.
    pub fn from_bootstrap(bootstrap: Bootstrap) -> Result<Self, BuildError> {
        Self::builder(bootstrap).build()
    }

    /// The same, where more is to be said.
    pub fn builder(bootstrap: Bootstrap) -> Builder {
        Builder::new(bootstrap)
    }

    /// A client of the server at `endpoint` alone, which is asked for all names, whatever their authority. Outside of a tokio
    /// runtime nothing can be watched by it.
    pub fn connect(endpoint: Endpoint) -> Self {
        Self::single(endpoint).build()
    }

    /// The same, where more is to be said.
    ///
    /// ```no_run
    /// use xdstp_client::{Client, DiscoveryResponse, Endpoint, Files};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let files = Files::within(["/etc/xds"], DiscoveryResponse::default());
    /// let client = Client::single(Endpoint::new("127.0.0.1:18000")?).files(files).build();
    /// let mut clusters = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "file:///etc/xds/all.pb");
    /// println!("{:?}", clusters.changed().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn single(endpoint: Endpoint) -> Single {
        Single::new(endpoint)
    }

    /// The same client, whose watches ask with these dynamic parameters or constraints (TP2) in place of its own: of each name,
    /// and of what that leads to, the variant comes that is for them. What a bootstrap and DPDS say of other keys is said
    /// beside it. Watches that ask alike share what is asked for; a name that is asked for in two ways is two.
    ///
    /// Constraints of integer ranges, and inverted ones, are for servers that speak the draft of TP2; a watch of another
    /// server's resources says that it cannot be.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_cache::{Selector, Variant};
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::{Client, Event, test::Network};
    ///
    /// const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    /// let network = Network::new(Instant::now());
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    /// let canary = Variant::Constraints("env=canary".parse()?);
    /// network.server("xds:1").put_variant(CLUSTERS, ("web", &canary), "1", b"\x0a\x03web");
    ///
    /// let mut watch = client.selecting([("env", "canary")]).watch(CLUSTERS, "web");
    /// network.settle();
    /// assert!(matches!(watch.try_next(), Some(Event::Put { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn selecting(&self, selector: impl Into<Selector>) -> Self {
        let (shared, beside) = (self.0.shared.clone(), self.0.beside.clone());
        Self(Arc::new(Inner { shared, own: selector.into(), beside }))
    }

    /// A client of one server, of which what it says is kept in a directory, as by [`Builder::state`].
    #[cfg(feature = "state")]
    pub fn connect_keeping(endpoint: Endpoint, directory: impl Into<PathBuf>) -> Self {
        Self::single(endpoint).state(directory).build()
    }

    /// Watches a name, a glob, or everything (`*`) of a type, until the watch is dropped. What cannot be asked for, the watch
    /// says so itself.
    pub fn watch(&self, type_url: impl Into<TypeUrl>, name: &str) -> Watch {
        self.open(type_url.into(), name)
    }

    /// Watches resources of a type that the program [reads](Resource): what it cannot read is refused, and what was there
    /// before stays. All that comes of the type is read from then on, as the first says who watches it as anything.
    pub fn watch_as<R: Resource>(&self, name: &str) -> Watch<R> {
        self.open(self.reads::<R>(), name)
    }

    /// Lets go of streams that nobody watches anything of: it does so by itself, but for who has a [transport](Transport)
    /// with a time of its own.
    pub fn sweep(&self, now: Instant) {
        self.0.shared.federation.sweep(now);
    }

    /// Writes down what is known now, if it is to be [kept](Builder::state), and returns when it is there; and before that, reads what
    /// was known. That is done every second anyway: a program does it that is about to end, or cannot do without.
    ///
    /// # Errors
    /// It cannot be written or read, or the disk has not taken it within ten seconds. It is tried on.
    #[cfg(feature = "state")]
    pub async fn flush(&self) -> Result<(), NotKept> {
        match &self.0.shared.kept {
            Some(kept) => kept.flush().await,
            None => Ok(()),
        }
    }

    /// Writes down what was heard since the last time, where it is [kept](Builder::store): it does so by itself, but for who has a
    /// [transport](Transport) with a time of its own. `now` and `wall` are the same moment.
    ///
    /// # Errors
    /// It could not be written: it is the next time.
    #[cfg(feature = "state")]
    pub fn save(&self, now: Instant, wall: SystemTime) -> Result<Saved, StoreError> {
        let kept = self.0.shared.kept.as_ref();
        kept.map_or_else(|| Ok(Saved::default()), |kept| kept.save(&self.0.shared.federation, now, wall))
    }

    /// All that comes of a type is read from now on.
    fn reads<R: Resource>(&self) -> TypeUrl {
        let (type_url, validator) = validator::<R>();
        if self.0.shared.validators.insert_by_trust(type_url.clone(), validator) {
            self.0.shared.federation.reread(&type_url);
        }
        type_url
    }

    fn open<R: Content>(&self, type_url: TypeUrl, name: &str) -> Watch<R> {
        match resolve(&self.0, &type_url, name) {
            Ok(found) => Watch::new(found),
            Err(error) => Watch::never(error),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("node", &self.0.shared.node).finish_non_exhaustive()
    }
}

/// Who a client says that it is: its features are its own to say (gRFC A27), and so is its name.
fn introduced(node: &Node, (name, version): (&str, &str), features: &[String]) -> Node {
    let mut node = node.clone();
    (node.user_agent_name, node.user_agent_version) = (name.to_owned(), version.to_owned());
    let own = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"].map(str::to_owned);
    node.client_features = [&own, features].concat();
    node
}

#[cfg(test)]
mod tests;
