//! The lives of updates, told to a collector of OpenTelemetry: from when an origin's response came until each client has accepted
//! what is new in it.
//!
//! All that is told of one response is one trace, whoever tells it: its id follows from the moment at which the response came,
//! and by its id it is told or not.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};
use xds_transport::server::Took;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::Timings;

use super::collector::exporter;
use super::waiting::{Counting, MOST, Waiting};
use crate::config;
use crate::error::Error;
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::relay_core::Lives;

/// Of how many responses it is known whether they were told of: what is sent of older ones is late.
const REMEMBERED: usize = 1024;

/// Tells a collector, as long as it has room for what waits.
pub(super) struct Spans(Arc<Told>);

struct Told {
    spans: BatchSpanProcessor,
    waiting: Arc<Waiting>,
    scope: InstrumentationScope,
    one_in: u32,
    /// What ids are made of, so that those of two relays differ.
    seed: RandomState,
    /// The same moment by both clocks.
    began: (Instant, SystemTime),
    /// How many sessions there were.
    sessions: AtomicU64,
    /// Traces that have their first span.
    begun: Mutex<VecDeque<TraceId>>,
}

/// What is told of one client's session of a type.
struct OfClient {
    told: Arc<Told>,
    counted: Arc<dyn Timings>,
    /// Which one it is.
    number: u64,
    about: [KeyValue; 2],
    /// What it was sent last, and has not accepted: the trace, the span that has that sent, and when it was.
    sent: Mutex<Option<(TraceId, SpanId, Instant)>>,
}

impl Spans {
    /// To be called in a runtime. Nobody is connected with before there is something to tell.
    ///
    /// # Errors
    /// An address that there can be no collector at, or a file that is not good.
    pub(super) fn new(config: &config::Traces, metrics: Arc<Metrics>) -> Result<Self, Error> {
        let (exporter, waiting) = (exporter(config)?, Waiting::new(metrics));
        // Its queue drops what it has no room for without a word: it has room for all that is let in.
        let batches = BatchConfigBuilder::default().with_max_queue_size(MOST).build();
        let counting = Counting { exporter, waiting: waiting.clone() };
        let mut spans = BatchSpanProcessor::builder(counting).with_batch_config(batches).build();
        spans.set_resource(&Resource::builder().with_service_name("xds-relay").build());
        let scope = InstrumentationScope::builder("xds-relay").with_version(env!("CARGO_PKG_VERSION")).build();
        let (seed, began) = (RandomState::new(), (Instant::now(), SystemTime::now()));
        let (one_in, sessions, begun) = (config.one_in, AtomicU64::new(0), Mutex::default());
        Ok(Self(Arc::new(Told { spans, waiting, scope, one_in, seed, began, sessions, begun })))
    }

    /// Has what waits told, and nothing any more.
    pub(super) fn end(&self, within: Duration) {
        let ended = self.0.spans.shutdown_with_timeout(within);
        let lost = self.0.waiting.end();
        if let Err(error) = ended {
            tracing::warn!("the last {lost} spans of traces were not told: {error}");
        }
    }
}

impl Lives for Spans {
    fn of_client(&self, type_url: &TypeUrl, node: &str, counted: Arc<dyn Timings>) -> Arc<dyn Timings> {
        let about = [KeyValue::new("xds.type", type_url.to_string()), KeyValue::new("xds.node", node.to_owned())];
        let number = self.0.sessions.fetch_add(1, Ordering::Relaxed);
        Arc::new(OfClient { told: self.0.clone(), counted, number, about, sent: Mutex::default() })
    }
}

impl Timings for OfClient {
    fn took(&self, took: Took) {
        self.counted.took(took);
        match took {
            Took::ToSend { heard, sent } => self.was_sent(heard, sent),
            Took::ToAccept { sent, accepted } => self.was_accepted(sent, accepted),
        }
    }
}

impl OfClient {
    fn was_sent(&self, heard: Instant, sent: Instant) {
        let Some(trace) = self.told.trace_of(heard) else { return *lock(&self.sent) = None };
        let root = self.told.span_id((trace, "update"));
        if self.told.begins(trace) {
            let [of_type, _] = &self.about;
            self.told.tell("xds.update", (trace, SpanId::INVALID, root), (heard, sent), vec![of_type.clone()]);
        }
        let span = self.told.span_id((trace, self.number));
        self.told.tell("xds.send", (trace, root, span), (heard, sent), self.about.to_vec());
        *lock(&self.sent) = Some((trace, span, sent));
    }

    fn was_accepted(&self, sent: Instant, accepted: Instant) {
        // What was sent before it, and is accepted now, is of another trace, which is not known any more.
        let Some((trace, parent, _)) = lock(&self.sent).take_if(|(.., at)| *at == sent) else { return };
        let span = self.told.span_id((parent, "accept"));
        self.told.tell("xds.accept", (trace, parent, span), (sent, accepted), self.about.to_vec());
    }
}

impl Told {
    /// The trace of what came at this moment, if it is told.
    fn trace_of(&self, heard: Instant) -> Option<TraceId> {
        let nanos = heard.saturating_duration_since(self.began.0).as_nanos();
        let [high, low] = ["trace", "rest"].map(|part| self.seed.hash_one((nanos, part)));
        let trace = TraceId::from(u128::from(high) << 64 | u128::from(low));
        (low % u64::from(self.one_in.max(1)) == 0).then_some(trace)
    }

    fn span_id(&self, of: impl std::hash::Hash) -> SpanId {
        SpanId::from(self.seed.hash_one(of))
    }

    /// Whether nothing was told of it yet.
    fn begins(&self, trace: TraceId) -> bool {
        let mut begun = lock(&self.begun);
        // It is most often one of the last.
        if begun.iter().rev().any(|of| *of == trace) {
            return false;
        }
        if begun.len() == REMEMBERED {
            begun.pop_front();
        }
        begun.push_back(trace);
        true
    }

    fn tell(
        &self,
        name: &'static str,
        (trace, parent, span): (TraceId, SpanId, SpanId),
        (from, until): (Instant, Instant),
        attributes: Vec<KeyValue>,
    ) {
        if !self.waiting.has_room() {
            return;
        }
        let [start_time, end_time] = [from, until].map(|at| self.began.1 + at.saturating_duration_since(self.began.0));
        self.spans.on_end(SpanData {
            span_context: SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time,
            end_time,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        });
    }
}
