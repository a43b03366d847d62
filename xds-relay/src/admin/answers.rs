//! What is answered as JSON, one at a time: looking takes time, and memory.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::{Pages, failed};
use crate::admin::inspect::Inspect;
use crate::api::{ClientQuery, ExplainQuery, NameQuery, ResourceQuery};

pub(super) async fn status(State(pages): State<Pages>) -> Response {
    answer(pages, |relay| Some(relay.status())).await
}

pub(super) async fn clients(State(pages): State<Pages>, Query(query): Query<ClientQuery>) -> Response {
    answer(pages, move |relay| Some(relay.clients(&query))).await
}

pub(super) async fn client(
    State(pages): State<Pages>,
    Path(id): Path<u64>,
    Query(query): Query<ExplainQuery>,
) -> Response {
    answer(pages, move |relay| relay.client(id, &query)).await
}

pub(super) async fn resources(State(pages): State<Pages>, Query(query): Query<ResourceQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resources(&query))).await
}

pub(super) async fn resource(State(pages): State<Pages>, Query(query): Query<NameQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resource(&query))).await
}

async fn answer<T: Serialize + Send + 'static>(
    pages: Pages,
    look: impl FnOnce(&dyn Inspect) -> Option<T> + Send + 'static,
) -> Response {
    // The permit goes along, so that a client that hangs up does not let the next look start beside this one.
    let Ok(permit) = pages.dumps.acquire_owned().await else { return failed("shutting down") };
    let looked = spawn_blocking(move || {
        let found = look(&*pages.relay);
        drop(permit);
        found
    });
    match looked.await {
        Ok(Some(found)) => Json(found).into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, "it is not there any more\n").into_response(),
        Err(error) => failed(&error.to_string()),
    }
}
