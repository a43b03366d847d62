//! What is counted of control planes that are followed.

use prometheus::{IntGauge, IntGaugeVec, Registry};

use super::{Metrics, gauges, registered, signed};

#[derive(Debug)]
pub(super) struct Followed {
    up: IntGaugeVec,
    waits: IntGaugeVec,
    refused: IntGaugeVec,
}

impl Followed {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name, help| registered(registry, gauges(name, help, &["origin"]));
        Self {
            up: gauge("followed_origin_up", "Whether it is known what there is to release of a control plane."),
            waits: gauge(
                "followed_origin_waiting_names",
                "Names that resources refer to and the control plane says nothing of.",
            ),
            refused: gauge("followed_origin_refused_resources", "Resources of which what came last is refused."),
        }
    }
}

/// The numbers of one control plane that is followed.
#[derive(Clone, Debug)]
pub struct FollowedMetrics {
    up: IntGauge,
    waits: IntGauge,
    refused: IntGauge,
}

impl FollowedMetrics {
    /// Whether it is known what there is, of how many names nothing is said, and how many resources are refused.
    pub fn set(&self, is_up: bool, waits: usize, refused: usize) {
        self.up.set(i64::from(is_up));
        self.waits.set(signed(waits as u64));
        self.refused.set(signed(refused as u64));
    }
}

impl Metrics {
    /// The numbers of an origin that is a control plane which is followed.
    #[must_use]
    pub fn followed(&self, origin: &str) -> FollowedMetrics {
        let gauge = |gauges: &IntGaugeVec| gauges.with_label_values(&[origin]);
        let Followed { up, waits, refused } = &self.followed;
        FollowedMetrics { up: gauge(up), waits: gauge(waits), refused: gauge(refused) }
    }
}
