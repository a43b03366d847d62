//! When the stream of a type that ended beside others is opened again, and how long it may fail unsaid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xdstp_cache::TypeUrl;

use crate::backoff::Backoff;

/// After so long a stream ends well: the origin may have nothing to say to who returns with all it has.
const LASTING: Duration = Duration::from_secs(60);
/// The same since it was answered.
const LASTING_ANSWERED: Duration = Duration::from_secs(30);
/// While a server is replaced, the one or the other may not have a method.
const DOUBT: Duration = Duration::from_secs(15);

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
    /// When its stream has lasted, if it was asked for again.
    lasts_at: Option<Instant>,
    /// Since when it ends for want of a method, and for nothing else.
    lacks_since: Option<Instant>,
}

impl Apart {
    /// Each type waits by a backoff like this one.
    pub(super) fn new(mut backoff: Backoff) -> Self {
        backoff.reset();
        Self { backoff, types: BTreeMap::new(), known: BTreeSet::new(), lacks: BTreeSet::new(), lacks_since: None }
    }

    /// The stream of a type ended, for want of a method perhaps. Whether there surely is none: that was said a while before, nothing
    /// else since, and no answer ever.
    pub(super) fn ended(&mut self, now: Instant, type_url: &TypeUrl, lacks_method: bool, random: u64) -> bool {
        let ended = self.types.entry(type_url.clone()).or_insert_with(|| {
            let backoff = self.backoff.clone();
            Ended { backoff, retry_at: now, lasts_at: None, lacks_since: None }
        });
        if ended.lasts_at.take().is_some_and(|at| at <= now) {
            ended.backoff.reset();
        }
        ended.retry_at = now + ended.backoff.next(random);
        ended.lacks_since = ended.lacks_since.filter(|_| lacks_method).or(lacks_method.then_some(now));
        let Some(since) = ended.lacks_since.filter(|_| !self.known.contains(type_url)) else { return false };
        let surely_at = since + DOUBT;
        if surely_at > now {
            ended.retry_at = ended.retry_at.min(surely_at);
        }
        surely_at <= now
    }

    /// A response came for a type: that makes the next wait short again.
    pub(super) fn answered(&mut self, type_url: &TypeUrl) {
        if self.types.get(type_url).is_none_or(Ended::is_asked) {
            self.types.remove(type_url);
            self.known.insert(type_url.clone());
        }
    }

    /// Its stream was answered, if not yet with a response.
    pub(super) fn opened(&mut self, now: Instant, type_url: &TypeUrl) {
        let ended = self.types.get_mut(type_url);
        let lasts_at = ended.and_then(|ended| ended.lasts_at.as_mut());
        lasts_at.into_iter().for_each(|at| *at = (*at).min(now + LASTING_ANSWERED));
    }

    /// Whether its stream ended, and it was not answered since.
    pub(super) fn ended_since(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }

    /// The types that are to be asked for again.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<TypeUrl> {
        let due = self.types.iter_mut().filter(|(_, ended)| !ended.is_asked() && ended.retry_at <= now);
        due.map(|(type_url, ended)| {
            ended.lasts_at = Some(now + LASTING);
            type_url.clone()
        })
        .collect()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.types.values().filter(|ended| !ended.is_asked()).map(|ended| ended.retry_at).min()
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

impl Ended {
    fn is_asked(&self) -> bool {
        self.lasts_at.is_some()
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

    /// Who has all that there is of it hears nothing for ever, and a proxy ends each stream that is quiet.
    #[test]
    fn a_stream_that_lasted_is_opened_again_soon_though_nothing_came() {
        let (start, of) = (now(), CDS.into());
        for (lasting, opened, soon) in [(300, false, true), (60, false, true), (31, true, true), (31, false, false)] {
            let (mut now, mut apart) = (start, Apart::new(Backoff::default()));
            let mut waits = Vec::new();
            for _ in 0..20 {
                apart.ended(now, &of, false, u64::MAX);
                let retry_at = apart.poll_timeout().unwrap();
                waits.push(retry_at - now);
                assert_eq!(apart.take_due(retry_at), std::slice::from_ref(&of));
                if opened {
                    apart.opened(retry_at + Duration::from_secs(1), &of);
                }
                now = retry_at + Duration::from_secs(lasting);
            }
            let longest = waits.into_iter().max().unwrap();
            assert_eq!(longest <= Duration::from_millis(500), soon, "{lasting} {opened}: {longest:?}");
        }
    }

    #[test]
    fn that_there_is_no_method_counts_if_it_is_said_again_and_none_ever_answered() {
        let (mut now, of) = (now(), CDS.into());
        let mut apart = Apart::new(Backoff::default());
        let (mut all, mut first) = (Vec::new(), None);
        // Each this many seconds after the one before.
        for (after, lacks_method) in [(0, true), (20, false), (1, true), (14, true), (1, true), (9, true)] {
            now += Duration::from_secs(after);
            all.push(apart.ended(now, &of, lacks_method, u64::MAX));
            // Until it counts, it is asked for no later than it would.
            first = first.filter(|_| lacks_method).or(lacks_method.then_some(now));
            let by = first.filter(|first| *first + DOUBT > now).map(|first| first + DOUBT);
            assert!(by.is_none_or(|by| apart.poll_timeout().unwrap() <= by));
            apart.take_due(now + Duration::from_secs(100));
        }
        assert_eq!(all, [false, false, false, false, true, true]);
        apart.answered(&of);
        apart.clear();
        for _ in 0..3 {
            now += DOUBT;
            assert!(!apart.ended(now, &of, true, 0), "a server that does not know it yet");
            apart.take_due(now);
        }
    }
}
