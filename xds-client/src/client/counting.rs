//! What the streams of a client tell its metrics: of a server that has several, once for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use xdstp_cache::TypeUrl;

use super::metrics::Metrics;
use crate::federation::Observer;

pub(super) struct Counting {
    metrics: Arc<dyn Metrics>,
    servers: Mutex<BTreeMap<String, Streams>>,
}

/// The streams to a server that know something of it.
#[derive(Default)]
struct Streams {
    reached: usize,
    failed: usize,
    /// What the program was told of it last.
    told: Option<bool>,
    /// Somebody tells it, and looks again after that.
    telling: bool,
}

impl Streams {
    fn count(&mut self, is: bool) -> &mut usize {
        if is { &mut self.reached } else { &mut self.failed }
    }

    /// It can be reached if it is by any of them.
    fn is(&self) -> Option<bool> {
        (self.reached + self.failed > 0).then_some(self.reached > 0)
    }
}

impl Counting {
    pub(super) fn new(metrics: Arc<dyn Metrics>) -> Self {
        Self { metrics, servers: Mutex::default() }
    }

    /// What is news of a server, if nobody tells that already. None is left of a server that nobody asks any more.
    fn news(&self, server: &str) -> Option<Option<bool>> {
        let mut servers = self.servers.lock();
        let streams = servers.get_mut(server)?;
        let is = streams.is();
        streams.telling = streams.told != is;
        streams.told = is;
        if streams.telling {
            return Some(is);
        }
        if is.is_none() {
            servers.remove(server);
        }
        None
    }
}

impl Observer for Counting {
    fn reachable(&self, server: &str, was: Option<bool>, is: Option<bool>) {
        {
            let mut servers = self.servers.lock();
            let streams = servers.entry(server.to_owned()).or_default();
            if let Some(was) = was {
                let count = streams.count(was);
                *count = count.saturating_sub(1);
            }
            if let Some(is) = is {
                *streams.count(is) += 1;
            }
            if streams.telling {
                return;
            }
        }
        // No lock is held while the program's code runs.
        while let Some(is) = self.news(server) {
            self.metrics.connected(server, is);
            if is == Some(false) {
                self.metrics.server_failure(server);
            }
        }
    }

    fn judged(&self, server: &str, type_url: &TypeUrl, valid: u64, invalid: u64) {
        self.metrics.resource_updates(server, type_url.as_str(), valid, invalid);
    }
}
