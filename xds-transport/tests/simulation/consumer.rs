//! The client's user: what it wants, and what it holds because it was told so.

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::client::{Update, Verdict};
use xds_transport::{Rejected, server::Variant};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use crate::origin::Origin;
use crate::world::{Of, World, covers, read};

#[derive(Default)]
pub(crate) struct Consumer {
    kinds: BTreeMap<Of, Kind>,
}

#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) wants: BTreeSet<Interest>,
    view: BTreeMap<ResourceName, Held>,
    absent: BTreeSet<ResourceName>,
    answered: BTreeSet<Interest>,
    /// Versions and bodies it refused last.
    refused: BTreeMap<ResourceName, u8>,
    /// What it took although it answers nothing that is wanted: see [`Cause::answers`].
    crossed: BTreeSet<ResourceName>,
    /// Given up since the last rest, under a wildcard that to the client covers everything: they may be told as removed,
    /// or left out of a full state, although they are wanted again.
    parting: BTreeSet<ResourceName>,
}

/// The response that arrived last, and may be what an update is about.
#[derive(Clone, Default)]
pub(crate) struct Cause {
    /// The moment of the origin when it was sent.
    pub(crate) moment: u64,
    /// What was asked for by then.
    pub(crate) asked: BTreeSet<Interest>,
    /// What it says is removed.
    pub(crate) removed: BTreeSet<ResourceName>,
}

impl Cause {
    /// Whether it brings a name for what is wanted now. A delta response does not say which request it answers: what
    /// crossed the end of one interest is taken for another that covers it, too. If it goes before the other is asked
    /// for, nobody can tell until the next stream.
    fn answers(&self, world: &World, kind: &Kind, name: &ResourceName) -> bool {
        let within = |interest: &&Interest| covers(interest, name, world.setup.wildcard_covers_xdstp);
        self.asked.intersection(&kind.wants).any(|interest| within(&interest))
    }
}

#[derive(Debug)]
struct Held {
    body: u8,
    version: String,
    /// The moment of the origin when it was sent.
    moment: u64,
}

impl Kind {
    fn covers(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|interest| covers(interest, name, true))
    }

    /// Whether the origin serves a name for what is wanted. A client cannot know where a wildcard ends.
    fn serves(&self, world: &World, name: &ResourceName) -> bool {
        self.wants.iter().any(|one| covers(one, name, world.setup.wildcard_covers_xdstp))
    }
}

impl Consumer {
    pub(crate) fn subscribe(&mut self, of: Of, interest: Interest) {
        self.kinds.entry(of).or_default().wants.insert(interest);
    }

    /// What is not wanted any more is forgotten.
    pub(crate) fn unsubscribe(&mut self, world: &World, of: Of, interest: &Interest) {
        let Some(kind) = self.kinds.get_mut(&of) else { return };
        kind.wants.remove(interest);
        kind.answered.remove(interest);
        let wants = std::mem::take(&mut kind.wants);
        let covered = |name: &ResourceName| wants.iter().any(|interest| covers(interest, name, true));
        kind.view.retain(|name, _| covered(name));
        kind.absent.retain(|name| covered(name));
        kind.refused.retain(|name, _| covered(name));
        kind.crossed.retain(covered);
        kind.parting.extend(world.kinds[of].names.iter().filter(|name| covers(interest, name, true)).cloned());
        kind.wants = wants;
    }

    pub(crate) fn wants(&self, of: Of) -> BTreeSet<Interest> {
        self.kinds.get(&of).map(|kind| kind.wants.clone()).unwrap_or_default()
    }

    /// The version it holds a name at.
    pub(crate) fn version(&self, of: Of, name: &ResourceName) -> Option<&str> {
        self.kinds.get(&of)?.view.get(name).map(|held| held.version.as_str())
    }

    /// Takes what an update brings, but for what it cannot use.
    pub(crate) fn take(
        &mut self,
        world: &World,
        origin: &Origin,
        of: Of,
        update: Update,
        cause: &Cause,
    ) -> Result<Verdict, String> {
        let kind = self.kinds.entry(of).or_default();
        if !update.rejected.is_empty() {
            return Err(format!("the machine cannot read {:?}", update.rejected));
        }
        let mut reasons = Vec::new();
        for changed in update.changed {
            let body = read(&payload(changed.resource.value.any())).1;
            if !kind.covers(&changed.name) {
                continue; // It was given up while the update was on its way here.
            }
            kind.absent.remove(&changed.name);
            if cause.answers(world, kind, &changed.name) {
                kind.crossed.remove(&changed.name);
            } else {
                kind.crossed.insert(changed.name.clone());
            }
            if body == World::BAD {
                reasons.push(Rejected::new(changed.name.as_str(), "a bad body"));
                kind.refused.insert(changed.name, body);
                continue;
            }
            kind.refused.remove(&changed.name);
            let version = changed.resource.version.to_string();
            kind.view.insert(changed.name, Held { body, version, moment: cause.moment });
        }
        for name in update.removed.into_iter().chain(update.missing) {
            if kind.covers(&name) {
                // Whatever became of the connection: only the origin removes. What it said was checked as it was said.
                let held = kind.view.remove(&name);
                if let Some(held) = held.filter(|held| !origin.removed_since(of, &name, held.moment))
                    && kind.serves(world, &name)
                    && !cause.removed.contains(&name)
                    && !kind.parting.contains(&name)
                {
                    return Err(format!("{name} is taken from the client as {held:?}, and the origin has it"));
                }
                kind.refused.remove(&name);
                kind.crossed.remove(&name);
                kind.absent.insert(name);
            }
        }
        kind.answered.extend(update.answered.into_iter().filter(|interest| kind.wants.contains(interest)));
        Ok(if reasons.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons } })
    }

    /// Whether it holds what the origin has for it, now that nothing is on its way.
    pub(crate) fn check_converged(&mut self, world: &World, origin: &Origin) -> Result<(), String> {
        for (of, kind) in &mut self.kinds {
            kind.parting.clear();
            for name in &world.kinds[*of].names {
                kind.check_name(world, origin, *of, name).map_err(|wrong| format!("{of}: {name} {wrong}"))?;
            }
            if let Some(interest) = kind.wants.iter().find(|one| one.is_collection() && !kind.answered.contains(one)) {
                return Err(format!("{of}: {interest} was never answered"));
            }
        }
        Ok(())
    }
}

impl Kind {
    fn check_name(&self, world: &World, origin: &Origin, of: Of, name: &ResourceName) -> Result<(), String> {
        let there = origin.body(of, name).filter(|_| self.serves(world, name));
        let held = self.view.get(name);
        if let Some(held) = held
            && !origin.had(of, name, held.body)
        {
            return Err(format!("is held as {}, which it never was", held.body));
        }
        match (there, held) {
            (Some(World::BAD), _) if self.refused.contains_key(name) => {}
            (Some(there), Some(Held { body, version, .. })) if there == *body => {
                let expected = origin.resource(of, name).map(|resource| resource.version.to_string());
                let bare = world.setup.protocol == Variant::Sotw && !world.setup.wrapped;
                if !bare && expected.as_ref() != Some(version) {
                    return Err(format!("is held at version {version:?}, not {expected:?}"));
                }
            }
            (None, None) => {
                // What was refused was there; that it went cannot always be said.
                let told = self.absent.contains(name) || self.refused.contains_key(name) && !world.says_absence(of);
                if self.wants.contains(&Interest::Name(name.clone())) && !told {
                    return Err("is not known to be absent".into());
                }
            }
            (None, Some(_)) if !world.says_absence(of) || self.crossed.contains(name) => {}
            _ => return Err(format!("is held as {held:?}, and the origin has {there:?}")),
        }
        Ok(())
    }
}

/// The value in an encoded `Any`.
fn payload(any: &[u8]) -> Vec<u8> {
    use prost::Message;
    xds_transport::wire::Any::decode(any).unwrap().value.to_vec()
}
