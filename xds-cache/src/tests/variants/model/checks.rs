//! What a subscriber is told, against what it must and may be told.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use xdstp_uri::ResourceName;

use super::{Client, INTERESTS, Model, SELECTORS, SUBSCRIBERS, URL, universe};
use crate::tests::{interest, invariants};
use crate::{Cache, Interest, Known, Pull, Removals, Variant, Version};

impl Model {
    pub(super) fn pull(&mut self, who: usize, entries: usize, removals: Removals) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let forms = self.forms;
        let numbers = |all: &[Arc<Variant>]| all.iter().map(|one| forms.number(one)).collect::<BTreeSet<_>>();
        let mut said = Vec::new();
        let pulled = self.cache.pull(client.id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, variant, replaces, resource } => {
                    let put = (resource.version.clone(), resource.digest());
                    (name.clone(), variant.map(|one| forms.number(one)), numbers(replaces), Some(put))
                }
                Pull::Removed { name, variants } => (name.clone(), None, numbers(variants), None),
            });
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let names: BTreeSet<_> = said.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), said.len(), "rule 69: {said:?}");
        assert!(said.is_sorted_by_key(|(.., put)| put.is_none()), "additions first: {said:?}");
        for (name, variant, replaces, put) in said {
            match put {
                Some(put) => self.check_put(&mut client, name, variant, &replaces, put),
                None => self.check_removed(&mut client, &name, &replaces, removals),
            }
        }
        self.clients[who] = Some(client);
        pulled.more
    }

    pub(super) fn check_put(
        &self,
        client: &mut Client,
        name: ResourceName,
        variant: Option<usize>,
        replaces: &BTreeSet<usize>,
        put: (Version, u128),
    ) {
        assert!(self.wanted(client, &name), "{name} is not wanted");
        let (number, version, digest) = self.selected(client.selector, &name).expect("one is for it");
        assert_eq!((variant.unwrap_or(0), &put), (number, &(version, digest)), "{name}: what it selects, as it is now");
        assert_eq!(variant.is_some(), number > 0, "{name}");
        assert!(client.may_put.remove(&name), "{name} is sent twice");
        let held = client.view.get(&name).and_then(|(held, ..)| *held).filter(|held| *held != number);
        // Nothing of a plain one has to be said where it changes.
        let told = held.is_none_or(|held| replaces.contains(&held));
        assert!(told, "{name}: {held:?} goes in the same step: {replaces:?}");
        assert!(!replaces.contains(&number), "{name}: {number} takes its own place");
        self.check_guesses(client, &name, held, replaces);
        if variant.is_some() {
            client.may_hold_plain.remove(&name);
        }
        client.owed.remove(&name);
        client.brought.remove(&name);
        client.silent.remove(&name);
        client.view.insert(name, (Some(number), put.0, Some(put.1)));
    }

    /// Only of who came without saying what it holds is guessed what that may be.
    fn check_guesses(&self, client: &mut Client, name: &ResourceName, held: Option<usize>, variants: &BTreeSet<usize>) {
        // It may have had what there was without variants, or was to be told that something is gone.
        let plain = client.may_hold_plain.contains(name) || client.may_remove.contains(name);
        let any = client.guessed.remove(name) || client.brought.contains(name);
        for guess in variants.iter().filter(|guess| held != Some(**guess)) {
            assert!(any || *guess == 0 && plain, "{name}: {guess} was not held");
            assert!(self.forms.select(client.selector, [*guess].into_iter()).is_some(), "{guess} was not for it");
        }
    }

    pub(super) fn check_removed(
        &self,
        client: &mut Client,
        name: &ResourceName,
        variants: &BTreeSet<usize>,
        removals: Removals,
    ) {
        if name.is_glob() {
            assert!(client.interests.contains(&Interest::Name(name.clone())), "{name}");
            let members = universe().filter(|member| member.answers(name));
            assert!(members.into_iter().all(|member| self.selected(client.selector, &member).is_none()), "{name}");
            return;
        }
        let there = self.wanted(client, name) && self.selected(client.selector, name).is_some();
        assert!(!there, "{name} is there");
        let held = client.view.remove(name);
        let silent = client.silent.remove(name);
        assert!(removals == Removals::Include || held.is_none() || silent, "{name} is held: that waits");
        // What was away is told of what it may hold.
        let known = held.and_then(|(number, ..)| number);
        let told = known.is_none_or(|number| number == 0 || variants.contains(&number));
        assert!(told, "{name}: {known:?} is not told");
        self.check_guesses(client, name, known, variants);
        assert!(client.may_remove.remove(name), "{name} is removed twice");
        client.brought.remove(name);
        client.may_hold_plain.remove(name);
    }

    pub(super) fn pull_errors(&mut self, who: usize) {
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
            client.silent.remove(name);
            client.may_hold_plain.remove(name);
        }
        self.clients[who] = Some(client);
    }

    pub(super) fn pull_all(&mut self, who: usize) {
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
                    let compares =
                        self.cache.subscribers[client.id].owed.owes(crate::subscribers::Debt::Comparison, &name);
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
    pub(super) fn check_wanted(&self) {
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
    pub(super) fn end(mut self) {
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
