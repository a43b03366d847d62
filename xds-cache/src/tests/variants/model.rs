//! Random histories of variants, against selection one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use super::naive::{FORMS, Forms};
use crate::tests::{interest, invariants, name};
use crate::{
    Cache, Edit, Interest, Known, Options, Pull, Removals, Resource, ResourceError, SubscriberId, TypeUrl, Version,
    Woken,
};

const NAMES: [&str; 4] = ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2"];
const INTERESTS: [&str; 6] = ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "*", "xdstp://x/T/d/*"];
const SUBSCRIBERS: usize = 3;
const SELECTORS: usize = 6;
const VARIANTS: usize = 6;
const URL: &str = "T";

#[derive(Clone, Debug)]
enum Op {
    Open {
        who: usize,
        selector: usize,
        asks: Vec<usize>,
        holds: Vec<usize>,
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
    /// Several at once, of one name: what is put, with which version and digest, or removed.
    Vary {
        what: usize,
        changes: Vec<(usize, Option<(u8, u8)>)>,
        dropped: bool,
    },
    Put {
        what: usize,
        version: u8,
        digest: u8,
    },
    Replace {
        resources: Vec<(usize, u8)>,
    },
    Remove {
        what: usize,
    },
    Touch {
        what: usize,
    },
    Fail {
        what: usize,
        code: i32,
    },
    Answered {
        what: usize,
    },
    Evict {
        what: usize,
    },
    Pull {
        who: usize,
        entries: usize,
        defer: bool,
    },
    PullErrors {
        who: usize,
    },
    PullAll {
        who: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..SUBSCRIBERS;
    let named = || 0..NAMES.len();
    let either = || 0..INTERESTS.len();
    let change = || (0..VARIANTS, prop::option::weighted(0.6, (0..3_u8, 0..3_u8)));
    prop_oneof![
        3 => (who(), 0..SELECTORS, prop::collection::vec(either(), 0..4), prop::collection::vec(named(), 0..2))
            .prop_map(|(who, selector, asks, holds)| Op::Open { who, selector, asks, holds }),
        1 => who().prop_map(|who| Op::Close { who }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Subscribe { who, what }),
        3 => (who(), either()).prop_map(|(who, what)| Op::Unsubscribe { who, what }),
        12 => (named(), prop::collection::vec(change(), 1..4), prop::bool::weighted(0.1))
            .prop_map(|(what, changes, dropped)| Op::Vary { what, changes, dropped }),
        2 => (named(), 0..3_u8, 0..3_u8).prop_map(|(what, version, digest)| Op::Put { what, version, digest }),
        1 => prop::collection::btree_map(named(), 0..3_u8, 0..3)
            .prop_map(|resources| Op::Replace { resources: resources.into_iter().collect() }),
        3 => named().prop_map(|what| Op::Remove { what }),
        1 => named().prop_map(|what| Op::Touch { what }),
        1 => (named(), prop::sample::select(vec![5, 7, 14])).prop_map(|(what, code)| Op::Fail { what, code }),
        1 => (4..INTERESTS.len()).prop_map(|what| Op::Answered { what }),
        1 => either().prop_map(|what| Op::Evict { what }),
        4 => (who(), 1..3_usize, any::<bool>()).prop_map(|(who, entries, defer)| Op::Pull { who, entries, defer }),
        1 => who().prop_map(|who| Op::PullErrors { who }),
        4 => who().prop_map(|who| Op::PullAll { who }),
    ]
}

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
}

/// The variants of a name by their numbers.
type Variants = BTreeMap<usize, (Version, u128)>;

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

    fn expected(&self, client: &Client) -> BTreeMap<ResourceName, (usize, Version, u128)> {
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
    }

    fn close(&mut self, who: usize) {
        if let Some(client) = self.clients[who].take() {
            self.cache.close(client.id);
        }
    }

    fn subscribe(&mut self, who: usize, interest: &Interest) {
        let Some(mut client) = self.clients[who].take() else { return };
        self.cache.subscribe(client.id, interest);
        let before: BTreeSet<_> = universe().filter(|name| self.wanted(&client, name)).collect();
        let again = !client.interests.insert(interest.clone());
        for name in universe().filter(|name| self.matches(interest, name)) {
            if again || !interest.is_collection() || !before.contains(&name) {
                client.owed.insert(name.clone());
            }
            client.may_put.insert(name.clone());
            client.may_remove.insert(name.clone());
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
                    if !interest.is_collection() {
                        client.owed.insert(name);
                    }
                } else {
                    client.may_put.remove(&name);
                    client.owed.remove(&name);
                }
            }
        }
        self.clients[who] = Some(client);
    }

    /// Changes the cache in one edit, and the model alike; and checks who is woken.
    fn change(&mut self, edit: impl FnOnce(&mut Edit<'_, ()>), change: impl FnOnce(&mut Self)) {
        self.change_and(None, false, edit, change);
    }

    /// `of`: the name of which only variants change, so that those have nothing to do with it who select none of these.
    fn change_and(
        &mut self,
        of: Option<&ResourceName>,
        dropped: bool,
        edit: impl FnOnce(&mut Edit<'_, ()>),
        change: impl FnOnce(&mut Self),
    ) {
        let clients: Vec<_> = self.clients.iter().flatten().collect();
        let idle: Vec<_> = clients.iter().map(|client| client.id).filter(|id| !self.cache.has_work(*id)).collect();
        let before: Vec<_> = clients.iter().map(|client| (client.id, self.expected(client))).collect();
        let looked = |id: SubscriberId| of.is_some_and(|name| self.cache.look_of(id, name).is_some());
        let looked: BTreeSet<_> = idle.iter().copied().filter(|id| looked(*id)).collect();
        let (failed, varied) = (self.failed.clone(), self.varied.clone());
        let mut editing = self.cache.edit(self.now);
        edit(&mut editing);
        let woken: Woken = if dropped {
            drop(editing);
            self.cache.edit(self.now).finish()
        } else {
            editing.finish()
        };
        change(self);
        let woken: Vec<_> = woken.into_iter().collect();
        let expected: BTreeSet<_> = idle.iter().copied().filter(|id| self.cache.has_work(*id)).collect();
        assert_eq!(woken.iter().collect::<BTreeSet<_>>().len(), woken.len(), "each once");
        assert!(expected.iter().all(|id| woken.contains(id)), "{expected:?} are woken: {woken:?}");
        let there: Vec<_> = (0..SUBSCRIBERS).filter(|who| self.clients[*who].is_some()).collect();
        for (who, (id, before)) in there.into_iter().zip(before) {
            self.note_news(who, &before, &varied);
            let Some(client) = &self.clients[who] else { continue };
            let same = self.expected(client) == before && client.owed.is_empty();
            let same = same && self.failed == failed && self.varied == varied;
            assert!(!same || !looked.contains(&id) || !woken.contains(&id), "nothing changed for {who}");
        }
    }

    /// What a client is to be sent, and may be told, because of a change.
    fn note_news(
        &mut self,
        who: usize,
        before: &BTreeMap<ResourceName, (usize, Version, u128)>,
        varied: &BTreeSet<ResourceName>,
    ) {
        let Some(mut client) = self.clients[who].take() else { return };
        let now = self.expected(&client);
        let wanted: Vec<_> = universe().filter(|name| self.wanted(&client, name)).collect();
        for name in wanted {
            let turned = varied.contains(&name) != self.varied.contains(&name);
            if now.get(&name) != before.get(&name) || turned {
                client.may_put.insert(name.clone());
                client.may_remove.insert(name.clone());
            }
            if now.contains_key(&name) && now.get(&name) != before.get(&name) {
                assert!(self.cache.has_work(client.id), "{name} changed");
                client.owed.insert(name.clone());
            }
            if self.names.contains_key(&name) && !self.varied.contains(&name) {
                client.may_hold_plain.insert(name);
            }
        }
        self.clients[who] = Some(client);
    }

    fn owe_all(&mut self, name: &ResourceName) {
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if self.wanted(&client, name) && self.selected(client.selector, name).is_some() {
                    client.may_put.insert(name.clone());
                    client.owed.insert(name.clone());
                }
                client
            })
        });
    }

    fn put(&mut self, name: &ResourceName, number: usize, version: u8, digest: u8) {
        if self.failed.remove(name) {
            self.owe_all(name);
        }
        if number > 0 {
            self.varied.insert(name.clone());
        }
        let resource = (Version::from(version.to_string()), u128::from(digest));
        self.names.entry(name.clone()).or_default().insert(number, resource);
    }

    fn remove(&mut self, name: &ResourceName) {
        self.names.remove(name);
        self.varied.remove(name);
        self.failed.remove(name);
        // Who had yet to be told of what is gone, is told that it is.
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if self.wanted(&client, name) {
                    client.may_remove.insert(name.clone());
                }
                client
            })
        });
    }

    fn vary(&mut self, name: &ResourceName, changes: &[(usize, Option<(u8, u8)>)], dropped: bool) {
        let (url, forms) = (TypeUrl::from(URL), self.forms);
        let edit = |edit: &mut Edit<'_, ()>| {
            for (number, change) in changes {
                match change {
                    Some((version, digest)) => {
                        edit.put_variant(&url, name, forms.variant(*number), resource(*version, *digest));
                    }
                    None => edit.remove_variant(&url, name, forms.variant(*number)),
                }
            }
        };
        // What changes and changes back is sent once more.
        let numbers: BTreeSet<_> = changes.iter().map(|(number, _)| number).collect();
        let of = Some(name).filter(|_| numbers.len() == changes.len());
        self.change_and(of, dropped, edit, |model| {
            for (number, change) in changes {
                let is_varied = model.varied.contains(name);
                match change {
                    Some((version, digest)) => model.put(name, *number, *version, *digest),
                    None => {
                        let Some(variants) = model.names.get_mut(name) else { continue };
                        variants.remove(number);
                        // Without variants, that was all of it.
                        if variants.is_empty() && !is_varied {
                            model.remove(name);
                        }
                    }
                }
            }
            if model.names.get(name).is_some_and(BTreeMap::is_empty) {
                model.remove(name);
            }
        });
        if of.is_none() {
            let clients = self.clients.iter_mut().flatten();
            clients.for_each(|client| _ = client.may_put.insert(name.clone()));
        }
    }

    fn replace(&mut self, resources: &[(usize, u8)]) {
        let url = TypeUrl::from(URL);
        let all: Vec<_> = universe().collect();
        let listed: Vec<_> = resources.iter().map(|(what, version)| (name(NAMES[*what]), *version)).collect();
        let edit = |edit: &mut Edit<'_, ()>| {
            edit.replace(&url, listed.iter().map(|(name, version)| (name.clone(), resource(*version, 9))));
        };
        self.change(edit, |model| {
            for name in &all {
                if !listed.iter().any(|(listed, _)| listed == name) && model.names.contains_key(name) {
                    model.remove(name);
                }
            }
            for (name, version) in &listed {
                model.put(name, 0, *version, 9);
                if let Some(variants) = model.names.get_mut(name) {
                    variants.retain(|number, _| *number == 0);
                }
            }
        });
    }

    fn fail(&mut self, name: &ResourceName, code: i32) {
        let url = TypeUrl::from(URL);
        let error = ResourceError::new(code, "why");
        self.change(|edit| edit.fail(&url, name, error), |_| ());
        if self.cache.error(&url, name).is_some() {
            if code == ResourceError::NOT_FOUND {
                let before: Vec<_> =
                    self.clients.iter().map(|client| client.as_ref().map(|one| self.expected(one))).collect();
                let varied = self.varied.clone();
                self.remove(name);
                for (who, before) in before.into_iter().enumerate() {
                    before.into_iter().for_each(|before| self.note_news(who, &before, &varied));
                }
            }
            self.failed.insert(name.clone());
            let clients = self.clients.iter_mut().flatten();
            clients.for_each(|client| _ = client.may_remove.insert(name.clone()));
        }
    }

    /// What nobody wants may be forgotten.
    fn evict(&mut self, interest: &Interest) {
        let url = TypeUrl::from(URL);
        self.cache.evict(&url, interest, self.now);
        let there =
            |name: &ResourceName| self.cache.resources().any(|stored| stored.name == name && stored.resource.is_some());
        let gone: Vec<_> = self.names.keys().filter(|name| !there(name)).cloned().collect();
        for name in gone {
            assert!(!self.clients.iter().flatten().any(|client| self.wanted(client, &name)), "{name} is wanted");
            self.names.remove(&name);
            self.varied.remove(&name);
        }
        self.failed.retain(|name| self.cache.error(&url, name).is_some());
    }

    fn pull(&mut self, who: usize, entries: usize, removals: Removals) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let forms = self.forms;
        let number = |variant: Option<&crate::Variant>| variant.map(|variant| forms.number(variant));
        let mut said = Vec::new();
        let pulled = self.cache.pull(client.id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, variant, replaces, resource } => {
                    let put = (resource.version.clone(), resource.digest());
                    (name.clone(), number(variant), number(replaces), Some(put))
                }
                Pull::Removed { name, variant } => (name.clone(), number(variant), None, None),
            });
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let names: BTreeSet<_> = said.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), said.len(), "rule 69: {said:?}");
        assert!(said.is_sorted_by_key(|(.., put)| put.is_none()), "additions first: {said:?}");
        for (name, variant, replaces, put) in said {
            match put {
                Some(put) => self.check_put(&mut client, name, variant, replaces, put),
                None => self.check_removed(&mut client, &name, variant, removals),
            }
        }
        self.clients[who] = Some(client);
        pulled.more
    }

    fn check_put(
        &self,
        client: &mut Client,
        name: ResourceName,
        variant: Option<usize>,
        replaces: Option<usize>,
        put: (Version, u128),
    ) {
        assert!(self.wanted(client, &name), "{name} is not wanted");
        let (number, version, digest) = self.selected(client.selector, &name).expect("one is for it");
        assert_eq!((variant.unwrap_or(0), &put), (number, &(version, digest)), "{name}: what it selects, as it is now");
        assert_eq!(variant.is_some(), number > 0, "{name}");
        assert!(client.may_put.remove(&name), "{name} is sent twice");
        let held = client.view.get(&name).and_then(|(held, ..)| *held);
        let differs = held.filter(|held| *held != number);
        // Nothing of a plain one has to be said where no variant takes its place.
        match differs {
            Some(held) if held > 0 || variant.is_some() => assert_eq!(replaces, Some(held), "{name}: in one step"),
            _ => {
                let guess = replaces == Some(0) && variant.is_some() && held.is_none();
                // Or was to be told that it is gone.
                let leaves = client.may_remove.contains(&name);
                let may_hold = leaves || client.may_hold_plain.contains(&name) || client.brought.contains(&name);
                assert!(replaces.is_none() || guess && may_hold, "{name}: {replaces:?} was not held");
            }
        }
        if variant.is_some() {
            client.may_hold_plain.remove(&name);
        }
        client.owed.remove(&name);
        client.brought.remove(&name);
        client.view.insert(name, (Some(number), put.0, Some(put.1)));
    }

    fn check_removed(&self, client: &mut Client, name: &ResourceName, variant: Option<usize>, removals: Removals) {
        if name.is_glob() {
            assert!(client.interests.contains(&Interest::Name(name.clone())), "{name}");
            let members = universe().filter(|member| member.answers(name));
            assert!(members.into_iter().all(|member| self.selected(client.selector, &member).is_none()), "{name}");
            return;
        }
        let there = self.wanted(client, name) && self.selected(client.selector, name).is_some();
        assert!(!there, "{name} is there");
        let held = client.view.remove(name);
        assert!(removals == Removals::Include || held.is_none(), "{name} is held: that waits");
        // What was away is told of what it may hold.
        let known = held.and_then(|(number, ..)| number);
        assert!(known.is_none_or(|number| variant.unwrap_or(0) == number), "{name}: {variant:?} is not {known:?}");
        assert!(client.may_remove.remove(name), "{name} is removed twice");
        client.brought.remove(name);
        client.may_hold_plain.remove(name);
    }

    fn pull_errors(&mut self, who: usize) {
        let Some(mut client) = self.clients[who].take() else { return };
        let mut gone = Vec::new();
        self.cache.pull_errors(client.id, Removals::Include, &mut |failed| {
            gone.extend(failed.removed.then(|| failed.name.clone()));
            ControlFlow::Continue(())
        });
        for name in gone.iter().filter(|name| !name.is_glob()) {
            assert!(self.selected(client.selector, name).is_none(), "{name} is there");
            client.view.remove(name);
            client.brought.remove(name);
            client.may_hold_plain.remove(name);
        }
        self.clients[who] = Some(client);
    }

    fn pull_all(&mut self, who: usize) {
        while self.pull(who, 2, Removals::Include) {}
        self.pull_errors(who);
        while self.pull(who, 2, Removals::Include) {}
        let Some(mut client) = self.clients[who].take() else { return };
        assert!(!self.cache.has_work(client.id));
        let expected = self.expected(&client);
        for name in universe() {
            let held = client.view.get(&name);
            match expected.get(&name) {
                Some((number, version, digest)) => {
                    let compared = !self.varied.contains(&name) && client.brought.contains(&name);
                    assert!(compared || !client.owed.contains(&name), "{name} was not sent");
                    let (variant, held_version, known) = held.unwrap_or_else(|| panic!("{name} is not held"));
                    assert_eq!(held_version, version, "{name}");
                    assert!(compared || *variant == Some(*number), "{name}: {variant:?}");
                    assert!(compared || *known == Some(*digest), "{name}");
                }
                None => {
                    // Only what a relay was not answered about may stay, of what was brought along.
                    let may_stay = client.brought.contains(&name);
                    let stays = may_stay && (!self.options.authoritative || self.failed.contains(&name));
                    // It asked for the name anew, and waits for the answer.
                    let asked = Interest::Name(name.clone());
                    let waits = client.interests.contains(&asked) && !self.cache.is_known(&URL.into(), &asked);
                    // Or left it, and a collection that is not answered may have it.
                    let compares = self.cache.subscribers[client.id].owed.brought().contains(&name);
                    let stays = stays || waits || compares;
                    assert!(held.is_none() || stays, "{name} is held: {held:?}");
                }
            }
        }
        let mut visited = BTreeMap::new();
        self.cache.visit(client.id, &mut |name, resource| {
            visited.insert(name.clone(), (resource.version.clone(), resource.digest()));
        });
        let full: BTreeMap<_, _> =
            expected.iter().map(|(name, (_, version, digest))| (name.clone(), (version.clone(), *digest))).collect();
        assert_eq!(visited, full, "the full state");
        client.owed.clear();
        client.may_put.clear();
        client.may_hold_plain.clear();
        client.may_remove.retain(|name| client.brought.contains(name));
        self.clients[who] = Some(client);
        assert!(!self.pull(who, usize::MAX, Removals::Include));
        self.check_wanted();
    }

    /// What is wanted is said by selections, and each once.
    fn check_wanted(&self) {
        for text in INTERESTS {
            let interest = interest(text);
            let clients = self.clients.iter().flatten().filter(|client| client.interests.contains(&interest));
            let selectors: BTreeSet<_> = clients.map(|client| client.selector).collect();
            let expected: BTreeSet<_> =
                selectors.iter().map(|number| self.forms.selector(*number).to_string()).collect();
            let selections = self.cache.selections(&URL.into(), &interest);
            assert_eq!(selections.len(), selectors.len(), "{interest}");
            assert_eq!(selections.into_iter().map(ToString::to_string).collect::<BTreeSet<_>>(), expected);
        }
        let overlapping = |client: &Client, name: &ResourceName| {
            let variants = self.names.get(name)?;
            self.forms.select(client.selector, variants.keys().copied()).map(|(_, ambiguous)| ambiguous)
        };
        let clients = self.clients.iter().flatten();
        let any = clients
            .flat_map(|client| universe().filter(|name| self.wanted(client, name)).map(move |name| (client, name)));
        let any = any.filter(|(client, _)| !self.cache.has_work(client.id));
        let any = any
            .filter(|(_, name)| self.varied.contains(name))
            .any(|(client, name)| overlapping(client, &name) == Some(true));
        assert!(!any || self.cache.totals().overlapping > 0, "an overlap is not reported");
    }

    /// Everybody goes, and a restored cache says the same to everybody.
    fn end(mut self) {
        (0..SUBSCRIBERS).for_each(|who| self.pull_all(who));
        (0..SUBSCRIBERS).for_each(|who| self.close(who));
        assert_eq!(self.cache.store.selectors.len(), 0);
        let known: Vec<Known<()>> = self.cache.snapshot(self.now).map(|known| known.map(|_| ())).collect();
        let mut restored = Cache::restore(self.options.clone(), known, self.now);
        invariants::check(&restored);
        for selector in 0..SELECTORS {
            for text in INTERESTS {
                let [before, after] = [&mut self.cache, &mut restored].map(|cache| {
                    let id = cache.open_selecting(&URL.into(), self.forms.selector(selector));
                    cache.subscribe(id, &interest(text));
                    let mut said = Vec::new();
                    let mut pull = |pull: Pull<'_, ()>| {
                        said.push(format!("{pull:?}"));
                        ControlFlow::Continue(())
                    };
                    while cache.pull(id, Removals::Include, &mut pull).more {}
                    cache.close(id);
                    said
                });
                assert_eq!(before, after, "{text} for {}", self.forms.selector(selector));
            }
        }
        for name in universe() {
            self.cache.remove(&URL.into(), &name, self.now, &mut Vec::new());
        }
        self.cache.expire(self.now + Duration::from_secs(1) + self.options.tombstone_age);
        invariants::check(&self.cache);
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
