//! gRFC A78's metrics, for whatever recorder a program gave the `metrics` crate.

use std::collections::BTreeSet;
use std::mem;

use ::metrics::{counter, gauge};
use parking_lot::Mutex;

use super::metrics::{Metrics, ResourceCount};

/// Records gRFC A78's metrics by the `metrics` crate (feature `metrics`), under the names and labels that gRPC gives them.
///
/// `grpc.target` is whom the client works for: gRPC has the target of a channel there. A gauge cannot be taken back by `metrics`:
/// what a client no longer has, a connection or a resource, is 0 there.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use xdstp_client::bootstrap::Bootstrap;
/// use xdstp_client::{Client, Recorded};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let recorded = Arc::new(Recorded::new("checkout"));
/// let client = Client::builder(Bootstrap::from_env()?).metrics(recorded.clone()).build()?;
/// loop {
///     recorded.record(&client.resource_counts());
///     tokio::time::sleep(Duration::from_secs(10)).await;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Recorded {
    target: String,
    /// What has a number other than 0.
    counted: Mutex<BTreeSet<Kind>>,
}

impl Recorded {
    /// Records under this `grpc.target`.
    pub fn new(target: impl Into<String>) -> Self {
        Self { target: target.into(), counted: Mutex::default() }
    }

    /// Records how many resources are in which state, `grpc.xds_client.resources`, as
    /// [`Client::resource_counts`](crate::Client::resource_counts) has them. States that were there the last time and are not
    /// now are 0.
    pub fn record(&self, counts: &[ResourceCount]) {
        let now: BTreeSet<Kind> = counts.iter().map(Kind::of).collect();
        let before = mem::replace(&mut *self.counted.lock(), now.clone());
        for count in counts {
            self.resources(Kind::of(count), count.count);
        }
        for gone in before.difference(&now) {
            self.resources(gone.clone(), 0);
        }
    }

    fn resources(&self, kind: Kind, count: usize) {
        let labels = [
            ("grpc.target", self.target.clone()),
            ("grpc.xds.authority", kind.authority),
            ("grpc.xds.cache_state", kind.state.to_owned()),
            ("grpc.xds.resource_type", kind.type_url),
        ];
        gauge!("grpc.xds_client.resources", &labels).set(count as f64);
    }

    fn of_server(&self, server: &str) -> [(&'static str, String); 2] {
        [("grpc.target", self.target.clone()), ("grpc.xds.server", server.to_owned())]
    }
}

impl Metrics for Recorded {
    fn connected(&self, server: &str, is: Option<bool>) {
        let connected = if is == Some(true) { 1.0 } else { 0.0 };
        gauge!("grpc.xds_client.connected", &self.of_server(server)).set(connected);
    }

    fn server_failure(&self, server: &str) {
        counter!("grpc.xds_client.server_failure", &self.of_server(server)).increment(1);
    }

    fn resource_updates(&self, server: &str, type_url: &str, valid: u64, invalid: u64) {
        let [target, server] = self.of_server(server);
        let labels = [target, server, ("grpc.xds.resource_type", type_url.to_owned())];
        counter!("grpc.xds_client.resource_updates_valid", &labels).increment(valid);
        counter!("grpc.xds_client.resource_updates_invalid", &labels).increment(invalid);
    }

    fn load_left_out(&self, server: &str, what: &'static str, count: u64) {
        let [target, server] = self.of_server(server);
        counter!("xdstp_client.load_left_out", &[target, server, ("what", what.to_owned())]).increment(count);
    }
}

/// Of what a number of resources is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    authority: String,
    type_url: String,
    state: &'static str,
}

impl Kind {
    fn of(count: &ResourceCount) -> Self {
        Self { authority: count.authority.clone(), type_url: count.type_url.clone(), state: count.state }
    }
}
