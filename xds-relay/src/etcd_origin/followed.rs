//! The origins of a configuration that are keys of etcd.

use std::sync::Arc;
use std::time::Instant;

use xdstp_client::federation::Held;
use xdstp_client::state::Etcd;

use super::following::{Following, Told};
use super::standing::Standing;
use crate::config::{Config, Origin};
use crate::error::Error;
use crate::etcd::etcd_options;
use crate::file_origin::{Served, descriptors_of};
use crate::metrics::EtcdMetrics;
use crate::relay_core::{RelayCore, Trouble};

/// Begins to follow all of them; nobody waits for what etcd says.
///
/// # Errors
/// A file that one names is not good.
pub(crate) fn follow_all(config: &Config, core: &Arc<RelayCore>) -> Result<Vec<Following>, Error> {
    let mut all = Vec::new();
    for (position, origin) in config.origins.iter().enumerate() {
        let Some((etcd, descriptors)) = origin.kind.etcd() else { continue };
        let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
        let options = etcd_options(etcd, &config.field_of(origin, "etcd"))?;
        let read = (descriptors_of(config, origin, descriptors)?, Served::by(config, &origin.name));
        let store = Etcd::open(options).map_err(|error| failed(error.to_string()))?;
        let relayed = Relayed::new(core.clone(), origin, position);
        all.push(Following::start(Arc::new(store), read, relayed).map_err(|error| failed(error.to_string()))?);
    }
    Ok(all)
}

/// One of them, in a relay.
struct Relayed {
    core: Arc<RelayCore>,
    name: String,
    position: usize,
    metrics: EtcdMetrics,
    /// What was said last to be wrong.
    said: Option<String>,
    is_known: bool,
}

impl Relayed {
    fn new(core: Arc<RelayCore>, origin: &Origin, position: usize) -> Self {
        let metrics = core.metrics().etcd(&origin.name);
        metrics.set(false, 0, 0);
        let words = "etcd has not answered yet, and nothing is known".to_owned();
        core.set_trouble(position, Some(Trouble { is_away: true, words }));
        Self { core, name: origin.name.clone(), position, metrics, said: None, is_known: false }
    }
}

impl Told for Relayed {
    fn content(&mut self, held: Vec<Held>) {
        let resources = held.len();
        match self.is_known {
            true => tracing::info!(origin = %self.name, resources, "what is in etcd changed"),
            false => tracing::info!(origin = %self.name, resources, "it is read from etcd"),
        }
        self.is_known = true;
        self.metrics.changes.inc();
        self.core.set_files(self.position, held, Instant::now());
    }

    fn standing(&mut self, standing: &Standing) {
        let Standing { away, refused: (refused, _), held_back } = standing;
        self.metrics.set(away.is_none(), *refused, *held_back);
        let words = standing.trouble(self.is_known);
        match (&words, &self.said) {
            (Some(words), said) if said.as_ref() != Some(words) => tracing::error!(origin = %self.name, "{words}"),
            (None, Some(_)) => tracing::info!(origin = %self.name, "nothing is wrong any more"),
            _ => {}
        }
        self.said.clone_from(&words);
        self.core.set_trouble(self.position, words.map(|words| Trouble { is_away: away.is_some(), words }));
    }

    fn refused(&mut self, values: u64) {
        self.core.metrics().upstream_refused(&self.name, values);
    }
}
