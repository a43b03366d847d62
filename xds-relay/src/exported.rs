//! The metrics of a relay among those of the program that it is part of.

use std::sync::{Arc, Weak};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Registry};

use crate::admin::Inspect as _;
use crate::pages::Pages;

/// What a relay counts, whenever somebody looks, for as long as it is there.
struct Exported {
    pages: Weak<Pages>,
    /// A registry tells collectors apart by what they have: this one is said to have what every relay has.
    ready: IntGauge,
}

/// Adds the metrics of a relay to a registry.
///
/// # Errors
/// Those of another relay are there.
pub(crate) fn export(pages: &Arc<Pages>, registry: &Registry) -> prometheus::Result<()> {
    let ready = IntGauge::new("xds_relay_ready", "1 while the relay is ready.")?;
    registry.register(Box::new(Exported { pages: Arc::downgrade(pages), ready }))
}

impl Collector for Exported {
    fn desc(&self) -> Vec<&Desc> {
        self.ready.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.pages.upgrade().map(|pages| pages.metrics().families(&pages.gauges())).unwrap_or_default()
    }
}
