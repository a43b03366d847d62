//! Other origins than before, while clients are served.

use std::sync::Arc;

use xdstp_client::federation::Origin;

use crate::config::Config;
use crate::relay_core::configured::{origins_of, server_at};
use crate::relay_core::core::RelayCore;

impl RelayCore {
    /// From now on there are the origins of this configuration, with its authorities. One that is new takes the next position, in
    /// the order of the configuration, and one that is not there any more leaves its own empty. What there is of an origin that stays
    /// but its authorities is as it was, and so is the default origin.
    ///
    /// What is held of names that become another origin's is served on: see [`Federation::lead`].
    ///
    /// Those that are new, that go, and that authorities come from or go to, must be servers: [one](crate::config::OriginKind) each,
    /// asked over delta, alike for every node.
    ///
    /// [`Federation::lead`]: xdstp_client::federation::Federation::lead
    pub fn lead(&self, config: &Config) {
        let there = self.names.there();
        let gone = there.iter().filter(|(_, name)| config.origin(name).is_none());
        let new = config.origins.iter().filter(|origin| there.iter().all(|(_, name)| *name != origin.name));
        let new: Vec<Arc<dyn Origin>> = new
            .filter_map(|origin| server_at(config, origin, self.names.add(origin), &self.authorities, &self.common))
            .collect();
        gone.clone().for_each(|(position, _)| self.names.remove(*position));
        let authorities = origins_of(config, |name| self.names.position(name));
        self.federation.lead(new, authorities);
        for (_, name) in gone {
            self.metrics.forget_origin(name);
            let default_origin = &config.default_origin;
            tracing::warn!(origin = %name, %default_origin,
                "not in the configuration any more: names of its authorities are the default origin's, and what is held stays");
        }
    }

    /// The position of an origin that is there.
    pub(crate) fn position_of(&self, name: &str) -> Option<usize> {
        self.names.position(name)
    }
}
