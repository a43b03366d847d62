//! Heartbeats: a resource without its content says that what came before lives on (rules 112, 148).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::client::session::held::Held;
use crate::client::session::verdict::Unfinished;
use crate::client::update::Update;
use crate::deadlines::expiry;
use crate::response::Rejected;

/// The heartbeats of one response.
#[derive(Default)]
pub(crate) struct Heartbeats(BTreeMap<ResourceName, (Option<Version>, Duration)>);

impl Heartbeats {
    /// One for a resource of a version; over SotW for the one that came last.
    pub(crate) fn push(&mut self, name: ResourceName, version: Option<Version>, ttl: Duration) {
        self.0.insert(name, (version, ttl));
    }

    /// What waits for its verdict lives on as what is held does: an origin knows no difference.
    pub(crate) fn apply(mut self, now: Instant, unfinished: &mut Unfinished, held: &mut Held, update: &mut Update) {
        if self.0.is_empty() {
            return;
        }
        for (name, received) in unfinished.newest_first() {
            let is_its = |version: &Version| *version == received.entry.version;
            let beats = |version: &Option<Version>| version.as_ref().is_none_or(is_its);
            if self.0.get(name).is_some_and(|(version, _)| beats(version))
                && let Some((name, (_, ttl))) = self.0.remove_entry(name)
            {
                received.expires = expiry(now, Some(ttl));
                update.refreshed.push((name, ttl));
            }
        }
        for (name, (version, ttl)) in self.0 {
            if held.get(&name).is_some_and(|entry| version.is_none_or(|version| version == entry.version)) {
                held.refresh(&name, expiry(now, Some(ttl)));
                update.refreshed.push((name, ttl));
            } else {
                update.rejected.push(Rejected::new(name.as_str(), "a heartbeat for a version never sent"));
            }
        }
    }
}
