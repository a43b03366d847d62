//! The metrics of a relay among those of the program that it is part of.

use std::sync::{Arc, Weak};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Registry};

use crate::relay_core::RelayCore;

/// What a relay counts, whenever somebody looks, for as long as it is there.
struct Exported {
    core: Weak<RelayCore>,
    /// A registry tells collectors apart by what they have: this one is said to have what every relay has.
    ready: IntGauge,
}

/// Adds the metrics of a relay to a registry.
///
/// # Errors
/// Those of another relay are there.
pub(crate) fn export(core: &Arc<RelayCore>, registry: &Registry) -> prometheus::Result<()> {
    let ready = IntGauge::new("xds_relay_ready", "1 while the relay is ready.")?;
    registry.register(Box::new(Exported { core: Arc::downgrade(core), ready }))
}

impl Collector for Exported {
    fn desc(&self) -> Vec<&Desc> {
        self.ready.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.core.upgrade().map(|core| core.metrics().families(&core.gauges())).unwrap_or_default()
    }
}
