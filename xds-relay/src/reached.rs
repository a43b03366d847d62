//! Whether origins take connections, for who waits for that before clients come.

use std::sync::Mutex;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::config::{Config, OriginKind};
use crate::lock::lock;

/// How often those are tried that did not, and how long that takes at most.
const EVERY: Duration = Duration::from_secs(1);

/// The origins of a configuration that are servers.
pub(crate) struct Reached(Vec<Origin>);

struct Origin {
    name: String,
    address: String,
    state: Mutex<State>,
}

enum State {
    Untried,
    /// It took none, for this reason.
    Failed(String),
    /// It took one: what comes later is no reason to send clients away, who are served what is known.
    Reached,
}

impl Reached {
    pub(crate) fn new(config: &Config) -> Self {
        let origins = config.origins.iter().filter_map(|origin| {
            let OriginKind::Server { uri, .. } = &origin.kind else { return None };
            let address = uri.authority()?.to_string();
            Some(Origin { name: origin.name.clone(), address, state: Mutex::new(State::Untried) })
        });
        Self(origins.collect())
    }

    /// Which took no connection yet, and why, if there are any.
    pub(crate) fn missing(&self) -> Option<String> {
        let missing: Vec<_> = self.0.iter().filter_map(Origin::missing).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    }

    /// Tries them until each took a connection.
    pub(crate) async fn reach(&self) {
        loop {
            let missing = || self.0.iter().filter(|origin| origin.missing().is_some());
            for origin in missing() {
                let connecting = timeout(EVERY, TcpStream::connect(origin.address.as_str())).await;
                *lock(&origin.state) = match connecting {
                    Ok(Ok(_)) => State::Reached,
                    Ok(Err(error)) => State::Failed(error.to_string()),
                    Err(_) => State::Failed(format!("nobody answered within {EVERY:?}")),
                };
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
        let Self { name, address, state } = self;
        match &*lock(state) {
            State::Untried => Some(format!("origin {name:?} ({address}) took no connection yet")),
            State::Failed(reason) => Some(format!("origin {name:?} ({address}) took no connection yet: {reason}")),
            State::Reached => None,
        }
    }
}
