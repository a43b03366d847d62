//! The user of one client: what it wants, and what it holds because it was told so.

mod stand;

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::Protocol;
use xds_transport::client::{Update, Verdict};
use xds_transport::{Frame, Rejected};
use xdstp_cache::{Interest, Resource};
use xdstp_uri::ResourceName;

use crate::origin::Origins;
use crate::world::{Body, GROUPS, Kind as Names, Of, Place, World, covers, origin_of, place_of};

pub(crate) struct Consumer {
    client: usize,
    kinds: BTreeMap<Of, Kind>,
    /// It speaks as Envoy does, and has not connected to the relay that took the place of another.
    moving: bool,
    /// How often it was sent over delta what it held.
    resent: usize,
}

#[derive(Default)]
struct Kind {
    wants: BTreeSet<Interest>,
    /// Bodies and versions.
    view: BTreeMap<ResourceName, (Body, String)>,
    absent: BTreeSet<ResourceName>,
    answered: BTreeSet<Interest>,
    refused: BTreeMap<ResourceName, Body>,
    /// What it took although it answers nothing that is wanted, but something that was given up meanwhile: a delta
    /// response does not say which request it answers.
    crossed: BTreeSet<ResourceName>,
    /// Given up under a wildcard, so that they may be told as removed although they are wanted again (rules 52, 53).
    parting: BTreeSet<ResourceName>,
    /// What this relay was not told that Envoy holds: it had it as a member of a glob, whatever it has it by now.
    unnamed: BTreeSet<ResourceName>,
    /// What was wanted when all had come to rest.
    settled: BTreeSet<Interest>,
}

impl Kind {
    /// Whether a name is wanted, as far as a client can know: by what it holds, too.
    fn covers(&self, world: &World, of: Of, name: &ResourceName, client: usize) -> bool {
        let held = self.view.get(name).map(|(body, _)| body).or_else(|| self.refused.get(name));
        let by_alias = |asked: &Interest| {
            let body = held.filter(|_| world.setup.down[client] == Protocol::Delta);
            body.is_some_and(|body| world.called(of, asked, name, body))
        };
        self.wants.iter().any(|interest| covers(interest, name) || by_alias(interest))
    }

    /// Envoy does not name the members of the globs that it wants.
    fn leave_unnamed(&mut self) {
        let wants = |glob| self.wants.contains(&Interest::Name(glob));
        let members = self.view.keys().filter(|name| name.glob_parent().is_some_and(wants));
        self.unnamed.extend(members.cloned());
    }

    /// What was asked for by an alias is wanted for that no more, once the alias stands for nothing.
    fn unname(&mut self, world: &World, of: Of, alias: &ResourceName, client: usize) {
        let gone = world.alias(of, &Interest::Name(alias.clone()));
        let held = self.view.iter_mut().map(|(name, (body, _))| (name, body));
        for (name, body) in held.chain(&mut self.refused) {
            if world.stands_for(of, alias, name, body) {
                body.aliases &= !gone;
            }
        }
        self.drop_unwanted(world, of, client);
    }

    fn drop_unwanted(&mut self, world: &World, of: Of, client: usize) {
        for name in
            world.kinds[of].names.iter().filter(|name| !self.covers(world, of, name, client)).collect::<Vec<_>>()
        {
            self.view.remove(name);
            self.refused.remove(name);
            self.absent.remove(name);
            self.crossed.remove(name);
            self.unnamed.remove(name);
        }
    }

    /// Whether a name is asked for by more than a wildcard.
    fn asks_for(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|interest| *interest != Interest::Wildcard && covers(interest, name))
    }

    /// Whether a resource is to be served for what is wanted.
    fn serves(&self, world: &World, of: Of, name: &ResourceName, body: &Body, client: usize) -> bool {
        let aliases = world.has_aliases(body.place(name), client);
        self.wants.iter().any(|one| world.serves(of, one, name, body) && (aliases || covers(one, name)))
    }
}

/// What a client is to hold of a name.
struct Due<'a> {
    resource: Option<&'a (Body, Resource<Frame>)>,
    /// Or else nobody can tell what it was told.
    sure: bool,
}

impl Consumer {
    pub(crate) fn new(client: usize) -> Self {
        Self { client, kinds: BTreeMap::new(), moving: false, resent: 0 }
    }

    pub(crate) fn subscribe(&mut self, of: Of, interest: Interest) {
        let kind = self.kinds.entry(of).or_default();
        kind.wants.insert(interest);
        if self.moving {
            kind.leave_unnamed();
        }
    }

    /// It connects, and says what it holds.
    pub(crate) fn connects(&mut self) {
        self.moving = false;
    }

    /// What is not wanted any more is forgotten.
    pub(crate) fn unsubscribe(&mut self, world: &World, of: Of, interest: &Interest) {
        let kind = self.kinds.entry(of).or_default();
        kind.wants.remove(interest);
        kind.answered.remove(interest);
        kind.settled.remove(interest);
        let left = world.alias(of, interest);
        let view = kind.view.values_mut().map(|(body, _)| body);
        view.chain(kind.refused.values_mut()).for_each(|body| body.aliases &= !left);
        let names = &world.kinds[of].names;
        kind.drop_unwanted(world, of, self.client);
        kind.absent.retain(|name| kind.wants.iter().any(|interest| covers(interest, name)));
        let parts = |name: &&ResourceName| match interest {
            Interest::Name(left) => name.answers(left) || world.may_be_called(of, name, left),
            Interest::Wildcard => true,
        };
        kind.parting.extend(names.iter().filter(parts).cloned());
    }

    pub(crate) fn resent(&self) -> usize {
        self.resent
    }

    pub(crate) fn client(&self) -> usize {
        self.client
    }

    pub(crate) fn wants(&self, of: Of) -> BTreeSet<Interest> {
        self.kinds.get(&of).map(|kind| kind.wants.clone()).unwrap_or_default()
    }

    /// Takes what an update brings, but for what it cannot use. It was sent when so much was `asked` for.
    pub(crate) fn take(
        &mut self,
        world: &World,
        origins: &Origins,
        update: Update,
        asked: &BTreeSet<Interest>,
    ) -> Result<Verdict, String> {
        let of = world.of(update.type_url.as_str()).ok_or("an update of no type")?;
        let group = GROUPS[self.client];
        let kind = self.kinds.entry(of).or_default();
        if !update.rejected.is_empty() {
            return Err(format!("the machine cannot read {:?}", update.rejected));
        }
        let mut reasons = Vec::new();
        for changed in update.changed.into_iter().chain(update.repeated) {
            let (name, mut body) = (changed.name, Body::of_any(changed.resource.value.any()));
            if body.name != name.as_str() || !body.is_for(&name, group) {
                return Err(format!("rules 147, 153: {name} of group {group} is {body:?}"));
            }
            let holds = kind.view.get(&name).is_some_and(|(held, _)| held.serial == body.serial);
            self.resent += usize::from(holds && world.setup.down[self.client] == Protocol::Delta);
            kind.absent.remove(&name);
            kind.unnamed.remove(&name);
            if world.has_aliases(body.place(&name), self.client) {
                kind.absent.retain(|alias| !world.stands_for(of, alias, &name, &body));
            }
            if asked.intersection(&kind.wants).any(|interest| world.serves(of, interest, &name, &body)) {
                kind.crossed.remove(&name);
            } else {
                kind.crossed.insert(name.clone());
            }
            // What is asked for later comes again.
            body.aliases &= kind.wants.iter().map(|one| world.alias(of, one)).sum::<u64>();
            if body.bad {
                if let Some((held, _)) = kind.view.get_mut(&name) {
                    held.aliases = body.aliases;
                }
                reasons.push(Rejected::new(name.as_str(), "a bad body"));
                kind.refused.insert(name, body);
            } else {
                kind.refused.remove(&name);
                kind.view.insert(name, (body, changed.resource.version.to_string()));
            }
        }
        for name in update.removed.into_iter().chain(update.missing) {
            if !kind.covers(world, of, &name, self.client) {
                kind.view.remove(&name);
                continue;
            }
            let held = kind.view.remove(&name);
            kind.refused.remove(&name);
            kind.crossed.remove(&name);
            kind.unnamed.remove(&name);
            if let Some((body, _)) = held
                && kind.serves(world, of, &name, &body, self.client)
                && !kind.parting.contains(&name)
                && !origins.removed_since(body.place(&name), of, &name, body.serial)
            {
                return Err(format!("rule 143: {name} is taken from the client at {body:?}, and its origin has it"));
            }
            kind.unname(world, of, &name, self.client);
            kind.absent.insert(name);
        }
        kind.answered.extend(update.answered.into_iter().filter(|interest| kind.wants.contains(interest)));
        Ok(if reasons.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons } })
    }

    /// Another relay takes the place of the one it was told everything by. What Envoy does not name there, and is gone
    /// before it is told again, nobody knows of (rule 100).
    pub(crate) fn moves(&mut self, world: &World) {
        self.moving = world.setup.envoy[self.client];
        if self.moving {
            self.kinds.values_mut().for_each(Kind::leave_unnamed);
        }
    }

    /// Whether it holds what the origins have for it, now that nothing is on its way.
    pub(crate) fn check_converged(&mut self, world: &World, origins: &Origins) -> Result<(), String> {
        let client = self.client;
        for (of, kind) in &mut self.kinds {
            kind.parting.clear();
            let Names { names, aliases, url, .. } = &world.kinds[*of];
            for name in names.iter().chain(aliases) {
                kind.check_name(world, origins, *of, name, client)
                    .map_err(|wrong| format!("client {client}: {url}: {name} {wrong}"))?;
            }
            let owed = |one: &&Interest| {
                let place = match one {
                    Interest::Name(name) => place_of(name, GROUPS[client]),
                    Interest::Wildcard => Place::wildcard(GROUPS[client]),
                };
                one.is_collection() && world.answers_what_is_not_there(*of, place, client)
            };
            if let Some(interest) = kind.wants.iter().filter(owed).find(|one| !kind.answered.contains(one)) {
                return Err(format!("client {client}: {url}: {interest} was never answered"));
            }
        }
        Ok(())
    }
}

impl Kind {
    fn check_name(
        &self,
        world: &World,
        origins: &Origins,
        of: Of,
        name: &ResourceName,
        client: usize,
    ) -> Result<(), String> {
        let Due { resource, sure } = self.due(world, origins, of, name, client);
        if !sure {
            return Ok(());
        }
        let (place, wildcard) = (place_of(name, GROUPS[client]), Place::wildcard(GROUPS[client]));
        // What only the wildcard covers, to the client, is for the wildcard's origin to say.
        let by_wildcard = !self.asks_for(name) && !world.says_absence(of, wildcard, client);
        let silent = !world.says_absence(of, place, client) || by_wildcard;
        let wants = |name: ResourceName| self.wants.contains(&Interest::Name(name));
        let unnamed = self.unnamed.contains(name) && !wants(name.clone());
        match (resource, self.view.get(name)) {
            (Some((body, _)), _)
                if body.bad && self.refused.get(name).is_some_and(|seen| seen.serial == body.serial) =>
            {
                Ok(())
            }
            (Some((body, resource)), Some((held, version))) if body.serial == held.serial => {
                if world.keeps_version(place, client) && resource.version.as_str() != version {
                    return Err(format!("is held at version {version:?}, not {:?}", resource.version));
                }
                Ok(())
            }
            (None, None) => {
                let asked = self.wants.contains(&Interest::Name(name.clone()))
                    && world.answers_what_is_not_there(of, place, client)
                    && !self.is_called(world, origins, of, name, client);
                let told = self.absent.contains(name) || self.refused.contains_key(name) && silent;
                if asked && !told { Err("is not known to be absent".into()) } else { Ok(()) }
            }
            (None, Some((held, _)))
                if silent || self.crossed.contains(name) || unnamed || self.clings(world, of, name, held, client) =>
            {
                Ok(())
            }
            (there, held) => Err(format!("is held as {held:?}, and its origin has {:?}", there.map(|(body, _)| body))),
        }
    }

    /// Whether a client goes on holding a resource for what it is called besides, although nobody serves it under that.
    fn clings(&self, world: &World, of: Of, name: &ResourceName, held: &Body, client: usize) -> bool {
        let followed =
            |one: &Interest| world.has_aliases(held.place(name), client) && world.serves(of, one, name, held);
        self.wants.iter().any(|one| world.called(of, one, name, held) && !followed(one))
    }

    /// Rule 152: what the name's own authority has, or else what the wildcard has.
    fn due<'a>(&self, world: &World, origins: &'a Origins, of: Of, name: &ResourceName, client: usize) -> Due<'a> {
        let (place, group) = (place_of(name, GROUPS[client]), GROUPS[client]);
        let own = origins.resource(place, of, name);
        if let Some((body, _)) = own {
            let serves = |one: &&Interest| world.serves(of, one, name, body);
            if self.wants.iter().filter(serves).any(|one| covers(one, name)) {
                return Due { resource: own, sure: true };
            }
            if self.wants.iter().any(|one| serves(&one)) {
                if world.has_aliases(place, client) {
                    return Due { resource: own, sure: true };
                }
                // Over SotW who asks for an alias may be sent what it stands for, and ignores it unless a wildcard covers it.
                // Who was once told by what else to call it over delta takes that for an answer.
                let sotw = world.setup.down[client] == Protocol::Sotw;
                if !sotw || self.wants.contains(&Interest::Wildcard) {
                    return Due { resource: own, sure: false };
                }
            }
        }
        let in_wildcard = Some(Place::wildcard(group)).filter(|place| origin_of(name) == place.origin);
        let in_wildcard = in_wildcard.and_then(|place| origins.resource(place, of, name));
        let in_wildcard = in_wildcard.filter(|_| self.wants.contains(&Interest::Wildcard));
        Due {
            resource: in_wildcard,
            sure: in_wildcard.is_none() || !self.asks_for(name) || world.learns_absence(of, place),
        }
    }

    /// Whether it stands for something that is there, so that nobody says that it is not.
    fn is_called(&self, world: &World, origins: &Origins, of: Of, name: &ResourceName, client: usize) -> bool {
        let place = place_of(name, GROUPS[client]);
        world.has_aliases(place, client) && origins.called(world, place, of, name).is_some()
    }
}
