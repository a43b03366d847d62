//! The client that programs use.

mod builder;
mod directory;
mod inner;
#[cfg(feature = "lrs")]
mod load;
mod metrics;
mod origins;
#[cfg_attr(not(feature = "lrs"), path = "client/no_reporters.rs")]
mod reporters;
mod servers;
mod status;
mod sweeper;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds_transport::wire::Node;
use xdstp_cache::TypeUrl;

pub use self::builder::{BuildError, Builder};
pub(crate) use self::inner::Inner;
pub use self::metrics::{Metrics, ResourceCount};
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::origins::patience;
pub use self::servers::Transport;
use crate::bootstrap::Bootstrap;
use crate::endpoint::Endpoint;
use crate::resolver::resolve;
use crate::resource::{Content, Resource, validator};
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
        Self(builder::of_endpoint(endpoint))
    }

    /// Watches a name, a glob, or everything (`*`) of a type, until the watch is dropped. What cannot be asked for, the watch
    /// says so itself.
    pub fn watch(&self, type_url: impl Into<TypeUrl>, name: &str) -> Watch {
        self.open(type_url.into(), name)
    }

    /// Watches resources of a type that the program [reads](Resource): what it cannot read is refused, and what was there
    /// before stays. All that comes of the type is read from then on, as the first says who watches it as anything.
    pub fn watch_as<R: Resource>(&self, name: &str) -> Watch<R> {
        let (type_url, validator) = validator::<R>();
        self.0.validators.insert(type_url.clone(), validator);
        self.open(type_url, name)
    }

    /// Lets go of streams that nobody watches anything of: it does so by itself, but for who has a [transport](Transport)
    /// with a time of its own.
    pub fn sweep(&self, now: Instant) {
        self.0.federation.sweep(now);
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
        f.debug_struct("Client").field("node", &self.0.node).finish_non_exhaustive()
    }
}

/// Who a client says that it is: its features are its own to say (gRFC A27), and so is its name.
fn introduced(node: &Node, (name, version): (&str, &str)) -> Node {
    let mut node = node.clone();
    (node.user_agent_name, node.user_agent_version) = (name.to_owned(), version.to_owned());
    node.client_features =
        ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"].map(str::to_owned).to_vec();
    node
}

#[cfg(test)]
mod tests;
