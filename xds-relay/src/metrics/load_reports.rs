//! What is counted of load reports that are passed on.

use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{Counter, Metrics, StreamGuard, counters, gauges, registered};

#[derive(Debug)]
pub(super) struct LoadReports {
    streams: IntGaugeVec,
    opened: IntCounterVec,
    bytes: IntCounterVec,
}

/// What is counted of a stream, while it is there.
#[derive(Debug)]
pub(crate) struct LoadReportStream {
    /// Bytes to the origin.
    pub(crate) up: Counter,
    /// Bytes to the client.
    pub(crate) down: Counter,
    _open: StreamGuard,
}

impl LoadReports {
    pub(super) fn new(registry: &Registry) -> Self {
        let streams = "Streams of load reports that are passed on to an origin now.";
        let bytes = "Bytes of load reports that were passed on, before HTTP/2 framing.";
        Self {
            streams: registered(registry, gauges("load_report_streams", streams, &["origin"])),
            opened: counters(
                registry,
                "load_report_streams_opened_total",
                "Streams of load reports that were passed on to an origin.",
                &["origin"],
            ),
            bytes: counters(registry, "load_report_bytes_total", bytes, &["origin", "direction"]),
        }
    }
}

impl Metrics {
    /// Makes these visible before there is any stream.
    pub fn declare_load_reports(&self, origin: &str) {
        let LoadReports { streams, opened, bytes } = &self.load_reports;
        streams.with_label_values(&[origin]);
        opened.with_label_values(&[origin]);
        ["up", "down"].iter().for_each(|direction| _ = bytes.with_label_values(&[origin, direction]));
    }

    /// A stream of load reports is passed on to an origin, until the result is dropped.
    pub(crate) fn load_report_stream(&self, origin: &str) -> LoadReportStream {
        let LoadReports { streams, opened, bytes } = &self.load_reports;
        opened.with_label_values(&[origin]).inc();
        let counter = |direction: &str| Counter(bytes.with_label_values(&[origin, direction]));
        let open = StreamGuard::new(streams.with_label_values(&[origin]), None);
        LoadReportStream { up: counter("up"), down: counter("down"), _open: open }
    }
}
