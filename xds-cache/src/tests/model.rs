//! A list and a full scan: what a cache has to say, computed the slow way.

mod capacity;
mod changes;
mod checks;
mod clients;
mod errors;
mod ops;
mod restart;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use self::capacity::Capacity;
use self::clients::{Client, Held};
use self::ops::{Op, history};
use super::{interest, invariants, name};
use crate::{Cache, Interest, Options, Removals, Resource, ResourceError, TypeUrl, Version};

const NAMES: [&str; 7] = ["a", "b", "c", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "xdstp://x/T/e/1", "xdstp://x/T"];
const COLLECTIONS: [&str; 3] = ["*", "xdstp://x/T/d/*", "xdstp://x/T/e/*"];
const TYPES: [&str; 2] = ["A", "B"];
const SUBSCRIBERS: usize = 3;
const INTERESTS: usize = NAMES.len() + COLLECTIONS.len();

fn text(what: usize) -> &'static str {
    NAMES.iter().chain(&COLLECTIONS).nth(what).unwrap()
}

fn resource(version: u8, digest: u8) -> Resource<()> {
    Resource::new(version.to_string().into(), digest.into(), ())
}

struct Model {
    cache: Cache<()>,
    options: Options,
    now: Instant,
    resources: [BTreeMap<ResourceName, (Version, u128)>; 2],
    /// Names somebody is subscribed to that were said to be absent.
    absent: [BTreeSet<ResourceName>; 2],
    /// Names removed since they were last there.
    removed: [BTreeSet<ResourceName>; 2],
    known: [BTreeSet<Interest>; 2],
    /// Of these, what is all there is.
    complete: [BTreeSet<Interest>; 2],
    clients: [Option<Client>; SUBSCRIBERS],
    /// Who went, of which type, and what it held of the globs it had asked for.
    away: [Option<(usize, Held)>; SUBSCRIBERS],
    errors: [BTreeMap<ResourceName, ResourceError>; 2],
    /// Of these, what is told to nobody but who asked for just that name.
    unlisted: [BTreeSet<ResourceName>; 2],
    /// What was evicted, but for its error, which lets somebody keep what it holds.
    spared: [BTreeSet<ResourceName>; 2],
    capacity: Capacity,
}

fn universe() -> impl Iterator<Item = ResourceName> {
    NAMES.iter().map(|text| name(text))
}

impl Model {
    fn new(options: Options) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self {
            cache: Cache::new(options.clone()),
            options,
            now,
            resources: Default::default(),
            absent: Default::default(),
            removed: Default::default(),
            known: Default::default(),
            complete: Default::default(),
            clients: Default::default(),
            away: Default::default(),
            errors: Default::default(),
            unlisted: Default::default(),
            spared: Default::default(),
            capacity: Capacity::default(),
        }
    }

    fn matches(&self, interest: &Interest, name: &ResourceName) -> bool {
        match interest {
            Interest::Wildcard => name.is_opaque() || self.options.wildcard_covers_xdstp,
            Interest::Name(asked) => name.answers(asked),
        }
    }

    fn covered(&self, client: &Client, name: &ResourceName) -> bool {
        client.interests.iter().any(|interest| interest.is_collection() && self.matches(interest, name))
    }

    fn named(client: &Client, name: &ResourceName) -> bool {
        client.interests.contains(&Interest::Name(name.clone()))
    }

    fn wanted(&self, client: &Client, name: &ResourceName) -> bool {
        Self::named(client, name) || self.covered(client, name)
    }

    fn is_known(&self, of: usize, collection: &Interest) -> bool {
        self.options.authoritative || self.known[of].contains(collection)
    }

    fn is_complete(&self, of: usize, collection: &Interest) -> bool {
        self.options.authoritative || self.complete[of].contains(collection)
    }

    /// Whether a name that is not there is known not to be, as far as a client is concerned.
    fn known_absent(&self, client: &Client, name: &ResourceName) -> bool {
        if Self::named(client, name) {
            return self.options.authoritative
                || self.absent[client.of].contains(name)
                || self.errors[client.of].contains_key(name);
        }
        client.interests.iter().any(|interest| {
            interest.is_collection() && self.matches(interest, name) && self.is_complete(client.of, interest)
        })
    }

    /// Whether a client is told of the errors of a name.
    fn hears(&self, client: &Client, name: &ResourceName) -> bool {
        if self.unlisted[client.of].contains(name) && self.errors[client.of].contains_key(name) {
            return Self::named(client, name);
        }
        let asked = |interest: &Interest| matches!(interest, Interest::Name(asked) if name.answers(asked));
        client.interests.iter().any(asked)
    }

    fn apply(&mut self, op: &Op) {
        self.capacity.step();
        let url = |of: usize| TypeUrl::from(TYPES[of]);
        match op {
            Op::Open { who, of, asks, holds } => self.open(*who, *of, asks, holds),
            Op::Close { who } => self.close(*who),
            Op::Resume { who, holds } => self.resume(*who, holds),
            Op::Subscribe { who, what } => self.subscribe(*who, &interest(text(*what))),
            Op::Unsubscribe { who, what } => self.unsubscribe(*who, &interest(text(*what))),
            Op::Upsert { of, what, version, digest } => {
                let (name, resource) = (name(text(*what)), resource(*version, *digest));
                let outcome =
                    self.change(|cache, now, woken| cache.upsert_raw(&url(*of), &name, resource.clone(), now, woken));
                assert_eq!(self.upserted(*of, &name, &resource), outcome);
                self.sync_evictions();
            }
            Op::Upserts { of, snapshot, resources } => self.upsert_all(*of, *snapshot, resources),
            Op::Touch { of, what } => {
                let name = name(text(*what));
                self.change(|cache, _, woken| cache.touch(&url(*of), &name, woken));
                if self.resources[*of].contains_key(&name) {
                    self.errors[*of].remove(&name);
                    self.owe(*of, &name);
                    self.renew(*of, &name);
                }
            }
            Op::Remove { of, what, asked } => {
                let name = name(text(*what));
                let untold = (*asked && self.is_untold(*of, &name)).then_some(self.cache.store.seq);
                self.change(|cache, now, woken| cache.remove_asked(&url(*of), &name, *asked, now, woken));
                self.removed(*of, &name);
                self.check_unseen(*of, &name, untold);
            }
            Op::Fail { of, what, code, message, asked } => {
                self.fail(*of, &name(text(*what)), ResourceError::new(*code, *message), *asked);
            }
            Op::FailAll { of, code, asked } => {
                universe().for_each(|name| self.fail(*of, &name, ResourceError::new(*code, "all"), *asked));
            }
            Op::Answered { of, what } => self.answered(*of, &interest(text(*what))),
            Op::Recover { of, what } => self.recover(*of, &interest(text(*what))),
            Op::Begun { of, what } => self.begun(*of, &interest(text(*what))),
            Op::Lost => {
                self.cache.origin_lost();
                self.complete = Default::default();
            }
            Op::Evict { of, what } => self.evict(*of, &interest(text(*what))),
            Op::Pull { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull(*who, *entries, removals);
            }
            Op::PullErrors { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull_errors(*who, *entries, removals);
            }
            Op::PullRefusals { who } => self.pull_refusals(*who),
            Op::PullAll { who } => self.pull_all(*who),
            Op::Wait { seconds } => {
                self.now += Duration::from_secs(*seconds);
                // The next change would do it too, but after it one cannot see which collections are forgotten.
                self.cache.expire(self.now);
            }
        }
        for (known, of) in self.known.iter_mut().zip(TYPES).filter(|_| !self.options.authoritative) {
            let is_known = |collection: &Interest| self.cache.is_known(&of.into(), collection);
            if self.options.capacity.is_some() {
                // Of its own accord: a glob without members, watchers and tombstones, and with it that it was answered.
                known.retain(is_known);
            }
            let all = COLLECTIONS.iter().map(|text| interest(text));
            assert_eq!(*known, all.filter(is_known).collect(), "what is known until it is evicted");
        }
        for (complete, known) in self.complete.iter_mut().zip(&self.known) {
            complete.retain(|collection| known.contains(collection));
        }
        if !self.options.authoritative {
            self.sync_errors();
        }
    }

    /// Closes and removes everything: nothing is left.
    fn end(mut self) {
        for who in 0..SUBSCRIBERS {
            self.pull_all(who);
            self.close(who);
        }
        for of in TYPES.map(TypeUrl::from) {
            for what in 0..INTERESTS {
                self.cache.evict(&of, &interest(text(what)), self.now);
            }
            for name in universe() {
                self.cache.remove(&of, &name, self.now, &mut Vec::new());
            }
            for glob in COLLECTIONS.map(interest) {
                if matches!(&glob, Interest::Name(name) if self.cache.error(&of, name).is_some()) {
                    self.cache.answered(&of, &glob, &mut Vec::new());
                }
            }
        }
        invariants::check(&self.cache);
        self.now += self.options.tombstone_age + Duration::from_secs(1);
        self.cache.remove(&TYPES[0].into(), &name("a"), self.now, &mut Vec::new());
        let Cache { store, subscribers, .. } = &self.cache;
        let stored = [store.types().len(), store.slots().len(), store.lists().len()];
        let told = [subscribers.links.len(), subscribers.walks.len(), subscribers.all.len()];
        assert_eq!((stored, told), ([0; 3], [0; 3]), "types, slots, lists; links, walks, subscribers");
    }
}

/// `PROPTEST_CASES` counts fourfold: a case is cheap, and what goes wrong needs several calls to meet.
fn cases() -> u32 {
    ProptestConfig::default().cases * 4
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_random_history_is_what_a_full_scan_says(
        authoritative in any::<bool>(),
        wildcard_covers_xdstp in any::<bool>(),
        capacity in prop::option::of(0..5_usize),
        tombstones in prop_oneof![Just(1000), 0..4_usize],
        tombstone_age in prop_oneof![Just(3600), 1..9_u64],
        looks in prop_oneof![Just(usize::MAX), 0..4_usize],
        history in history(),
    ) {
        let tombstone_age = Duration::from_secs(tombstone_age);
        let options = Options { authoritative, wildcard_covers_xdstp, capacity, tombstones, tombstone_age, looks, ..Options::default() };
        let mut model = Model::new(options);
        for op in &history {
            model.apply(op);
            invariants::check(&model.cache);
        }
        model.end();
    }
}
