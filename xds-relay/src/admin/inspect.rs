//! A relay as the pages see it.

use crate::metrics::{Gauges, Metrics};
use crate::snapshot::{ConfigDump, Readiness};

/// What the pages ask of a relay. [`Inspect::config_dump`] and [`Inspect::gauges`] are called on threads that may block.
pub trait Inspect: Send + Sync + 'static {
    /// Whether subscribers should come here.
    fn ready(&self) -> Readiness;

    /// Everything the relay holds, of whom, and for whom.
    fn config_dump(&self) -> ConfigDump;

    /// The counters.
    fn metrics(&self) -> &Metrics;

    /// Numbers that change too often to be counted along.
    fn gauges(&self) -> Gauges;
}
