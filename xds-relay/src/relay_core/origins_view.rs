//! The origins of a relay, as the admin API tells of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Stored, TypeUrl};
use xdstp_client::federation::{Scope, ServerState, ServerStatus, Status};

use crate::api::{OriginDetail, OriginState, OriginStatus, Origins, PAGE};
use crate::lock::lock;
use crate::relay_core::core::RelayCore;
use crate::snapshot::{ServerDump, UpstreamDump};

/// What waits longer than this waits for ever.
const LONGEST_WAIT: u64 = 86_400;

impl RelayCore {
    /// The origins, with the streams to each.
    pub fn origin_details(&self, now: Instant) -> Origins {
        let (scopes, followed) = (self.all_scopes(), self.followed_scopes());
        let (statuses, _) = self.held(&scopes, now);
        let of_origin = |(at, status): (usize, OriginStatus)| {
            let of_it = scopes.iter().chain(&followed).filter(|scope| scope.origin() == at);
            let mut upstreams = upstreams(of_it, now);
            upstreams.sort_by_key(|stream| stream.connected);
            let more_upstreams = upstreams.len().saturating_sub(PAGE);
            upstreams.truncate(PAGE);
            OriginDetail { status, upstreams, more_upstreams }
        };
        Origins { origins: statuses.into_iter().map(of_origin).collect() }
    }

    /// How the origins are, by their positions, and how many resources of each type are held.
    pub(crate) fn held(
        &self,
        scopes: &[Arc<Scope>],
        now: Instant,
    ) -> (BTreeMap<usize, OriginStatus>, BTreeMap<TypeUrl, u64>) {
        let all = self.names.there().into_iter();
        let mut origins: BTreeMap<usize, OriginStatus> =
            all.filter_map(|(at, _)| Some((at, self.origin_status(at, scopes, now)?))).collect();
        let mut resources: BTreeMap<TypeUrl, u64> = BTreeMap::new();
        let contents = self.contents();
        let is_followed = |at: &usize| self.followed.contains_key(at);
        for scope in scopes {
            if contents.contains_key(&scope.origin()) && !is_followed(&scope.origin()) {
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
            if let Some(origin) = origins.get_mut(&scope.origin()) {
                origin.resources += held;
                origin.stale += scope.stale_count() as u64;
            }
        }
        // Whether a client wants it or not.
        for (at, content) in contents.into_iter().filter(|(at, _)| !is_followed(at)) {
            content.iter().for_each(|(type_url, ..)| *resources.entry(type_url.clone()).or_default() += 1);
            if let Some(origin) = origins.get_mut(&at) {
                origin.resources = content.len() as u64;
            }
        }
        (origins, resources)
    }

    /// How an origin is, without what is held of it. `scopes` are those of it, or all.
    pub(crate) fn origin_status(&self, at: usize, scopes: &[Arc<Scope>], now: Instant) -> Option<OriginStatus> {
        let (name, origin) = (self.names.of(at)?, self.federation.origins().get(at)?.clone());
        let mut status = OriginStatus { name, kind: origin.kind().to_owned(), ..OriginStatus::default() };
        let mut streams = BTreeMap::new();
        for scope in scopes.iter().filter(|scope| scope.origin() == at) {
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
        if let Some(trouble) = lock(&self.troubles).get(&at) {
            let words = trouble.words_at(now);
            match trouble.is_away {
                true => (status.state, status.last_error) = (OriginState::Down, Some(words)),
                false => status.hint = Some(words),
            }
        }
        Some(status)
    }
}

/// The streams that feed these scopes of one origin, by whom they are for.
pub(crate) fn upstreams<'a>(scopes: impl Iterator<Item = &'a Arc<Scope>>, now: Instant) -> Vec<UpstreamDump> {
    let mut streams: BTreeMap<String, UpstreamDump> = BTreeMap::new();
    for scope in scopes {
        let Some(supply) = scope.supply() else { continue };
        let Status { connected, relays, last_error, retry_at, hint, servers } = supply.status();
        let stream = streams.entry(supply.label().to_owned()).or_insert_with(|| {
            let of_server = |of: &ServerStatus| ServerDump { server: of.name.clone(), ..ServerDump::default() };
            UpstreamDump {
                group: supply.label().to_owned(),
                connected,
                relays,
                last_error,
                retry_in_seconds: retry_at
                    .map(|at| at.saturating_duration_since(now).as_secs())
                    .filter(|wait| *wait < LONGEST_WAIT),
                hint: hint.map(str::to_owned),
                servers: servers.iter().map(of_server).collect(),
                subscriptions: 0,
            }
        });
        stream.servers.iter_mut().zip(servers).for_each(|(dump, status)| add(dump, status));
        stream.subscriptions += scope.subscription_count();
    }
    streams.into_values().collect()
}

/// What one more scope of a stream has to do with a server.
fn add(dump: &mut ServerDump, ServerStatus { in_use, state, .. }: ServerStatus) {
    dump.feeds += usize::from(in_use);
    // Of several scopes that which says most.
    const ORDER: [&str; 4] = ["", "not asked", "asked", "answers"];
    let of = |state: &str| ORDER.iter().position(|other| *other == state).unwrap_or(ORDER.len());
    if of(state.as_str()) >= of(&dump.state) {
        dump.state = state.as_str().to_owned();
    }
    if let ServerState::Fails(reason) = state {
        dump.last_error = Some(reason);
    }
}
