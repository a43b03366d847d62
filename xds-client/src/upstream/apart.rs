//! When the stream of a type that ended beside others is opened again, and how long it may fail unsaid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use xdstp_cache::TypeUrl;

use crate::backoff::Backoff;

/// The types whose stream ended, and that were not answered since.
#[derive(Debug)]
pub(super) struct Apart {
    backoff: Backoff,
    types: BTreeMap<TypeUrl, Ended>,
    /// Types that were ever answered: there is a method for each, whatever a server says that does not know it yet.
    known: BTreeSet<TypeUrl>,
    /// The origin has no method for these, and has answered for no other since.
    lacks: BTreeSet<TypeUrl>,
    /// When the last of all streams ended for that, if it did.
    lacks_since: Option<Instant>,
}

#[derive(Debug)]
struct Ended {
    backoff: Backoff,
    retry_at: Instant,
    is_asked: bool,
    /// It ended for want of a method, and said nothing else since.
    lacks_method: bool,
}

impl Apart {
    /// Each type waits by a backoff like this one.
    pub(super) fn new(mut backoff: Backoff) -> Self {
        backoff.reset();
        Self { backoff, types: BTreeMap::new(), known: BTreeSet::new(), lacks: BTreeSet::new(), lacks_since: None }
    }

    /// The stream of a type ended, for want of a method perhaps. Whether there surely is none: that was said before, and no answer ever.
    pub(super) fn ended(&mut self, now: Instant, type_url: &TypeUrl, lacks_method: bool, random: u64) -> bool {
        let ended = self.types.entry(type_url.clone()).or_insert_with(|| {
            let backoff = self.backoff.clone();
            Ended { backoff, retry_at: now, is_asked: true, lacks_method: false }
        });
        (ended.retry_at, ended.is_asked) = (now + ended.backoff.next(random), false);
        let lacked = std::mem::replace(&mut ended.lacks_method, lacks_method);
        lacked && lacks_method && !self.known.contains(type_url)
    }

    /// A response came for a type: only that makes the next wait short again.
    pub(super) fn answered(&mut self, type_url: &TypeUrl) {
        if self.types.get(type_url).is_none_or(|ended| ended.is_asked) {
            self.types.remove(type_url);
            self.known.insert(type_url.clone());
        }
    }

    /// Whether its stream ended, and it was not answered since.
    pub(super) fn ended_since(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
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

    /// The origin has no method for any of these, which is all that it was asked for.
    pub(super) fn lack(&mut self, now: Instant, types: impl Iterator<Item = TypeUrl>) {
        self.lacks.extend(types);
        self.lacks_since = Some(now);
    }

    /// Whether it may have one for this, though it has none for what was asked: since when that is waited for.
    pub(super) fn may_have(&self, type_url: &TypeUrl) -> Option<Instant> {
        self.lacks_since.filter(|_| !self.lacks.contains(type_url))
    }

    /// It answered.
    pub(super) fn has_methods(&mut self) {
        self.lacks.clear();
    }

    /// All streams are over.
    pub(super) fn clear(&mut self) {
        self.types.clear();
        self.lacks_since = None;
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
            apart.ended(now, &of, false, u64::MAX);
            let retry_at = apart.poll_timeout().unwrap();
            waits.push((retry_at - now).as_millis());
            assert!(apart.ended_since(&of) && apart.take_due(now).is_empty());
            // What comes late is no answer of the next stream.
            apart.answered(&of);
            assert_eq!(apart.take_due(retry_at), std::slice::from_ref(&of));
            assert!(apart.poll_timeout().is_none());
            if answered {
                apart.answered(&of);
            }
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 500]);
    }

    #[test]
    fn that_there_is_no_method_counts_if_it_is_said_again_and_none_ever_answered() {
        let (now, of) = (now(), CDS.into());
        let mut apart = Apart::new(Backoff::default());
        let mut all = Vec::new();
        for lacks_method in [true, false, true, true, true] {
            all.push(apart.ended(now, &of, lacks_method, 0));
            apart.take_due(now);
        }
        assert_eq!(all, [false, false, false, true, true]);
        apart.answered(&of);
        apart.clear();
        for _ in 0..3 {
            assert!(!apart.ended(now, &of, true, 0), "a server that does not know it yet");
            apart.take_due(now);
        }
    }
}
