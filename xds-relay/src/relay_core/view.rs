//! What admin pages and metrics see of the relay.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::server::{Stream, Tally};
use xdstp_cache::{Interest, Resource, Stored, TypeUrl};
use xdstp_client::federation::{Held, Origin, Scope};

use crate::lock::lock;
use crate::metrics::Gauges;
use crate::relay_core::core::{RelayCore, Trouble};
use crate::relay_core::origins_view::upstreams;
use crate::relay_core::stream_entry::StreamEntry;
use crate::snapshot::{
    ClientDump, ClientTypeDump, ConfigDump, ContentDump, ContentResourceDump, NackDump, OriginDump, Readiness,
    ResourceDump, ScopeDump, ScopeTypeDump, StateDump,
};

impl RelayCore {
    /// Whether clients should come: every origin has what it is to have from the start, files were read, and what is released is
    /// known. An origin of which all is served from a release needs not be there. One that cannot be reached does not count: there may be
    /// others, and what was received before is served without it.
    pub fn readiness(&self) -> Readiness {
        self.readiness_by(|trouble| &trouble.words)
    }

    /// The same for who may not see what is in the origins.
    pub(crate) fn readiness_in_brief(&self) -> Readiness {
        self.readiness_by(|trouble| &trouble.in_brief)
    }

    fn readiness_by(&self, words: fn(&Trouble) -> &String) -> Readiness {
        if let Some(words) = self.unknown_releases() {
            return Readiness::NotReady(words);
        }
        match self.missing(|position, _| !self.serves_all_of(position), words) {
            Some((origin, reason)) => Readiness::NotReady(format!("origin {origin:?}: {reason}")),
            None => Readiness::Ready,
        }
    }

    /// An origin that has not what it is to have from the start, and what is missing, of those at such positions with such names.
    pub(crate) fn not_ready_of(&self, is_meant: impl Fn(usize, &str) -> bool) -> Option<(String, String)> {
        self.missing(is_meant, |trouble| &trouble.words)
    }

    fn missing(
        &self,
        is_meant: impl Fn(usize, &str) -> bool,
        words: fn(&Trouble) -> &String,
    ) -> Option<(String, String)> {
        let all = self.origins().into_iter().filter(|(position, name, _)| is_meant(*position, name));
        all.into_iter().find_map(|(at, name, origin)| {
            // What is gathered may wait for somebody to have it go on.
            let is_unserved = || self.followed.contains_key(&at) && !self.serves_releases_of(at);
            let unserved = || is_unserved().then(|| "there is no release of it that is served".to_owned());
            Some((name, self.with_trouble(at, origin.ready().err().or_else(unserved)?, words)))
        })
    }

    /// What is missing of an origin, and why, if that is known.
    fn with_trouble(&self, origin: usize, missing: String, words: fn(&Trouble) -> &String) -> String {
        match lock(&self.troubles).get(&origin) {
            Some(trouble) => format!("{missing}: {}", words(trouble)),
            None => missing,
        }
    }

    /// Those that there are, with their positions.
    pub(crate) fn origins(&self) -> Vec<(usize, String, Arc<dyn Origin>)> {
        let all = self.federation.origins();
        let there = self.names.there().into_iter();
        there.filter_map(|(at, name)| Some((at, name, all.get(at)?.clone()))).collect()
    }

    /// What origins have whoever wants it, by the position of each that does.
    pub(crate) fn contents(&self) -> BTreeMap<usize, Arc<Vec<Held>>> {
        self.origins().into_iter().filter_map(|(at, _, origin)| Some((at, origin.content()?))).collect()
    }

    /// Everything the relay holds, of whom, and for whom.
    pub fn config_dump(&self, now: Instant) -> ConfigDump {
        let (scopes, followed) = (self.all_scopes(), self.followed_scopes());
        let origins = self.origins().into_iter().map(|(index, name, origin)| OriginDump {
            name,
            protocol: origin.kind().to_owned(),
            streams: upstreams(scopes.iter().chain(&followed).filter(|scope| scope.origin() == index), now),
            content: origin.content().map(|held| content(&held)).unwrap_or_default(),
        });
        let origins = origins.collect();
        // A stream that ends has its own lock when it takes this one.
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        let clients = streams.iter().map(|stream| client(stream, now)).collect();
        ConfigDump {
            instance: self.instance(),
            origins,
            scopes: scopes.iter().filter(|scope| !scope.is_dormant()).map(|scope| dump(scope, now)).collect(),
            clients,
            state: self.keeps.then(|| self.state_dump()),
        }
    }

    /// How many scopes each of several servers of an origin feeds.
    fn in_use(&self, scope: &Scope, in_use: &mut BTreeMap<(String, String), u64>) {
        let several = self.names.has_several(scope.origin());
        let Some(origin) = self.names.of(scope.origin()).filter(|_| several) else { return };
        for server in scope.supply().into_iter().flat_map(|supply| supply.status().servers) {
            *in_use.entry((origin.clone(), server.name)).or_default() += u64::from(server.in_use);
        }
    }

    fn state_dump(&self) -> StateDump {
        let Some(state) = &self.state else { return StateDump::default() };
        StateDump {
            kept: state.is_kept(),
            read_seconds_ago: state.age().map(|age| age.as_secs()),
            waiting_scopes: state.waiting(),
            damaged: state.damaged(),
        }
    }

    /// Tells the metrics what happened since they were told last. Whether the relay is ready is more than [what it
    /// holds](Self::readiness) says: that is left out.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        let mut resources: HashMap<TypeUrl, u64> = HashMap::new();
        for scope in self.all_scopes() {
            gauges.subscribers += scope.subscriber_count() as u64;
            self.in_use(&scope, &mut gauges.in_use);
            if let Some(origin) = self.names.of(scope.origin()).filter(|_| self.state.is_some()) {
                let stale = scope.stale_count() as u64;
                *gauges.stale.entry(origin).or_default() += stale;
                let age = self.state.as_ref().filter(|_| stale > 0).and_then(|state| state.stale_for(&scope));
                gauges.stale_seconds = gauges.stale_seconds.max(age.unwrap_or_default().as_secs());
            }
            let type_of = |stored: Stored<'_, Frame>| stored.resource.is_some().then(|| stored.type_url.clone());
            scope.visit_stored(type_of, |type_url| {
                if let Some(type_url) = type_url {
                    *resources.entry(type_url).or_default() += 1;
                }
            });
        }
        gauges.resources = resources.into_iter().map(|(type_url, count)| (type_url.to_string(), count)).collect();
        gauges.state = self.keeps.then(|| self.state.as_ref().is_some_and(|state| state.is_kept()));
        gauges.damaged = self.state.as_ref().map(|state| state.damaged() as u64);
        gauges.limits = self.quotas.used(&self.shared).collect();
        for (limit, used) in &*lock(&self.used_beside) {
            let (used, most) = used();
            gauges.limits.insert(limit, (used as u64, most as u64));
        }
        gauges.bodies = self.federation.bodies() as u64;
        gauges.releases = self.release_gauges();
        gauges.drift = self.drift_gauges();
        self.counts.tell(&self.metrics, |sessions| {
            for stream in self.streams() {
                stream.inspect(&mut |stream| {
                    sessions.extend(stream.sessions().map(|session| (session.type_url.clone(), session.tally.clone())));
                });
            }
        });
        gauges
    }

    /// What the relay is itself a client of.
    pub(crate) fn followed_scopes(&self) -> Vec<Arc<Scope>> {
        let following = lock(&self.following).clone();
        following.iter().flat_map(|(federation, _)| federation.scopes()).collect()
    }

    /// The shared scopes, and those of one stream alone (rule 121).
    pub(crate) fn all_scopes(&self) -> Vec<Arc<Scope>> {
        let mut scopes = self.federation.scopes();
        // A stream that ends has its own lock when it takes this one.
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        for stream in streams {
            let first = scopes.len();
            stream.view.visit(|_, part| {
                // A stream has one private scope an origin, and a part of it for each type.
                if !part.scope.shared && !scopes.iter().skip(first).any(|scope| Arc::ptr_eq(scope, &part.scope)) {
                    scopes.push(part.scope.clone());
                }
            });
        }
        scopes
    }
}

fn content(held: &[Held]) -> Vec<ContentDump> {
    let mut types: BTreeMap<String, Vec<ContentResourceDump>> = BTreeMap::new();
    for (type_url, name, resource) in held {
        let (version, bytes) = (resource.version.to_string(), resource.value.any().len());
        let resource = ContentResourceDump { name: name.to_string(), version, bytes };
        types.entry(type_url.to_string()).or_default().push(resource);
    }
    let of_type = |(type_url, mut resources): (String, Vec<ContentResourceDump>)| {
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        ContentDump { type_url, resources }
    };
    types.into_iter().map(of_type).collect()
}

fn dump(scope: &Scope, now: Instant) -> ScopeDump {
    let mut types: BTreeMap<String, ScopeTypeDump> = BTreeMap::new();
    fn of<'a>(types: &'a mut BTreeMap<String, ScopeTypeDump>, type_url: &TypeUrl) -> &'a mut ScopeTypeDump {
        let empty = || ScopeTypeDump { type_url: type_url.to_string(), ..ScopeTypeDump::default() };
        types.entry(type_url.to_string()).or_insert_with(empty)
    }
    let row = |stored: Stored<'_, Frame>| {
        let of_resource = |resource: &Resource<Frame>| (resource.version.clone(), resource.value.any().len());
        (
            stored.type_url.clone(),
            stored.name.clone(),
            stored.resource.map(of_resource),
            stored.changed_at,
            stored.stale,
        )
    };
    scope.visit_stored(row, |(type_url, name, resource, changed_at, stale)| {
        let of = of(&mut types, &type_url);
        let name = name.to_string();
        match resource {
            None => of.absent.push(name),
            Some((version, bytes)) => of.resources.push(ResourceDump {
                name,
                version: version.to_string(),
                bytes,
                last_changed_seconds_ago: changed_at.map_or(0, |at| now.saturating_duration_since(at).as_secs()),
                stale,
            }),
        }
    });
    for (type_url, interest) in scope.subscriptions() {
        let of = of(&mut types, &type_url);
        match interest {
            Interest::Wildcard => of.wildcard = true,
            Interest::Name(name) if name.is_glob() => of.globs.push(name.to_string()),
            Interest::Name(_) => {}
        }
    }
    let mut types: Vec<_> = types.into_values().collect();
    for of in &mut types {
        of.resources.sort_by(|a, b| a.name.cmp(&b.name));
        of.absent.sort();
    }
    ScopeDump { scope: scope.key.to_string(), stale: scope.stale_count(), types }
}

fn client(stream: &StreamEntry, now: Instant) -> ClientDump {
    let mut types: BTreeMap<String, ClientTypeDump> = BTreeMap::new();
    let mut busy = stream.outside.is_some();
    let mut look = |stream: &Stream| {
        busy = false;
        for session in stream.sessions() {
            let Tally { acks, nacks, last_nack, .. } = session.tally;
            types.insert(
                session.type_url.to_string(),
                ClientTypeDump {
                    type_url: session.type_url.to_string(),
                    wildcard: session.wildcard,
                    acked: *acks,
                    nacked: *nacks,
                    last_nack: last_nack.as_ref().map(|nack| NackDump {
                        message: nack.message.clone(),
                        seconds_ago: now.saturating_duration_since(nack.at).as_secs(),
                    }),
                    ..ClientTypeDump::default()
                },
            );
        }
    };
    if let Some(outside) = &stream.outside {
        outside.inspect(&mut look);
    }
    stream.view.visit(|type_url, part| {
        let Some(of) = types.get_mut(type_url.as_str()) else { return };
        of.scopes.push(part.scope.key.to_string());
        for interest in part.scope.interests(part.id) {
            match interest {
                Interest::Wildcard => {}
                Interest::Name(name) if name.is_glob() => of.globs.push(name.to_string()),
                Interest::Name(name) => of.names.push(name.to_string()),
            }
        }
    });
    for of in types.values_mut() {
        of.names.sort();
        of.globs.sort();
        of.scopes.sort();
        of.scopes.dedup();
    }
    ClientDump {
        peer: stream.outside.as_ref().map_or_else(String::new, |outside| outside.peer().to_owned()),
        node_id: stream.node().id,
        protocol: stream.protocol.as_str().to_owned(),
        busy,
        types: types.into_values().collect(),
    }
}
