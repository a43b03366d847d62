//! What a subscriber is told, against what a full scan says it must and may be told.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use xdstp_uri::ResourceName;

use super::{Client, Model, universe};
use crate::{Interest, Pull, Removals, ResourceError, Unanswered, Version};

impl Model {
    /// One pull of at most `entries`. Whether there is more.
    pub(super) fn pull(&mut self, who: usize, entries: usize, removals: Removals) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let mut said = Vec::new();
        self.conclude(&mut client);
        let has_additions = self.cache.has_additions(client.id);
        let pulled = self.cache.pull(client.id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, resource, .. } => {
                    (name.clone(), Some((resource.version.clone(), Some(resource.digest()))))
                }
                Pull::Removed { name, .. } => (name.clone(), None),
            });
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(pulled.more, said.len() == entries || pulled.paused);
        assert_eq!(pulled.refused, self.refuses(client.of) && client.interests.iter().any(Interest::is_collection));
        if removals == Removals::Defer {
            assert!(has_additions || said.is_empty() && !pulled.answered, "{said:?} was not announced");
            let errors = self.cache.subscribers[client.id].owed.owes_any(crate::subscribers::Debt::Error);
            assert!(pulled.more || errors || !self.cache.has_additions(client.id), "nothing is left to be announced");
        }
        let names: BTreeSet<_> = said.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), said.len(), "rule 69: {said:?}");
        assert!(said.is_sorted_by_key(|(_, put)| put.is_none()), "additions first");
        for (name, put) in said {
            match put {
                Some(put) => self.check_put(&mut client, name, put),
                None => {
                    let silent = client.silent.contains(&name);
                    let held = client.view.contains_key(&name) && !silent || client.resumed.contains_key(&name);
                    assert!(removals == Removals::Include || !held, "the client may have {name}: that waits");
                    self.check_removed(&mut client, &name);
                }
            }
        }
        self.compare(&mut client, pulled.more);
        // What was gone before an error came stays gone.
        let mut kept = std::mem::take(&mut client.kept);
        let is_transient =
            |name: &ResourceName| self.errors[client.of].get(name).is_some_and(ResourceError::is_transient);
        kept.retain(|name| is_transient(name) || !self.known_absent(&client, name));
        client.kept = kept;
        self.clients[who] = Some(client);
        pulled.more
    }

    /// What is told as gone may be told later, when nobody knows any more that it is.
    pub(super) fn conclude(&self, client: &mut Client) {
        let is_gone =
            |name: &ResourceName| !self.resources[client.of].contains_key(name) && self.known_absent(client, name);
        let gone: Vec<_> = universe().filter(is_gone).collect();
        client.concluded.extend(gone);
    }

    /// What a client brought along and is there as it has it was compared, unless there is more: then it may have been.
    fn compare(&self, client: &mut Client, more: bool) {
        let current = &self.resources[client.of];
        let equal = |name: &ResourceName, held: &Version| current.get(name).is_some_and(|(version, _)| held == version);
        let compared = client.resumed.iter().filter(|(name, held)| equal(name, held) && self.wanted(client, name));
        for name in compared.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            client.kept.remove(&name);
            if !more {
                client.resumed.remove(&name);
                client.owed.remove(&name);
            }
        }
    }

    /// One pull of at most `entries` errors. Whether there are more.
    pub(super) fn pull_errors(&mut self, who: usize, entries: usize, removals: Removals) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let mut said = Vec::new();
        let more = self.cache.pull_errors(client.id, removals, &mut |failed| {
            said.push((failed.name.clone(), failed.error.clone(), failed.removed));
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(more, said.len() == entries);
        for (name, error, removed) in said {
            let silent = client.silent.contains(&name);
            let held = client.view.contains_key(&name) && !silent || client.resumed.contains_key(&name);
            assert!(removals == Removals::Include || !removed || !held, "the client may have {name}: that waits");
            self.check_failed(&mut client, &name, &error, removed);
        }
        self.clients[who] = Some(client);
        more
    }

    fn check_failed(&self, client: &mut Client, name: &ResourceName, error: &ResourceError, removed: bool) {
        assert_eq!(Some(error), self.errors[client.of].get(name), "{name}");
        assert!(self.hears(client, name), "{name} was not asked for");
        assert!(client.may_errors.remove(name), "the error of {name} is told twice");
        client.owed_errors.remove(name);
        let there = |held: &ResourceName| held.answers(name);
        let present = self.resources[client.of].keys().any(there);
        let spared =
            error.is_transient() && client.resumed.keys().any(|held| there(held) && client.kept.contains(held));
        assert!(!removed || !present && !spared, "{name} is told as removed");
        assert!(removed || present || error.is_transient(), "{name} is not told as removed");
        let brought = client.brought.iter().any(there);
        assert!(removed || present || brought || !self.options.authoritative, "{name} is not told as removed");
        if removed && !name.is_glob() {
            client.owed_removal.remove(name);
            client.resumed.remove(name);
            client.view.remove(name);
        }
    }

    /// A client that brought along what has a transient error now may keep it.
    fn may_be_spared(&self, client: &Client, name: &ResourceName) -> bool {
        let transient = self.errors[client.of].get(name).is_some_and(ResourceError::is_transient);
        transient && client.brought.contains(name)
    }

    /// What a client brought along without asking for it may stand behind a name that was not answered yet.
    fn may_be_claimed(&self, client: &Client, name: &ResourceName) -> bool {
        let unanswered = |interest: &Interest| match interest {
            Interest::Name(name) if !name.is_glob() => self.is_unanswered(client, name),
            _ => false,
        };
        !self.wanted(client, name) && client.brought.contains(name) && client.interests.iter().any(unanswered)
    }

    fn is_unanswered(&self, client: &Client, name: &ResourceName) -> bool {
        !self.resources[client.of].contains_key(name) && !self.known_absent(client, name)
    }

    fn check_put(&self, client: &mut Client, name: ResourceName, put: (Version, Option<u128>)) {
        assert!(self.wanted(client, &name), "{name} is not wanted");
        let (version, digest) = self.resources[client.of][&name].clone();
        assert_eq!(put, (version, Some(digest)), "{name}: the newest state");
        assert!(client.may_put.remove(&name), "{name} is sent twice");
        client.owed.remove(&name);
        client.resumed.remove(&name);
        client.silent.remove(&name);
        if self.errors[client.of].contains_key(&name) && self.hears(client, &name) {
            client.owe_error(&name);
        }
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
        let known = self.known_absent(client, name)
            || self.removed[client.of].contains(name)
            || client.concluded.contains(name);
        assert!(known || !wanted, "{name} was not answered yet");
        let transient = self.errors[client.of].get(name).is_some_and(ResourceError::is_transient);
        let brought = client.resumed.contains_key(name) && client.kept.contains(name);
        assert!(!(wanted && transient && brought), "{name} is to be left to its client");
        assert!(client.may_remove.remove(name), "{name} is removed twice");
        client.owed_removal.remove(name);
        client.resumed.remove(name);
        client.view.remove(name);
    }

    pub(super) fn pull_all(&mut self, who: usize) {
        while self.pull(who, 2, Removals::Include) {}
        while self.pull_errors(who, 2, Removals::Include) {}
        // What waited for its error, and was not told with it.
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
                _ if self.may_be_claimed(&client, &name) => {}
                Some(_) => assert_eq!(held, None, "{name} is held though not wanted"),
                None if self.wanted(&client, &name) => {
                    let may_hold = self.may_be_spared(&client, &name) || self.may_be_silent(&client, &name);
                    if self.known_absent(&client, &name) && !may_hold {
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
        let told = |name: &&ResourceName| !(self.errors[client.of].contains_key(*name) && self.hears(&client, name));
        assert_eq!(client.owed_errors.iter().find(|name| !told(name)), None, "an error is not told");
        client.owed_errors.clear();
        client.may_errors.clear();
        self.clients[who] = Some(client);
        assert!(!self.pull(who, usize::MAX, Removals::Include));
    }

    fn is_refused(&self, of: usize, collection: &Interest) -> bool {
        matches!(collection, Interest::Name(glob) if glob.is_glob() && self.errors[of].contains_key(glob))
    }

    fn check_visit(&self, client: &Client) {
        let mut visited = BTreeMap::new();
        let unanswered = self.cache.visit(client.id, &mut |name, resource| {
            let twice = visited.insert(name.clone(), (resource.version.clone(), resource.digest()));
            assert!(twice.is_none(), "{name} is visited twice");
        });
        let mut expected = self.resources[client.of].clone();
        expected.retain(|name, _| self.wanted(client, name));
        assert_eq!(visited, expected);
        let unknown = |interest: &&Interest| match interest {
            Interest::Name(name) if !name.is_glob() => self.is_unanswered(client, name),
            collection => !self.is_known(client.of, collection) && !self.is_refused(client.of, collection),
        };
        let refused =
            |interest: &&Interest| !self.is_complete(client.of, interest) && self.is_refused(client.of, interest);
        let part = |interest: &&Interest| {
            let is_known = interest.is_collection() && self.is_known(client.of, interest);
            is_known && !self.is_complete(client.of, interest) && !refused(interest)
        };
        assert_eq!(unanswered.refused, client.interests.iter().filter(refused).count());
        assert_eq!(unanswered.incomplete, client.interests.iter().filter(part).count());
        let (collections, names): (Vec<_>, Vec<_>) =
            client.interests.iter().filter(unknown).partition(|interest| interest.is_collection());
        assert_eq!((unanswered.names, unanswered.collections), (names.len(), collections.len()));
        let unvisited = self.cache.unanswered_collections(client.id);
        assert_eq!(unvisited, Unanswered { names: 0, held: 0, ..unanswered });
    }
}
