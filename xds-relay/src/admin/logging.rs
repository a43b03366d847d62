//! What is logged, and having something else logged: the one thing that the pages change.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::guarded::from_a_browser;
use super::look::Pages;
use crate::config::LogFilter;

const NOT_OURS: &str = "it is not the relay that says what is logged\n";

/// What is to be logged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    level: String,
}

pub(super) async fn tell(State(pages): State<Pages>) -> Response {
    match pages.relay.log() {
        Some(filter) => format!("{filter}\n").into_response(),
        None => (StatusCode::NOT_FOUND, NOT_OURS).into_response(),
    }
}

pub(super) async fn change(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Query(Wanted { level }): Query<Wanted>,
) -> Response {
    set(&pages, &headers, &level)
}

/// As envoyproxy/xds-relay has it said: in the path.
pub(super) async fn change_to(State(pages): State<Pages>, headers: HeaderMap, Path(level): Path<String>) -> Response {
    set(&pages, &headers, &level)
}

fn set(pages: &Pages, headers: &HeaderMap, level: &str) -> Response {
    if let Some(refused) = from_a_browser(headers) {
        return refused;
    }
    match level.parse::<LogFilter>() {
        Err(error) => (StatusCode::BAD_REQUEST, format!("level: {error}\n")).into_response(),
        Ok(filter) => {
            let words = format!("{filter}\n");
            if !pages.relay.set_log(filter) {
                return (StatusCode::NOT_FOUND, NOT_OURS).into_response();
            }
            tracing::info!("as somebody says on the admin pages, this is logged now: {}", words.trim_end());
            words.into_response()
        }
    }
}
