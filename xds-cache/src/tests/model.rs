//! A list and a full scan: what a cache has to say, computed the slow way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use super::{interest, invariants, name};
use crate::{Cache, Interest, Options, Outcome, Pull, Removals, Resource, SubscriberId, TypeUrl, Version};

const NAMES: [&str; 7] = ["a", "b", "c", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "xdstp://x/T/e/1", "xdstp://x/T"];
const COLLECTIONS: [&str; 3] = ["*", "xdstp://x/T/d/*", "xdstp://x/T/e/*"];
const TYPES: [&str; 2] = ["A", "B"];
const SUBSCRIBERS: usize = 3;
const INTERESTS: usize = NAMES.len() + COLLECTIONS.len();

#[derive(Clone, Debug)]
enum Op {
    /// The first request of a type: what it asks for, and what it says it holds.
    Open {
        who: usize,
        of: usize,
        asks: Vec<usize>,
        holds: Vec<(usize, u8)>,
    },
    Close {
        who: usize,
    },
    Subscribe {
        who: usize,
        what: usize,
    },
    Unsubscribe {
        who: usize,
        what: usize,
    },
    Upsert {
        of: usize,
        what: usize,
        version: u8,
        digest: u8,
    },
    Touch {
        of: usize,
        what: usize,
    },
    Remove {
        of: usize,
        what: usize,
    },
    Answered {
        of: usize,
        what: usize,
    },
    Evict {
        of: usize,
        what: usize,
    },
    /// Stops after so many entries.
    Pull {
        who: usize,
        entries: usize,
        defer: bool,
    },
    PullAll {
        who: usize,
    },
    Wait {
        seconds: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..SUBSCRIBERS;
    let of = || 0..TYPES.len();
    let named = || 0..NAMES.len();
    let either = || 0..INTERESTS;
    prop_oneof![
        3 => (who(), of(), prop::collection::vec(either(), 0..4), prop::collection::vec((named(), 0..3_u8), 0..4))
            .prop_map(|(who, of, asks, holds)| Op::Open { who, of, asks, holds }),
        1 => who().prop_map(|who| Op::Close { who }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Subscribe { who, what }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Unsubscribe { who, what }),
        8 => (of(), named(), 0..3_u8, 0..2_u8)
            .prop_map(|(of, what, version, digest)| Op::Upsert { of, what, version, digest }),
        1 => (of(), named()).prop_map(|(of, what)| Op::Touch { of, what }),
        4 => (of(), named()).prop_map(|(of, what)| Op::Remove { of, what }),
        2 => (of(), NAMES.len()..INTERESTS).prop_map(|(of, what)| Op::Answered { of, what }),
        2 => (of(), either()).prop_map(|(of, what)| Op::Evict { of, what }),
        4 => (who(), 1..4_usize, any::<bool>()).prop_map(|(who, entries, defer)| Op::Pull { who, entries, defer }),
        4 => who().prop_map(|who| Op::PullAll { who }),
        1 => (0..8_u64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

fn text(what: usize) -> &'static str {
    NAMES.iter().chain(&COLLECTIONS).nth(what).unwrap()
}

/// What one client knows, and what it is owed.
struct Client {
    id: SubscriberId,
    of: usize,
    interests: BTreeSet<Interest>,
    /// What it holds, by what it was told; the digest is not known of what it came with.
    view: BTreeMap<ResourceName, (Version, Option<u128>)>,
    /// The versions it came with, as long as they count.
    resumed: BTreeMap<ResourceName, Version>,
    /// Must be put, if there.
    owed: BTreeSet<ResourceName>,
    /// May be put.
    may_put: BTreeSet<ResourceName>,
    /// Must be told as removed, if known to be absent.
    owed_removal: BTreeSet<ResourceName>,
    /// May be told as removed.
    may_remove: BTreeSet<ResourceName>,
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
    clients: [Option<Client>; SUBSCRIBERS],
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
            clients: Default::default(),
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

    /// Whether a name that is not there is known not to be, as far as a client is concerned.
    fn known_absent(&self, client: &Client, name: &ResourceName) -> bool {
        if Self::named(client, name) {
            return self.options.authoritative || self.absent[client.of].contains(name);
        }
        client.interests.iter().any(|interest| {
            interest.is_collection() && self.matches(interest, name) && self.is_known(client.of, interest)
        })
    }

    fn apply(&mut self, op: &Op) {
        let url = |of: usize| TypeUrl::from(TYPES[of]);
        match op {
            Op::Open { who, of, asks, holds } => {
                self.close(*who);
                let id = self.cache.open(&url(*of));
                self.clients[*who] = Some(Client {
                    id,
                    of: *of,
                    interests: BTreeSet::new(),
                    view: BTreeMap::new(),
                    resumed: BTreeMap::new(),
                    owed: BTreeSet::new(),
                    may_put: BTreeSet::new(),
                    owed_removal: BTreeSet::new(),
                    may_remove: BTreeSet::new(),
                });
                for what in asks {
                    self.subscribe(*who, &interest(text(*what)));
                }
                let holds: BTreeMap<_, _> = holds
                    .iter()
                    .map(|(what, version)| (name(text(*what)), Version::from(version.to_string())))
                    .collect();
                self.cache.resume(id, holds.clone());
                let client = self.clients[*who].as_mut().unwrap();
                client.may_remove.extend(holds.keys().cloned());
                client.view = holds.iter().map(|(name, version)| (name.clone(), (version.clone(), None))).collect();
                client.resumed = holds;
            }
            Op::Close { who } => self.close(*who),
            Op::Subscribe { who, what } => self.subscribe(*who, &interest(text(*what))),
            Op::Unsubscribe { who, what } => self.unsubscribe(*who, &interest(text(*what))),
            Op::Upsert { of, what, version, digest } => {
                let (name, version) = (name(text(*what)), Version::from(version.to_string()));
                let digest = u128::from(*digest);
                let resource = Resource::new(version.clone(), digest, ());
                let old = self.resources[*of].insert(name.clone(), (version.clone(), digest));
                self.absent[*of].remove(&name);
                self.removed[*of].remove(&name);
                let outcome = self.change(|cache, now, woken| cache.upsert(&url(*of), &name, resource, now, woken));
                let expected = match old {
                    None => Outcome::Added,
                    Some((v, d)) => match (v == version, d == digest) {
                        (true, true) => Outcome::Unchanged,
                        (true, false) => Outcome::ChangedAtSameVersion,
                        (false, true) => Outcome::Reversioned,
                        (false, false) => Outcome::Changed,
                    },
                };
                assert_eq!(outcome, expected);
                if outcome != Outcome::Unchanged {
                    self.owe(*of, &name);
                }
            }
            Op::Touch { of, what } => {
                let name = name(text(*what));
                self.change(|cache, _, woken| cache.touch(&url(*of), &name, woken));
                if self.resources[*of].contains_key(&name) {
                    self.owe(*of, &name);
                }
            }
            Op::Remove { of, what } => {
                let name = name(text(*what));
                self.resources[*of].remove(&name);
                self.removed[*of].insert(name.clone());
                if self.clients.iter().flatten().any(|client| client.of == *of && Self::named(client, &name)) {
                    self.absent[*of].insert(name.clone());
                }
                self.change(|cache, now, woken| cache.remove(&url(*of), &name, now, woken));
                let clients = std::mem::take(&mut self.clients);
                self.clients = clients.map(|client| {
                    client.map(|mut client| {
                        if client.of == *of && self.wanted(&client, &name) {
                            client.may_remove.insert(name.clone());
                        }
                        client
                    })
                });
            }
            Op::Answered { of, what } => {
                let collection = interest(text(*what));
                let watched = self.clients.iter().flatten().any(|c| c.of == *of && c.interests.contains(&collection));
                let kept = self.resources[*of].keys().any(|name| self.matches(&collection, name));
                if collection == Interest::Wildcard || watched || kept || self.cache.is_known(&url(*of), &collection) {
                    self.known[*of].insert(collection.clone());
                } else {
                    // A glob of which there is nothing yet may or may not have a list because of its tombstones.
                    self.change(|cache, _, woken| cache.answered(&url(*of), &collection, woken));
                    if self.cache.is_known(&url(*of), &collection) {
                        self.known[*of].insert(collection);
                    }
                    return;
                }
                self.change(|cache, _, woken| cache.answered(&url(*of), &collection, woken));
            }
            Op::Evict { of, what } => self.evict(*of, &interest(text(*what))),
            Op::Pull { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull(*who, *entries, removals);
            }
            Op::PullAll { who } => self.pull_all(*who),
            Op::Wait { seconds } => self.now += Duration::from_secs(*seconds),
        }
        // A glob without members, watchers and tombstones is forgotten, and with it that it was answered.
        if !self.options.authoritative {
            for (known, of) in self.known.iter_mut().zip(TYPES) {
                known.retain(|collection| self.cache.is_known(&of.into(), collection));
            }
        }
    }

    /// Changes the cache and checks who is woken: exactly those who had nothing to pull before and have now.
    fn change<T>(&mut self, change: impl FnOnce(&mut Cache<()>, Instant, &mut Vec<SubscriberId>) -> T) -> T {
        let ids: Vec<_> = self.clients.iter().flatten().map(|client| client.id).collect();
        let idle: Vec<_> = ids.into_iter().filter(|id| !self.cache.has_work(*id)).collect();
        let mut woken = Vec::new();
        let result = change(&mut self.cache, self.now, &mut woken);
        let mut expected: Vec<_> = idle.into_iter().filter(|id| self.cache.has_work(*id)).collect();
        expected.sort();
        woken.sort();
        assert_eq!(woken, expected);
        result
    }

    fn owe(&mut self, of: usize, name: &ResourceName) {
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if client.of == of && self.wanted(&client, name) {
                    assert!(self.cache.has_work(client.id), "{name} changed");
                    client.may_put.insert(name.clone());
                    client.owed.insert(name.clone());
                }
                client
            })
        });
    }

    fn subscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        self.cache.subscribe(client.id, interest);
        let before: BTreeSet<_> = universe().filter(|name| self.wanted(&client, name)).collect();
        let again = !client.interests.insert(interest.clone());
        for name in universe().filter(|name| self.matches(interest, name)) {
            // What a narrower interest has sent, a new collection need not send.
            if again || !interest.is_collection() || !before.contains(&name) {
                client.owed.insert(name.clone());
            }
            client.may_put.insert(name.clone());
            // A tombstone of the glob, or the name itself.
            client.may_remove.insert(name.clone());
            if again || !interest.is_collection() {
                client.resumed.remove(&name);
            }
            if !interest.is_collection() {
                client.owed_removal.insert(name);
            }
        }
        self.clients[who] = Some(client);
    }

    fn unsubscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        let had = client.interests.remove(interest);
        let last = !self.clients.iter().flatten().any(|c| c.of == client.of && c.interests.contains(interest));
        assert_eq!(self.cache.unsubscribe(client.id, interest), had && last);
        if had {
            let keeps = client.interests.contains(&Interest::Wildcard);
            for name in universe().filter(|name| self.matches(interest, name)) {
                if !self.wanted(&client, &name) {
                    // To the client, its wildcard covers every name: it has to be told of what is not in it.
                    if keeps {
                        client.may_remove.insert(name.clone());
                    } else {
                        client.view.remove(&name);
                    }
                    client.may_put.remove(&name);
                    client.resumed.remove(&name);
                    client.owed.remove(&name);
                    client.owed_removal.remove(&name);
                } else if !interest.is_collection() {
                    client.resumed.remove(&name);
                    client.owed.insert(name.clone());
                    client.owed_removal.insert(name.clone());
                    client.may_put.insert(name.clone());
                    client.may_remove.insert(name.clone());
                } else {
                    // What was asked for again was left again: the wider one has sent it.
                    let current = self.resources[client.of].get(&name);
                    let held = client.view.get(&name);
                    if let (Some((version, digest)), Some((of, Some(known)))) = (current, held)
                        && (version, digest) == (of, known)
                    {
                        client.owed.remove(&name);
                    }
                    // The wider one may not have come as far as the one that was left.
                    client.may_put.insert(name.clone());
                    client.may_remove.insert(name.clone());
                }
            }
        }
        let of = client.of;
        self.clients[who] = Some(client);
        self.forget_absent(of);
    }

    fn close(&mut self, who: usize) {
        let Some(client) = self.clients[who].take() else { return };
        let left: BTreeSet<_> = self.cache.close(client.id).into_iter().collect();
        let others: BTreeSet<_> =
            self.clients.iter().flatten().filter(|c| c.of == client.of).flat_map(|c| c.interests.clone()).collect();
        assert_eq!(left, client.interests.difference(&others).cloned().collect());
        self.forget_absent(client.of);
    }

    /// That a name is absent is known as long as somebody asks for it.
    fn forget_absent(&mut self, of: usize) {
        let clients = &self.clients;
        self.absent[of].retain(|name| clients.iter().flatten().any(|c| c.of == of && Self::named(c, name)));
    }

    fn evict(&mut self, of: usize, interest: &Interest) {
        self.cache.evict(&TYPES[of].into(), interest);
        if self.options.authoritative {
            return;
        }
        let watched = |interest: &Interest| {
            self.clients.iter().flatten().any(|client| client.of == of && client.interests.contains(interest))
        };
        if interest.is_collection() {
            if watched(interest) {
                return;
            }
            self.known[of].remove(interest);
        }
        let collections: Vec<_> = COLLECTIONS.iter().map(|text| super::interest(text)).collect();
        let kept = |name: &ResourceName| {
            watched(&Interest::Name(name.clone()))
                || collections.iter().any(|collection| {
                    self.matches(collection, name) && (watched(collection) || self.known[of].contains(collection))
                })
        };
        let gone: Vec<_> =
            self.resources[of].keys().filter(|name| self.matches(interest, name) && !kept(name)).cloned().collect();
        for name in gone {
            self.resources[of].remove(&name);
        }
    }

    /// One pull of at most `entries`. Whether there is more.
    fn pull(&mut self, who: usize, entries: usize, removals: Removals) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let mut said = Vec::new();
        let pulled = self.cache.pull(client.id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, resource } => (name.clone(), Some((resource.version.clone(), Some(resource.digest)))),
                Pull::Removed { name } => (name.clone(), None),
            });
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(pulled.more, said.len() == entries);
        let names: BTreeSet<_> = said.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), said.len(), "rule 69: {said:?}");
        assert!(said.is_sorted_by_key(|(_, put)| put.is_none()), "additions first");
        for (name, put) in said {
            match put {
                Some(put) => self.check_put(&mut client, name, put),
                None => {
                    assert_eq!(removals, Removals::Include);
                    self.check_removed(&mut client, &name);
                }
            }
        }
        self.clients[who] = Some(client);
        pulled.more
    }

    fn check_put(&self, client: &mut Client, name: ResourceName, put: (Version, Option<u128>)) {
        assert!(self.wanted(client, &name), "{name} is not wanted");
        let (version, digest) = self.resources[client.of][&name].clone();
        assert_eq!(put, (version, Some(digest)), "{name}: the newest state");
        assert!(client.may_put.remove(&name), "{name} is sent twice");
        client.owed.remove(&name);
        client.resumed.remove(&name);
        client.view.insert(name, put);
    }

    fn check_removed(&self, client: &mut Client, name: &ResourceName) {
        if name.is_glob() {
            let members = self.resources[client.of].keys().any(|member| member.answers(name));
            assert!(client.interests.contains(&Interest::Name(name.clone())) && !members, "{name}");
            return;
        }
        let present = self.resources[client.of].contains_key(name);
        let wanted = self.wanted(client, name);
        assert!(!(present && wanted), "{name} is there");
        let known = self.known_absent(client, name) || self.removed[client.of].contains(name);
        assert!(known || !wanted, "{name} was not answered yet");
        assert!(client.may_remove.remove(name), "{name} is removed twice");
        client.owed_removal.remove(name);
        client.resumed.remove(name);
        client.view.remove(name);
    }

    fn pull_all(&mut self, who: usize) {
        while self.pull(who, 2, Removals::Include) {}
        let Some(client) = self.clients[who].take() else { return };
        assert!(!self.cache.has_work(client.id));
        for name in universe() {
            let held = client.view.get(&name);
            match self.resources[client.of].get(&name) {
                Some((version, digest)) if self.wanted(&client, &name) => {
                    let skipped = client.resumed.get(&name).is_some_and(|held| held == version);
                    assert!(skipped || !client.owed.contains(&name), "{name} was not sent");
                    let (held, known) = held.unwrap_or_else(|| panic!("{name} is not held"));
                    assert_eq!(held, version, "{name}");
                    assert!(known.is_none_or(|known| known == *digest), "{name}");
                }
                Some(_) => assert_eq!(held, None, "{name} is held though not wanted"),
                None if self.wanted(&client, &name) => {
                    if self.known_absent(&client, &name) {
                        assert_eq!(held, None, "{name} is held though gone");
                        let owed = Self::named(&client, &name) && client.owed_removal.contains(&name);
                        assert!(!owed, "{name} was not told as absent");
                    }
                }
                None => assert_eq!(held, None, "{name} is held though neither wanted nor there"),
            }
        }
        self.check_visit(&client);
        // What was skipped because it was held is compared: from here on it counts as sent.
        let mut client = client;
        let current = &self.resources[client.of];
        client.resumed.retain(|name, _| !current.contains_key(name));
        client.owed.clear();
        client.may_put.clear();
        self.clients[who] = Some(client);
        assert!(!self.pull(who, usize::MAX, Removals::Include));
    }

    fn check_visit(&self, client: &Client) {
        let mut visited = BTreeMap::new();
        let unanswered = self.cache.visit(client.id, &mut |name, resource| {
            let twice = visited.insert(name.clone(), (resource.version.clone(), resource.digest));
            assert!(twice.is_none(), "{name} is visited twice");
        });
        let mut expected = self.resources[client.of].clone();
        expected.retain(|name, _| self.wanted(client, name));
        assert_eq!(visited, expected);
        let unknown = |interest: &&Interest| match interest {
            Interest::Name(name) if !name.is_glob() => {
                !self.resources[client.of].contains_key(name) && !self.known_absent(client, name)
            }
            collection => !self.is_known(client.of, collection),
        };
        let (collections, names): (Vec<_>, Vec<_>) =
            client.interests.iter().filter(unknown).partition(|interest| interest.is_collection());
        assert_eq!((unanswered.names, unanswered.collections), (names.len(), collections.len()));
    }

    /// Closes and removes everything: nothing is left.
    fn end(mut self) {
        for who in 0..SUBSCRIBERS {
            self.pull_all(who);
            self.close(who);
        }
        for of in TYPES.map(TypeUrl::from) {
            for what in 0..INTERESTS {
                self.cache.evict(&of, &interest(text(what)));
            }
            for name in universe() {
                self.cache.remove(&of, &name, self.now, &mut Vec::new());
            }
        }
        invariants::check(&self.cache);
        self.now += self.options.tombstone_age + Duration::from_secs(1);
        self.cache.remove(&TYPES[0].into(), &name("a"), self.now, &mut Vec::new());
        let Cache { types, slots, lists, links, held, subscribers, .. } = &self.cache;
        let left = [types.len(), slots.len(), lists.len(), links.len(), held.len(), subscribers.len()];
        assert_eq!(left, [0; 6], "types, slots, lists, links, held, subscribers");
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
        history in prop::collection::vec(op(), 1..80),
    ) {
        let options = Options { authoritative, wildcard_covers_xdstp, ..Options::default() };
        let mut model = Model::new(options);
        for op in &history {
            model.apply(op);
            invariants::check(&model.cache);
        }
        model.end();
    }
}
