//! What one type of a stream was asked for, and what its client can know by what it was told.

use std::collections::BTreeSet;

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::{Asked, parsed};
use crate::messages::{Request, Response};
use crate::origin::{Content, Origin};
use crate::world::{Of, World, covers};

impl Asked {
    pub(super) fn delta(&mut self, world: &World, origin: &Origin, of: Of, request: &Request, first: bool) {
        if first && request.names.is_empty() && world.rule(of).legacy_wildcard {
            self.subscribe(world, Interest::Wildcard);
        }
        for name in &request.names {
            self.subscribe(world, parsed(name).unwrap().into());
        }
        if first {
            for (name, version) in &request.initial {
                let name = parsed(name).unwrap();
                self.lives.bring(&name, version);
                if origin.resource(of, &name).is_some_and(|there| there.version.as_str() == version) {
                    self.told.insert(name.clone(), (origin.moment, true));
                }
                let named = self.interests.contains(&Interest::Name(name.clone()));
                if !self.covers(world, &name) {
                    self.parting.insert(name);
                } else if !named || world.rule(of).skip_known_on_resume {
                    self.held.insert(name, (version.clone(), origin.moment));
                } else {
                    // It is sent again; that it is gone is no news of what never was.
                    self.fresh.remove(&name);
                }
            }
        }
        for name in &request.unsubscribe {
            self.unsubscribe(world, &parsed(name).unwrap().into());
        }
    }

    pub(super) fn sotw(&mut self, world: &World, of: Of, request: &Request) {
        self.ever_named |= !request.names.is_empty();
        let mut interests: BTreeSet<Interest> = request.names.iter().map(|name| parsed(name).unwrap().into()).collect();
        if interests.is_empty() && world.rule(of).legacy_wildcard && !self.ever_named {
            interests.insert(Interest::Wildcard);
        }
        for new in interests.difference(&self.interests.clone()) {
            self.due = true;
            self.subscribe(world, new.clone());
        }
        let sent = self.sent.clone();
        for left in self.interests.clone().difference(&interests) {
            self.unsubscribe(world, left);
        }
        // A full state need not answer for what is covered still: it is there, or it is not.
        if world.rule(of).full_state_in_sotw {
            let still = sent.into_iter().filter(|(name, _)| self.covers(world, name)).collect::<Vec<_>>();
            self.sent.extend(still);
        }
    }

    /// Rule 48: what is asked for is sent, whatever was sent before.
    pub(super) fn subscribe(&mut self, world: &World, interest: Interest) {
        if let Interest::Name(name) = &interest
            && !(self.sent.contains_key(name) || self.held.contains_key(name) || self.parting.contains(name))
        {
            self.fresh.insert(name.clone());
        }
        let within = |name: &ResourceName| covers(&interest, name, world.setup.wildcard_covers_xdstp);
        self.sent.retain(|name, _| !within(name) && Interest::Name(name.clone()) != interest);
        self.held.retain(|name, _| !within(name));
        self.errors.asked(&interest);
        self.owes_answer |= interest.is_collection();
        self.interests.insert(interest);
    }

    pub(super) fn unsubscribe(&mut self, world: &World, interest: &Interest) {
        let (sotw, covers_all) = (world.setup.protocol == Protocol::Sotw, world.setup.wildcard_covers_xdstp);
        if !self.interests.remove(interest) {
            return;
        }
        self.left.insert(interest.clone());
        self.fresh.retain(|name| Interest::Name(name.clone()) != *interest);
        self.dependents.retain(|name| Interest::Name(name.clone()) != *interest);
        let left = |name: &ResourceName| covers(interest, name, true);
        self.held.retain(|name, _| !left(name));
        // Rules 52, 53: what another interest covers, or may cover in the eyes of the client, is answered once.
        self.sent.retain(|name, _| !left(name));
        // What it gave up, it does not have. Over SotW that is what the next full state is without.
        let gave_up = |name: &ResourceName| !self.interests.iter().any(|one| covers(one, name, !sotw || covers_all));
        for (_, (_, there)) in self.told.iter_mut().filter(|(name, _)| gave_up(name)) {
            *there = false;
        }
        // A client cannot know where a wildcard ends.
        let wants = |name: &ResourceName| self.interests.iter().any(|one| covers(one, name, true));
        self.lives.left(|name| !wants(name));
        self.errors.left(interest, &self.interests);
        self.due |= self.interests.iter().any(Interest::is_collection);
        if self.interests.contains(&Interest::Wildcard) {
            for kind in &world.kinds {
                self.parting.extend(kind.names.iter().filter(|name| covers(interest, name, true)).cloned());
            }
        }
    }

    pub(super) fn covers(&self, world: &World, name: &ResourceName) -> bool {
        self.interests.iter().any(|interest| covers(interest, name, world.setup.wildcard_covers_xdstp))
    }

    /// What the origin has for it.
    pub(super) fn content(&self, world: &World, origin: &Origin, of: Of) -> Content {
        let names = world.kinds[of].names.iter().filter(|name| self.covers(world, name));
        names.filter_map(|name| Some((name.clone(), origin.body(of, name)?))).collect()
    }

    /// What the client knows after a response.
    pub(super) fn tell(&mut self, world: &World, origin: &Origin, of: Of, response: &Response) {
        let leaving: Vec<_> =
            self.all_leaving(world, origin, of, response).map(|(name, at, _)| (name, (at, true))).collect();
        if world.setup.protocol == Protocol::Sotw && world.rule(of).full_state_in_sotw {
            self.told.values_mut().for_each(|told| *told = (origin.moment, false));
        }
        let sent = response.resources.iter().map(|sent| (&sent.name, true));
        for (name, there) in sent.chain(response.removed.iter().map(|name| (name, false))) {
            self.told.extend(parsed(name).map(|name| (name, (origin.moment, there))));
        }
        self.told.extend(leaving);
    }
}
