//! When the stream of a type that ended beside others is opened again, and how long it may fail unsaid.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xdstp_cache::TypeUrl;

use crate::backoff::Backoff;

/// For so long a type may have no answer before it is told: a moment without a server is no refusal. And a stream that lasted
/// longer was none.
const PATIENCE: Duration = Duration::from_secs(15);

/// The types whose stream ended, and that were not answered since.
#[derive(Debug)]
pub(super) struct Apart {
    backoff: Backoff,
    types: BTreeMap<TypeUrl, Ended>,
}

#[derive(Debug)]
struct Ended {
    backoff: Backoff,
    retry_at: Instant,
    is_asked: bool,
    fails_since: Instant,
}

impl Apart {
    /// Each type waits by a backoff like this one.
    pub(super) fn new(mut backoff: Backoff) -> Self {
        backoff.reset();
        Self { backoff, types: BTreeMap::new() }
    }

    /// The stream of a type ended. Whether it has failed for long.
    pub(super) fn ended(&mut self, now: Instant, type_url: &TypeUrl, random: u64) -> bool {
        let ended = self.types.entry(type_url.clone()).or_insert_with(|| {
            let backoff = self.backoff.clone();
            Ended { backoff, retry_at: now, is_asked: true, fails_since: now }
        });
        if now.saturating_duration_since(ended.retry_at) > PATIENCE {
            ended.fails_since = now;
        }
        (ended.retry_at, ended.is_asked) = (now + ended.backoff.next(random), false);
        now.saturating_duration_since(ended.fails_since) >= PATIENCE
    }

    /// A response came for a type: only that makes the next wait short again.
    pub(super) fn answered(&mut self, type_url: &TypeUrl) {
        if self.types.get(type_url).is_some_and(|ended| ended.is_asked) {
            self.types.remove(type_url);
        }
    }

    /// Whether a type has no stream, and waits for the time of the next.
    pub(super) fn waits(&self, type_url: &TypeUrl) -> bool {
        self.types.get(type_url).is_some_and(|ended| !ended.is_asked)
    }

    /// The types that are to be asked for again.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<TypeUrl> {
        let due = self.types.iter_mut().filter(|(_, ended)| !ended.is_asked && ended.retry_at <= now);
        due.map(|(type_url, ended)| {
            ended.is_asked = true;
            type_url.clone()
        })
        .collect()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.types.values().filter(|ended| !ended.is_asked).map(|ended| ended.retry_at).min()
    }

    /// All streams are over.
    pub(super) fn clear(&mut self) {
        self.types.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn now() -> Instant {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        Instant::now()
    }

    #[test]
    fn rule_089_only_a_response_for_the_type_resets_its_backoff() {
        let (now, of) = (now(), CDS.into());
        let mut apart = Apart::new(Backoff::default());
        let mut waits = Vec::new();
        for answered in [false, false, false, true, false] {
            apart.ended(now, &of, u64::MAX);
            let retry_at = apart.poll_timeout().unwrap();
            waits.push((retry_at - now).as_millis());
            assert!(apart.waits(&of) && apart.take_due(now).is_empty());
            // What comes late is no answer of the next stream.
            apart.answered(&of);
            assert_eq!(apart.take_due(retry_at), std::slice::from_ref(&of));
            assert!(!apart.waits(&of) && apart.poll_timeout().is_none());
            if answered {
                apart.answered(&of);
            }
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 500]);
    }

    #[test]
    fn a_type_fails_once_it_had_no_answer_for_a_while_and_not_when_long_streams_end() {
        let (mut at, of) = (now(), CDS.into());
        let mut apart = Apart::new(Backoff::default());
        let mut lasts = |seconds| {
            let fails = apart.ended(at, &of, 0);
            apart.take_due(at);
            at += Duration::from_secs(seconds);
            fails
        };
        let failed: Vec<_> = [300, 300, 5, 5, 5, 5, 300, 5].into_iter().map(&mut lasts).collect();
        assert_eq!(failed, [false, false, false, false, false, true, true, false]);
    }
}
