//! Who may have something changed: not everybody who may look, and nobody from within a browser, where no page of these does.

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::peer::Shown;
use super::tokens::Tokens;
use crate::metrics::{AUDIT, Denial};

const MAY_NOT: &str = "who changes something here carries a bearer token that is in the file of admin.write_token in the \
                       configuration; where the relay takes orders (`orders`), it is changed, too\n";

/// The answer to who asks from within a browser: any page there can have it send a request, and who means to is a program.
pub(super) fn from_a_browser(headers: &HeaderMap) -> Option<Response> {
    let is_browser = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    is_browser.then(|| (StatusCode::FORBIDDEN, "nothing is changed from within a browser\n").into_response())
}

/// Answers a request of who may not, and says who wants what of one that goes on.
pub(super) async fn check(
    State(tokens): State<Tokens>,
    ConnectInfo(shown): ConnectInfo<Shown>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(refused) = from_a_browser(request.headers()) {
        return refused;
    }
    let peer = shown.peer();
    if !tokens.access.lets_change(request.headers()) {
        tokens.relay.metrics().downstream_denied(Denial::Admin);
        tracing::warn!(target: AUDIT, peer, path = request.uri().path(), "denied: no token that is in admin.write_token");
        return (StatusCode::FORBIDDEN, MAY_NOT).into_response();
    }
    // Before it is done: afterwards nothing may be logged any more.
    let asked = request.uri().path_and_query().map_or("", |asked| asked.as_str());
    tracing::warn!(target: AUDIT, peer, method = %request.method(), "asked for on the admin pages: {asked}");
    next.run(request).await
}
