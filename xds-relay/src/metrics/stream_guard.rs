//! What counts a stream as there.

use prometheus::{IntCounter, IntGauge};

/// Counts a stream as there until it is dropped.
#[derive(Debug)]
#[must_use = "the stream counts as gone when this is dropped"]
pub struct StreamGuard {
    present: IntGauge,
    gone: Option<IntCounter>,
}

impl StreamGuard {
    pub(super) fn new(present: IntGauge, gone: Option<IntCounter>) -> Self {
        present.inc();
        Self { present, gone }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.present.dec();
        if let Some(gone) = &self.gone {
            gone.inc();
        }
    }
}
