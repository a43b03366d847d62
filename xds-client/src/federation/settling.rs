//! When a wildcard or glob is complete: what is not in it may be on its way.
//!
//! An answer may come in any number of pieces, with any time between them (rule 151). Until it is complete nobody who
//! brought something along is told that it is gone. Delta has no end of an answer: the origin is asked for the fate of what
//! clients bring along, and only of what it says nothing about for long, silence says something. On a stream that is never
//! silent, or where silence is that of a relay without its origin, a [marker](crate::federation::markers) is asked for.
//! Over SotW a full state says all there is, but one that crossed the request may be older than it. Other SotW responses
//! never say what is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xds_transport::client::Update;
use xdstp_cache::{Interest, TypeUrl};

use crate::federation::demand::Wish;

/// After this much silence of the stream, not of a collection, a delta origin has said all it has to say: as much as
/// rule 74 waits. Every byte is a word.
const SILENCE: Duration = Duration::from_secs(15);
/// Who holds nothing, and is told a whole state at a time, waits for a moment without news, so that its first state is
/// not a piece of it.
const PAUSE: Duration = Duration::from_millis(200);
/// And no longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The collections of one stream that were answered, and how far.
pub(crate) struct Settling {
    /// When the origin last said anything on this stream.
    heard: Option<Instant>,
    /// Of these something came, and more may be on its way. Each with when it is `doubtful` whether silence will say.
    begun: BTreeMap<Wish, Instant>,
    /// The same by time, until that is said.
    doubtful: BTreeSet<(Instant, Wish)>,
    /// The same of those that no silence completes.
    endless: BTreeSet<Wish>,
    complete: BTreeSet<Wish>,
    /// What was begun or complete on the stream before, or not answered in time. This one may say that it is as it was without
    /// naming it.
    before: BTreeSet<Wish>,
    /// Those of the begun that nobody was shown, and since when there are any.
    unshown: BTreeSet<Wish>,
    unshown_since: Option<Instant>,
    /// The origin is a relay: it is as silent when its own origin is away.
    by_relay: bool,
    /// After how long it is doubtful whether silence will say.
    doubts_after: Duration,
}

/// What time has settled.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// What there is of these may be shown to who holds nothing.
    pub(crate) begun: Vec<Wish>,
    /// What is not in these is not there.
    pub(crate) complete: Vec<Wish>,
}

impl Settling {
    /// No stream yet: an answer is doubtful after a time without an end.
    pub(crate) fn new(doubts_after: Duration) -> Self {
        Self {
            heard: None,
            begun: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            endless: BTreeSet::new(),
            complete: BTreeSet::new(),
            before: BTreeSet::new(),
            unshown: BTreeSet::new(),
            unshown_since: None,
            by_relay: false,
            doubts_after,
        }
    }

    /// Whether the origin of this stream is a relay, of which no silence says anything; and after how long without an end
    /// an answer is doubtful. Each type may have a stream: one to a relay is enough.
    pub(crate) fn connected(&mut self, by_relay: bool, doubts_after: Duration) {
        self.by_relay |= by_relay;
        self.doubts_after = doubts_after;
    }

    /// Bytes came.
    pub(crate) fn received(&mut self, at: Instant) {
        self.heard = self.heard.max(Some(at));
    }

    /// Takes note of what an update answers. What is complete with it is returned; the rest [settles](Self::settled)
    /// later, by silence if `ends`.
    pub(crate) fn update(&mut self, now: Instant, update: &Update, ends: bool) -> Vec<Interest> {
        if !update.unsaid {
            self.received(now);
        }
        for collection in &update.answered {
            let wish = (update.type_url.clone(), collection.clone());
            if self.complete.contains(&wish) || self.before.contains(&wish) {
                continue;
            }
            let new = match (ends, update.unsaid) {
                (false, _) => self.endless.insert(wish.clone()),
                (true, false) => self.begin(now, &wish),
                // It was not answered in time: there is nothing yet that a silence could complete.
                (true, true) => self.before.insert(wish.clone()),
            };
            if new {
                self.unshown.insert(wish);
                self.unshown_since.get_or_insert(now);
            }
        }
        let speaks = |(type_url, _): &Wish| !update.unsaid && *type_url == update.type_url;
        let (again, other): (BTreeSet<_>, BTreeSet<_>) = std::mem::take(&mut self.before).into_iter().partition(speaks);
        self.before = other;
        for wish in again {
            self.begin(now, &wish);
        }
        for collection in &update.complete {
            self.complete(&update.type_url, collection);
        }
        // Nothing ends an answer that there is not. That there is no stream for it takes none back.
        update.withheld().filter(|_| !update.unsaid).for_each(|of| self.forget(&update.type_url, &of));
        update.complete.clone()
    }

    /// Whether it was not begun before.
    fn begin(&mut self, now: Instant, wish: &Wish) -> bool {
        let new = !self.begun.contains_key(wish);
        if new {
            let doubtful_at = now + self.doubts_after;
            self.begun.insert(wish.clone(), doubtful_at);
            self.doubtful.insert((doubtful_at, wish.clone()));
        }
        new
    }

    /// These were answered before there was any stream, and what came of them is held.
    pub(crate) fn resume(&mut self, type_url: &TypeUrl, collections: &[Interest]) {
        let wishes = collections.iter().map(|collection| (type_url.clone(), collection.clone()));
        self.before.extend(wishes.filter(|wish| !self.begun.contains_key(wish) && !self.complete.contains(wish)));
    }

    /// All of it has come.
    pub(crate) fn complete(&mut self, type_url: &TypeUrl, collection: &Interest) {
        self.forget(type_url, collection);
        self.complete.insert((type_url.clone(), collection.clone()));
    }

    /// Takes those of which silence did not say in time whether there is more.
    pub(crate) fn doubtful(&mut self, now: Instant) -> Vec<Wish> {
        let mut doubtful = Vec::new();
        if self.silent_at().is_some_and(|at| at <= now) {
            return doubtful;
        }
        while let Some((_, wish)) = self.doubtful.first().filter(|(at, _)| *at <= now).cloned() {
            self.doubtful.pop_first();
            doubtful.push(wish);
        }
        doubtful
    }

    /// Takes what the time that passed settles.
    pub(crate) fn settled(&mut self, now: Instant) -> Settled {
        let mut settled = Settled::default();
        if self.shown_at().is_some_and(|at| at <= now) {
            settled.begun.extend(std::mem::take(&mut self.unshown));
            self.unshown_since = None;
        }
        if self.silent_at().is_some_and(|at| at <= now) {
            settled.complete.extend(std::mem::take(&mut self.begun).into_keys());
            self.doubtful.clear();
            self.complete.extend(settled.complete.iter().cloned());
        }
        settled
    }

    /// It is not subscribed any more.
    pub(crate) fn forget(&mut self, type_url: &TypeUrl, collection: &Interest) {
        if !collection.is_collection() {
            return;
        }
        let wish = (type_url.clone(), collection.clone());
        if let Some(at) = self.begun.remove(&wish) {
            self.doubtful.remove(&(at, wish.clone()));
        }
        for wishes in [&mut self.endless, &mut self.complete, &mut self.before, &mut self.unshown] {
            wishes.remove(&wish);
        }
        if self.unshown.is_empty() {
            self.unshown_since = None;
        }
    }

    /// The stream is over: what the next one has to say is to be heard first. What came of it is all there is for now.
    pub(crate) fn pause(&mut self) -> Settled {
        (self.heard, self.by_relay) = (None, false);
        self.doubtful.clear();
        self.before.extend(std::mem::take(&mut self.begun).into_keys());
        self.before.append(&mut self.complete);
        self.unshown_since = None;
        Settled { begun: std::mem::take(&mut self.unshown).into_iter().collect(), complete: Vec::new() }
    }

    /// The same of the stream of one type: what others say, or do not, says nothing of it meanwhile.
    pub(crate) fn pause_type(&mut self, type_url: &TypeUrl) -> Settled {
        let is_of = |(of, _): &Wish| of == type_url;
        self.doubtful.retain(|(_, wish)| !is_of(wish));
        self.before.extend(self.begun.keys().filter(|wish| is_of(wish)).cloned());
        self.begun.retain(|wish, _| !is_of(wish));
        self.before.extend(self.complete.iter().filter(|wish| is_of(wish)).cloned());
        self.complete.retain(|wish| !is_of(wish));
        let (begun, others): (Vec<_>, BTreeSet<_>) = (
            self.unshown.iter().filter(|wish| is_of(wish)).cloned().collect(),
            self.unshown.iter().filter(|wish| !is_of(wish)).cloned().collect(),
        );
        self.unshown = others;
        if self.unshown.is_empty() {
            self.unshown_since = None;
        }
        Settled { begun, complete: Vec::new() }
    }

    /// The next stream is to another server, which cannot say of anything that it is as it was.
    pub(crate) fn another_server(&mut self) {
        self.before.clear();
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let doubtful_at = self.doubtful.first().map(|(at, _)| *at);
        [self.shown_at(), self.silent_at(), doubtful_at].into_iter().flatten().min()
    }

    fn shown_at(&self) -> Option<Instant> {
        let since = self.unshown_since?;
        Some((self.heard? + PAUSE).min(since + LONGEST_PAUSE))
    }

    fn silent_at(&self) -> Option<Instant> {
        self.heard.filter(|_| !self.begun.is_empty() && !self.by_relay).map(|heard| heard + SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;
    use std::sync::Arc;
    use xds_transport::client::{Command, Event, Stream};
    use xds_transport::wire::{DeltaDiscoveryResponse, Resource};
    use xds_transport::{Frame, TypeRules};

    use super::*;

    const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn all() -> Wish {
        (CLUSTERS.into(), Interest::Wildcard)
    }

    /// The first update of a stream that asked for everything: with or without members.
    fn update(now: Instant, names: &[&str]) -> Update {
        let mut stream = Stream::new(xds_transport::Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
        stream.apply(Command::Subscribe(CLUSTERS.into(), Interest::Wildcard));
        stream.connected(now);
        stream.poll_transmit(now).unwrap();
        let body = Frame::of_message(&CLUSTERS.into(), b"").any().clone();
        let any = xds_transport::wire::Any::decode(body).unwrap();
        let resource =
            |name: &&str| Resource { name: (*name).into(), resource: Some(any.clone()), ..Resource::default() };
        let resources = names.iter().map(resource).collect();
        let response = DeltaDiscoveryResponse { type_url: CLUSTERS.into(), resources, ..Default::default() };
        stream.handle_message(now, response.encode_to_vec().into()).unwrap();
        let Some(Event::Update(update)) = stream.poll_event() else { panic!("no update") };
        update
    }

    fn settling() -> Settling {
        Settling::new(SILENCE)
    }

    fn now() -> Instant {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        Instant::now()
    }

    #[test]
    fn rule_151_every_byte_is_a_word_and_only_long_silence_ends_an_answer() {
        let mut at = now();
        let mut settling = settling();
        assert!(settling.update(at, &update(at, &["a"]), true).is_empty());
        at += PAUSE;
        assert_eq!(settling.settled(at), Settled { begun: vec![all()], complete: vec![] });
        settling.received(at);
        assert_eq!(settling.doubtful(at + SILENCE - PAUSE), [all()], "once");
        for _ in 0..1000 {
            at += SILENCE - Duration::from_millis(1);
            assert_eq!(settling.settled(at), Settled::default());
            settling.received(at);
        }
        assert_eq!(settling.poll_timeout(), Some(at + SILENCE));
        at += SILENCE;
        assert_eq!(settling.settled(at), Settled { begun: vec![], complete: vec![all()] });
        assert_eq!(settling.poll_timeout(), None);
    }

    #[test]
    fn rule_151_an_origin_that_never_pauses_is_shown_after_a_while() {
        let mut at = now();
        let mut settling = settling();
        settling.update(at, &update(at, &["a"]), true);
        let shown_at = at + LONGEST_PAUSE;
        while at < shown_at {
            assert_eq!(settling.settled(at), Settled::default());
            at += PAUSE / 2;
            settling.received(at);
        }
        assert_eq!(settling.settled(at).begun, [all()]);
    }

    #[test]
    fn rule_086_an_empty_answer_is_complete_at_once() {
        let mut settling = settling();
        let at = now();
        assert_eq!(settling.update(at, &update(at, &[]), true), [Interest::Wildcard]);
        assert_eq!((settling.settled(at + SILENCE), settling.poll_timeout()), (Settled::default(), None));
    }

    #[test]
    fn rule_150_a_new_stream_must_speak_before_its_silence_counts() {
        let mut at = now();
        let mut settling = settling();
        settling.update(at, &update(at, &["a"]), true);
        settling.settled(at + SILENCE);
        settling.pause();
        at += Duration::from_secs(3600);
        // Of another type, or but a part of a message.
        settling.received(at);
        assert_eq!(settling.settled(at + SILENCE), Settled::default());
        settling.update(at, &update(at, &["b"]), true);
        assert_eq!(settling.settled(at + SILENCE).complete, [all()]);
    }

    /// Others go on, and their silence says nothing of what has no stream.
    #[test]
    fn rule_150_a_type_without_a_stream_must_speak_before_any_silence_counts_for_it() {
        let mut at = now();
        let mut settling = settling();
        settling.update(at, &update(at, &["a"]), true);
        assert_eq!(settling.pause_type(&"another".into()), Settled::default());
        assert_eq!(settling.pause_type(&CLUSTERS.into()), Settled { begun: vec![all()], complete: vec![] });
        at += Duration::from_secs(3600);
        settling.received(at);
        assert_eq!((settling.settled(at + SILENCE), settling.poll_timeout()), (Settled::default(), None));
        // That it is refused meanwhile forgets nothing: the next may say that all is as it was.
        let mut refused = update(at, &[]);
        refused.unsaid = true;
        (refused.answered, refused.complete) = (vec![], vec![]);
        refused.errors = vec![("*".parse().unwrap(), xdstp_cache::ResourceError::new(12, "no method"))];
        settling.update(at, &refused, true);
        at += SILENCE;
        settling.update(at, &update(at, &["b"]), true);
        assert_eq!(settling.settled(at + SILENCE), Settled { begun: vec![], complete: vec![all()] });
        // What was complete is not any more, either.
        settling.pause_type(&CLUSTERS.into());
        settling.update(at, &update(at, &["b"]), true);
        assert_eq!(settling.settled(at + SILENCE).complete, [all()]);
    }

    #[test]
    fn rule_150_one_stream_to_a_relay_is_enough_for_silence_to_say_nothing() {
        let at = now();
        let mut settling = settling();
        settling.connected(true, SILENCE);
        settling.connected(false, SILENCE);
        settling.update(at, &update(at, &["a"]), true);
        assert!(settling.settled(at + SILENCE).complete.is_empty());
        // The next connection may be to another.
        settling.pause();
        settling.connected(false, SILENCE);
        settling.update(at, &update(at, &["a"]), true);
        assert_eq!(settling.settled(at + SILENCE).complete, [all()]);
    }

    #[test]
    fn rule_150_no_silence_completes_what_has_no_end() {
        let at = now();
        let mut settling = settling();
        settling.update(at, &update(at, &["a"]), false);
        let later = at + Duration::from_secs(3600);
        assert_eq!(settling.settled(later), Settled { begun: vec![all()], complete: vec![] });
        assert_eq!(settling.poll_timeout(), None);
    }
}
