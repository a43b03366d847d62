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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_are_waited_for_and_none_that_may_be_away() {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().display();
        let text = format!(
            "origins: [{{ name: a, files: {files} }}, {{ name: b, server: 'b:1' }}, {{ name: c, server: unix:c }}]"
        );
        let reached = Reached::new(&Config::parse("relay.yaml", &text).unwrap());
        assert_eq!(reached.missing(|_| false), Some("b"));
        assert_eq!(reached.missing(|origin| origin == 1), Some("c"));
        assert_eq!(reached.missing(|origin| origin > 0), None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_origin_at_a_unix_socket_is_reached() {
        let directory = tempfile::tempdir().unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(directory.path().join("a")).unwrap();
        let config =
            Config::parse(directory.path().join("relay.yaml"), "origins: [{ name: a, server: unix:a }]").unwrap();
        let reached = Reached::new(&config);
        // It waits a while after it has.
        let _ = timeout(EVERY / 2, reached.reach()).await;
        assert_eq!(reached.missing(|_| false), None);
    }
}
