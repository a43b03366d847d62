//! What is counted of a client: the events of gRFC A78, as A88 completes them.

use std::collections::BTreeMap;

use xds_transport::wire::client_status::ClientResourceStatus;
use xdstp_uri::ResourceName;

use super::Client;

/// Is told what happens between a client and its servers: see [`Builder::metrics`](crate::Builder::metrics). Each is called by
/// whoever receives, and returns soon. No lock of the client is held meanwhile: what it knows may be asked for. Of origins that a
/// program [brings](crate::Builder::origin) nothing is told, as there is no server; their resources are
/// [counted](Client::resource_counts).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use xdstp_client::Metrics;
///
/// /// How often servers failed.
/// #[derive(Default)]
/// struct Failures(AtomicU64);
///
/// impl Metrics for Failures {
///     fn server_failure(&self, _server: &str) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let failures = Arc::new(Failures::default());
/// failures.server_failure("xds:1");
/// assert_eq!(failures.0.load(Ordering::Relaxed), 1);
/// ```
pub trait Metrics: Send + Sync + 'static {
    /// `grpc.xds_client.connected`: whether a server can be reached. It can from when there is a stream, until one ends without
    /// an answer; after that it can when it answers. `None` when nobody asks it for anything any more.
    fn connected(&self, _server: &str, _is: Option<bool>) {}

    /// `grpc.xds_client.server_failure`: a server can be reached no more, which could or was not tried before.
    fn server_failure(&self, _server: &str) {}

    /// `grpc.xds_client.resource_updates_valid` and `resource_updates_invalid`: so many resources of a response were of use,
    /// changed or not, and so many were not.
    fn resource_updates(&self, _server: &str, _type_url: &str, _valid: u64, _invalid: u64) {}

    /// So much of the load for a server is left out of its reports, or not told apart in them (with the feature `lrs`): more
    /// `clusters`, `calls`, `localities`, `endpoints`, `metrics` or `categories`, as `LeftOut` counts them. It is
    /// called by whoever counts.
    fn load_left_out(&self, _server: &str, _what: &'static str, _count: u64) {}
}

/// How many resources of a type and an authority are in a state: `grpc.xds_client.resources`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ResourceCount {
    /// The authority of their names; `#old` for names that have none and never can.
    pub authority: String,
    /// Their type URL.
    pub type_url: String,
    /// gRFC A78's `cache_state`, such as `acked` or `nacked_but_cached`.
    pub state: &'static str,
    /// How many.
    pub count: usize,
}

impl Client {
    /// How many resources are in which state.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_client::Client;
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::test::Network;
    ///
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(Network::new(Instant::now())).build()?;
    /// let _watch = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "web");
    /// let [count] = &client.resource_counts()[..] else { panic!("one kind") };
    /// assert_eq!((&*count.authority, count.state, count.count), ("#old", "requested", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resource_counts(&self) -> Vec<ResourceCount> {
        let mut counts: BTreeMap<(String, String, &str), usize> = BTreeMap::new();
        for config in self.status(false).generic_xds_configs {
            let name = ResourceName::parse(&config.name).ok();
            let authority = name.and_then(|name| name.authority().map(str::to_owned));
            let held = config.last_updated.is_some();
            let state = cache_state(config.client_status(), held);
            *counts.entry((authority.unwrap_or_else(|| "#old".to_owned()), config.type_url, state)).or_default() += 1;
        }
        let count = |((authority, type_url, state), count)| ResourceCount { authority, type_url, state, count };
        counts.into_iter().map(count).collect()
    }
}

fn cache_state(status: ClientResourceStatus, held: bool) -> &'static str {
    match (status, held) {
        (ClientResourceStatus::Acked, _) => "acked",
        (ClientResourceStatus::Nacked, true) => "nacked_but_cached",
        (ClientResourceStatus::Nacked, false) => "nacked",
        (ClientResourceStatus::DoesNotExist, true) => "does_not_exist_but_cached",
        (ClientResourceStatus::DoesNotExist, false) => "does_not_exist",
        (ClientResourceStatus::ReceivedError, true) => "received_error_but_cached",
        (ClientResourceStatus::ReceivedError, false) => "received_error",
        (ClientResourceStatus::Timeout, _) => "timeout",
        (ClientResourceStatus::Requested | ClientResourceStatus::Unknown, _) => "requested",
    }
}
