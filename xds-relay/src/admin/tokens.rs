//! Who must carry a token to see the admin pages.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::admin::inspect::Inspect;
use crate::admin_access::AdminAccess;
use crate::metrics::{AUDIT, Denial};

/// Who is let in, and where it is counted that somebody has none.
#[derive(Clone)]
pub(super) struct Tokens {
    pub(super) access: Arc<AdminAccess>,
    pub(super) relay: Arc<dyn Inspect>,
    /// Where the configuration says which they are.
    pub(super) field: &'static str,
}

/// Answers a request that carries none of them.
pub(super) async fn check(State(tokens): State<Tokens>, request: Request, next: Next) -> Response {
    if tokens.access.lets_in(request.headers()) {
        return next.run(request).await;
    }
    tokens.relay.metrics().downstream_denied(Denial::Admin);
    tracing::warn!(target: AUDIT, path = request.uri().path(), "denied: no token that is in {}", tokens.field);
    let words = format!("who asks this carries a bearer token that is in the file of {}\n", tokens.field);
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], words).into_response()
}
