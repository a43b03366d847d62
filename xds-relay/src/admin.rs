//! The admin pages: health, readiness, what the relay holds and for whom, for people and as JSON, metrics. HTTP/1, without
//! what is secret, and read-only but for who may change what is logged, or have an origin asked anew.
//!
//! The pages look at a relay through [`Inspect`].

use std::{fmt, future::Future, io, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::Listener,
};
use tokio::task::spawn_blocking;

use self::idle::Idle;
use self::look::{Pages, failed};
use self::peer::{Peer, Shown};
pub(crate) use self::secured::Secured;
use self::tokens::Tokens;
use crate::admin_access::{AdminAccess, LetIn};
use crate::metrics::Metrics;

mod answers;
mod drift;
mod filter;
mod guarded;
mod hosts;
mod html;
mod idle;
mod inspect;
mod logging;
mod look;
mod order_done;
pub(crate) mod orders;
mod original;
mod peer;
mod preface;
mod secured;
mod tokens;

pub use self::filter::DumpFilter;
pub use self::inspect::Inspect;
pub use crate::snapshot::{
    ClientDump, ClientTypeDump, ConfigDump, ContentDump, ContentResourceDump, NackDump, OriginDump, Readiness,
    ResourceDump, ScopeDump, ScopeTypeDump, ServerDump, UpstreamDump,
};

/// Serves the pages until `shutdown` resolves and the requests under way are answered. A connection that nothing is
/// answered on for `longest_idle` is closed. They answer to addresses and to the names in `hosts`; whether the relay is
/// there and ready, they tell to everybody.
///
/// # Errors
/// The listener fails.
pub async fn serve<L>(
    listener: L,
    state: Arc<dyn Inspect>,
    longest_idle: Duration,
    hosts: Vec<String>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener<Addr: fmt::Debug>,
{
    let access = AdminAccess::new(LetIn::to_all(None), hosts);
    let listener = Idle::new(listener, longest_idle, state.clone(), |_, from| Shown::from(&format!("{from:?}")));
    serve_idle(access, listener, state, shutdown).await
}

/// The same to who is let in.
pub(crate) async fn serve_to<L>(
    access: Arc<AdminAccess>,
    listener: L,
    state: Arc<dyn Inspect>,
    longest_idle: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener<Addr: fmt::Debug, Io: Peer>,
{
    let listener = Idle::new(listener, longest_idle, state.clone(), |io, _| io.peer());
    serve_idle(access, listener, state, shutdown).await
}

async fn serve_idle<L>(
    access: Arc<AdminAccess>,
    listener: Idle<L>,
    state: Arc<dyn Inspect>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener<Addr: fmt::Debug>,
{
    let tokens = Tokens { access, relay: state.clone(), field: "admin.token" };
    let ready = {
        let access = tokens.access.clone();
        move |State(pages): State<Pages>, headers: HeaderMap| async move { ready(&pages, access.lets_in(&headers)) }
    };
    let router = to_who_is_let_in(pages(&tokens), tokens)
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready.clone()))
        .route("/ready", get(ready))
        .fallback(html::no_such_page)
        .layer(middleware::map_response(html::guard))
        .with_state(Pages::new(state))
        .into_make_service_with_connect_info::<Shown>();
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

/// These pages for who carries a token, where one is wanted, and comes by a name that is known.
fn to_who_is_let_in(pages: Router<Pages>, tokens: Tokens) -> Router<Pages> {
    let hosts = middleware::from_fn_with_state(tokens.access.clone(), hosts::check);
    pages.route_layer(middleware::from_fn_with_state(tokens, tokens::check)).route_layer(hosts)
}

/// What is there for who is let in: to look at, and to change for who may.
fn pages(tokens: &Tokens) -> Router<Pages> {
    let changes = middleware::from_fn_with_state(tokens.clone(), guarded::check);
    shown().merge(changed().route_layer(changes))
}

/// What is changed, or costs an origin something.
fn changed() -> Router<Pages> {
    Router::new()
        .merge(original::changes())
        .route("/logging", post(logging::change))
        .route("/api/v1/drift", post(drift::check))
}

/// What is shown.
fn shown() -> Router<Pages> {
    Router::new()
        .merge(html::routes())
        .merge(original::routes())
        .route("/config_dump", get(config_dump))
        .route("/logging", get(logging::tell))
        .route("/metrics", get(metrics))
        .route("/api/v1/status", get(answers::status))
        .route("/api/v1/origins", get(answers::origins))
        .route("/api/v1/clients", get(answers::clients))
        .route("/api/v1/clients/{id}", get(answers::client))
        .route("/api/v1/releases", get(answers::releases))
        .route("/api/v1/releases/diff", get(answers::release_diff))
        .route("/api/v1/audit", get(answers::audit))
        .route("/api/v1/resources", get(answers::resources))
        .route("/api/v1/resource", get(answers::resource))
}

/// Everybody is told, and what is in the origins only who is let in.
fn ready(pages: &Pages, is_let_in: bool) -> Response {
    let readiness = if is_let_in { pages.relay.ready() } else { pages.relay.ready_in_brief() };
    match readiness {
        Readiness::Ready => "ready\n".into_response(),
        Readiness::NotReady(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response()
        }
    }
}

async fn config_dump(State(pages): State<Pages>, Query(filter): Query<DumpFilter>) -> Response {
    let dumped = pages.look(move |relay| {
        let mut dump = relay.config_dump();
        dump.retain(&filter);
        serde_json::to_vec_pretty(&dump)
    });
    match dumped.await {
        Ok(Ok(mut json)) => {
            json.push(b'\n');
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Ok(Err(error)) => failed(&error.to_string()),
        Err(response) => response,
    }
}

async fn metrics(State(pages): State<Pages>) -> Response {
    match spawn_blocking(move || pages.relay.metrics().render(&pages.relay.gauges())).await {
        Ok(text) => ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => failed(&error.to_string()),
    }
}
