//! What is logged, and having something else logged: for who may change that.

use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::look::Pages;
use super::peer::Shown;
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
    ConnectInfo(shown): ConnectInfo<Shown>,
    Query(Wanted { level }): Query<Wanted>,
) -> Response {
    set(&pages, &shown, &level)
}

/// As envoyproxy/xds-relay has it said: in the path.
pub(super) async fn change_to(
    State(pages): State<Pages>,
    ConnectInfo(shown): ConnectInfo<Shown>,
    Path(level): Path<String>,
) -> Response {
    set(&pages, &shown, &level)
}

fn set(pages: &Pages, shown: &Shown, level: &str) -> Response {
    match level.parse::<LogFilter>() {
        Err(error) => (StatusCode::BAD_REQUEST, format!("level: {error}\n")).into_response(),
        Ok(filter) => {
            let words = format!("{filter}\n");
            if !pages.relay.set_log(filter) {
                return (StatusCode::NOT_FOUND, NOT_OURS).into_response();
            }
            let peer = shown.peer();
            tracing::info!(peer, "as somebody says on the admin pages, this is logged now: {}", words.trim_end());
            words.into_response()
        }
    }
}
