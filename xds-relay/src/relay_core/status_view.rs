//! How a relay is, as the admin API tells it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Stored, TypeUrl};
use xdstp_client::federation::Scope;

use crate::api::{OriginState, OriginStatus, Status};
use crate::relay_core::core::RelayCore;

impl RelayCore {
    /// How the relay is, but for what is known of the program around it: how long it runs, and whether clients should come.
    pub fn status(&self, now: Instant) -> Status {
        let scopes = self.all_scopes();
        let all = 0..self.names.len();
        let mut origins: Vec<OriginStatus> = all.filter_map(|at| self.origin_status(at, &scopes)).collect();
        let mut resources: BTreeMap<TypeUrl, u64> = BTreeMap::new();
        for scope in scopes {
            if self.files.contains_key(&scope.origin) {
                continue;
            }
            let mut held = 0;
            let type_of = |stored: Stored<'_, Frame>| stored.resource.is_some().then(|| stored.type_url.clone());
            scope.visit_stored(type_of, |type_url| {
                if let Some(type_url) = type_url {
                    held += 1;
                    *resources.entry(type_url).or_default() += 1;
                }
            });
            if let Some(origin) = origins.get_mut(scope.origin) {
                origin.resources += held;
                origin.stale += scope.stale_count() as u64;
            }
        }
        // Whether a client wants it or not.
        for (at, files) in &self.files {
            let content = files.resources();
            content.iter().for_each(|(type_url, ..)| *resources.entry(type_url.clone()).or_default() += 1);
            if let Some(origin) = origins.get_mut(*at) {
                origin.resources = content.len() as u64;
            }
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: self.instance(),
            origins,
            clients: self.client_counts(now),
            resources: resources.into_iter().map(|(type_url, count)| (type_url.to_string(), count)).collect(),
            state_kept: self.keeps.then_some(self.state.is_some()),
            ..Status::default()
        }
    }

    /// How an origin is, without what is held of it. `scopes` are those of it, or all.
    pub(crate) fn origin_status(&self, at: usize, scopes: &[Arc<Scope>]) -> Option<OriginStatus> {
        let (name, origin) = self.origins().nth(at)?;
        let mut status =
            OriginStatus { name: name.to_owned(), kind: origin.kind().to_owned(), ..OriginStatus::default() };
        let mut streams = BTreeMap::new();
        for scope in scopes.iter().filter(|scope| scope.origin == at) {
            if let Some(supply) = scope.supply() {
                streams.entry(supply.label().to_owned()).or_insert_with(|| supply.status());
            }
        }
        status.streams = streams.len();
        status.streams_up = streams.values().filter(|stream| stream.connected).count();
        let (mut up, mut down): (Vec<_>, Vec<_>) = streams.into_values().partition(|stream| stream.connected);
        // What is wrong now counts more than what was.
        let told = down.iter_mut().chain(&mut up).find_map(|stream| stream.last_error.take());
        status.hint = down.iter().chain(&up).find_map(|stream| stream.hint).map(str::to_owned);
        status.last_error = told;
        status.state = match (status.streams_up, status.streams) {
            _ if origin.is_authoritative() => OriginState::Up,
            (_, 0) => OriginState::Idle,
            (0, _) => OriginState::Down,
            (up, all) if up == all => OriginState::Up,
            _ => OriginState::Partly,
        };
        Some(status)
    }
}
