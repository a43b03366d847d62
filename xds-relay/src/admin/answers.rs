//! What is answered as JSON.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::look::Pages;
use crate::admin::inspect::Inspect;
use crate::api::{AuditQuery, ClientQuery, DiffQuery, ExplainQuery, NameQuery, ResourceQuery};
use crate::relay_core::RolloutError;
use crate::releases::{ControlError, StoredError};

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

pub(super) async fn release_diff(State(pages): State<Pages>, Query(query): Query<DiffQuery>) -> Response {
    found(pages.of_past().look(move |relay| relay.release_diff(&query)).await)
}

pub(super) async fn audit(State(pages): State<Pages>, Query(query): Query<AuditQuery>) -> Response {
    found(pages.of_past().look(move |relay| relay.release_audit(&query)).await)
}

pub(super) async fn resources(State(pages): State<Pages>, Query(query): Query<ResourceQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resources(&query))).await
}

pub(super) async fn resource(State(pages): State<Pages>, Query(query): Query<NameQuery>) -> Response {
    answer(pages, move |relay| Some(relay.resource(&query))).await
}

/// What is asked of releases is there, or it is said why it is not.
fn found(found: Result<Result<impl Serialize, RolloutError>, Response>) -> Response {
    match found {
        Ok(Ok(found)) => Json(found).into_response(),
        Ok(Err(error)) => (why_not(&error), format!("{error}\n")).into_response(),
        Err(response) => response,
    }
}

/// Which status an answer has that says why.
pub(super) fn why_not(error: &RolloutError) -> StatusCode {
    match error {
        RolloutError::NoReleases(_)
        | RolloutError::NothingToCompare(_)
        | RolloutError::Stored(StoredError::NotKept(_) | StoredError::Control(ControlError::NotKept(_))) => {
            StatusCode::NOT_FOUND
        }
        RolloutError::Several(_) | RolloutError::NoRelease { .. } | RolloutError::Order(_) => StatusCode::BAD_REQUEST,
        RolloutError::Stored(StoredError::Changed { .. }) => StatusCode::PRECONDITION_FAILED,
        RolloutError::Stored(StoredError::Control(_)) | RolloutError::OtherRelay { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
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
