//! Whether origins take connections, for who waits for that before clients come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::config::{Config, OriginKind};

/// How often those are tried that did not, and how long that takes at most.
const EVERY: Duration = Duration::from_secs(1);

/// The origins of a configuration that are servers.
pub(crate) struct Reached(Vec<Origin>);

struct Origin {
    name: String,
    /// Those of its servers: one is enough.
    addresses: Vec<String>,
    /// It took one: what comes later is no reason to send clients away, who are served what is known.
    once: AtomicBool,
}

impl Reached {
    pub(crate) fn new(config: &Config) -> Self {
        let origins = config.origins.iter().filter_map(|origin| {
            let OriginKind::Server { servers, .. } = &origin.kind else { return None };
            let addresses = servers.iter().filter_map(|uri| Some(uri.authority()?.to_string())).collect();
            Some(Origin { name: origin.name.clone(), addresses, once: AtomicBool::new(false) })
        });
        Self(origins.collect())
    }

    /// Which did not, if there is one.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.0.iter().find(|origin| !origin.once.load(Ordering::Relaxed)).map(|origin| origin.name.as_str())
    }

    /// Tries them until each took a connection.
    pub(crate) async fn reach(&self) {
        while self.missing().is_some() {
            for origin in self.0.iter().filter(|origin| !origin.once.load(Ordering::Relaxed)) {
                for address in &origin.addresses {
                    let connecting = TcpStream::connect(address.as_str());
                    if let Ok(Ok(_)) = timeout(EVERY, connecting).await {
                        origin.once.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            }
            sleep(EVERY).await;
        }
    }
}
