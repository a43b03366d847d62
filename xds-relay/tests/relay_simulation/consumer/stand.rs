//! What a client stands on: whatever refers to a cluster, the cluster is there.
//!
//! From end to end, and at every moment: as long as nothing but the content of one origin changes, which has all that
//! anything refers to whenever it is asked, no client holds a listener or route without what it refers to.

use super::Consumer;
use crate::origin::Origins;
use crate::world::{Body, GROUPS, Of, Place, REFERRED, REFERRERS, World, origin_of, place_of_referred};
use std::collections::BTreeSet;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

impl Consumer {
    /// All has come to rest: what is asked for now was answered.
    pub(crate) fn rests(&mut self, world: &World) {
        let place = Place::wildcard(GROUPS[self.client]);
        for (of, kind) in &mut self.kinds {
            // A SotW origin does not answer a wildcard of which there is nothing, but for full states.
            let answered = |one: &&Interest| !one.is_collection() || world.learns_absence(*of, place);
            kind.settled = kind.wants.iter().filter(answered).cloned().collect();
        }
    }

    pub(crate) fn check_stands(&self, world: &World, origins: &Origins) -> Result<(), String> {
        for of in REFERRERS {
            let Some(kind) = self.kinds.get(&of) else { continue };
            for (referrer, (body, _)) in &kind.view {
                let place = body.place(referrer);
                // What nobody can say has gone may have been there again since.
                if origins.removed_since(place, of, referrer, body.serial)
                    && !world.says_absence(of, place, self.client)
                {
                    continue;
                }
                for referred in REFERRED {
                    let mut names = body.references(world, referred);
                    if let Some(name) = names.find(|name| self.lacks(world, referred, name, referrer, body)) {
                        let (what, who) = (&world.kinds[referred].url, &world.kinds[of].url);
                        let client = self.client;
                        return Err(format!("client {client}: {who} {referrer} stands without {what} {name}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// What it holds refers to, by type.
    pub(crate) fn references(&self, world: &World, of: Of) -> BTreeSet<ResourceName> {
        let bodies = REFERRERS.iter().filter_map(|referrers| self.kinds.get(referrers)).flat_map(|kind| &kind.view);
        bodies.flat_map(|(_, (body, _))| body.references(world, of)).cloned().collect()
    }

    pub(crate) fn holds(&self, of: Of, name: &ResourceName) -> bool {
        self.kinds.get(&of).is_some_and(|kind| kind.view.contains_key(name))
    }

    /// Whether something is referred to on the same stream of the same origin, was asked for long ago, and is not here.
    fn lacks(&self, world: &World, of: Of, name: &ResourceName, referrer: &ResourceName, body: &Body) -> bool {
        let place = place_of_referred(name, body.place(referrer), referrer);
        let there = Body { group: place.group.map_or(0, |group| group as u64 + 1), ..Body::default() };
        let asked = |one| world.serves(of, one, name, &there);
        let Some(kind) =
            self.kinds.get(&of).filter(|_| place == body.place(referrer) && place.origin == origin_of(name))
        else {
            return false;
        };
        debug_assert!(place.group.is_none_or(|group| group == GROUPS[self.client]));
        kind.settled.intersection(&kind.wants).any(asked) && !kind.view.contains_key(name)
    }
}
