//! Reporting load.

use super::Client;
use crate::load::{LoadError, LoadReporter};

impl Client {
    /// Reports load to a server of the bootstrap, as that has its address; of several of one address it is the first. What a
    /// resource says by `self` is [`Watch::load_reporter`](crate::Watch::load_reporter).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use xds_transport::wire::Locality;
    /// use xdstp_client::Client;
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::test::Network;
    ///
    /// let network = Network::new(Instant::now());
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    /// let server = network.server("xds:1");
    /// server.ask_for_load(&["web"], Duration::from_secs(10));
    ///
    /// let locality = client.load_reporter("xds:1")?.cluster("web", "").locality(&Locality::default());
    /// locality.call_started();
    /// locality.call_finished(true, &[("cpu_utilization", 0.5)]);
    /// network.pass(Duration::from_secs(10));
    /// let reports = server.take_load_reports();
    /// let web = &reports[0].cluster_stats[0];
    /// assert_eq!(web.upstream_locality_stats[0].total_successful_requests, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the bootstrap has no such server.
    pub fn load_reporter(&self, server: &str) -> Result<LoadReporter, LoadError> {
        self.0.reporters().of_name(server)
    }
}
