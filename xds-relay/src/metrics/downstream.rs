//! What is counted of each resource type towards subscribers.

use prometheus::{IntCounterVec, Registry};
use xds_transport::server::NackReason;

use super::{Counter, Metrics, counters};

#[derive(Debug)]
pub(super) struct TypedCounters {
    requests: IntCounterVec,
    responses: IntCounterVec,
    resources: IntCounterVec,
    acks: IntCounterVec,
    nacks: IntCounterVec,
    bytes: IntCounterVec,
}

/// What is counted of one resource type towards subscribers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DownstreamMetrics {
    /// Requests received, of any kind.
    pub requests: Counter,
    /// Responses sent.
    pub responses: Counter,
    /// Resources in them.
    pub resources: Counter,
    /// Responses a subscriber accepted.
    pub acks: Counter,
    /// Responses a subscriber rejected, by reason, in the order of [`NackReason::ALL`].
    pub nacks: [Counter; NackReason::ALL.len()],
    /// Bytes of the responses, before HTTP/2 framing.
    pub bytes: Counter,
}

impl Metrics {
    /// The counters of a type URL towards subscribers.
    #[must_use]
    pub fn downstream(&self, type_url: &str) -> DownstreamMetrics {
        let label = self.type_label(type_url);
        let counter = |counters: &IntCounterVec| Counter(counters.with_label_values(&[&label]));
        DownstreamMetrics {
            requests: counter(&self.downstream.requests),
            responses: counter(&self.downstream.responses),
            resources: counter(&self.downstream.resources),
            acks: counter(&self.downstream.acks),
            nacks: NackReason::ALL
                .map(|reason| Counter(self.downstream.nacks.with_label_values(&[&*label, reason.as_str()]))),
            bytes: counter(&self.downstream.bytes),
        }
    }
}

impl TypedCounters {
    pub(super) fn new(registry: &Registry) -> Self {
        let down = |name: &str, help: &str| counters(registry, &format!("downstream_{name}_total"), help, &["type"]);
        Self {
            requests: down("requests", "Requests received from subscribers."),
            responses: down("responses", "Responses sent to subscribers."),
            resources: down("resources_sent", "Resources in the responses sent to subscribers."),
            acks: down("acks", "Responses that a subscriber accepted."),
            nacks: counters(
                registry,
                "downstream_nacks_total",
                "Responses that a subscriber rejected, by the class of the code that it said.",
                &["type", "reason"],
            ),
            bytes: down("sent_bytes", "Bytes of the responses sent to subscribers, before HTTP/2 framing."),
        }
    }
}
