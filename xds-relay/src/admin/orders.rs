//! Where orders are taken: apart from the pages, which everybody may look at who reaches them.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::Listener;
use axum::{Json, Router, middleware};
use tokio::task::spawn_blocking;

use super::answers::why_not;
use super::guarded::from_a_browser;
use super::look::{Pages, failed};
use super::peer::{Peer, Shown};
use super::tokens::Tokens;
use super::{hosts, html, idle, tokens};
use crate::admin::inspect::Inspect;
use crate::admin_access::AdminAccess;
use crate::api::{OrderDone, ReleaseOrder};
use crate::metrics::AUDIT;
use crate::relay_core::RolloutError;

/// More than any order has.
const MOST: usize = 16 << 10;
/// Of a name.
const LONGEST_NAME: usize = 64;
const LONGEST_REASON: usize = 1 << 10;

/// Takes orders until `shutdown` resolves and those under way are done.
///
/// # Errors
/// The listener fails.
pub(crate) async fn serve<L>(
    access: Arc<AdminAccess>,
    listener: L,
    state: Arc<dyn Inspect>,
    longest_idle: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener<Addr: fmt::Debug, Io: Peer>,
{
    let tokens = Tokens { access: access.clone(), relay: state.clone(), field: "orders.token" };
    let tokens = middleware::from_fn_with_state(tokens, tokens::check);
    let listener = idle::Idle::new(listener, longest_idle, state.clone());
    let router = Router::new()
        .route("/api/v1/orders", post(order))
        .route_layer(DefaultBodyLimit::max(MOST))
        .route_layer(tokens)
        .route_layer(middleware::from_fn_with_state(access, hosts::check))
        .fallback(|| async { (StatusCode::NOT_FOUND, "orders are taken here: POST /api/v1/orders\n") })
        .layer(middleware::map_response(html::guard))
        .with_state(Pages::new(state))
        .into_make_service_with_connect_info::<Shown>();
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

async fn order(
    State(pages): State<Pages>,
    ConnectInfo(shown): ConnectInfo<Shown>,
    headers: HeaderMap,
    order: Result<Json<ReleaseOrder>, axum::extract::rejection::JsonRejection>,
) -> Response {
    if let Some(refused) = from_a_browser(&headers) {
        return refused;
    }
    let order = match order {
        Ok(Json(order)) => order,
        Err(error) => return (error.status(), format!("{}\n", error.body_text())).into_response(),
    };
    if let Err(problem) = check(&order) {
        return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response();
    }
    let mark = match mark(&headers) {
        Ok(mark) => mark,
        Err(problem) => return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    };
    let by = shown.words().map_or_else(|| order.by.clone(), |shown| format!("{} ({shown})", order.by));
    let (what, why) = (order.order, order.why.clone());
    let relay = pages.relay.clone();
    let who = by.clone();
    // A store takes its time; an order that was sent is done, whether anybody waits for the answer or not.
    let done = spawn_blocking(move || relay.order_releases(&order, &who, mark.as_deref())).await;
    let done = match done {
        Ok(done) => done,
        Err(error) => return failed(&error.to_string()),
    };
    match &done {
        Ok(done) => {
            let OrderDone { scope, done, is_kept, .. } = done;
            tracing::info!(target: AUDIT, scope, by, order = ?what, why, is_kept, "{done}");
        }
        Err(error) => tracing::warn!(target: AUDIT, by, order = ?what, why, "an order is not done: {error}"),
    }
    answer(done)
}

fn check(order: &ReleaseOrder) -> Result<(), String> {
    for (field, text, longest) in [("by", &order.by, LONGEST_NAME), ("why", &order.why, LONGEST_REASON)] {
        if text.trim().is_empty() {
            return Err(format!("{field}: empty; expected who wants it, and why: that is kept"));
        }
        if text.len() > longest || text.chars().any(char::is_control) {
            return Err(format!("{field}: expected one line of up to {longest} bytes"));
        }
    }
    Ok(())
}

/// As which the releases were seen that are ordered about: none if it does not matter.
fn mark(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut said = headers.get_all(header::IF_MATCH).into_iter();
    let (first, None) = (said.next(), said.next()) else { return Err("if-match: expected one mark".to_owned()) };
    let Some(text) = first else { return Ok(None) };
    let mark = text.to_str().ok().and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    mark.map(|mark| Some(mark.to_owned())).ok_or_else(|| "if-match: expected \"MARK\", as releases tell it".to_owned())
}

fn answer(done: Result<OrderDone, RolloutError>) -> Response {
    let error = match done {
        Ok(done) => {
            let tag = HeaderValue::try_from(format!("\"{}\"", done.mark)).ok();
            let tag = tag.map(|tag| [(header::ETAG, tag)]);
            return (tag, Json(done)).into_response();
        }
        Err(error) => error,
    };
    (why_not(&error), format!("{error}\n")).into_response()
}
