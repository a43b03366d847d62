//! How long it is since origins spoke.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use prometheus::core::Collector as _;
use prometheus::proto::MetricFamily;

use super::{Metrics, gauges, signed};

/// When origins spoke last, and when it was when somebody last looked at a clock.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Moments>);

#[derive(Debug, Default)]
struct Moments {
    by_origin: BTreeMap<String, Instant>,
    now: Option<Instant>,
}

impl Metrics {
    /// An origin said something.
    pub(crate) fn origin_spoke(&self, origin: &str, at: Instant) {
        let mut moments = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        match moments.by_origin.get_mut(origin) {
            Some(last) => *last = at.max(*last),
            None => _ = moments.by_origin.insert(origin.to_owned(), at),
        }
    }

    /// An origin is there no more: that it says nothing is no news.
    pub(crate) fn forget_origin(&self, origin: &str) {
        self.heard.0.lock().unwrap_or_else(PoisonError::into_inner).by_origin.remove(origin);
        // There is none where it never connected.
        let _ = self.upstream_connected.remove_label_values(&[origin]);
    }

    /// It is so late: to be called every second or so.
    pub(crate) fn it_is(&self, now: Instant) {
        self.heard.0.lock().unwrap_or_else(PoisonError::into_inner).now = Some(now);
    }

    pub(super) fn gather_heard(&self) -> Vec<MetricFamily> {
        let silent = gauges("origin_silent_seconds", "Seconds since something last came from an origin.", &["origin"]);
        let moments = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (origin, at) in &moments.by_origin {
            let since = moments.now.unwrap_or(*at).saturating_duration_since(*at);
            silent.with_label_values(&[origin]).set(signed(since.as_secs()));
        }
        silent.collect()
    }
}
