//! gRPC's health protocol: whether the relay serves.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex;
use tonic::body::Body;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::beside::Beside;

const METHODS: &str = "/grpc.health.v1.Health/{method}";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// The server as a whole, and what it is there for.
const SERVICES: [&str; 2] = ["", "envoy.service.discovery.v3.AggregatedDiscoveryService"];

/// How long a question is, in bytes, at most: it has the name of a service. Nothing else bounds what is kept of one that is not whole.
const MOST_ASKED: usize = 1 << 10;

/// What is told to who asks for the relay's health, and to who watches it.
pub(crate) struct Health {
    reporter: HealthReporter,
    /// What was told last: watchers are told of changes.
    serving: Mutex<Option<bool>>,
}

impl Health {
    pub(crate) fn new() -> Self {
        Self { reporter: HealthReporter::new(), serving: Mutex::new(None) }
    }

    /// Serves it.
    pub(crate) fn router(&self, beside: Beside) -> Router {
        let service = HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()));
        let service = service.max_decoding_message_size(MOST_ASKED);
        Router::new().route_service(METHODS, service).route_layer(from_fn_with_state(beside, count))
    }

    pub(crate) async fn report(&self, serving: bool) {
        let mut told = self.serving.lock().await;
        if told.replace(serving) == Some(serving) {
            return;
        }
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in SERVICES {
            self.reporter.set_service_status(service, status).await;
        }
    }

    /// Ends the streams of those who watch, who have been told everything.
    pub(crate) async fn end(&self) {
        let mut reporter = self.reporter.clone();
        for service in SERVICES {
            reporter.clear_service_status(service).await;
        }
    }
}

/// Who watches has a stream. Who asks once is answered however many there are: what restarts a relay that does not answer asks so.
async fn count(State(beside): State<Beside>, request: Request, next: Next) -> Response {
    let (call, body) = request.into_parts();
    if call.uri.path() != WATCH {
        let body = beside.whole_in_time(&call, body);
        return next.run(Request::from_parts(call, body)).await;
    }
    match beside.admit_anybody(&call) {
        Ok(counted) => {
            let body = beside.begun_in_time(body);
            counted.until_over(next.run(Request::from_parts(call, body)).await)
        }
        Err(status) => status.into_http::<Body>().into_response(),
    }
}
