//! What each client knows and is owed, as it comes, asks, leaves and goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xdstp_uri::ResourceName;

use super::{Model, TYPES, text, universe};
use crate::tests::{interest, name};
use crate::{Interest, SubscriberId, Version};

/// What one client knows, and what it is owed.
pub(super) struct Client {
    pub(super) id: SubscriberId,
    pub(super) of: usize,
    pub(super) interests: BTreeSet<Interest>,
    pub(super) view: Held,
    /// The versions it came with, as long as they count.
    pub(super) resumed: BTreeMap<ResourceName, Version>,
    /// Must be put, if there.
    pub(super) owed: BTreeSet<ResourceName>,
    /// May be put.
    pub(super) may_put: BTreeSet<ResourceName>,
    /// Must be told as removed, if known to be absent.
    pub(super) owed_removal: BTreeSet<ResourceName>,
    /// May be told as removed.
    pub(super) may_remove: BTreeSet<ResourceName>,
    /// All it came with.
    pub(super) brought: BTreeSet<ResourceName>,
    /// What it asked for of that at once.
    pub(super) kept: BTreeSet<ResourceName>,
    /// Whose errors must be told, if they are not over.
    pub(super) owed_errors: BTreeSet<ResourceName>,
    /// Whose errors may be told.
    pub(super) may_errors: BTreeSet<ResourceName>,
    /// What it holds of globs from before, and does not say, as Envoy does not.
    pub(super) silent: BTreeSet<ResourceName>,
    /// What was not there by an answer that was complete when it was looked at for this client.
    pub(super) concluded: BTreeSet<ResourceName>,
}

/// What a client holds, by what it was told; the digest is not known of what it came with.
pub(super) type Held = BTreeMap<ResourceName, (Version, Option<u128>)>;

impl Client {
    fn new(id: SubscriberId, of: usize) -> Self {
        Self {
            id,
            of,
            interests: BTreeSet::new(),
            view: BTreeMap::new(),
            resumed: BTreeMap::new(),
            owed: BTreeSet::new(),
            may_put: BTreeSet::new(),
            owed_removal: BTreeSet::new(),
            may_remove: BTreeSet::new(),
            brought: BTreeSet::new(),
            kept: BTreeSet::new(),
            owed_errors: BTreeSet::new(),
            may_errors: BTreeSet::new(),
            silent: BTreeSet::new(),
            concluded: BTreeSet::new(),
        }
    }

    pub(super) fn owe_error(&mut self, name: &ResourceName) {
        self.owed_errors.insert(name.clone());
        self.may_errors.insert(name.clone());
    }
}

impl Model {
    pub(super) fn open(&mut self, who: usize, of: usize, asks: &[usize], holds: &[(usize, u8)]) {
        self.close(who);
        let id = self.cache.open(&TYPES[of].into());
        self.clients[who] = Some(Client::new(id, of));
        for what in asks {
            self.subscribe(who, &interest(text(*what)));
        }
        self.resume(who, holds);
        self.come_back(who);
    }

    /// A client holds what it was sent: it brought along what it was not.
    pub(super) fn resume(&mut self, who: usize, holds: &[(usize, u8)]) {
        let Some(mut client) = self.clients[who].take() else { return };
        let holds = holds.iter().map(|(what, version)| (name(text(*what)), Version::from(version.to_string())));
        let holds: BTreeMap<_, _> = holds.filter(|(name, _)| !client.view.contains_key(name)).collect();
        self.cache.resume(client.id, holds.clone());
        let kept: Vec<_> = holds.keys().filter(|name| self.wanted(&client, name)).cloned().collect();
        client.kept.extend(kept);
        client.may_remove.extend(holds.keys().cloned());
        client.brought.extend(holds.keys().cloned());
        client.view.extend(holds.iter().map(|(name, version)| (name.clone(), (version.clone(), None))));
        client.resumed.extend(holds);
        self.clients[who] = Some(client);
    }

    pub(super) fn subscribe(&mut self, who: usize, interest: &Interest) {
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
        self.conclude(&mut client);
        if let Interest::Name(asked) = interest {
            for name in self.errors[client.of].keys().filter(|name| name.answers(asked)) {
                // A glob repeats none that it does not tell.
                match name != asked && self.unlisted[client.of].contains(name) {
                    true => _ = client.may_errors.insert(name.clone()),
                    false => client.owe_error(name),
                }
            }
        }
        self.clients[who] = Some(client);
    }

    pub(super) fn unsubscribe(&mut self, who: usize, interest: &Interest) {
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
                    client.kept.remove(&name);
                    client.owed.remove(&name);
                    client.owed_removal.remove(&name);
                } else if !interest.is_collection() {
                    // It may hold it, and hears from what else covers it.
                    client.brought.insert(name.clone());
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
        let told: BTreeSet<_> = client.may_errors.iter().filter(|name| self.hears(&client, name)).cloned().collect();
        // What was asked for again was left again: it was told by the other interest.
        client.owed_errors.retain(|name| told.contains(name) && !self.matches(interest, name));
        client.may_errors = told;
        self.clients[who] = Some(client);
        self.forget_absent(of);
        if had && last {
            self.renew_interest(of, interest);
        }
        self.sync_evictions();
    }

    pub(super) fn close(&mut self, who: usize) {
        let Some(client) = self.clients[who].take() else { return };
        let left: BTreeSet<_> = self.cache.close(client.id).into_iter().collect();
        let of_globs = |name: &ResourceName| Self::globs_of(&client, name).next().is_some();
        // What it was not sent, but brought along, nobody here may ever have seen.
        let held = client.view.iter().filter(|(name, (_, digest))| digest.is_some() && of_globs(name));
        self.away[who] = Some((client.of, held.map(|(name, held)| (name.clone(), held.clone())).collect()));
        let others: BTreeSet<_> =
            self.clients.iter().flatten().filter(|c| c.of == client.of).flat_map(|c| c.interests.clone()).collect();
        assert_eq!(left, client.interests.difference(&others).cloned().collect());
        if !self.options.authoritative {
            // What let only this one keep what it held need not stay.
            let stays = |name: &ResourceName| self.cache.error(&TYPES[client.of].into(), name).is_some();
            let over = |name: &&ResourceName| !self.is_error_of_interest(client.of, name) && !stays(name);
            let over: Vec<_> = self.errors[client.of].keys().filter(over).cloned().collect();
            over.iter().for_each(|name| drop(self.errors[client.of].remove(name)));
        }
        self.forget_absent(client.of);
        left.iter().for_each(|interest| self.renew_interest(client.of, interest));
        self.sync_evictions();
        self.capacity.step();
    }

    /// The globs a client asked for that cover a name.
    fn globs_of<'a>(client: &'a Client, name: &'a ResourceName) -> impl Iterator<Item = &'a Interest> {
        let covers =
            move |glob: &&Interest| matches!(glob, Interest::Name(glob) if glob.is_glob() && name.answers(glob));
        client.interests.iter().filter(covers)
    }

    /// A client that was away still holds what it held of the globs that it asks for again, and does not say so: what
    /// is gone of it only tombstones can tell, if they are kept for long enough.
    fn come_back(&mut self, who: usize) {
        let bounded = self.options.tombstones < 1000 || self.options.tombstone_age < Duration::from_secs(3600);
        let (Some(client), Some((of, held))) = (&mut self.clients[who], self.away[who].take()) else { return };
        if of != client.of || bounded {
            return;
        }
        for (name, held) in held {
            if Self::globs_of(client, &name).next().is_some() && !client.view.contains_key(&name) {
                client.silent.insert(name.clone());
                client.view.insert(name, held);
            }
        }
    }

    /// Whether a client may still hold what nobody knows that it holds: no glob of that was answered.
    pub(super) fn may_be_silent(&self, client: &Client, name: &ResourceName) -> bool {
        client.silent.contains(name) && !Self::globs_of(client, name).any(|glob| self.is_complete(client.of, glob))
    }

    /// That a name is absent is known as long as somebody asks for it.
    fn forget_absent(&mut self, of: usize) {
        let clients = &self.clients;
        self.absent[of].retain(|name| clients.iter().flatten().any(|c| c.of == of && Self::named(c, name)));
    }
}
