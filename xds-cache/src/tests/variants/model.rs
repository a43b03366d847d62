//! Random histories of variants, against selection one by one.

mod changes;
mod checks;
mod ops;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use self::ops::{Op, op};
use super::naive::{FORMS, Forms};
use crate::tests::{interest, invariants, name};
use crate::{Cache, Interest, Options, Removals, Resource, SubscriberId, TypeUrl, Version};

const NAMES: [&str; 4] = ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2"];
const INTERESTS: [&str; 6] = ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "*", "xdstp://x/T/d/*"];
const SUBSCRIBERS: usize = 3;
const SELECTORS: usize = 6;
const VARIANTS: usize = 6;
const URL: &str = "T";

/// What is held of a name: which variant, if that is known, in which version and with which content.
type Held = (Option<usize>, Version, Option<u128>);

struct Client {
    id: SubscriberId,
    selector: usize,
    interests: BTreeSet<Interest>,
    view: BTreeMap<ResourceName, Held>,
    /// Of these, what it only said it holds.
    brought: BTreeSet<ResourceName>,
    may_put: BTreeSet<ResourceName>,
    owed: BTreeSet<ResourceName>,
    may_remove: BTreeSet<ResourceName>,
    /// What was there without variants while it was wanted.
    may_hold_plain: BTreeSet<ResourceName>,
    /// What it was sent before it went away, and does not say.
    silent: BTreeSet<ResourceName>,
    /// Of which it was not sent anything since it came: what it may hold is guessed.
    guessed: BTreeSet<ResourceName>,
}

/// Who went away: what it selects by, and what it held of globs.
type Away = (usize, BTreeMap<ResourceName, Held>);

/// The variants of a name by their numbers.
type Variants = BTreeMap<usize, (Version, u128)>;

/// What a client is to hold of what it wants.
type Expected = BTreeMap<ResourceName, (usize, Version, u128)>;

struct Model {
    cache: Cache<()>,
    options: Options,
    now: Instant,
    forms: &'static Forms,
    names: BTreeMap<ResourceName, Variants>,
    /// Names that have variants, or had and are there still.
    varied: BTreeSet<ResourceName>,
    failed: BTreeSet<ResourceName>,
    clients: [Option<Client>; SUBSCRIBERS],
    away: [Option<Away>; SUBSCRIBERS],
}

fn resource(version: u8, digest: u8) -> Resource<()> {
    Resource::new(version.to_string().into(), digest.into(), ())
}

fn universe() -> impl Iterator<Item = ResourceName> {
    NAMES.iter().map(|text| name(text))
}

impl Model {
    fn new(options: Options, draft: bool) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self {
            cache: Cache::new(options.clone()),
            options,
            now,
            forms: &FORMS[usize::from(draft)],
            names: BTreeMap::new(),
            varied: BTreeSet::new(),
            failed: BTreeSet::new(),
            clients: Default::default(),
            away: Default::default(),
        }
    }

    fn matches(&self, interest: &Interest, name: &ResourceName) -> bool {
        match interest {
            Interest::Wildcard => name.is_opaque() || self.options.wildcard_covers_xdstp,
            Interest::Name(asked) => name.answers(asked),
        }
    }

    fn wanted(&self, client: &Client, name: &ResourceName) -> bool {
        client.interests.iter().any(|interest| self.matches(interest, name))
    }

    /// What a selector selects of a name.
    fn selected(&self, selector: usize, name: &ResourceName) -> Option<(usize, Version, u128)> {
        let variants = self.names.get(name)?;
        let (number, _) = self.forms.select(selector, variants.keys().copied())?;
        let (version, digest) = variants[&number].clone();
        Some((number, version, digest))
    }

    fn expected(&self, client: &Client) -> Expected {
        let wanted = universe().filter(|name| self.wanted(client, name));
        wanted.filter_map(|name| Some((name.clone(), self.selected(client.selector, &name)?))).collect()
    }

    fn apply(&mut self, op: &Op) {
        let url = TypeUrl::from(URL);
        match op {
            Op::Open { who, selector, asks, holds } => self.open(*who, *selector, asks, holds),
            Op::Close { who } => self.close(*who),
            Op::Subscribe { who, what } => self.subscribe(*who, &interest(INTERESTS[*what])),
            Op::Unsubscribe { who, what } => self.unsubscribe(*who, &interest(INTERESTS[*what])),
            Op::Vary { what, changes, dropped } => self.vary(&name(NAMES[*what]), changes, *dropped),
            Op::Put { what, version, digest } => {
                let name = name(NAMES[*what]);
                self.change(
                    |edit| _ = edit.put(&url, &name, resource(*version, *digest)),
                    |model| {
                        model.put(&name, 0, *version, *digest);
                    },
                );
            }
            Op::Replace { resources } => self.replace(resources),
            Op::Remove { what } => {
                let name = name(NAMES[*what]);
                self.change(|edit| edit.remove(&url, &name), |model| model.remove(&name));
            }
            Op::Touch { what } => {
                let name = name(NAMES[*what]);
                self.change(
                    |edit| edit.touch(&url, &name),
                    |model| {
                        if model.names.contains_key(&name) {
                            model.failed.remove(&name);
                            model.owe_all(&name);
                        }
                    },
                );
            }
            Op::Fail { what, code } => self.fail(&name(NAMES[*what]), *code),
            Op::Answered { what } => {
                let collection = interest(INTERESTS[*what]);
                self.change(|edit| edit.answered(&url, &collection), |_| ());
                // Its answer says what went before somebody came.
                let clients = self.clients.iter_mut().flatten();
                clients.for_each(|client| client.may_remove.extend(universe()));
            }
            Op::Evict { what } => self.evict(&interest(INTERESTS[*what])),
            Op::Pull { who, entries, defer } => {
                let removals = if *defer { Removals::Defer } else { Removals::Include };
                self.pull(*who, *entries, removals);
            }
            Op::PullErrors { who } => self.pull_errors(*who),
            Op::PullAll { who } => self.pull_all(*who),
        }
    }

    fn open(&mut self, who: usize, selector: usize, asks: &[usize], holds: &[usize]) {
        self.close(who);
        let id = self.cache.open_selecting(&URL.into(), self.forms.selector(selector));
        assert_eq!(self.cache.selector(id).unwrap().is_default(), selector == 0);
        self.clients[who] = Some(Client {
            id,
            selector,
            interests: BTreeSet::new(),
            view: BTreeMap::new(),
            brought: BTreeSet::new(),
            may_put: BTreeSet::new(),
            owed: BTreeSet::new(),
            may_remove: BTreeSet::new(),
            may_hold_plain: BTreeSet::new(),
            silent: BTreeSet::new(),
            guessed: BTreeSet::new(),
        });
        asks.iter().for_each(|what| self.subscribe(who, &interest(INTERESTS[*what])));
        // Of which variant that is, no request can say.
        let held: BTreeMap<_, _> = holds.iter().map(|what| (name(NAMES[*what]), Version::from("1"))).collect();
        self.cache.resume(id, held.clone());
        if let Some(client) = &mut self.clients[who] {
            client.may_remove.extend(held.keys().cloned());
            client.brought.extend(held.keys().cloned());
            client.view.extend(held.into_iter().map(|(name, version)| (name, (None, version, None))));
        }
        self.come_back(who);
    }

    fn close(&mut self, who: usize) {
        let Some(client) = self.clients[who].take() else { return };
        self.cache.close(client.id);
        // As long as it was told all: what went as a whole, and came back, is not remembered.
        let held = client.view.iter().filter(|(name, (variant, ..))| {
            let selected = self.selected(client.selector, name).map(|(number, ..)| number);
            variant.is_some() && *variant == selected && self.wanted_by_glob(&client, name)
        });
        self.away[who] = Some((client.selector, held.map(|(name, held)| (name.clone(), held.clone())).collect()));
    }

    fn wanted_by_glob(&self, client: &Client, name: &ResourceName) -> bool {
        let globs =
            client.interests.iter().filter(|interest| matches!(interest, Interest::Name(name) if name.is_glob()));
        globs.into_iter().any(|glob| self.matches(glob, name))
    }

    /// A client that comes back does not say what it holds of globs: only what the cache remembers can tell it.
    fn come_back(&mut self, who: usize) {
        let Some((selector, held)) = self.away[who].take() else { return };
        let Some(mut client) = self.clients[who].take() else { return };
        for (name, held) in held.into_iter().filter(|_| self.options.authoritative && selector == client.selector) {
            if self.wanted_by_glob(&client, &name) && !client.view.contains_key(&name) {
                client.silent.insert(name.clone());
                client.view.insert(name, held);
            }
        }
        self.clients[who] = Some(client);
    }

    fn subscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        self.cache.subscribe(client.id, interest);
        client.interests.insert(interest.clone());
        for name in universe().filter(|name| self.matches(interest, name)) {
            client.owed.insert(name.clone());
            client.may_put.insert(name.clone());
            client.may_remove.insert(name.clone());
            client.guessed.insert(name.clone());
            if self.names.contains_key(&name) && !self.varied.contains(&name) {
                client.may_hold_plain.insert(name);
            }
        }
        self.clients[who] = Some(client);
    }

    fn unsubscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        self.cache.unsubscribe(client.id, interest);
        if client.interests.remove(interest) {
            let keeps = client.interests.contains(&Interest::Wildcard);
            for name in universe().filter(|name| self.matches(interest, name)) {
                let wanted = self.wanted(&client, &name);
                if !wanted && !keeps {
                    client.view.remove(&name);
                    client.brought.remove(&name);
                }
                client.may_remove.insert(name.clone());
                if wanted {
                    client.may_put.insert(name.clone());
                    let held = client.view.get(&name).map(|held| (held.0, held.2));
                    let selected = self.selected(client.selector, &name);
                    if !interest.is_collection() {
                        client.owed.insert(name);
                    } else if held == selected.map(|(number, _, digest)| (Some(number), Some(digest))) {
                        // What else covers it sent that before.
                        client.owed.remove(&name);
                    }
                } else {
                    client.may_put.remove(&name);
                    client.owed.remove(&name);
                }
            }
        }
        self.clients[who] = Some(client);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_history_of_variants_is_what_selection_one_by_one_says(
        authoritative in any::<bool>(),
        wildcard_covers_xdstp in any::<bool>(),
        draft in any::<bool>(),
        looks in prop_oneof![Just(usize::MAX), 1..4_usize],
        history in prop::collection::vec(op(), 1..60),
    ) {
        let options = Options { authoritative, wildcard_covers_xdstp, looks, ..Options::default() };
        let mut model = Model::new(options, draft);
        for op in &history {
            model.apply(op);
            invariants::check(&model.cache);
        }
        model.end();
    }
}
