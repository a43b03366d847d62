//! Whether a client knows what the origin has for it, now that nothing is on its way.

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::{Consumer, Held, Kind, UNAVAILABLE};
use crate::ledger::hears;
use crate::origin::Origin;
use crate::world::{Of, World};

impl Consumer {
    /// Whether it holds what the origin has for it, now that nothing is on its way.
    pub(crate) fn check_converged(&mut self, world: &World, origin: &Origin) -> Result<(), String> {
        for (of, kind) in &mut self.kinds {
            kind.parting.clear();
            for name in &world.kinds[*of].names {
                kind.check_name(world, origin, *of, name).map_err(|wrong| format!("{of}: {name} {wrong}"))?;
            }
            for interest in &world.kinds[*of].interests {
                if let Interest::Name(name) = interest {
                    kind.check_error(world, origin, *of, name).map_err(|wrong| format!("{of}: {name} {wrong}"))?;
                }
            }
            if let Some(interest) = kind.wants.iter().find(|one| one.is_collection() && !kind.is_answered(one)) {
                return Err(format!("{of}: {interest} was never answered"));
            }
        }
        Ok(())
    }
}

impl Kind {
    /// Whether the errors it was told of are those that the origin has, as far as that can be said.
    fn check_error(&self, world: &World, origin: &Origin, of: Of, name: &ResourceName) -> Result<(), String> {
        if !self.wants.iter().any(|interest| hears(interest, name)) {
            return Ok(());
        }
        let there = origin.error(of, name).map(|(error, _)| (error.code, error.message.to_string()));
        let told = self.errors.get(name);
        let sotw = world.setup.protocol == Protocol::Sotw;
        let beside = origin.has(of, name);
        let since = origin.error(of, name).map_or(0, |(_, moment)| *moment);
        let unsaid = match &there {
            // What came of its members, or that it has none, ended it.
            Some(_) if told.is_none() && self.recovered.get(name).is_some_and(|moment| *moment >= since) => true,
            // A refresh with content looks like a resource that is well again.
            Some(_) if told.is_none() && world.tells_ttl() && origin.ttl(of, name).is_some() => true,
            // The answer to who gives up a name that its glob covers says that it is gone, and not why once more.
            Some(_) if told.is_none() && self.absent.contains(name) && !beside => true,
            Some(_) => sotw && world.rule(of).full_state_in_sotw && beside,
            // That it is over is said by what comes or goes.
            None => !beside && sotw || origin.ended_unsaid(world, of, name) || self.over_unsaid.contains(name),
        };
        if told != there.as_ref() && !unsaid {
            return Err(format!("fails with {told:?}, and the origin has {there:?}"));
        }
        Ok(())
    }

    fn check_name(&self, world: &World, origin: &Origin, of: Of, name: &ResourceName) -> Result<(), String> {
        let there = origin.body(of, name).filter(|_| self.serves(world, name));
        let held = self.view.get(name);
        let delta = world.setup.protocol == Protocol::Delta;
        let mut errors = self.errors.iter().filter(|(failing, _)| name.answers(failing)).map(|(_, (code, _))| *code);
        if let Some(held) = held
            && !origin.had(of, name, held.body)
        {
            return Err(format!("is held as {}, which it never was", held.body));
        }
        match (there, held) {
            (Some(World::BAD), _) if self.refused.contains_key(name) => {}
            (Some(there), Some(Held { body, version, .. })) if there == *body => {
                let expected = origin.resource(of, name).map(|resource| resource.version.to_string());
                let bare = world.setup.protocol == Protocol::Sotw && !world.setup.wrapped;
                if !bare && expected.as_ref() != Some(version) {
                    return Err(format!("is held at version {version:?}, not {expected:?}"));
                }
            }
            (None, None) => {
                // What was refused was there; that it went cannot always be said.
                let told = self.absent.contains(name) || self.refused.contains_key(name) && !world.says_absence(of);
                // What it does not hold any more no full state takes from it.
                let expired = self.expired.contains(name) && world.setup.protocol == Protocol::Sotw;
                let told = told || expired || self.errors.contains_key(name);
                if self.wants.contains(&Interest::Name(name.clone())) && !told {
                    return Err("is not known to be absent".into());
                }
            }
            (None, Some(_)) if !world.says_absence(of) || self.crossed.contains(name) => {}
            // What it may not have it does not keep. It does not come back before the origin sends it anew: not for a
            // wildcard, and not because it fails for a time now.
            (Some(_), None) if self.denied.get(name).is_some_and(|moment| origin.changed(of, name) <= *moment) => {}
            (None, Some(_)) if errors.any(|code| code == UNAVAILABLE) => {}
            // Nor does a full state without what is refused as a whole say that anything of it is gone.
            (None, Some(_)) if !delta && name.glob_parent().is_some_and(|glob| self.is_refused(&glob)) => {}
            // It brought that along, and the origin does not say that it is gone: to a wildcard not why, either.
            (None, Some(_)) if origin.error(of, name).is_some_and(|(error, _)| error.is_transient()) => {}
            _ => return Err(format!("is held as {held:?}, and the origin has {there:?}")),
        }
        Ok(())
    }
}
