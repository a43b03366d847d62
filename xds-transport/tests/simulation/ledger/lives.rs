//! What a client has from a stream, and for how long: rules 111 to 114.

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::Protocol;
use xdstp_uri::ResourceName;

use super::parsed;
use crate::messages::{Response, Sent};
use crate::origin::Origin;
use crate::world::{Of, World};

#[derive(Default)]
pub(super) struct Lives {
    /// The version of what was sent, or brought along, whatever became of it.
    has: BTreeMap<ResourceName, String>,
    /// What the client brought along when it connected.
    brought: BTreeSet<ResourceName>,
    lives: BTreeMap<ResourceName, Life>,
    /// What each response told of how long it lives.
    told_by: BTreeMap<String, Vec<ResourceName>>,
}

/// In ms.
struct Life {
    told: u64,
    ttl: u64,
    /// The client refused a response that told so: it may not have it.
    refused: bool,
}

impl Lives {
    pub(super) fn bring(&mut self, name: &ResourceName, version: &str) {
        self.has.insert(name.clone(), version.to_owned());
        self.brought.insert(name.clone());
    }

    pub(super) fn may_be_brought(&self, name: &ResourceName) -> bool {
        self.brought.iter().any(|held| held.answers(name))
    }

    pub(super) fn left(&mut self, left: impl Fn(&ResourceName) -> bool) {
        self.lives.retain(|name, _| !left(name));
    }

    pub(super) fn answered(&mut self, nonce: &str, refused: bool) {
        for name in self.told_by.remove(nonce).into_iter().flatten() {
            if let Some(life) = self.lives.get_mut(&name) {
                life.refused |= refused;
            }
        }
    }

    /// Whether the server may say at this time that something lives on.
    pub(super) fn is_due(&self, origin: &Origin, of: Of, name: &ResourceName) -> bool {
        let lives_longer = |life: &Life| origin.until(of, name).is_none_or(|until| until > life.told + life.ttl);
        let due = |life: &Life| life.refused || origin.now >= life.told + life.ttl / 3 && lives_longer(life);
        self.lives.get(name).is_some_and(due)
    }

    pub(super) fn any_due(&self, origin: &Origin, of: Of) -> bool {
        self.lives.keys().any(|name| self.is_due(origin, of, name))
    }

    /// Whether the client has it no more, as it was told.
    pub(super) fn is_over(&self, origin: &Origin, name: &ResourceName) -> bool {
        self.lives.get(name).is_some_and(|life| origin.now >= life.told + life.ttl)
    }

    /// Whether what was sent may be sent again as it was: the client may have it no more.
    pub(super) fn may_be_over(&self, world: &World, origin: &Origin, of: Of, name: &ResourceName) -> bool {
        let over = |life: &Life| life.refused || origin.now >= life.told + life.ttl;
        match world.setup.protocol {
            Protocol::Delta => self.lives.get(name).is_some_and(over),
            Protocol::Sotw => self.is_due(origin, of, name),
        }
    }

    pub(super) fn check(&self, world: &World, origin: &Origin, of: Of, sent: &Sent) -> Result<(), String> {
        let name = parsed(&sent.name)?;
        let told = sent.ttl.map(|ttl| ttl.as_millis() as u64);
        let expected = origin.ttl(of, &name).filter(|_| world.tells_ttl());
        if told != expected {
            return Err(format!("rule 111: {name} is told to live for {told:?}, not {expected:?}"));
        }
        if !sent.heartbeat {
            return Ok(());
        }
        if world.setup.protocol == Protocol::Sotw {
            return Err("rules 113, 114: a heartbeat over SotW".into());
        }
        if told.is_none() {
            return Err(format!("rule 112: {name} comes without a body and a TTL"));
        }
        if self.has.get(&name) != Some(&sent.version) {
            return Err(format!(
                "rule 112: {name} lives on at {:?}, and was sent at {:?}",
                sent.version,
                self.has.get(&name)
            ));
        }
        if self.lives.contains_key(&name) && !self.is_due(origin, of, &name) {
            return Err(format!("rules 111, 148: {name} is refreshed too early, or on behalf of another"));
        }
        Ok(())
    }

    /// Whether a response says nothing but that something lives on.
    pub(super) fn only_refreshes(&self, world: &World, origin: &Origin, of: Of, response: &Response) -> bool {
        let refreshes = |sent: &Sent| {
            let Ok(name) = parsed(&sent.name) else { return false };
            let again = || {
                let same = origin.resource(of, &name).map(|there| there.version.as_str().to_owned());
                world.setup.protocol == Protocol::Sotw && self.has.get(&name) == same.as_ref()
            };
            sent.heartbeat || again()
        };
        response.removed.is_empty()
            && response.errors.is_empty()
            && response.resources.iter().all(refreshes)
            && self.any_due(origin, of)
    }

    pub(super) fn told(&mut self, world: &World, origin: &Origin, of: Of, response: &Response) {
        if world.setup.protocol == Protocol::Sotw && world.rule(of).full_state_in_sotw {
            (self.lives, self.has) = Default::default();
        }
        let mut told_by = Vec::new();
        for sent in &response.resources {
            let Ok(name) = parsed(&sent.name) else { continue };
            let version = origin.resource(of, &name).map(|there| there.version.to_string());
            self.has.extend(version.map(|version| (name.clone(), version)));
            match sent.ttl {
                Some(ttl) => {
                    let life = Life { told: origin.now, ttl: ttl.as_millis() as u64, refused: false };
                    self.lives.insert(name.clone(), life);
                    told_by.push(name);
                }
                None => _ = self.lives.remove(&name),
            }
        }
        for name in response.removed.iter().flat_map(|name| parsed(name)) {
            self.has.remove(&name);
            self.lives.remove(&name);
            self.brought.remove(&name);
        }
        self.told_by.insert(response.nonce.clone(), told_by);
    }
}
