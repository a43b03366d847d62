//! Whether origins take connections, for who waits for that before clients come.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::config::{Config, ServerAddress};
use crate::lock::lock;

/// How often those are tried that did not, and how long that takes at most.
const EVERY: Duration = Duration::from_secs(1);

/// The origins of a configuration that are servers.
pub(crate) struct Reached(Vec<Origin>);

struct Origin {
    /// In the configuration.
    position: usize,
    name: String,
    /// One is enough.
    servers: Mutex<Vec<ServerAddress>>,
    state: Mutex<State>,
}

enum State {
    Untried,
    /// None of them took one, for this reason.
    Failed(String),
    /// It took one: what comes later is no reason to send clients away, who are served what is known.
    Reached,
}

impl Reached {
    pub(crate) fn new(config: &Config) -> Self {
        let origins = config.origins.iter().enumerate().filter_map(|(position, origin)| {
            let servers = Mutex::new(origin.kind.servers()?.to_vec());
            let (name, state) = (origin.name.clone(), Mutex::new(State::Untried));
            Some(Origin { position, name, servers, state })
        });
        Self(origins.collect())
    }

    /// Which took no connection yet, and why, if there are any, but for those that may be away, by their positions.
    pub(crate) fn missing(&self, may_be_away: impl Fn(usize) -> bool) -> Option<String> {
        let awaited = self.0.iter().filter(|origin| !may_be_away(origin.position));
        let missing: Vec<_> = awaited.filter_map(Origin::missing).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    }

    /// An origin has these servers from now on. What was reached was.
    pub(crate) fn lead_to(&self, position: usize, servers: &[ServerAddress]) {
        for origin in self.0.iter().filter(|origin| origin.position == position) {
            *lock(&origin.servers) = servers.to_vec();
        }
    }

    /// It is there no more: nobody waits for it.
    pub(crate) fn forget(&self, position: usize) {
        for origin in self.0.iter().filter(|origin| origin.position == position) {
            *lock(&origin.state) = State::Reached;
        }
    }

    /// Tries them until each took a connection.
    pub(crate) async fn reach(&self) {
        loop {
            let missing = || self.0.iter().filter(|origin| origin.missing().is_some());
            for origin in missing() {
                let servers = lock(&origin.servers).clone();
                let tried = first_to_take(&servers).await;
                *lock(&origin.state) = tried.map_or_else(State::Failed, |()| State::Reached);
            }
            if missing().next().is_none() {
                return;
            }
            sleep(EVERY).await;
        }
    }
}

impl Origin {
    fn missing(&self) -> Option<String> {
        let Self { name, servers, state, .. } = self;
        let targets: Vec<_> = lock(servers).iter().map(ServerAddress::target).collect();
        let took_none = format!("origin {name:?} ({}) took no connection yet", targets.join(", "));
        match &*lock(state) {
            State::Untried => Some(took_none),
            State::Failed(reason) => Some(format!("{took_none}: {reason}")),
            State::Reached => None,
        }
    }
}

/// # Errors
/// None of them takes a connection: why the last does not.
async fn first_to_take(servers: &[ServerAddress]) -> Result<(), String> {
    let mut reason = String::new();
    for server in servers {
        match timeout(EVERY, connect(server)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => reason = error.to_string(),
            Err(_) => reason = format!("nobody answered within {EVERY:?}"),
        }
    }
    Err(reason)
}

async fn connect(server: &ServerAddress) -> io::Result<()> {
    match server {
        ServerAddress::Http(_) => TcpStream::connect(server.target()).await.map(drop),
        #[cfg(unix)]
        ServerAddress::Unix(address) => address.connect().await.map(drop),
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
        let (b, c) = ("origin \"b\" (b:1) took no connection yet", "origin \"c\" (unix:c) took no connection yet");
        assert_eq!(reached.missing(|_| false), Some(format!("{b}; {c}")));
        assert_eq!(reached.missing(|origin| origin == 1).as_deref(), Some(c));
        assert_eq!(reached.missing(|origin| origin > 0), None);
        reached.lead_to(1, &["http://d:1".parse().unwrap()]);
        assert_eq!(reached.missing(|origin| origin == 2).unwrap(), b.replace("b:1", "d:1"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_origin_of_unix_sockets_is_reached_by_one_of_them() {
        use std::os::unix::net::UnixListener;

        let directory = tempfile::tempdir().unwrap();
        let text = "origins: [{ name: x, servers: [unix:a, unix:b] }]";
        let reached = Reached::new(&Config::parse(directory.path().join("relay.yaml"), text).unwrap());
        assert!(timeout(EVERY / 2, reached.reach()).await.is_err());
        let [a, b] = ["a", "b"].map(|name| format!("unix:{}", directory.path().join(name).display()));
        let words = format!("origin \"x\" ({a}, {b}) took no connection yet: No such file or directory (os error 2)");
        assert_eq!(reached.missing(|_| false), Some(words));
        let _listener = UnixListener::bind(directory.path().join("b")).unwrap();
        reached.reach().await;
        assert_eq!(reached.missing(|_| false), None);
    }
}
