//! How long updates took, by type.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{Histogram, HistogramOpts, HistogramVec, Registry};
use xds_transport::server::Took;
use xdstp_client::federation::Timings;

use super::{Metrics, constant, registered};

/// In seconds: what took just so long is within.
const BOUNDS: [f64; 11] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug)]
pub(super) struct Latencies {
    sent: HistogramVec,
    acked: HistogramVec,
    by_label: Mutex<BTreeMap<String, Arc<OfType>>>,
}

/// Those of one type, which all its sessions share.
#[derive(Debug)]
struct OfType {
    sent: Histogram,
    acked: Histogram,
}

impl Metrics {
    /// Where it is counted how long sessions of a type URL take.
    #[must_use]
    pub fn timings(&self, type_url: &str) -> Arc<dyn Timings> {
        let label = self.type_label(type_url);
        let Latencies { sent, acked, by_label } = &self.latencies;
        let mut by_label = by_label.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |label: &String| {
            let [sent, acked] = [sent, acked].map(|histograms| histograms.with_label_values(&[label]));
            Arc::new(OfType { sent, acked })
        };
        by_label.entry(label).or_insert_with_key(of).clone()
    }
}

impl Timings for OfType {
    fn took(&self, took: Took) {
        match took {
            Took::ToSend { .. } => self.sent.observe(took.time().as_secs_f64()),
            Took::ToAccept { .. } => self.acked.observe(took.time().as_secs_f64()),
        }
    }
}

impl Latencies {
    pub(super) fn new(registry: &Registry) -> Self {
        let histograms = |name: &str, help: &str| {
            let options = HistogramOpts::new(format!("xds_relay_downstream_{name}_after_seconds"), help);
            registered(registry, constant(HistogramVec::new(options.buckets(BOUNDS.to_vec()), &["type"])))
        };
        Self {
            sent: histograms(
                "sent",
                "From when an origin's response came until what is new in it began to be sent, for each subscription.",
            ),
            acked: histograms("acked", "From when a response began to be sent to a subscriber until that accepted it."),
            by_label: Mutex::default(),
        }
    }
}
