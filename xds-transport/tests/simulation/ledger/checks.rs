//! What one response may say.

use std::collections::BTreeSet;

use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::{Asked, parsed};
use crate::messages::Response;
use crate::origin::{Content, Origin};
use crate::world::{Of, World};

impl Asked {
    /// Rule 69.
    pub(super) fn check_names(&self, response: &Response) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let resources = response.resources.iter().map(|sent| &sent.name);
        for name in resources.chain(&response.removed) {
            if !seen.insert(parsed(name)?) {
                return Err(format!("rule 69: {name} twice in one response"));
            }
        }
        Ok(())
    }

    pub(super) fn check_delta(
        &mut self,
        world: &World,
        origin: &Origin,
        of: Of,
        response: &Response,
    ) -> Result<(), String> {
        let says = !response.resources.is_empty() || !response.removed.is_empty() || !response.errors.is_empty();
        if !says && !self.owes_answer {
            return Err("rule 37: an empty response that is not owed".into());
        }
        for sent in response.resources.iter().filter(|sent| !sent.heartbeat) {
            let name = parsed(&sent.name)?;
            let held = self.held.remove(&name);
            // A version says nothing of which variant the client has.
            let says = world.setup.variants.is_none() && !self.lives.may_be_over(world, origin, of, &name);
            if says && held.is_some_and(|(held, moment)| held == sent.version && origin.changed(of, &name) <= moment) {
                return Err(format!("rule 35: {name} is sent although the client said that it holds it"));
            }
            self.check_news(world, origin, of, name)?;
        }
        for name in &response.removed {
            let name = parsed(name)?;
            let asked_itself = self.interests.contains(&Interest::Name(name.clone()));
            if name.is_glob() {
                let empty = world.kinds[of].names.iter().all(|n| !n.answers(&name) || origin.body(of, n).is_none());
                if !asked_itself || !empty {
                    return Err(format!("rule 99: {name} is told as empty"));
                }
            } else if self.covers(world, &name) {
                if origin.body(of, &name).is_some() {
                    return Err(format!("{name} is told as removed, and the origin has it"));
                }
            } else if !self.parting.remove(&name) {
                return Err(format!("rule 63: {name} is told as removed unasked"));
            }
            self.held.remove(&name);
            if response.errors.iter().any(|failed| failed.name == name.as_str()) {
                // What is told of it is the error.
                self.fresh.remove(&name);
                self.sent.insert(name.clone(), origin.changed(of, &name));
                continue;
            }
            self.check_news(world, origin, of, name)?;
        }
        Ok(())
    }

    /// Rules 23, 37: nothing is sent again before it changes or is asked for.
    pub(super) fn check_news(
        &mut self,
        world: &World,
        origin: &Origin,
        of: Of,
        name: ResourceName,
    ) -> Result<(), String> {
        let moment = origin.changed(of, &name);
        self.fresh.remove(&name);
        match self.sent.insert(name.clone(), moment) {
            Some(before) if before == moment && !self.lives.may_be_over(world, origin, of, &name) => {
                Err(format!("rules 23, 37: {name} is sent again as it was"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the content that the version stands for.
    pub(super) fn check_sotw(
        &mut self,
        world: &World,
        origin: &Origin,
        of: Of,
        response: &Response,
    ) -> Result<Content, String> {
        let mut content = self.content(world, origin, of);
        content.extend(self.all_leaving(world, origin, of, response).map(|(name, _, departed)| (name, departed.body)));
        let sent: BTreeSet<_> = response.resources.iter().map(|sent| parsed(&sent.name)).collect::<Result<_, _>>()?;
        if world.rule(of).full_state_in_sotw {
            if sent.len() != content.len() {
                return Err(format!("rule 66: {sent:?} is not all of {content:?}"));
            }
            let changed = |name: &ResourceName| origin.changed(of, name) > self.responded;
            // A glob that does not fail any more is complete without its members, too.
            let answered =
                |interest: &Interest| matches!(interest, Interest::Name(name) if name.is_glob() && changed(name));
            let news = self.interests.iter().any(answered)
                || world.kinds[of].names.iter().any(|name| {
                    self.covers(world, name) && (changed(name) || !self.sent.contains_key(name) && sent.contains(name))
                });
            let leaves = self.told.iter().any(|(name, (_, there))| *there && !sent.contains(name));
            if !news && !leaves && !self.due && response.errors.is_empty() && !self.lives.any_due(origin, of) {
                return Err("rules 23, 37: a response without news".into());
            }
            self.sent.extend(sent.into_iter().map(|name| (name, origin.moment)));
        } else {
            if sent.is_empty() && response.errors.is_empty() {
                return Err("rule 67: an empty response says nothing".into());
            }
            for name in sent {
                self.check_news(world, origin, of, name)?;
            }
        }
        Ok(content)
    }
}
