//! What admin pages and metrics see of the relay.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::server::{Stream, Tally};
use xds_transport::wire::{ListValue, Struct, Value, value};
use xdstp_cache::{Interest, Resource, Stored, TypeUrl};

use crate::admin::{
    ClientDump, ClientTypeDump, ConfigDump, NackDump, OriginDump, Readiness, ResourceDump, ScopeDump, ScopeTypeDump,
    UpstreamDump,
};
use crate::metrics::Gauges;
use crate::relay_core::scope::Scope;
use crate::relay_core::streams::StreamEntry;
use crate::relay_core::{RelayCore, Supply, counted_as, lock};

impl RelayCore {
    /// Whether clients should come: every origin of files has been read. An origin that cannot be reached
    /// does not count: there may be others, and what was received before is served without it.
    pub fn readiness(&self) -> Readiness {
        for origin in &self.origins {
            if let Supply::Files(files) = &origin.from
                && lock(files).is_none()
            {
                return Readiness::NotReady(format!("the files of origin {:?} were not read yet", origin.info.name));
            }
        }
        Readiness::Ready
    }

    /// Everything the relay holds, of whom, and for whom.
    pub fn config_dump(&self, now: Instant) -> ConfigDump {
        let scopes = self.all_scopes();
        let mut origins: Vec<OriginDump> = Vec::new();
        for (index, origin) in self.origins.iter().enumerate() {
            let mut streams: BTreeMap<String, UpstreamDump> = BTreeMap::new();
            for scope in scopes.iter().filter(|scope| scope.origin == index) {
                let Some(upstream) = scope.upstream() else { continue };
                let group = || upstream.label.clone();
                let stream = streams.entry(group()).or_insert_with(|| {
                    upstream.inspect(|state| UpstreamDump {
                        group: group(),
                        connected: state.answered,
                        relays: state.relays.as_ref().map(|seen| seen.path().to_string()),
                        last_error: state.last_error.clone(),
                        hint: state.hint,
                        subscriptions: 0,
                    })
                });
                stream.subscriptions += scope.subscription_count();
            }
            let protocol = match origin.from {
                Supply::Server { .. } => origin.info.protocol.as_str().to_owned(),
                Supply::Files(_) => "files".to_owned(),
            };
            origins.push(OriginDump {
                name: origin.info.name.clone(),
                protocol,
                streams: streams.into_values().collect(),
            });
        }
        // A stream that ends has its own lock when it takes this one.
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        let clients = streams.iter().map(|stream| client(stream, now)).collect();
        ConfigDump {
            instance: self.instance(),
            origins,
            scopes: scopes.iter().filter(|scope| !scope.is_dormant()).map(|scope| dump(scope, now)).collect(),
            clients,
        }
    }

    /// Tells the metrics what happened since they were told last.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges { ready: self.readiness() == Readiness::Ready, ..Gauges::default() };
        let mut resources: HashMap<TypeUrl, u64> = HashMap::new();
        for scope in self.all_scopes() {
            gauges.subscribers += scope.subscriber_count() as u64;
            let type_of = |stored: Stored<'_, Frame>| stored.resource.is_some().then(|| stored.type_url.clone());
            scope.visit_stored(type_of, |type_url| {
                if let Some(type_url) = type_url {
                    *resources.entry(type_url).or_default() += 1;
                }
            });
        }
        gauges.resources = resources.into_iter().map(|(type_url, count)| (type_url.to_string(), count)).collect();
        gauges.bodies = self.interner.bodies() as u64;
        self.tell_metrics();
        gauges
    }

    /// The shared scopes, and those of one stream alone (rule 121).
    fn all_scopes(&self) -> Vec<Arc<Scope>> {
        let mut scopes: Vec<_> = lock(&self.scopes).values().cloned().collect();
        // A stream that ends has its own lock when it takes this one.
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        for stream in streams {
            let first = scopes.len();
            for (_, (_, part)) in lock(&stream.view.parts).iter().filter(|(_, (_, part))| !part.scope.shared) {
                // A stream has one private scope an origin, and a part of it for each type.
                if !scopes.iter().skip(first).any(|scope| Arc::ptr_eq(scope, &part.scope)) {
                    scopes.push(part.scope.clone());
                }
            }
        }
        scopes
    }

    fn tell_metrics(&self) {
        // Before the open streams are looked at: a session that ends meanwhile is missed this time, and
        // told the next. The other way round it would be told twice.
        let mut totals: HashMap<TypeUrl, Tally> =
            lock(&self.counted).iter().map(|(type_url, of)| (type_url.clone(), of.closed.clone())).collect();
        let mut sessions: Vec<(TypeUrl, Tally)> = Vec::new();
        for stream in self.streams() {
            stream.inspect(&mut |stream| {
                sessions.extend(stream.sessions().map(|session| (session.type_url.clone(), session.tally.clone())));
            });
        }
        let mut counted = lock(&self.counted);
        for (type_url, tally) in sessions {
            let counted_as = counted_as(&counted, &type_url);
            counted.entry(counted_as.clone()).or_default();
            totals.entry(counted_as).or_default().add(&tally);
        }
        for (type_url, total) in totals {
            let told = &mut counted.entry(type_url.clone()).or_default().told;
            let metrics = self.metrics.downstream(type_url.as_str());
            let news = |total: u64, told: &mut u64| {
                let news = total.saturating_sub(*told);
                *told += news;
                news
            };
            metrics.requests.add(news(total.requests, &mut told.requests));
            metrics.responses.add(news(total.responses, &mut told.responses));
            metrics.resources.add(news(total.resources, &mut told.resources));
            metrics.acks.add(news(total.acks, &mut told.acks));
            metrics.nacks.add(news(total.nacks, &mut told.nacks));
            metrics.bytes.add(news(total.bytes, &mut told.bytes));
        }
    }
}

fn dump(scope: &Scope, now: Instant) -> ScopeDump {
    let mut types: BTreeMap<String, ScopeTypeDump> = BTreeMap::new();
    fn of<'a>(types: &'a mut BTreeMap<String, ScopeTypeDump>, type_url: &TypeUrl) -> &'a mut ScopeTypeDump {
        let empty = || ScopeTypeDump { type_url: type_url.to_string(), ..ScopeTypeDump::default() };
        types.entry(type_url.to_string()).or_insert_with(empty)
    }
    let row = |stored: Stored<'_, Frame>| {
        let of_resource = |resource: &Resource<Frame>| (resource.version.clone(), resource.value.any().len());
        (stored.type_url.clone(), stored.name.clone(), stored.resource.map(of_resource), stored.changed_at)
    };
    scope.visit_stored(row, |(type_url, name, resource, changed_at)| {
        let of = of(&mut types, &type_url);
        let name = name.to_string();
        match resource {
            None => of.absent.push(name),
            Some((version, bytes)) => of.resources.push(ResourceDump {
                name,
                version: version.to_string(),
                bytes,
                last_changed_seconds_ago: changed_at.map_or(0, |at| now.saturating_duration_since(at).as_secs()),
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
    ScopeDump { scope: scope.key.to_string(), types }
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
    // Parts leave this list before they are closed: those in it are open.
    for (_, (type_url, part)) in lock(&stream.view.parts).iter() {
        let Some(of) = types.get_mut(type_url.as_str()) else { continue };
        for interest in part.scope.interests(part.id) {
            match interest {
                Interest::Wildcard => {}
                Interest::Name(name) if name.is_glob() => of.globs.push(name.to_string()),
                Interest::Name(name) => of.names.push(name.to_string()),
            }
        }
    }
    for of in types.values_mut() {
        of.names.sort();
        of.globs.sort();
    }
    ClientDump {
        peer: stream.outside.as_ref().map_or_else(String::new, |outside| outside.peer().to_owned()),
        node_id: stream.view.node_id.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        protocol: stream.protocol.as_str().to_owned(),
        busy,
        types: types.into_values().collect(),
    }
}

/// JSON as protobuf has it.
pub(crate) fn to_struct(object: &serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct { fields: object.iter().map(|(key, value)| (key.clone(), to_value(value))).collect() }
}

/// Bounded by the configuration file's own depth, which its parser bounds.
fn to_value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => value::Kind::NullValue(0),
        Json::Bool(flag) => value::Kind::BoolValue(*flag),
        Json::Number(number) => value::Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => value::Kind::StringValue(text.clone()),
        Json::Array(items) => value::Kind::ListValue(ListValue { values: items.iter().map(to_value).collect() }),
        Json::Object(object) => value::Kind::StructValue(to_struct(object)),
    };
    Value { kind: Some(kind) }
}
