//! Having an origin asked once more, to see whether what is served is what it has. It is asked for as much as all clients want, so
//! that this is no page to look at.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, sleep};

use super::look::{Pages, failed};
use crate::api::DriftQuery;
use crate::relay_core::DriftError;

/// How often it is looked whether all was said.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn check(State(pages): State<Pages>, Query(query): Query<DriftQuery>) -> Response {
    let Ok(_permit) = pages.comparisons.clone().try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "an origin is being asked already\n").into_response();
    };
    let mut check = match pages.clone().look(move |relay| relay.check_drift(&query)).await {
        Ok(Ok(check)) => check,
        Ok(Err(error)) => return (status_of(&error), format!("{error}\n")).into_response(),
        Err(response) => return response,
    };
    loop {
        sleep(LOOK).await;
        let now = Instant::now().into_std();
        let looked = tokio::task::spawn_blocking(move || {
            let drifts = check.poll(now);
            (check, drifts)
        });
        match looked.await {
            Ok((_, Some(drifts))) => return Json(drifts).into_response(),
            Ok((going_on, None)) => check = going_on,
            Err(error) => return failed(&error.to_string()),
        }
    }
}

fn status_of(error: &DriftError) -> StatusCode {
    match error {
        DriftError::NoName(_) => StatusCode::BAD_REQUEST,
        DriftError::NoOrigin { .. } => StatusCode::NOT_FOUND,
        DriftError::NotAsked { .. } => StatusCode::CONFLICT,
    }
}
