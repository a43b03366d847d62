//! gRPC's health protocol: whether the relay serves.

use tokio::sync::Mutex;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

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

    /// Serves it beside `routes`.
    pub(crate) fn add_to(&self, routes: Routes) -> Routes {
        let service = HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()));
        routes.add_service(service.max_decoding_message_size(MOST_ASKED))
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
