//! What a relay serves beside discovery, over loopback: load reports and its health; whole ways through it; its connections;
//! relays in a ring.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of these tests"
)]

mod admin_guard;
mod api;
mod beside;
mod client_limits;
mod client_status;
mod clients;
#[cfg(feature = "otlp")]
mod collectors;
mod connections;
mod drain;
mod failover;
#[cfg(all(unix, feature = "file-origin"))]
mod followed;
mod health;
mod html;
mod identity;
mod killed;
#[cfg(feature = "file-origin")]
mod kubernetes;
mod layers;
mod led;
mod limits;
mod load_reports;
mod loops;
#[cfg(unix)]
mod orders;
mod original;
mod pages;
mod per_type;
mod refused;
mod refused_wildcard;
mod releases;
mod reload;
mod reload_fields;
mod resumed;
mod returning;
mod strangers;
mod stream;
mod tls;
#[cfg(feature = "otlp")]
mod traces;
#[cfg(unix)]
mod unix;

use std::net::SocketAddr;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use xds_relay::{Config, Error, Relay, Reloader};

/// A relay that runs until it is told to stop.
struct Running {
    address: SocketAddr,
    admin: Option<SocketAddr>,
    reloader: Reloader,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), Error>>,
}

/// A directory of files that says that there is nothing: one without files may be where a volume is to be mounted.
fn no_resources() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("none.yaml"), "resources: []").unwrap();
    directory
}

impl Running {
    /// `origins` is YAML.
    async fn start(origins: &str) -> Self {
        Self::start_with(origins, "").await
    }

    /// The same, with more of the configuration.
    async fn start_with(origins: &str, more: &str) -> Self {
        let text = format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndrain: 1h\norigins: {origins}\n{more}\n");
        Self::run(Relay::bind(Config::parse("relay.yaml", &text).unwrap()).await.unwrap())
    }

    fn run(relay: Relay) -> Self {
        let address = relay.listen_address().unwrap().tcp().unwrap();
        let admin = relay.admin_address().unwrap().and_then(|admin| admin.tcp());
        let reloader = relay.reloader();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
        Self { address, admin, reloader, stop: Some(stop), running }
    }

    fn stop(&mut self) {
        self.stop = None;
    }

    /// It returns although the time to drain is an hour: all streams came to an end.
    async fn stopped(self) {
        self.running.await.unwrap().unwrap();
    }
}
