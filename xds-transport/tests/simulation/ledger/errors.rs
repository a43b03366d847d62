//! Which errors a stream was told: rule 117.

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::lives::Lives;
use super::parsed;
use crate::messages::Response;
use crate::origin::Origin;
use crate::world::{Of, World};

#[derive(Default)]
pub(super) struct Errors {
    /// The moments of the errors that were told of names and globs.
    told: BTreeMap<ResourceName, u64>,
    /// Those that may be told again.
    again: BTreeSet<ResourceName>,
    /// Names that were asked for, and left while something else covers them: they were told then, or are not any more.
    excused: BTreeSet<ResourceName>,
}

impl Errors {
    /// Something was asked for: its errors are told, whatever was told before.
    pub(super) fn asked(&mut self, interest: &Interest) {
        self.told.retain(|name, _| !hears(interest, name));
        self.excused.retain(|name| !hears(interest, name));
    }

    /// A name may be sent again because something refers to it.
    pub(super) fn referred_to(&mut self, name: &ResourceName) {
        self.again.insert(name.clone());
    }

    /// Something was left.
    pub(super) fn left(&mut self, left: &Interest, interests: &BTreeSet<Interest>) {
        if let Interest::Name(name) = left {
            self.excused.insert(name.clone());
        }
        self.told.retain(|name, _| interests.iter().any(|interest| hears(interest, name)));
    }

    /// What a response says is wrong is wrong, and whoever is told so asked for it.
    pub(super) fn check(
        &self,
        world: &World,
        origin: &Origin,
        of: Of,
        interests: &BTreeSet<Interest>,
        lives: &Lives,
        response: &Response,
    ) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for failed in &response.errors {
            let name = parsed(&failed.name)?;
            let there = origin.error(of, &name).map(|(error, moment)| (error.code, &*error.message, *moment));
            let Some((code, message, moment)) = there else {
                return Err(format!("{name} is told as failing, and the origin has no error of it"));
            };
            if (code, message) != (failed.code, &*failed.message) {
                return Err(format!("the error of {name} is told as {failed:?}, not {code}: {message}"));
            }
            if !interests.iter().any(|interest| hears(interest, &name)) {
                return Err(format!("rule 117: the error of {name} is told to who did not ask for it"));
            }
            if !seen.insert(name.clone()) || self.told.get(&name) == Some(&moment) && !self.again.contains(&name) {
                return Err(format!("rule 117: the error of {name} is told twice"));
            }
            if response.resources.iter().any(|sent| sent.name == failed.name) {
                return Err(format!("rule 117: {name} comes with its error"));
            }
            let removed = response.removed.contains(&failed.name);
            let (there, transient) = (origin.has(of, &name), code == 14);
            if removed && there {
                return Err(format!("rule 117: {name} is removed by an error, and the origin has it"));
            }
            let spared = transient && lives.may_be_brought(&name);
            if world.setup.protocol == Protocol::Delta && !removed && !there && !spared {
                return Err(format!("rule 117: the error of {name} does not remove it"));
            }
        }
        Ok(())
    }

    pub(super) fn told(&mut self, origin: &Origin, of: Of, response: &Response) {
        for sent in response.resources.iter().filter(|sent| !sent.heartbeat) {
            let Ok(name) = parsed(&sent.name) else { continue };
            self.end(origin, of, name.glob_parent());
            // It ends the error of its name: one that stays beside it is told again, unless this is but a refresh.
            if sent.ttl.is_some() && origin.error(of, &name).is_some() && self.told.contains_key(&name) {
                self.again.insert(name);
            } else {
                self.told.insert(name, 0);
            }
        }
        for name in response.removed.iter().flat_map(|name| parsed(name)) {
            self.end(origin, of, Some(name));
        }
        for failed in &response.errors {
            let Ok(name) = parsed(&failed.name) else { continue };
            let moment = origin.error(of, &name).map_or(0, |(_, moment)| *moment);
            self.again.remove(&name);
            self.excused.remove(&name);
            self.told.insert(name, moment);
        }
    }

    /// Whether there is an error that came after a moment, and that somebody is to hear.
    pub(super) fn any_since(
        &self,
        world: &World,
        origin: &Origin,
        of: Of,
        interests: &BTreeSet<Interest>,
        moment: u64,
    ) -> bool {
        let untold = |name: &ResourceName| {
            let came = origin.error(of, name).map(|(_, came)| *came).filter(|came| *came > moment);
            came.is_some_and(|came| self.told.get(name) != Some(&came))
        };
        let names = world.kinds[of].interests.iter().filter_map(|interest| match interest {
            Interest::Name(name) => Some(name),
            Interest::Wildcard => None,
        });
        names.filter(|name| untold(name)).any(|name| interests.iter().any(|interest| hears(interest, name)))
    }

    /// What comes, or goes, says that an error is over which the origin does not have any more.
    fn end(&mut self, origin: &Origin, of: Of, name: Option<ResourceName>) {
        if let Some(name) = name.filter(|name| origin.error(of, name).is_none()) {
            self.told.insert(name, 0);
        }
    }

    /// Every error that somebody is to hear was told, and that it is over, as far as that can be said.
    pub(super) fn check_at_rest(
        &self,
        world: &World,
        origin: &Origin,
        of: Of,
        interests: &BTreeSet<Interest>,
    ) -> Result<(), String> {
        let globs = world.kinds[of].interests.iter().filter_map(|interest| match interest {
            Interest::Name(name) => Some(name),
            Interest::Wildcard => None,
        });
        for name in globs.filter(|name| interests.iter().any(|interest| hears(interest, name))) {
            let sotw = world.setup.protocol == Protocol::Sotw;
            let Some((error, moment)) = origin.error(of, name) else {
                let unsaid = origin.ended_unsaid(world, of, name) || sotw && !origin.has(of, name);
                if self.told.get(name).is_some_and(|told| *told > 0) && !unsaid {
                    return Err(format!("rule 118: it was not told that {name} does not fail any more"));
                }
                continue;
            };
            let full = sotw && world.rule(of).full_state_in_sotw;
            if full && !name.is_glob() && origin.has(of, name) {
                continue; // Beside what is in the full state it cannot be told.
            }
            if self.told.get(name) != Some(moment) && !self.excused.contains(name) {
                return Err(format!("rule 117: it was not told that {name} fails with {error}"));
            }
        }
        Ok(())
    }
}

/// Whether who asks for something hears the errors of a name or glob: a wildcard has none.
pub(crate) fn hears(interest: &Interest, name: &ResourceName) -> bool {
    match interest {
        Interest::Wildcard => false,
        Interest::Name(asked) => name == asked || !name.is_glob() && name.answers(asked),
    }
}
