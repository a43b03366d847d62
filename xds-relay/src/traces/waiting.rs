//! How many spans wait for a collector, and how many it will never be told of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::metrics::Metrics;

/// So many wait, with those that are on their way: a collector that does not take them makes no more of them wait.
pub(super) const MOST: usize = 2048;

/// What waits. Whoever has a span to tell never waits for anything.
#[derive(Debug)]
pub(super) struct Waiting {
    spans: AtomicUsize,
    /// Spans are lost since the collector was told last, which is logged when it begins, and when it is over.
    loses: AtomicBool,
    is_over: AtomicBool,
    metrics: Arc<Metrics>,
}

impl Waiting {
    pub(super) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        metrics.declare_traces();
        let (spans, loses, is_over) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { spans, loses, is_over, metrics })
    }

    /// Whether one more may wait. It is lost if not.
    pub(super) fn has_room(&self) -> bool {
        let one_more = |spans: usize| (spans < MOST).then_some(spans + 1);
        let is_over = self.is_over.load(Ordering::Relaxed);
        let takes = || self.spans.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        if !is_over && takes() {
            return true;
        }
        self.lose(1, || format!("{MOST} spans wait for it already"));
        false
    }

    /// So many do not wait any more: they were told, or it is known why not.
    fn left(&self, spans: usize, failed: Option<String>) {
        let _ = self.spans.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| Some(all.saturating_sub(spans)));
        match failed {
            // They were given up as it ended.
            _ if self.is_over.load(Ordering::Relaxed) => {}
            Some(why) => self.lose(spans, || why),
            None => {
                if self.loses.swap(false, Ordering::Relaxed) {
                    let lost = self.metrics.trace_spans_lost();
                    tracing::info!(
                        "the collector of traces is told again: {lost} spans were lost since the relay began"
                    );
                }
            }
        }
    }

    fn lose(&self, spans: usize, why: impl FnOnce() -> String) {
        self.metrics.lose_trace_spans(spans as u64);
        if !self.loses.swap(true, Ordering::Relaxed) {
            tracing::warn!("traces are lost, and counted, until the collector is told again: {}", why());
        }
    }

    /// Nothing is told any more: what waits still is lost. How many that are.
    pub(super) fn end(&self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let spans = self.spans.swap(0, Ordering::Relaxed);
        self.metrics.lose_trace_spans(spans as u64);
        spans
    }
}

/// Tells a collector, and counts what comes of that.
#[derive(Debug)]
pub(super) struct Counting<E> {
    pub(super) exporter: E,
    pub(super) waiting: Arc<Waiting>,
}

impl<E: SpanExporter> SpanExporter for Counting<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let told = self.exporter.export(batch).await;
        self.waiting.left(spans, told.as_ref().err().map(ToString::to_string));
        told
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Arc<Waiting> {
        Waiting::new(Arc::new(Metrics::new([])))
    }

    #[test]
    fn so_many_wait_and_all_further_ones_are_counted_as_lost() {
        let waiting = waiting();
        assert_eq!((0..MOST + 3).filter(|_| waiting.has_room()).count(), MOST);
        assert_eq!(waiting.metrics.trace_spans_lost(), 3);
        waiting.left(2, None);
        assert_eq!((0..3).filter(|_| waiting.has_room()).count(), 2);
        assert_eq!(waiting.metrics.trace_spans_lost(), 4);
    }

    #[test]
    fn that_spans_are_lost_is_noted_once_until_the_collector_is_told_again() {
        let waiting = waiting();
        let fails = |spans| {
            (0..spans).for_each(|_| assert!(waiting.has_room()));
            let was_lost = waiting.loses.load(Ordering::Relaxed);
            waiting.left(spans, Some("it is away".to_owned()));
            (was_lost, waiting.loses.load(Ordering::Relaxed), waiting.metrics.trace_spans_lost())
        };
        assert_eq!(fails(2), (false, true, 2));
        assert_eq!(fails(3), (true, true, 5));
        waiting.left(0, None);
        assert_eq!(fails(1), (false, true, 6));
    }

    #[test]
    fn what_waits_as_it_ends_is_lost_and_what_becomes_of_it_later_is_not_counted_again() {
        let waiting = waiting();
        (0..5).for_each(|_| assert!(waiting.has_room()));
        assert_eq!((waiting.end(), waiting.metrics.trace_spans_lost()), (5, 5));
        waiting.left(5, Some("it is away".to_owned()));
        assert_eq!(waiting.metrics.trace_spans_lost(), 5);
        assert!(!waiting.has_room(), "nothing is told any more");
    }
}
