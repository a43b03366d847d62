//! What all clients together may cost: so many streams, node groups, authorities and names, and no more.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::server::ProtocolError;
use xds_transport::{Bucket, RateLimit};
use xdstp_client::federation::{self, OverLimit, Quota, Share};

use crate::config::Limits;
use crate::lock::lock;

/// Why a client is not served: there would be more than the relay is configured for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {most} {what}{line}", line = line(key))]
#[non_exhaustive]
pub struct LimitError {
    /// The line of the configuration.
    pub key: &'static str,
    /// Of what there would be too much.
    pub what: &'static str,
    /// How many there may be.
    pub most: usize,
}

impl From<OverLimit> for LimitError {
    fn from(OverLimit { key, what, most }: OverLimit) -> Self {
        Self { key, what, most }
    }
}

/// Where a limit is set, after the words of what met it.
pub(crate) fn line(key: &str) -> String {
    // One of a single client says where it is by itself.
    let of = if key.starts_with("clients") { "" } else { "limits." };
    format!(" ({of}{key} of the relay)")
}

/// Which limit of the protocol's own machine ends a stream, if one does.
pub(crate) fn key_of(error: &ProtocolError) -> Option<&'static str> {
    Some(match error {
        ProtocolError::TooLong { what: "request", .. } => "max_request_bytes",
        ProtocolError::TooLong { what: "node", .. } => "node_bytes",
        ProtocolError::TooLong { .. } => "name_bytes",
        ProtocolError::TooMany { what: "types", .. } => "types_per_stream",
        ProtocolError::TooMany { what: "sets of dynamic parameters", .. } => "parameter_sets_per_stream",
        ProtocolError::TooMany { .. } => "names_per_stream",
        ProtocolError::TooOften { .. } => "requests_per_second",
        ProtocolError::TooMuch { .. } => "unfinished_request_bytes",
        ProtocolError::NoRequest { .. } => "first_request",
        ProtocolError::Aged => "stream_age",
        _ => return None,
    })
}

/// The streams that a relay may have.
#[derive(Debug)]
pub(crate) struct Quotas {
    streams: Arc<Quota>,
    load_reports: Arc<Quota>,
    new_streams: Mutex<NewStreams>,
}

#[derive(Debug)]
struct NewStreams {
    bucket: Bucket,
    per_second: u32,
}

/// What its streams together may use up.
pub(crate) fn of_streams(limits: &Limits) -> federation::Limits {
    federation::Limits {
        groups: Quota::new("groups", "node groups", limits.groups),
        authorities: Quota::new("authorities", "authorities", limits.authorities),
        names: Quota::new("names", "names", limits.names),
        authorities_per_stream: limits.authorities_per_stream,
        names_per_turn: limits.names_per_turn,
        lingering: Quota::new("lingering_names", "lingering names", limits.lingering_names),
    }
}

impl Quotas {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            streams: Quota::new("streams", "streams", limits.streams),
            load_reports: Quota::new("load_report_streams", "streams of load reports", limits.load_report_streams),
            new_streams: Mutex::new(NewStreams::of(limits)),
        }
    }

    /// What streams use up, of those that they share with others and these.
    pub(crate) fn used(&self, shared: &federation::Limits) -> impl Iterator<Item = (&'static str, (u64, u64))> {
        let federation::Limits { groups, authorities, names, .. } = shared;
        [&self.streams, &self.load_reports, groups, authorities, names]
            .map(|quota| (quota.key(), (quota.used() as u64, quota.most() as u64)))
            .into_iter()
    }

    /// There may be so many from now on. Those there are stay.
    pub(crate) fn set(&self, limits: &Limits) {
        self.streams.set_most(limits.streams);
        self.load_reports.set_most(limits.load_report_streams);
        let mut new_streams = lock(&self.new_streams);
        if new_streams.per_second != limits.new_streams_per_second.max(1) {
            *new_streams = NewStreams::of(limits);
        }
    }

    /// How many streams of load reports there are.
    pub(crate) fn load_reports(&self) -> usize {
        self.load_reports.used()
    }

    /// A place for one more stream of load reports.
    pub(crate) fn load_report(&self) -> Result<Share, LimitError> {
        Ok(self.load_reports.take()?)
    }

    /// A place for one more stream: not before others of this second had theirs, so that a fleet that comes back at once
    /// does so over some seconds.
    pub(crate) fn stream(&self, now: Instant) -> Result<Share, LimitError> {
        let place = self.streams.take()?;
        let mut new_streams = lock(&self.new_streams);
        if !new_streams.bucket.has_token(now) {
            let (key, what) = ("new_streams_per_second", "new streams a second");
            return Err(LimitError { key, what, most: new_streams.per_second as usize });
        }
        new_streams.bucket.take();
        Ok(place)
    }
}

impl NewStreams {
    fn of(limits: &Limits) -> Self {
        let second = std::time::Duration::from_secs(1);
        let per_second = limits.new_streams_per_second.max(1);
        Self { bucket: Bucket::new(RateLimit { burst: per_second, every: second / per_second }), per_second }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::config::LIMITS;

    #[test]
    fn who_is_refused_is_told_where_the_limit_is_set() {
        let limits = Limits { streams: 0, ..Limits::default() };
        #[allow(clippy::disallowed_methods, reason = "any moment will do")]
        let error = Quotas::new(&limits).stream(Instant::now()).unwrap_err();
        assert_eq!(error.to_string(), "more than 0 streams (limits.streams of the relay)");
    }

    #[test]
    fn what_a_stream_ends_by_is_a_limit_that_is_counted() {
        let long = |what| ProtocolError::TooLong { what, length: 2, limit: 1 };
        let many = |what| ProtocolError::TooMany { what, limit: 1 };
        for error in [
            long("request"),
            long("node"),
            long("version"),
            many("types"),
            many("sets of dynamic parameters"),
            many("names"),
            ProtocolError::TooOften { burst: 1, every: Duration::ZERO },
            ProtocolError::TooMuch { limit: 1 },
            ProtocolError::NoRequest { within: Duration::ZERO },
            ProtocolError::Aged,
        ] {
            let key = key_of(&error).unwrap();
            assert!(LIMITS.iter().any(|limit| limit.key == key && limit.is_counted), "{key}");
        }
    }

    #[test]
    fn streams_come_so_many_a_second() {
        let limits = Limits { new_streams_per_second: 10, streams: 1000, ..Limits::default() };
        let quotas = Quotas::new(&limits);
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let admitted = |ms: u64| {
            let now = start + Duration::from_millis(ms);
            std::iter::from_fn(|| quotas.stream(now).ok()).take(100).map(std::mem::forget).count()
        };
        assert_eq!([0, 50, 100, 1100, 2000].map(admitted), [10, 0, 1, 10, 9]);
        let error = quotas.stream(start + Duration::from_secs(2)).unwrap_err();
        assert_eq!(error.to_string(), "more than 10 new streams a second (limits.new_streams_per_second of the relay)");
    }

    /// As Envoy comes back: up to half a second later at first, twice that each time, half a minute in the end (rule 90).
    #[test]
    fn rule_136_a_fleet_that_comes_back_at_once_is_there_within_half_a_minute() {
        const FLEET: u64 = 10_000;
        let quotas = Quotas::new(&Limits::default());
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let mut attempts: BTreeSet<(u64, u64, u32)> = (0..FLEET).map(|client| (0, client, 0)).collect();
        let (mut streams, mut random, mut last) = (Vec::new(), 1_u64, 0);
        while let Some((ms, client, failed)) = attempts.pop_first() {
            if let Ok(stream) = quotas.stream(start + Duration::from_millis(ms)) {
                streams.push(stream);
                last = ms;
                continue;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let wait = (random >> 33) % (500 << failed.min(6)).min(30_000);
            attempts.insert((ms + wait, client, failed + 1));
        }
        assert!(streams.len() as u64 == FLEET && last < 30_000, "the last came after {last} ms");
    }
}
