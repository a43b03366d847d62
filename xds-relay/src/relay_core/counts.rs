//! What is counted: by types that clients name, and of what comes from origins.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use xds_transport::server::Tally;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::Observer;

use crate::lock::lock;
use crate::metrics::Metrics;

/// What was done for clients, by type.
#[derive(Default)]
pub(crate) struct Counts(Mutex<HashMap<TypeUrl, Counted>>);

/// What streams that are over did, and how much of everything the metrics were told already.
#[derive(Default)]
struct Counted {
    closed: Tally,
    told: Tally,
}

impl Counts {
    /// A stream's session is over.
    pub(crate) fn closed(&self, type_url: &TypeUrl, tally: &Tally) {
        let mut counted = lock(&self.0);
        let counted_as = counted_as(&counted, type_url);
        counted.entry(counted_as).or_default().closed.add(tally);
    }

    /// Tells the metrics what happened since they were told last. `open` adds what sessions did that are not over.
    pub(crate) fn tell(&self, metrics: &Metrics, open: impl FnOnce(&mut Vec<(TypeUrl, Tally)>)) {
        // Before the open streams are looked at: a session that ends meanwhile is missed this time, and
        // told the next. The other way round it would be told twice.
        let mut totals: HashMap<TypeUrl, Tally> =
            lock(&self.0).iter().map(|(type_url, of)| (type_url.clone(), of.closed.clone())).collect();
        let mut sessions: Vec<(TypeUrl, Tally)> = Vec::new();
        open(&mut sessions);
        let mut counted = lock(&self.0);
        for (type_url, tally) in sessions {
            let counted_as = counted_as(&counted, &type_url);
            counted.entry(counted_as.clone()).or_default();
            totals.entry(counted_as).or_default().add(&tally);
        }
        for (type_url, total) in totals {
            let told = &mut counted.entry(type_url.clone()).or_default().told;
            let metrics = metrics.downstream(type_url.as_str());
            let news = |total: u64, told: &mut u64| {
                let news = total.saturating_sub(*told);
                *told += news;
                news
            };
            metrics.requests.add(news(total.requests, &mut told.requests));
            metrics.responses.add(news(total.responses, &mut told.responses));
            metrics.resources.add(news(total.resources, &mut told.resources));
            metrics.acks.add(news(total.acks, &mut told.acks));
            let by_reason = total.nacks_by_reason.into_iter().zip(&mut told.nacks_by_reason);
            by_reason.zip(&metrics.nacks).for_each(|((total, told), counter)| counter.add(news(total, told)));
            metrics.bytes.add(news(total.bytes, &mut told.bytes));
        }
    }
}

/// Types are named by clients: those beyond a bound are counted together.
fn counted_as(counted: &HashMap<TypeUrl, Counted>, type_url: &TypeUrl) -> TypeUrl {
    const MOST: usize = 256;
    let full = counted.len() >= MOST && !counted.contains_key(type_url);
    if full { TypeUrl::from("") } else { type_url.clone() }
}

impl Observer for Metrics {
    fn connected(&self, origin: &str) -> Box<dyn Any + Send + Sync> {
        Box::new(self.upstream_connected(origin))
    }

    fn looped(&self, origin: &str) {
        self.upstream_loop(origin);
    }

    fn switched(&self, origin: &str, server: &str) {
        self.origin_switched(origin, server);
    }

    fn received(&self, origin: &str, type_url: &TypeUrl, responses: u64, resources: u64) {
        let metrics = self.upstream(origin, type_url.as_str());
        metrics.responses.add(responses);
        metrics.resources.add(resources);
    }

    fn nacked(&self, origin: &str, type_url: &TypeUrl) {
        self.upstream(origin, type_url.as_str()).nacks.inc();
    }

    fn spoke(&self, origin: &str, at: Instant) {
        self.origin_spoke(origin, at);
    }

    fn restated(&self, origin: &str, _type_url: &TypeUrl, resources: u64) {
        self.upstream_restated(origin, resources);
    }

    fn overlapping(&self, origin: &str, _type_url: &TypeUrl, names: u64) {
        self.upstream_overlapping(origin, names);
    }

    fn too_long(&self, origin: &str) {
        self.upstream_too_long(origin);
    }

    fn refused(&self, origin: &str, resources: u64) {
        self.upstream_refused(origin, resources);
    }
}
