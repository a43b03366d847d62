//! Counters and gauges for Prometheus, cheap to count and bounded in number.
//!
//! What is counted often is reached through a handle that is looked up once, when a stream or a session starts; counting
//! is then one atomic addition. Labels are the origins of the configuration, the protocol, and the resource type: type
//! URLs come from peers, so beyond [`DISTINCT_TYPES`] of them all others count as `other`.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use prometheus::{
    Encoder, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder, core::Collector, proto::MetricFamily,
};
use xds_transport::Protocol;

mod bounded;
mod client_limits;
mod denial;
mod downstream;
mod drift;
mod followed;
mod heard;
mod keyed;
mod latencies;
mod load_reports;
mod looked_at;
mod released;
mod reloads;
mod stream_guard;
mod traces;

pub(crate) use self::denial::{AUDIT, Denial};
pub use self::downstream::DownstreamMetrics;
use self::downstream::TypedCounters;
pub use self::drift::DriftGauges;
pub(crate) use self::load_reports::LoadReportStream;
use self::load_reports::LoadReports;
pub use self::looked_at::{CertificateTimes, Gauges};
pub use self::released::{ReleaseGauges, ReleaseState};
pub use self::reloads::ReloadMetrics;
use self::reloads::Reloads;
pub use self::stream_guard::StreamGuard;
pub use self::{followed::FollowedMetrics, keyed::KeyedMetrics};

/// How many resource types have a label value of their own.
pub const DISTINCT_TYPES: usize = 32;

/// A number that only grows.
#[derive(Clone, Debug)]
pub struct Counter(IntCounter);

impl Counter {
    /// One more.
    #[inline]
    pub fn inc(&self) {
        self.0.inc();
    }

    /// `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.inc_by(n);
    }

    /// Now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.get()
    }
}

/// What a relay counts. One for each relay; there is no global registry.
///
/// ```
/// use xds_relay::metrics::{Gauges, Metrics};
///
/// let metrics = Metrics::new([]);
/// let clusters = metrics.downstream("type.googleapis.com/envoy.config.cluster.v3.Cluster");
/// clusters.acks.inc();
/// let text = metrics.render(&Gauges::default());
/// assert!(text.contains("xds_relay_downstream_acks_total{type=\"envoy.config.cluster.v3.Cluster\"} 1"));
/// ```
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    types: Mutex<BTreeSet<String>>,
    downstream_streams_opened: IntCounterVec,
    downstream_streams: IntGaugeVec,
    downstream_loops: IntCounter,
    downstream_refused: IntCounterVec,
    client_refused: IntCounterVec,
    downstream_denied: IntCounterVec,
    bounded: bounded::Bounded,
    downstream: TypedCounters,
    latencies: latencies::Latencies,
    upstream_connects: IntCounterVec,
    upstream_disconnects: IntCounterVec,
    upstream_connected: IntGaugeVec,
    upstream_loops: IntCounterVec,
    upstream_responses: IntCounterVec,
    upstream_resources: IntCounterVec,
    upstream_nacks: IntCounterVec,
    upstream_refused: IntCounterVec,
    origin_switches: IntCounterVec,
    upstream_restated: IntCounterVec,
    upstream_overlapping: IntCounterVec,
    heard: heard::Heard,
    load_reports: LoadReports,
    reloads: Reloads,
    etcd: keyed::Keyed,
    kubernetes: keyed::Keyed,
    followed: followed::Followed,
    released: released::Released,
    state_commits: IntCounterVec,
    state_keys: IntCounterVec,
    traces: traces::Traces,
    drift: drift::Drift,
}

/// What is counted of one resource type from one origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamMetrics {
    /// Responses received.
    pub responses: Counter,
    /// Resources in them.
    pub resources: Counter,
    /// Responses the relay rejected.
    pub nacks: Counter,
}

impl Metrics {
    /// Counters at zero. The `known_types`, type URLs, keep their label whatever else peers ask for.
    #[must_use]
    pub fn new<'a>(known_types: impl IntoIterator<Item = &'a str>) -> Self {
        let registry = Registry::new();
        let up = |name: &str, help: &str, labels: &[&str]| {
            counters(&registry, &format!("upstream_{name}_total"), help, labels)
        };
        Self {
            types: Mutex::new(known_types.into_iter().take(DISTINCT_TYPES).map(short).collect()),
            downstream_streams_opened: counters(
                &registry,
                "downstream_streams_opened_total",
                "Streams that subscribers opened.",
                &["protocol"],
            ),
            downstream_streams: registered(
                &registry,
                gauges("downstream_streams", "Streams of subscribers open now.", &["protocol"]),
            ),
            downstream_loops: registered(
                &registry,
                constant(IntCounter::with_opts(options(
                    "downstream_loops_total",
                    "Streams of relays that were refused because they would close a loop.",
                ))),
            ),
            downstream_refused: counters(
                &registry,
                "downstream_refused_total",
                "Streams and connections that were refused or ended because of a limit, and connections that became full.",
                &["limit"],
            ),
            client_refused: counters(
                &registry,
                "client_refused_total",
                "Streams that were refused or ended because of a limit of one client, by the position of its rule.",
                &["rule", "limit"],
            ),
            bounded: bounded::Bounded::new(&registry),
            downstream_denied: counters(
                &registry,
                "downstream_denied_total",
                "What a client, or who asked for an admin page, was told that it may not have.",
                &["reason"],
            ),
            downstream: TypedCounters::new(&registry),
            latencies: latencies::Latencies::new(&registry),
            upstream_connects: up("connects", "Streams to an origin that were answered.", &["origin"]),
            upstream_disconnects: up("disconnects", "Streams to an origin that were answered, and ended.", &["origin"]),
            upstream_connected: registered(
                &registry,
                gauges("upstream_connected", "Streams to an origin that are up now, and were answered.", &["origin"]),
            ),
            upstream_loops: up(
                "loops",
                "Streams to an origin, a relay, that were ended because they would close a loop.",
                &["origin"],
            ),
            upstream_responses: up("responses", "Responses received from an origin.", &["origin", "type"]),
            upstream_resources: up("resources", "Resources in the responses of an origin.", &["origin", "type"]),
            upstream_nacks: up("nacks", "Responses of an origin that were rejected.", &["origin", "type"]),
            upstream_refused: up("refused", "Resources of an origin that were refused.", &["origin"]),
            origin_switches: counters(
                &registry,
                "origin_switches_total",
                "Times that what is served began to come from this server of an origin in place of another.",
                &["origin", "server"],
            ),
            upstream_restated: up(
                "changed_at_same_version",
                "Resources of an origin whose content changed though their version did not: they are passed on.",
                &["origin"],
            ),
            upstream_overlapping: up(
                "overlapping_variants",
                "Names of which an origin has two variants for the same dynamic parameters: one of them is served.",
                &["origin"],
            ),
            heard: heard::Heard::default(),
            load_reports: LoadReports::new(&registry),
            reloads: Reloads::new(&registry),
            etcd: keyed::Keyed::etcd(&registry),
            kubernetes: keyed::Keyed::kubernetes(&registry),
            followed: followed::Followed::new(&registry),
            released: released::Released::new(&registry),
            state_commits: counters(
                &registry,
                "state_commits_total",
                "Times that what is known was written where it survives a restart.",
                &["result"],
            ),
            state_keys: counters(
                &registry,
                "state_keys_written_total",
                "Keys that were written or deleted there.",
                &[],
            ),
            traces: traces::Traces::new(&registry),
            drift: drift::Drift::new(&registry),
            registry,
        }
    }

    /// A subscriber opened a stream; it counts as open until the guard is dropped.
    pub fn stream_opened(&self, protocol: Protocol) -> StreamGuard {
        let labels = [protocol.as_str()];
        self.downstream_streams_opened.with_label_values(&labels).inc();
        StreamGuard::new(self.downstream_streams.with_label_values(&labels), None)
    }

    /// A stream was refused because of the relays that it comes from.
    pub fn downstream_loop(&self) {
        self.downstream_loops.inc();
    }

    /// Makes a limit visible before it is reached.
    pub fn declare_limit(&self, limit: &'static str) {
        self.downstream_refused.with_label_values(&[limit]);
    }

    /// A stream or a connection was refused, or ended, because of a limit: as the configuration calls it.
    pub fn downstream_refused(&self, limit: &'static str) {
        self.downstream_refused.with_label_values(&[limit]).inc();
    }

    /// Makes an origin visible before its first connection, as one that is not connected.
    pub fn declare_origin(&self, origin: &str) {
        self.bounded.declare_origin(origin);
        self.upstream_connects.with_label_values(&[origin]);
        self.upstream_disconnects.with_label_values(&[origin]);
        self.upstream_refused.with_label_values(&[origin]);
        self.upstream_loops.with_label_values(&[origin]);
        self.upstream_restated.with_label_values(&[origin]);
        self.upstream_overlapping.with_label_values(&[origin]);
        self.upstream_connected.with_label_values(&[origin]);
    }

    /// Makes one of several servers of an origin visible before anything comes from it.
    pub fn declare_server(&self, origin: &str, server: &str) {
        self.origin_switches.with_label_values(&[origin, server]);
    }

    /// What is served began to come from this server of an origin in place of another.
    pub fn origin_switched(&self, origin: &str, server: &str) {
        self.origin_switches.with_label_values(&[origin, server]).inc();
    }

    /// Resources of an origin were refused.
    pub fn upstream_refused(&self, origin: &str, resources: u64) {
        self.upstream_refused.with_label_values(&[origin]).inc_by(resources);
    }

    /// The content of resources of an origin changed though their versions did not.
    pub fn upstream_restated(&self, origin: &str, resources: u64) {
        self.upstream_restated.with_label_values(&[origin]).inc_by(resources);
    }

    /// Of so many names an origin has two variants for the same parameters.
    pub fn upstream_overlapping(&self, origin: &str, names: u64) {
        self.upstream_overlapping.with_label_values(&[origin]).inc_by(names);
    }

    /// A stream to the origin was answered; it counts as up until the guard is dropped.
    pub fn upstream_connected(&self, origin: &str) -> StreamGuard {
        self.upstream_connects.with_label_values(&[origin]).inc();
        StreamGuard::new(
            self.upstream_connected.with_label_values(&[origin]),
            Some(self.upstream_disconnects.with_label_values(&[origin])),
        )
    }

    /// A stream to the origin was ended because of the relays that it leads to.
    pub fn upstream_loop(&self, origin: &str) {
        self.upstream_loops.with_label_values(&[origin]).inc();
    }

    /// The counters of a type URL from an origin.
    #[must_use]
    pub fn upstream(&self, origin: &str, type_url: &str) -> UpstreamMetrics {
        let label = self.type_label(type_url);
        let counter = |counters: &IntCounterVec| Counter(counters.with_label_values(&[origin, &label]));
        UpstreamMetrics {
            responses: counter(&self.upstream_responses),
            resources: counter(&self.upstream_resources),
            nacks: counter(&self.upstream_nacks),
        }
    }

    /// What is known was written, so many keys of it, or was not.
    pub(crate) fn state_commit(&self, keys: Option<usize>) {
        self.state_commits.with_label_values(&[if keys.is_some() { "ok" } else { "failed" }]).inc();
        self.state_keys.with_label_values::<&str>(&[]).inc_by(keys.unwrap_or(0) as u64);
    }

    /// Makes these visible before anything is written.
    pub fn declare_state(&self) {
        ["ok", "failed"].iter().for_each(|result| _ = self.state_commits.with_label_values(&[result]));
        self.state_keys.with_label_values::<&str>(&[]);
    }

    /// Everything in Prometheus' text format, version 0.0.4 ([`Metrics::CONTENT_TYPE`]).
    #[must_use]
    pub fn render(&self, now: &Gauges) -> String {
        let mut text = Vec::new();
        // Into memory, and without empty families, nothing fails.
        if let Err(error) = TextEncoder::new().encode(&self.families(now), &mut text) {
            tracing::error!(%error, "cannot write metrics");
        }
        String::from_utf8(text).unwrap_or_default()
    }

    /// Everything, by name; none is empty.
    pub(crate) fn families(&self, now: &Gauges) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        families.extend(self.gather_gauges(now));
        families.extend(self.gather_heard());
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        families
    }

    /// Of [`Metrics::render`].
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    fn type_label(&self, type_url: &str) -> String {
        const LONGEST: usize = 128;
        let label = short(type_url);
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        let has_label = types.contains(&label)
            || (types.len() < DISTINCT_TYPES && label.len() <= LONGEST && types.insert(label.clone()));
        if has_label { label } else { "other".to_owned() }
    }
}

/// A type URL without the host in front.
fn short(type_url: &str) -> String {
    type_url.rsplit('/').next().unwrap_or_default().to_owned()
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, constant(IntCounterVec::new(options(name, help), labels)))
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    constant(IntGaugeVec::new(options(name, help), labels))
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("xds_relay")
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> C {
    constant(registry.register(Box::new(collector.clone())));
    collector
}

#[expect(clippy::expect_used, reason = "names and labels are constants of this file; any test of it would fail")]
fn constant<T>(result: prometheus::Result<T>) -> T {
    result.expect("valid names, each registered once")
}

#[cfg(test)]
mod tests;
