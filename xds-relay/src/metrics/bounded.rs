//! What is counted of limits beside who was refused for one.

use prometheus::{IntCounter, IntCounterVec, Registry};

use super::{Metrics, constant, counters, options, registered};

#[derive(Debug)]
pub(super) struct Bounded {
    idle_connections_closed: IntCounter,
    too_long: IntCounterVec,
}

impl Bounded {
    pub(super) fn new(registry: &Registry) -> Self {
        let closed = "Connections without a stream that were closed to make room for others.";
        Self {
            idle_connections_closed: registered(
                registry,
                constant(IntCounter::with_opts(options("idle_connections_closed_total", closed))),
            ),
            too_long: counters(
                registry,
                "upstream_too_long_total",
                "Responses of an origin that were longer than is taken: each ended its stream.",
                &["origin"],
            ),
        }
    }

    pub(super) fn declare_origin(&self, origin: &str) {
        self.too_long.with_label_values(&[origin]);
    }
}

impl Metrics {
    /// A connection without a stream was closed, so that another has room.
    pub(crate) fn idle_connection_closed(&self) {
        self.bounded.idle_connections_closed.inc();
    }

    /// A response of an origin was longer than is taken.
    pub(crate) fn upstream_too_long(&self, origin: &str) {
        self.bounded.too_long.with_label_values(&[origin]).inc();
    }
}
