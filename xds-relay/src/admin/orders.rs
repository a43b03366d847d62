//! Where orders are taken: apart from the pages, which everybody may look at who reaches them.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::Listener;
use axum::{Json, middleware};

use super::answers::why_not;
use super::guarded::from_a_browser;
use super::look::Pages;
use super::order_done::{check, done};
use super::peer::{Peer, Shown};
use super::tokens::Tokens;
use super::{html, idle};
use crate::admin::inspect::Inspect;
use crate::admin_access::AdminAccess;
use crate::api::{OrderDone, ReleaseOrder};
use crate::relay_core::RolloutError;

/// More than any order has.
const MOST: usize = 16 << 10;

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
    let tokens = Tokens { access, relay: state.clone(), field: "orders.token" };
    let listener = idle::Idle::new(listener, longest_idle, state.clone(), |io, _| io.peer());
    // Who may change what is served may see it, too.
    let pages = super::pages(&tokens)
        .route("/api/v1/orders", post(order))
        .route("/releases", post(html::order))
        .route_layer(DefaultBodyLimit::max(MOST));
    let router = super::to_who_is_let_in(pages, tokens)
        .fallback(html::no_such_page)
        .layer(middleware::map_response(html::guard))
        .with_state(Pages::taking_orders(state))
        .into_make_service_with_connect_info::<Shown>();
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

async fn order(
    State(pages): State<Pages>,
    ConnectInfo(shown): ConnectInfo<Shown>,
    headers: HeaderMap,
    order: Result<Json<ReleaseOrder>, JsonRejection>,
) -> Response {
    if let Some(refused) = from_a_browser(&headers) {
        return refused;
    }
    let order = match order {
        Ok(Json(order)) => order,
        Err(error) => return (error.status(), format!("{}\n", unread(&error))).into_response(),
    };
    if let Err(problem) = check(&order) {
        return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response();
    }
    let mark = match mark(&headers) {
        Ok(mark) => mark,
        Err(problem) => return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    };
    match done(pages, &shown, order, mark).await {
        Ok(done) => answer(done),
        Err(response) => response,
    }
}

/// Why what was sent is no order.
fn unread(error: &JsonRejection) -> String {
    match error {
        JsonRejection::MissingJsonContentType(_) => {
            "an order is JSON and says so: expected `Content-Type: application/json` and, say, \
             `{\"order\": \"freeze\", \"by\": \"ann\", \"why\": \"a quiet weekend\"}`"
                .to_owned()
        }
        error => error.body_text(),
    }
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
