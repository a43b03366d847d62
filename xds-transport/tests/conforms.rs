//! What sessions rely on, tried on sources that break it: each defect is planted around a cache, and each is found.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::ops::ControlFlow;
use std::time::Instant;

use prost::Message;
use xds_transport::server::{Settings, Source, Stream, Tally};
use xds_transport::testing::{self, Edit, Violation};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::{Frame, Protocol};
use xdstp_cache::{
    Cache, Failed, Interest, Options, Pull, Pulled, Removals, Resource, ResourceError, SubscriberId, TypeUrl,
    Unanswered, Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    DropUnsubscribe,
    SwallowResubscribe,
    ForgetResume,
    LoseRemovals,
    TellRemovalsAgain,
    TellTwice,
    RemovalsFirst,
    DoNotStop,
    DoNotDefer,
    SubscribeToAll,
    MixTypes,
    SayThereIsNoWork,
    CountNoChanges,
    LookAtNothing,
    VisitTooMuch,
    LoseTtl,
    LoseErrors,
    TellErrorsAgain,
    AnswerNoWildcard,
    CloseAll,
}

impl Defect {
    const ALL: [Self; 20] = [
        Self::DropUnsubscribe,
        Self::SwallowResubscribe,
        Self::ForgetResume,
        Self::LoseRemovals,
        Self::TellRemovalsAgain,
        Self::TellTwice,
        Self::RemovalsFirst,
        Self::DoNotStop,
        Self::DoNotDefer,
        Self::SubscribeToAll,
        Self::MixTypes,
        Self::SayThereIsNoWork,
        Self::CountNoChanges,
        Self::LookAtNothing,
        Self::VisitTooMuch,
        Self::LoseTtl,
        Self::LoseErrors,
        Self::TellErrorsAgain,
        Self::AnswerNoWildcard,
        Self::CloseAll,
    ];
}

/// A cache with a defect, or none.
struct Broken {
    cache: Cache<Frame>,
    defect: Option<Defect>,
    opened: Vec<SubscriberId>,
    removed: Option<ResourceName>,
    error: Option<(ResourceName, ResourceError)>,
}

fn broken(defect: Option<Defect>) -> Broken {
    Broken { cache: Cache::new(Options::default()), defect, opened: Vec::new(), removed: None, error: None }
}

impl Broken {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// One type for all.
    fn of(&self, type_url: &TypeUrl) -> TypeUrl {
        if self.has(Defect::MixTypes) { "type.example.com/All".into() } else { type_url.clone() }
    }
}

impl Edit for Broken {
    fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, mut resource: Resource<Frame>, now: Instant) {
        if self.has(Defect::LoseTtl) {
            resource.value.refresh(None, None);
        }
        // As it is where types are mixed up, no wrapper says what it is of.
        let of = self.of(type_url);
        let mut edit = self.cache.edit(now);
        edit.put(&of, name, resource);
        let _ = edit.finish();
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant) {
        self.removed = Some(name.clone());
        let of = self.of(type_url);
        let mut edit = self.cache.edit(now);
        edit.remove(&of, name);
        let _ = edit.finish();
    }

    fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError, now: Instant) -> bool {
        let of = self.of(type_url);
        let mut edit = self.cache.edit(now);
        edit.fail(&of, name, error);
        let _ = edit.finish();
        true
    }
}

impl Source for Broken {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let id = self.cache.open(&self.of(type_url));
        self.opened.push(id);
        if self.has(Defect::SubscribeToAll) {
            self.cache.subscribe(id, &Interest::Wildcard);
        }
        id
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        let all = self.has(Defect::CloseAll);
        for id in self.opened.iter().filter(|opened| all || **opened == id) {
            Source::close(&mut self.cache, *id, tally);
        }
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if self.has(Defect::SwallowResubscribe) && self.cache.is_subscribed(id, interest) {
            return false;
        }
        Source::subscribe(&mut self.cache, id, interest)
    }

    fn subscribe_known(&mut self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
        match self.defect {
            Some(Defect::SwallowResubscribe) => None,
            _ => Source::subscribe_known(&mut self.cache, id, text),
        }
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if self.has(Defect::DropUnsubscribe) {
            return self.cache.is_subscribed(id, interest);
        }
        Source::unsubscribe(&mut self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        let held = if self.has(Defect::ForgetResume) { Vec::new() } else { held };
        Source::resume(&mut self.cache, id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let Self { cache, defect, removed, .. } = self;
        let removals = if *defect == Some(Defect::DoNotDefer) { Removals::Include } else { removals };
        let mut late = Vec::new();
        let mut pulled = Source::pull(cache, id, removals, &mut |pull| match (*defect, &pull) {
            (Some(Defect::LoseRemovals), Pull::Removed { .. }) => ControlFlow::Continue(()),
            (Some(Defect::TellTwice), Pull::Put { name, resource, .. }) => {
                visitor(Pull::put(name, resource))?;
                visitor(pull)
            }
            (Some(Defect::DoNotStop), _) => {
                let _ = visitor(pull);
                ControlFlow::Continue(())
            }
            (Some(Defect::RemovalsFirst), Pull::Put { name, resource, .. }) => {
                late.push(((*name).clone(), (*resource).clone()));
                ControlFlow::Continue(())
            }
            _ => visitor(pull),
        });
        for (name, resource) in &late {
            let _ = visitor(Pull::put(name, resource));
        }
        if let (Some(Defect::TellRemovalsAgain), Some(name), false) = (*defect, &*removed, pulled.more)
            && cache.covers(id, name)
        {
            let _ = visitor(Pull::removed(name));
        }
        pulled.empty &= *defect != Some(Defect::AnswerNoWildcard);
        pulled
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        let Self { cache, defect, error, .. } = self;
        let again = error.clone().filter(|_| *defect == Some(Defect::TellErrorsAgain));
        if let Some((name, error)) = &again {
            let _ = visitor(Failed::new(name, error, false, true));
        }
        Source::pull_errors(cache, id, removals, &mut |failed| {
            *error = Some((failed.name.clone(), failed.error.clone()));
            if *defect == Some(Defect::LoseErrors) { ControlFlow::Continue(()) } else { visitor(failed) }
        })
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        if self.has(Defect::VisitTooMuch) {
            for stored in self.cache.resources() {
                stored.resource.into_iter().for_each(|resource| visitor(stored.name, resource));
            }
            return Unanswered::default();
        }
        Source::visit(&mut self.cache, id, visitor)
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        !self.has(Defect::SayThereIsNoWork) && Source::has_work(&self.cache, id)
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        Source::has_additions(&self.cache, id)
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::resend(&mut self.cache, id, name)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        if !self.has(Defect::LookAtNothing) {
            Source::look_up(&self.cache, id, name, look);
        }
    }

    fn changes(&self, id: SubscriberId) -> Option<u64> {
        if self.has(Defect::CountNoChanges) { Some(0) } else { Source::changes(&self.cache, id) }
    }
}

fn tried(defect: Option<Defect>) -> Result<(), Violation> {
    testing::conforms(|| broken(defect))
}

#[test]
fn a_cache_is_a_source() {
    testing::conforms(|| Cache::<Frame>::new(Options::default())).unwrap();
}

#[test]
fn a_cache_that_pauses_is_a_source() {
    let mut options = Options::default();
    options.looks = 1;
    testing::conforms(|| Cache::<Frame>::new(options.clone())).unwrap();
}

/// Through a pointer that knows nothing of what it holds: nothing of a source is lost on the way.
#[test]
fn a_source_in_a_box_is_one() {
    testing::conforms(|| -> Box<dyn Edit> { Box::new(Cache::<Frame>::new(Options::default())) }).unwrap();
}

/// And so is one that is only lent: a stream takes it as it is.
#[test]
fn a_source_that_is_lent_is_one() {
    let (mut cache, clusters) = (Cache::<Frame>::new(Options::default()), TypeUrl::from("type.example.com/T"));
    let mut lent: &mut dyn Source = &mut cache;
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    let request = DeltaDiscoveryRequest {
        type_url: clusters.to_string(),
        resource_names_subscribe: vec!["a".into()],
        ..DeltaDiscoveryRequest::default()
    };
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    stream.handle_message(now, request.encode_to_vec().into(), &mut lent).unwrap();
    assert_eq!(stream.poll_transmit(now, &mut lent).unwrap().unwrap().removed, 1);
    assert!(Source::changes(&lent, stream.sessions().next().unwrap().subscriber).is_some(), "it is the cache's own");
}

#[test]
fn what_is_around_a_cache_and_breaks_nothing_is_a_source() {
    tried(None).unwrap();
}

#[test]
fn every_defect_is_found() {
    let missed: Vec<_> = Defect::ALL.into_iter().filter(|defect| tried(Some(*defect)).is_ok()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// Who has it to mend needs to know what was done, and which rule says no.
#[test]
fn what_is_wrong_is_said_with_what_led_to_it() {
    let found = tried(Some(Defect::TellTwice)).unwrap_err();
    assert_eq!((found.scenario, found.part), ("names", 100));
    let words = found.to_string();
    assert!(words.contains("rule 1") && words.contains("put a 1") && words.contains("0 opens"), "{words}");
}
