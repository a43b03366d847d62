//! The user of one client: what it wants, and what it holds because it was told so.

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::Rejected;
use xds_transport::client::{Update, Verdict};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use crate::origin::Origins;
use crate::world::{Body, GROUPS, Of, Place, World, covers, place_of};

pub(crate) struct Consumer {
    client: usize,
    kinds: BTreeMap<Of, Kind>,
}

#[derive(Default)]
struct Kind {
    wants: BTreeSet<Interest>,
    /// Bodies and versions.
    view: BTreeMap<ResourceName, (Body, String)>,
    absent: BTreeSet<ResourceName>,
    answered: BTreeSet<Interest>,
    refused: BTreeSet<ResourceName>,
    /// What it took although it answers nothing that is wanted, but something that was given up meanwhile: a delta
    /// response does not say which request it answers.
    crossed: BTreeSet<ResourceName>,
    /// Given up under a wildcard, so that they may be told as removed although they are wanted again (rules 52, 53).
    parting: BTreeSet<ResourceName>,
}

impl Kind {
    fn covers(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|interest| covers(interest, name, true))
    }

    fn serves(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|interest| covers(interest, name, false))
    }
}

impl Consumer {
    pub(crate) fn new(client: usize) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    pub(crate) fn subscribe(&mut self, of: Of, interest: Interest) {
        self.kinds.entry(of).or_default().wants.insert(interest);
    }

    /// What is not wanted any more is forgotten.
    pub(crate) fn unsubscribe(&mut self, world: &World, of: Of, interest: &Interest) {
        let kind = self.kinds.entry(of).or_default();
        kind.wants.remove(interest);
        kind.answered.remove(interest);
        let wants = &kind.wants;
        let covered = |name: &ResourceName| wants.iter().any(|interest| covers(interest, name, true));
        kind.view.retain(|name, _| covered(name));
        for names in [&mut kind.absent, &mut kind.refused, &mut kind.crossed] {
            names.retain(covered);
        }
        kind.parting.extend(world.kinds[of].names.iter().filter(|name| covers(interest, name, true)).cloned());
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
        for changed in update.changed {
            let (name, body) = (changed.name, Body::of_any(changed.resource.value.any()));
            let place = place_of(&name, group);
            if body.name != name.as_str() || place.group.map_or(0, |group| group as u64 + 1) != body.group {
                return Err(format!("rule 147: {name} of group {group} is {body:?}"));
            }
            kind.absent.remove(&name);
            if asked.intersection(&kind.wants).any(|interest| covers(interest, &name, false)) {
                kind.crossed.remove(&name);
            } else {
                kind.crossed.insert(name.clone());
            }
            if body.bad {
                reasons.push(Rejected::new(name.as_str(), "a bad body"));
                kind.refused.insert(name);
            } else {
                kind.refused.remove(&name);
                kind.view.insert(name, (body, changed.resource.version.to_string()));
            }
        }
        for name in update.removed.into_iter().chain(update.missing) {
            if !kind.covers(&name) {
                continue;
            }
            let held = kind.view.remove(&name);
            kind.refused.remove(&name);
            kind.crossed.remove(&name);
            if let Some((body, _)) = held
                && kind.serves(&name)
                && !kind.parting.contains(&name)
                && !origins.removed_since(place_of(&name, group), of, &name, body.serial)
            {
                return Err(format!("rule 143: {name} is taken from the client at {body:?}, and its origin has it"));
            }
            kind.absent.insert(name);
        }
        kind.answered.extend(update.answered.into_iter().filter(|interest| kind.wants.contains(interest)));
        Ok(if reasons.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons } })
    }

    /// Whether it holds what the origins have for it, now that nothing is on its way.
    pub(crate) fn check_converged(&mut self, world: &World, origins: &Origins) -> Result<(), String> {
        let client = self.client;
        for (of, kind) in &mut self.kinds {
            kind.parting.clear();
            for name in &world.kinds[*of].names {
                kind.check_name(world, origins, *of, name, client)
                    .map_err(|wrong| format!("client {client}: {}: {name} {wrong}", world.kinds[*of].url))?;
            }
            let owed = |one: &&Interest| {
                let place = match one {
                    Interest::Name(name) => place_of(name, GROUPS[client]),
                    Interest::Wildcard => Place { origin: 0, group: Some(GROUPS[client]) },
                };
                one.is_collection() && world.answers_what_is_not_there(*of, place, client)
            };
            if let Some(interest) = kind.wants.iter().filter(owed).find(|one| !kind.answered.contains(one)) {
                return Err(format!("client {client}: {}: {interest} was never answered", world.kinds[*of].url));
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
        let place = place_of(name, GROUPS[client]);
        let there = origins.resource(place, of, name).filter(|_| self.serves(name));
        let held = self.view.get(name);
        // What only the wildcard covers, to the client, is for the wildcard's origin to say.
        let wildcard = Place { origin: 0, group: Some(GROUPS[client]) };
        let silent =
            !world.says_absence(of, place, client) || !self.serves(name) && !world.says_absence(of, wildcard, client);
        match (there, held) {
            (Some((body, _)), _) if body.bad && self.refused.contains(name) => Ok(()),
            (Some((body, resource)), Some((held, version))) if body.serial == held.serial => {
                if world.keeps_version(place, client) && resource.version.as_str() != version {
                    return Err(format!("is held at version {version:?}, not {:?}", resource.version));
                }
                Ok(())
            }
            (None, None) => {
                let asked = self.wants.contains(&Interest::Name(name.clone()))
                    && world.answers_what_is_not_there(of, place, client);
                let told = self.absent.contains(name) || self.refused.contains(name) && silent;
                if asked && !told { Err("is not known to be absent".into()) } else { Ok(()) }
            }
            (None, Some(_)) if silent || self.crossed.contains(name) => Ok(()),
            _ => Err(format!("is held as {held:?}, and its origin has {:?}", there.map(|(body, _)| body))),
        }
    }
}
