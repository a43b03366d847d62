//! What is counted of files that are read again.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{Counter, Metrics, constant, counters, gauges, options, registered, signed};

#[derive(Debug)]
pub(super) struct Reloads {
    files: IntCounterVec,
    held: IntGaugeVec,
    config: IntCounterVec,
    config_waits: IntGauge,
}

impl Reloads {
    pub(super) fn new(registry: &Registry) -> Self {
        let config = counters(
            registry,
            "config_reloads_total",
            "Times that another configuration was read while the relay runs.",
            &["result"],
        );
        ["ok", "failed"].iter().for_each(|result| _ = config.with_label_values(&[result]));
        let waits =
            options("config_needs_restart", "Fields of the configuration that stay as they were until a restart.");
        Self {
            files: counters(
                registry,
                "file_reloads_total",
                "Times the files of an origin were read.",
                &["origin", "result"],
            ),
            held: registered(
                registry,
                gauges(
                    "file_origin_held_removals",
                    "Resources that are gone from files, and served until that is so for a while.",
                    &["origin"],
                ),
            ),
            config,
            config_waits: registered(registry, constant(IntGauge::with_opts(waits))),
        }
    }
}

/// What is told of one file origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReloadMetrics {
    /// The files were read, and their state is served.
    pub ok: Counter,
    /// A file was bad; the last good state is served.
    pub failed: Counter,
    held: IntGauge,
}

impl ReloadMetrics {
    /// So many resources are gone from the files now, and served.
    pub fn set_held(&self, held: usize) {
        self.held.set(signed(held as u64));
    }
}

impl Metrics {
    /// The numbers of a file origin.
    #[must_use]
    pub fn reloads(&self, origin: &str) -> ReloadMetrics {
        let counter = |result: &str| Counter(self.reloads.files.with_label_values(&[origin, result]));
        let held = self.reloads.held.with_label_values(&[origin]);
        ReloadMetrics { ok: counter("ok"), failed: counter("failed"), held }
    }

    /// Another configuration was read, and counts, but for so many fields of it; or is not good.
    pub(crate) fn config_reload(&self, ok: bool, needs_restart: usize) {
        self.reloads.config.with_label_values(&[if ok { "ok" } else { "failed" }]).inc();
        self.reloads.config_waits.set(signed(needs_restart as u64));
    }
}
