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
    /// Those of its servers: one is enough.
    addresses: Vec<String>,
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
        let origins = config.origins.iter().filter_map(|origin| {
            let OriginKind::Server { servers, .. } = &origin.kind else { return None };
            let addresses = servers.iter().filter_map(|uri| Some(uri.authority()?.to_string())).collect();
            Some(Origin { name: origin.name.clone(), addresses, state: Mutex::new(State::Untried) })
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
                let tried = first_to_take(&origin.addresses).await;
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
        let Self { name, addresses, state } = self;
        let took_none = format!("origin {name:?} ({}) took no connection yet", addresses.join(", "));
        match &*lock(state) {
            State::Untried => Some(took_none),
            State::Failed(reason) => Some(format!("{took_none}: {reason}")),
            State::Reached => None,
        }
    }
}

/// # Errors
/// None of them takes a connection: why the last does not.
async fn first_to_take(addresses: &[String]) -> Result<(), String> {
    let mut reason = String::new();
    for address in addresses {
        match timeout(EVERY, TcpStream::connect(address.as_str())).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => reason = error.to_string(),
            Err(_) => reason = format!("nobody answered within {EVERY:?}"),
        }
    }
    Err(reason)
}
