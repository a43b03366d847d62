//! What all clients have, told to who may know (CSDS).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use tonic::Status;
use tonic::body::Body;
use xds_transport::grpc::server::{ClientNumber, ClientStatusService};

use crate::beside::{Beside, Counted};
use crate::client_rules::{ClientRules, peer};
use crate::metrics::{AUDIT, Denial};
use crate::relay_core::RelayCore;

const METHODS: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/{method}";

/// Serves it of a relay, under the rules for its clients.
pub(crate) fn router(core: &Arc<RelayCore>, rules: Arc<ClientRules>) -> Router {
    let under = Under { beside: Beside::new(core.clone(), rules.clone()), core: core.clone(), rules };
    let service = ClientStatusService::new(core.clone());
    Router::new().route_service(METHODS, service).route_layer(from_fn_with_state(under, check))
}

#[derive(Clone)]
struct Under {
    beside: Beside,
    core: Arc<RelayCore>,
    rules: Arc<ClientRules>,
}

impl Under {
    fn admit(&self, call: &Parts) -> Result<Counted, Status> {
        let (peer, metrics) = (peer(call), self.core.metrics());
        let under = self.rules.now().admit(call, &peer, metrics)?;
        if under.as_ref().is_none_or(|under| under.rule.client_status) {
            return self.beside.admit(call, under.as_ref());
        }
        metrics.downstream_denied(Denial::ClientStatus);
        tracing::warn!(target: AUDIT, %peer, "a client is denied: it may not ask what all clients have");
        Err(Status::permission_denied("this client may not ask what all clients have"))
    }
}

async fn check(State(under): State<Under>, request: Request, next: Next) -> Response {
    let (mut call, body) = request.into_parts();
    match under.admit(&call) {
        Ok(counted) => {
            counted.client().into_iter().for_each(|number| _ = call.extensions.insert(ClientNumber(number)));
            let body = under.beside.begun_in_time(body);
            counted.until_over(next.run(Request::from_parts(call, body)).await)
        }
        Err(status) => status.into_http::<Body>().into_response(),
    }
}
