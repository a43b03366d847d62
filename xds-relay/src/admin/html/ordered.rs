//! A button was pressed.

use axum::extract::rejection::FormRejection;
use axum::extract::{ConnectInfo, Form, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::frame::failure;
use crate::admin::answers::why_not;
use crate::admin::look::Pages;
use crate::admin::order_done::{check, done};
use crate::admin::peer::Shown;
use crate::api::{Ordered, ReleaseOrder};

/// What a form says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Pressed {
    scope: String,
    mark: String,
    order: Ordered,
    stage: Option<usize>,
    to: Option<String>,
    by: String,
    why: String,
}

pub(in crate::admin) async fn order(
    State(pages): State<Pages>,
    ConnectInfo(shown): ConnectInfo<Shown>,
    headers: HeaderMap,
    form: Result<Form<Pressed>, FormRejection>,
) -> Response {
    if !is_of_these_pages(&headers) {
        return failure(StatusCode::FORBIDDEN, "It is not done", "Only the pages here order from within a browser.");
    }
    let Pressed { scope, mark, order, stage, to, by, why } = match form {
        Ok(Form(pressed)) => pressed,
        Err(error) => return failure(error.status(), "It is not done", &unread(&error)),
    };
    let order = ReleaseOrder { scope: Some(scope), order, stage, by, why, to, instance: None };
    if let Err(problem) = check(&order) {
        return failure(StatusCode::BAD_REQUEST, "It is not done", &problem);
    }
    match done(pages, &shown, order, Some(mark)).await {
        Ok(Ok(_)) => Redirect::to("/releases").into_response(),
        Ok(Err(error)) => failure(why_not(&error), "It is not done", &error.to_string()),
        Err(response) => response,
    }
}

/// Why what was sent is no form of these pages.
fn unread(error: &FormRejection) -> String {
    match error {
        FormRejection::InvalidFormContentType(_) => {
            "Expected a form of these pages (content-type: application/x-www-form-urlencoded). Programs send their \
             orders to /api/v1/orders, as application/json."
                .to_owned()
        }
        error => error.body_text(),
    }
}

/// Whether a browser says so. One that does not say where a form was has none of our pages, or keeps that to itself: then it is as if it
/// was another's.
fn is_of_these_pages(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => {
            let authority = |origin: &str| origin.split_once("://").map(|(_, authority)| authority.to_owned());
            let origin = headers.get(header::ORIGIN).and_then(|origin| authority(origin.to_str().ok()?));
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            origin.is_some() && origin.as_deref() == host
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_site_orders_nothing() {
        let headers = |fields: &[(&'static str, &'static str)]| {
            fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        for ours in [
            &[("sec-fetch-site", "same-origin"), ("origin", "null")][..],
            &[("origin", "https://relay.example:1"), ("host", "relay.example:1")],
        ] {
            assert!(is_of_these_pages(&headers(ours)), "{ours:?}");
        }
        for others in [
            &[][..],
            &[("host", "relay.example:1")],
            &[("origin", "null"), ("host", "relay.example:1")],
            &[("origin", "https://evil.example"), ("host", "relay.example:1")],
            &[("origin", "https://relay.example:2"), ("host", "relay.example:1")],
            &[("sec-fetch-site", "same-site"), ("origin", "https://relay.example:1"), ("host", "relay.example:1")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!is_of_these_pages(&headers(others)), "{others:?}");
        }
    }
}
