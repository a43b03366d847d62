//! What changes in the cache, and in the model alike.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

use super::{Expected, Model, NAMES, SUBSCRIBERS, URL, resource, universe};
use crate::tests::name;
use crate::{Edit, Interest, ResourceError, SubscriberId, TypeUrl, Version, Woken};

impl Model {
    /// Changes the cache in one edit, and the model alike; and checks who is woken.
    pub(super) fn change(&mut self, edit: impl FnOnce(&mut Edit<'_, ()>), change: impl FnOnce(&mut Self)) {
        self.change_and(None, false, edit, change);
    }

    /// `of`: the name of which only variants change, so that those have nothing to do with it who select none of these.
    pub(super) fn change_and(
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
    pub(super) fn note_news(&mut self, who: usize, before: &Expected, varied: &BTreeSet<ResourceName>) {
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

    pub(super) fn owe_all(&mut self, name: &ResourceName) {
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

    pub(super) fn put(&mut self, name: &ResourceName, number: usize, version: u8, digest: u8) {
        if self.failed.remove(name) {
            self.owe_all(name);
            // Who has none of it is told that the error is over.
            let clients = self.clients.iter_mut().flatten();
            clients.for_each(|client| _ = client.may_remove.insert(name.clone()));
        }
        if number > 0 {
            self.varied.insert(name.clone());
        }
        let resource = (Version::from(version.to_string()), u128::from(digest));
        self.names.entry(name.clone()).or_default().insert(number, resource);
    }

    pub(super) fn remove(&mut self, name: &ResourceName) {
        self.names.remove(name);
        self.varied.remove(name);
        self.failed.remove(name);
        // What was in its place when it comes back is not remembered.
        self.away.iter_mut().flatten().for_each(|(_, held)| _ = held.remove(name));
        // Who had yet to be told of what is gone, is told that it is: not which variant it was, if only it knows.
        let clients = std::mem::take(&mut self.clients);
        self.clients = clients.map(|client| {
            client.map(|mut client| {
                if self.wanted(&client, name) {
                    client.may_remove.insert(name.clone());
                }
                if client.silent.contains(name)
                    && let Some((variant, ..)) = client.view.get_mut(name)
                {
                    *variant = None;
                }
                client
            })
        });
    }

    pub(super) fn vary(&mut self, name: &ResourceName, changes: &[(usize, Option<(u8, u8)>)], dropped: bool) {
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

    pub(super) fn replace(&mut self, resources: &[(usize, u8)]) {
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

    pub(super) fn fail(&mut self, name: &ResourceName, code: i32) {
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
    pub(super) fn evict(&mut self, interest: &Interest) {
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
}
