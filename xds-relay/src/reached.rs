//! Whether origins take connections, for who waits for that before clients come.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::config::{Config, OriginKind, ServerAddress};

/// How often those are tried that did not, and how long that takes at most.
const EVERY: Duration = Duration::from_secs(1);

/// The origins of a configuration that are servers.
pub(crate) struct Reached(Vec<Origin>);

struct Origin {
    /// In the configuration.
    position: usize,
    name: String,
    address: ServerAddress,
    /// It took one: what comes later is no reason to send clients away, who are served what is known.
    once: AtomicBool,
}

impl Reached {
    pub(crate) fn new(config: &Config) -> Self {
        let origins = config.origins.iter().enumerate().filter_map(|(position, origin)| {
            let OriginKind::Server { uri, .. } = &origin.kind else { return None };
            Some(Origin { position, name: origin.name.clone(), address: uri.clone(), once: AtomicBool::new(false) })
        });
        Self(origins.collect())
    }

    /// Which did not, if there is one, but for those that may be away, by their positions.
    pub(crate) fn missing(&self, may_be_away: impl Fn(usize) -> bool) -> Option<&str> {
        let missing = |origin: &&Origin| !origin.once.load(Ordering::Relaxed) && !may_be_away(origin.position);
        self.0.iter().find(missing).map(|origin| origin.name.as_str())
    }

    /// Tries them until each took a connection.
    pub(crate) async fn reach(&self) {
        while self.missing(|_| false).is_some() {
            for origin in self.0.iter().filter(|origin| !origin.once.load(Ordering::Relaxed)) {
                if let Ok(Ok(())) = timeout(EVERY, connect(&origin.address)).await {
                    origin.once.store(true, Ordering::Relaxed);
                }
            }
            sleep(EVERY).await;
        }
    }
}

async fn connect(address: &ServerAddress) -> io::Result<()> {
    match address {
        ServerAddress::Http(uri) => {
            let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
            TcpStream::connect(authority).await.map(drop)
        }
        #[cfg(unix)]
        ServerAddress::Unix(address) => std::os::unix::net::UnixStream::connect_addr(&address.socket_addr()?).map(drop),
        #[cfg(not(unix))]
        ServerAddress::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
