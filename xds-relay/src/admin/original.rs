//! The pages of envoyproxy/xds-relay, for scripts that ask for them: those that make sense here, and words for the others.

use std::borrow::Cow;
use std::collections::HashMap;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::look::{Pages, failed};
use super::{answers, logging};
use crate::api::NameQuery;
use crate::hex::hex;
use crate::snapshot::{ClientDump, ClientTypeDump, ConfigDump, ResourceDump, ScopeDump, ScopeTypeDump};

const NOT_SAID: &str = "it is not said here whether the relay is ready\n";
const CLEARS: &str = "nothing is cleared, as no stream may end by it: what no client wants any more goes by `linger` and \
                      `limits.lingering_names`\n";
const ENDPOINT_TYPE: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Of how many names of a key the addresses are looked for.
const MAX_NAMES: usize = 16;
/// How many clients of a key are named, and how many names of each.
const MAX_REQUESTS: usize = 100;
const ENDPOINTS: &str = "endpoints are at /api/v1/resource?type=ClusterLoadAssignment&name=NAME\n";
const PROFILES: &str = "there are no profiles of Go: /metrics and /api/v1/status say how the relay is\n";

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        // Asked by any method, as it was: nothing changes by it.
        .route("/cache", any(|pages, query| found(pages, query, String::new())))
        .route("/cache/{*key}", any(|pages, query, Path(key): Path<String>| found(pages, query, key)))
        .route("/cache/keys", any(keys))
        .route("/cache/version/{*key}", any(version))
        .route("/cache/eds/{*key}", any(endpoints))
        .route("/cache/clear", any(|| async { refused(CLEARS) }))
        .route("/cache/clear/{*key}", any(|| async { refused(CLEARS) }))
        .route("/debug/pprof/", any(|| async { refused(PROFILES) }))
        .route("/debug/pprof/{profile}", any(|| async { refused(PROFILES) }))
        .route("/log_level", get(logging::tell).post(logging::tell))
        .route("/server_info", any(answers::status))
}

/// Those that change something.
pub(super) fn changes() -> Router<Pages> {
    Router::new().route("/log_level/{level}", post(logging::change_to)).route("/ready/{state}", post(set_ready))
}

/// Clients are sent elsewhere, or no more: those that are here are served as before.
async fn set_ready(State(pages): State<Pages>, Path(state): Path<String>) -> Response {
    let ready = match &*state {
        "true" => true,
        "false" => false,
        _ => return (StatusCode::BAD_REQUEST, "expected POST /ready/true or /ready/false\n").into_response(),
    };
    if !pages.relay.set_ready(ready) {
        return (StatusCode::NOT_FOUND, NOT_SAID).into_response();
    }
    (if ready { "ready\n" } else { "not ready\n" }).into_response()
}

fn refused(words: &'static str) -> Response {
    (StatusCode::NOT_IMPLEMENTED, words).into_response()
}

/// What is held of a key, of all that begin with a text before `*`, or of all.
async fn found(State(pages): State<Pages>, RawQuery(query): RawQuery, key: String) -> Response {
    let verbose = query.is_some_and(|query| query.split('&').any(|pair| pair == "verbose=true"));
    dumped(pages, move |dump| {
        let wanted = wanted(dump);
        let of_part = |part: Part<'_>| {
            let entry = |held| entry(&part, held, &requests(&part, held, &wanted), verbose);
            part.types.iter().map(entry).collect::<Vec<_>>()
        };
        let entries: Vec<Value> = parts(dump, &key).into_iter().flat_map(of_part).collect();
        // Nothing is said of what there is not: as it was.
        (key.is_empty() || !entries.is_empty()).then(|| json!({ "Cache": entries }))
    })
    .await
}

/// Scope and type → the clients that want something of it.
type Wanted<'a> = HashMap<(&'a str, &'a str), Vec<(&'a ClientDump, &'a ClientTypeDump)>>;

fn wanted(dump: &ConfigDump) -> Wanted<'_> {
    let mut wanted = Wanted::new();
    for client in &dump.clients {
        for of_type in &client.types {
            for scope in &of_type.scopes {
                wanted.entry((scope, &of_type.type_url)).or_default().push((client, of_type));
            }
        }
    }
    wanted
}

/// Those that want what is held under a key: of one name those that want this name.
fn requests<'a>(
    part: &Part<'_>,
    held: &ScopeTypeDump,
    wanted: &Wanted<'a>,
) -> Vec<(&'a ClientDump, &'a ClientTypeDump)> {
    let all = wanted.get(&(part.scope, &*held.type_url)).into_iter().flatten().copied();
    all.filter(|(_, of_type)| {
        part.name.is_none_or(|name| of_type.wildcard || of_type.names.iter().any(|of| of == name))
    })
    .collect()
}

/// What is held under a key.
struct Part<'a> {
    key: Cow<'a, str>,
    /// The one that is meant, if it is in the key.
    name: Option<&'a str>,
    /// As it is called here.
    scope: &'a str,
    types: Cow<'a, [ScopeTypeDump]>,
}

/// What is held under these keys: groups as they are called here, or as the original calls them where that is one; and in those
/// that take a name as it is, what has that name.
fn parts<'a>(dump: &'a ConfigDump, key: &'a str) -> Vec<Part<'a>> {
    let whole = |scope: &'a ScopeDump| Part {
        key: (&*scope.scope).into(),
        name: None,
        scope: &scope.scope,
        types: (&*scope.types).into(),
    };
    let all = |is_meant: &dyn Fn(&str) -> bool| -> Vec<_> {
        dump.scopes.iter().filter(|scope| is_meant(&scope.scope)).map(whole).collect()
    };
    if key.is_empty() {
        return all(&|_| true);
    }
    if let Some(prefix) = key.strip_suffix('*') {
        return all(&|scope| scope.starts_with(prefix));
    }
    let called = all(&|scope| scope == key);
    if !called.is_empty() {
        return called;
    }
    let alike = all(&|scope| joined(scope) == key);
    if !alike.is_empty() {
        return alike;
    }
    dump.scopes.iter().filter_map(|scope| named(scope, key)).collect()
}

/// The text of a group's key, without what tells it from others beside it.
fn joined(scope: &str) -> &str {
    scope.split_once(" (\"").filter(|_| scope.ends_with(')')).map_or(scope, |(joined, _)| joined)
}

/// What a group that takes names as they are has of the one name that is in the key.
fn named<'a>(scope: &'a ScopeDump, key: &'a str) -> Option<Part<'a>> {
    let (before, after) = joined(&scope.scope).split_once("(name 0)")?;
    let name = key.strip_prefix(before)?.strip_suffix(after)?;
    let of_name = |held: &ScopeTypeDump| {
        let resources: Vec<_> = held.resources.iter().filter(|resource| resource.name == name).cloned().collect();
        (!resources.is_empty()).then(|| ScopeTypeDump {
            resources,
            type_url: held.type_url.clone(),
            ..Default::default()
        })
    };
    let types: Vec<_> = scope.types.iter().filter_map(of_name).collect();
    (!types.is_empty()).then(|| Part { key: key.into(), name: Some(name), scope: &scope.scope, types: types.into() })
}

async fn keys(State(pages): State<Pages>) -> Response {
    let names = |dump: &ConfigDump| dump.scopes.iter().map(|scope| scope.scope.clone()).collect::<Vec<_>>();
    dumped(pages, move |dump| Some(json!({ "Names": names(dump) }))).await
}

async fn version(State(pages): State<Pages>, Path(key): Path<String>) -> Response {
    let looked = pages.look(move |relay| {
        let dump = relay.config_dump();
        let part = only(parts(&dump, &key))?;
        let resources = part.types.iter().flat_map(|held| &held.resources);
        Some(json!({ "Version": version_of(resources) }))
    });
    match looked.await {
        Ok(Some(version)) => pretty(&version),
        Ok(None) => not_found(),
        Err(response) => response,
    }
}

/// Of several that are called alike none is meant.
fn only(parts: Vec<Part<'_>>) -> Option<Part<'_>> {
    <[Part<'_>; 1]>::try_from(parts).ok().map(|[only]| only)
}

fn not_found() -> Response {
    let words = json!({ "Message": "no resource for key found in cache" });
    (StatusCode::NOT_FOUND, pretty(&words)).into_response()
}

/// The addresses of the endpoints that a key has: of a few names, as each is looked for among all that is held.
async fn endpoints(State(pages): State<Pages>, Path(key): Path<String>) -> Response {
    let looked = pages.look(move |relay| {
        let dump = relay.config_dump();
        let part = only(parts(&dump, &key))?;
        let held: Vec<_> = part.types.iter().filter(|held| held.type_url == ENDPOINT_TYPE).collect();
        let resources = || held.iter().flat_map(|held| &held.resources);
        let mut addresses = Vec::new();
        for ResourceDump { name, .. } in resources().take(MAX_NAMES + 1) {
            let query = NameQuery { type_url: ENDPOINT_TYPE.to_owned(), name: name.clone() };
            let mut named = relay.resource(&query).held.into_iter();
            let content = named.find(|held| held.row.scope == part.scope).and_then(|held| held.content);
            let Some(content) = content.filter(|_| resources().count() <= MAX_NAMES) else { return Some(None) };
            add_addresses(&content, &mut addresses);
        }
        let version = version_of(resources());
        Some(Some(json!({ "Key": part.key, "Version": version, "Endpoints": addresses })))
    });
    match looked.await {
        Ok(Some(Some(found))) => pretty(&found),
        Ok(Some(None)) => refused(ENDPOINTS),
        Ok(None) => not_found(),
        Err(response) => response,
    }
}

/// Of whatever is within a content that was decoded, and so is no deeper than protobuf allows.
fn add_addresses(content: &Value, addresses: &mut Vec<Value>) {
    match content {
        Value::Array(items) => items.iter().for_each(|item| add_addresses(item, addresses)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.get("address") {
            Some(address @ Value::String(_)) if name == "socket_address" || name == "socketAddress" => {
                addresses.push(address.clone());
            }
            _ => add_addresses(value, addresses),
        }),
        _ => {}
    }
}

async fn dumped(pages: Pages, show: impl FnOnce(&ConfigDump) -> Option<Value> + Send + 'static) -> Response {
    match pages.look(move |relay| show(&relay.config_dump())).await {
        Ok(Some(value)) => pretty(&value),
        Ok(None) => ().into_response(),
        Err(response) => response,
    }
}

fn pretty(value: &Value) -> Response {
    match serde_json::to_string_pretty(value) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], format!("{json}\n")).into_response(),
        Err(error) => failed(&error.to_string()),
    }
}

/// One type of one key. There are no contents: they may be secret.
fn entry(part: &Part<'_>, held: &ScopeTypeDump, requests: &[(&ClientDump, &ClientTypeDump)], verbose: bool) -> Value {
    let kind = match held.type_url.rsplit('.').next() {
        Some("ClusterLoadAssignment") => "Endpoints",
        Some("Cluster") => "Clusters",
        Some("RouteConfiguration") => "Routes",
        Some("Listener") => "Listeners",
        Some("Secret") => "Secrets",
        Some("Runtime") => "Runtimes",
        _ => "Unmarshalled",
    };
    let resources: Vec<Value> =
        held.resources.iter().map(|resource| json!({ "Name": resource.name, "Version": resource.version })).collect();
    let resources = Map::from_iter([(kind.to_owned(), Value::from(resources))]);
    let response =
        json!({ "VersionInfo": version_of(&held.resources), "Resources": resources, "TypeURL": held.type_url });
    let mut entry = Map::new();
    entry.insert("Key".to_owned(), json!(part.key));
    entry.insert("Resp".to_owned(), response);
    entry.insert("NumRequests".to_owned(), json!(requests.len()));
    if verbose {
        let named = requests.iter().take(MAX_REQUESTS).map(|(client, of_type)| request(client, of_type));
        entry.insert("Requests".to_owned(), named.collect());
    }
    entry.into()
}

/// What a client asks for of a type, of this key or of others.
fn request(client: &ClientDump, of_type: &ClientTypeDump) -> Value {
    let wildcard = of_type.wildcard.then_some("*");
    let names: Vec<&str> = wildcard
        .into_iter()
        .chain(of_type.names.iter().chain(&of_type.globs).map(|name| &**name))
        .take(MAX_REQUESTS)
        .collect();
    json!({ "node": { "id": client.node_id }, "resource_names": names, "type_url": of_type.type_url })
}

/// The version that all have, or what tells these names at these versions from others, on every relay alike.
fn version_of<'a>(resources: impl IntoIterator<Item = &'a ResourceDump>) -> String {
    let mut resources = resources.into_iter().peekable();
    let Some(first) = resources.peek().map(|first| first.version.clone()) else { return String::new() };
    let (mut one, mut digest) = (true, Sha256::new());
    for ResourceDump { name, version, .. } in resources {
        one &= *version == first;
        for text in [name, version] {
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
    }
    if one { first } else { hex(digest.finalize().get(..16).unwrap_or_default()) }
}
