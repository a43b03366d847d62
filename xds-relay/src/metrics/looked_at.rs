//! What is counted only when somebody looks.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;

use super::{DriftGauges, Metrics, ReleaseGauges, drift, gauges, released, signed};

/// What is counted only when somebody looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Whether the relay is ready.
    pub ready: bool,
    /// Type URL → resources held.
    pub resources: BTreeMap<String, u64>,
    /// Subscriptions: one for each type on each stream.
    pub subscribers: u64,
    /// Bodies held for node groups, equal ones once.
    pub bodies: u64,
    /// Origin and one of its several servers → scopes that it feeds, which are authorities and node groups.
    pub in_use: BTreeMap<(String, String), u64>,
    /// Origin → resources that are known from before a restart, and of which it has said nothing since.
    pub stale: BTreeMap<String, u64>,
    /// How old these are, in seconds.
    pub stale_seconds: u64,
    /// Limit → how much of it is used, and how much there may be.
    pub limits: BTreeMap<&'static str, (u64, u64)>,
    /// What was read of before a restart that is not what was written, if it is to be kept.
    pub damaged: Option<u64>,
    /// Whether what is known is kept where it survives a restart, if it is to be.
    pub state: Option<bool>,
    /// Scope → how its releases are, if it has any.
    pub releases: BTreeMap<String, ReleaseGauges>,
    /// What was seen of drift, if it is looked for.
    pub drift: Option<DriftGauges>,
    /// Field of the configuration → when the certificate in its file expires, of several the one that does first.
    pub certificates: BTreeMap<String, CertificateTimes>,
}

/// When a certificate expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateTimes {
    /// In so many seconds: less than none, if it has expired.
    pub expires_in_seconds: i64,
    /// For how long it was good in all, in seconds.
    pub lifetime_seconds: u64,
}

impl Metrics {
    pub(super) fn gather_gauges(&self, now: &Gauges) -> Vec<MetricFamily> {
        let info = gauges("info", "Always 1; the labels say what runs.", &["version"]);
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let ready = gauges("ready", "1 while the relay is ready.", &[]);
        ready.with_label_values::<&str>(&[]).set(i64::from(now.ready));
        let subscribers = gauges("subscribers", "Subscriptions now: one for each type on each stream.", &[]);
        subscribers.with_label_values::<&str>(&[]).set(signed(now.subscribers));
        let resources = gauges("resources", "Resources held now.", &["type"]);
        for (type_url, count) in &now.resources {
            resources.with_label_values(&[self.type_label(type_url)]).add(signed(*count));
        }
        let bodies = gauges("bodies", "Bodies held now for node groups, equal ones once.", &[]);
        bodies.with_label_values::<&str>(&[]).set(signed(now.bodies));
        let stale = gauges("stale_resources", "Resources known from before a restart only.", &["origin"]);
        for (origin, count) in &now.stale {
            stale.with_label_values(&[origin]).set(signed(*count));
        }
        let in_use = gauges(
            "origin_in_use",
            "Authorities and node groups that are fed by this server of an origin.",
            &["origin", "server"],
        );
        for ((origin, server), scopes) in &now.in_use {
            in_use.with_label_values(&[origin, server]).set(signed(*scopes));
        }
        let age = gauges("stale_seconds", "How long ago resources that are stale were known to be so.", &[]);
        if !now.stale.is_empty() {
            age.with_label_values::<&str>(&[]).set(signed(now.stale_seconds));
        }
        let state = gauges("state_kept", "1 while what is known is kept where it survives a restart.", &[]);
        if let Some(kept) = now.state {
            state.with_label_values::<&str>(&[]).set(i64::from(kept));
        }
        let damaged = gauges("state_damaged", "What was read there that is not what was written: it is left out.", &[]);
        if let Some(count) = now.damaged {
            damaged.with_label_values::<&str>(&[]).set(signed(count));
        }
        let limit = gauges("limit", "How much there may be, of what all clients together use.", &["limit"]);
        let used = gauges("limit_used", "How much of that is used now.", &["limit"]);
        for (key, (taken, most)) in &now.limits {
            used.with_label_values(&[key]).set(signed(*taken));
            limit.with_label_values(&[key]).set(signed(*most));
        }
        let expires = gauges(
            "certificate_expires_in_seconds",
            "Seconds until the first of the certificates in a file expires.",
            &["field"],
        );
        let lifetime = gauges("certificate_lifetime_seconds", "For how long that is good in all.", &["field"]);
        for (field, times) in &now.certificates {
            expires.with_label_values(&[field]).set(times.expires_in_seconds);
            lifetime.with_label_values(&[field]).set(signed(times.lifetime_seconds));
        }
        [
            expires,
            lifetime,
            damaged,
            limit,
            used,
            info,
            ready,
            subscribers,
            resources,
            bodies,
            in_use,
            stale,
            age,
            state,
        ]
        .iter()
        .flat_map(Collector::collect)
        .chain(released::gather(&now.releases))
        .chain(drift::gather(now.drift.as_ref()))
        .collect()
    }
}
