//! The pages of envoyproxy/xds-relay, for scripts that ask for them: those that make sense here, and words for the others.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::look::{Pages, failed};
use super::{answers, logging};
use crate::hex::hex;
use crate::snapshot::{ConfigDump, ResourceDump, ScopeDump, ScopeTypeDump};

const NOT_SAID: &str = "it is not said here whether the relay is ready\n";
const CLEARS: &str = "nothing is cleared, as no stream may end by it: what no client wants any more goes by `linger` and \
                      `limits.lingering_names`\n";
const ENDPOINTS: &str = "endpoints are at /api/v1/resource?type=ClusterLoadAssignment&name=NAME\n";
const PROFILES: &str = "there are no profiles of Go: /metrics and /api/v1/status say how the relay is\n";

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/cache", get(|pages| found(pages, String::new())))
        .route("/cache/{key}", get(|pages, Path(key): Path<String>| found(pages, key)))
        .route("/cache/keys", get(keys))
        .route("/cache/version/{key}", get(version))
        .route("/cache/eds/{key}", any(|| async { refused(ENDPOINTS) }))
        .route("/cache/clear", any(|| async { refused(CLEARS) }))
        .route("/cache/clear/{key}", any(|| async { refused(CLEARS) }))
        .route("/debug/pprof/", any(|| async { refused(PROFILES) }))
        .route("/debug/pprof/{profile}", any(|| async { refused(PROFILES) }))
        .route("/log_level", get(logging::tell).post(logging::tell))
        .route("/server_info", get(answers::status))
}

/// Those that change something.
pub(super) fn changes() -> Router<Pages> {
    Router::new().route("/log_level/{level}", post(logging::change_to)).route("/ready/{state}", post(set_ready))
}

/// Clients are sent elsewhere, or no more: those that are here are served as before.
async fn set_ready(State(pages): State<Pages>, Path(ready): Path<bool>) -> Response {
    if !pages.relay.set_ready(ready) {
        return (StatusCode::NOT_FOUND, NOT_SAID).into_response();
    }
    (if ready { "ready\n" } else { "not ready\n" }).into_response()
}

fn refused(words: &'static str) -> Response {
    (StatusCode::NOT_IMPLEMENTED, words).into_response()
}

/// What is held of a key, of all that begin with a text before `*`, or of all.
async fn found(State(pages): State<Pages>, key: String) -> Response {
    dumped(pages, move |dump| {
        let wanted = |scope: &ScopeDump| match key.strip_suffix('*') {
            Some(prefix) => scope.scope.starts_with(prefix),
            None => key.is_empty() || scope.scope == key,
        };
        let of_scope = |scope: &ScopeDump| scope.types.iter().map(|held| entry(&scope.scope, held)).collect::<Vec<_>>();
        let entries: Vec<Value> = dump.scopes.iter().filter(|scope| wanted(scope)).flat_map(of_scope).collect();
        // Nothing is said of what there is not: as it was.
        (key.is_empty() || !entries.is_empty()).then(|| json!({ "Cache": entries }))
    })
    .await
}

async fn keys(State(pages): State<Pages>) -> Response {
    let names = |dump: &ConfigDump| dump.scopes.iter().map(|scope| scope.scope.clone()).collect::<Vec<_>>();
    dumped(pages, move |dump| Some(json!({ "Names": names(dump) }))).await
}

async fn version(State(pages): State<Pages>, Path(key): Path<String>) -> Response {
    let looked = pages.look(move |relay| {
        let dump = relay.config_dump();
        let scope = dump.scopes.iter().find(|scope| scope.scope == key)?;
        let resources = scope.types.iter().flat_map(|held| &held.resources);
        Some(json!({ "Version": version_of(resources) }))
    });
    match looked.await {
        Ok(Some(version)) => pretty(&version),
        Ok(None) => {
            let words = json!({ "Message": "no resource for key found in cache" });
            (StatusCode::NOT_FOUND, pretty(&words)).into_response()
        }
        Err(response) => response,
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
fn entry(key: &str, held: &ScopeTypeDump) -> Value {
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
    json!({ "Key": key, "Resp": response })
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
