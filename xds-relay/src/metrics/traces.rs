//! What is counted of the lives of updates that are told to a collector.

use prometheus::{IntCounterVec, Registry};

use super::{Metrics, counters};

#[derive(Debug)]
pub(super) struct Traces {
    lost: IntCounterVec,
}

impl Traces {
    pub(super) fn new(registry: &Registry) -> Self {
        let help = "Spans that the collector of traces was not told of, as it took no more or was away.";
        Self { lost: counters(registry, "trace_spans_lost_total", help, &[]) }
    }
}

impl Metrics {
    /// Makes visible what is counted where there is a collector.
    pub fn declare_traces(&self) {
        self.lose_trace_spans(0);
    }

    /// So many spans will never be told.
    pub fn lose_trace_spans(&self, spans: u64) {
        self.traces.lost.with_label_values::<&str>(&[]).inc_by(spans);
    }

    /// How many were lost until now.
    #[must_use]
    pub fn trace_spans_lost(&self) -> u64 {
        self.traces.lost.with_label_values::<&str>(&[]).get()
    }
}
