//! What is answered as JSON.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::look::Pages;
use crate::admin::inspect::Inspect;
use crate::api::{ClientQuery, ExplainQuery, NameQuery, ResourceQuery};

pub(super) async fn status(State(pages): State<Pages>) -> Response {
    answer(pages, |relay| Some(relay.status())).await
}

pub(super) async fn origins(State(pages): State<Pages>) -> Response {
    answer(pages, |relay| Some(relay.origins())).await
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

pub(super) async fn releases(State(pages): State<Pages>) -> Response {
    answer(pages, |relay| Some(relay.releases())).await
}

pub(super) async fn resources(State(pages): State<Pages>, Query(query): Query<ResourceQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resources(&query))).await
}

pub(super) async fn resource(State(pages): State<Pages>, Query(query): Query<NameQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resource(&query))).await
}

async fn answer<T: Serialize + Send + 'static>(
    pages: Pages,
    found: impl FnOnce(&dyn Inspect) -> Option<T> + Send + 'static,
) -> Response {
    match pages.look(found).await {
        Ok(Some(found)) => Json(found).into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, "it is not there any more\n").into_response(),
        Err(response) => response,
    }
}
