//! How a relay is, as the admin API tells it.

use std::time::Instant;

use crate::api::Status;
use crate::relay_core::core::RelayCore;

impl RelayCore {
    /// How the relay is, but for what is known of the program around it: how long it runs, and whether clients should come.
    pub fn status(&self, now: Instant) -> Status {
        let (origins, resources) = self.held(&self.all_scopes(), now);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: self.instance(),
            origins: origins.into_values().collect(),
            clients: self.client_counts(now),
            resources: resources.into_iter().map(|(type_url, count)| (type_url.to_string(), count)).collect(),
            state_kept: self.keeps.then_some(self.state.is_some()),
            ..Status::default()
        }
    }
}
