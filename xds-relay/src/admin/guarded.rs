//! What no page of these does, and so no browser is to do.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The answer to who asks from within a browser: any page there can have it send a request, and who means to is a program.
pub(super) fn from_a_browser(headers: &HeaderMap) -> Option<Response> {
    let is_browser = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    is_browser.then(|| (StatusCode::FORBIDDEN, "nothing is changed from within a browser\n").into_response())
}
