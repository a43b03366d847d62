//! What a server may send on one stream: kept from what passes by, apart from the server's own books.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_transport::server::Variant;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use crate::messages::{Request, Response};
use crate::origin::{Content, Origin};
use crate::world::{Of, World, covers};

/// Unacknowledged responses of one type in delta, at most.
const PIPELINED: usize = 8;

#[derive(Default)]
pub(crate) struct Ledger {
    nonces: BTreeSet<String>,
    types: BTreeMap<Of, Asked>,
}

/// One type.
#[derive(Default)]
struct Asked {
    interests: BTreeSet<Interest>,
    /// Names were asked for: no names is no wildcard any more (rule 40).
    ever_named: bool,
    /// Of the last response.
    last_nonce: Option<String>,
    unacked: VecDeque<String>,
    /// What was sent, or told as removed, at which moment of the origin.
    sent: BTreeMap<ResourceName, u64>,
    /// What the client said it holds, and at which moment of the origin, until it is told otherwise.
    held: BTreeMap<ResourceName, (String, u64)>,
    /// Names it must be told about although it does not ask for them (rules 52, 84).
    parting: BTreeSet<ResourceName>,
    /// When it was last told of a name, or said that it holds it, and whether it is there: whatever it asked for since.
    told: BTreeMap<ResourceName, (u64, bool)>,
    /// Names it asked for, of which it was told nothing yet and can have nothing.
    fresh: BTreeSet<ResourceName>,
    /// A collection was asked for: even an empty response is owed (rule 86).
    owes_answer: bool,
    /// Names that what refers to them was sent without (rule 124).
    dependents: BTreeSet<ResourceName>,
    /// SotW: something was asked for since the last response.
    due: bool,
    /// The moment of the last response.
    responded: u64,
}

impl Ledger {
    /// A request arrives at the server as the client wrote it.
    pub(crate) fn request(&mut self, world: &World, origin: &Origin, request: &Request) {
        let Some(of) = world.of(&request.type_url) else { return };
        let first = !self.types.contains_key(&of);
        let asked = self.types.entry(of).or_default();
        match world.setup.protocol {
            Variant::Delta => {
                if let Some(at) = asked.unacked.iter().position(|nonce| *nonce == request.nonce) {
                    asked.unacked.drain(..=at);
                }
                asked.delta(world, origin, of, request, first);
            }
            Variant::Sotw => {
                let stale = asked.last_nonce.as_ref().is_some_and(|last| *last != request.nonce);
                // Rules 16, 17: one that crossed a response may be heard, but does not acknowledge it. Any other that
                // is stale is not: its names come again with the answer to the newest response.
                if stale && asked.unacked.is_empty() {
                    return;
                }
                if !stale {
                    asked.unacked.clear();
                }
                asked.sotw(world, of, request);
                let content = asked.content(world, origin, of);
                if first && origin.versions.get(&(of, request.version.clone())) == Some(&content) {
                    // Rule 87: it holds all of this.
                    asked.told.extend(content.keys().map(|name| (name.clone(), (origin.moment, true))));
                    asked.sent.extend(content.into_keys().map(|name| (name, 0)));
                    asked.responded = origin.moment;
                }
            }
        }
    }

    /// A response leaves the server.
    pub(crate) fn response(&mut self, world: &World, origin: &mut Origin, response: &Response) -> Result<(), String> {
        let of = world.of(&response.type_url).ok_or("a response of a type nobody asked for")?;
        if response.nonce.is_empty() || !self.nonces.insert(response.nonce.clone()) {
            return Err(format!("rule 13: nonce {:?} is empty or came before", response.nonce));
        }
        let asked = self.types.get_mut(&of).ok_or("rule 10: a type that was not asked for on this stream")?;
        let limit = if world.setup.protocol == Variant::Delta { PIPELINED } else { 1 };
        asked.unacked.push_back(response.nonce.clone());
        if asked.unacked.len() > limit {
            return Err(format!("rule 129: {} responses wait for their ACK", asked.unacked.len()));
        }
        asked.last_nonce = Some(response.nonce.clone());
        asked.check_names(response)?;
        let mut touched = Vec::new();
        for sent in &response.resources {
            let name = parsed(&sent.name)?;
            let there = origin.resource(of, &name).ok_or(format!("{name} is sent, and the origin has none"))?;
            if origin.body(of, &name) != Some(sent.body()) {
                return Err(format!("rule 128: {name} is not sent in its newest state"));
            }
            if !sent.version.is_empty() && sent.version != there.version.as_str() {
                return Err(format!("{name} is sent at version {:?}, not {:?}", sent.version, there.version));
            }
            if !asked.covers(world, &name) {
                return Err(format!("rule 63: {name} is sent unasked"));
            }
            asked.dependents.remove(&name);
            // A full state repeats what is no news.
            let news = !asked.sent.contains_key(&name) || origin.changed(of, &name) > asked.responded;
            touched.extend(world.dependents(of, &sent.any.value).into_iter().map(|(of, name)| (of, name, news)));
        }
        match world.setup.protocol {
            Variant::Delta => asked.check_delta(world, origin, of, response)?,
            Variant::Sotw => {
                let content = asked.check_sotw(world, origin, of, response)?;
                let versions = &mut origin.versions;
                let before = versions.entry((of, response.version.clone())).or_insert_with(|| content.clone());
                if *before != content {
                    return Err(format!("rules 33, 34: version {:?} of {before:?} and {content:?}", response.version));
                }
            }
        }
        let asked = self.types.entry(of).or_default();
        (asked.owes_answer, asked.due, asked.responded) = (false, false, origin.moment);
        asked.tell(world, origin, of, response);
        for (of, name, news) in touched {
            let Some(asked) = self.types.get_mut(&of) else { continue };
            if asked.interests.contains(&Interest::Name(name.clone())) {
                asked.sent.remove(&name);
                asked.held.remove(&name);
                if news {
                    asked.dependents.insert(name);
                }
            }
        }
        Ok(())
    }

    /// Nothing more is to be sent.
    pub(crate) fn check_at_rest(&self, origin: &Origin) -> Result<(), String> {
        for (of, asked) in &self.types {
            if let Some(name) = asked.dependents.iter().find(|name| origin.body(*of, name).is_some()) {
                return Err(format!("rule 124: {name} was not sent again"));
            }
        }
        Ok(())
    }

    /// What there is to say of a type that was asked for.
    pub(crate) fn pending(&self, world: &World, origin: &Origin, of: Of) -> Option<Pending> {
        self.types.get(&of).map(|asked| asked.pending(world, origin, of))
    }

    /// What a server that read every request takes the client to want.
    pub(crate) fn interests(&self, of: Of) -> BTreeSet<Interest> {
        self.types.get(&of).map(|asked| asked.interests.clone()).unwrap_or_default()
    }
}

/// What there is to say of one type, for certain; and `anything` if there may be.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) additions: bool,
    pub(crate) removals: bool,
    /// Something was asked for by name that the client cannot have.
    pub(crate) missing: bool,
    pub(crate) anything: bool,
    pub(crate) full: bool,
    pub(crate) responded: bool,
    asked: bool,
    gone: BTreeSet<ResourceName>,
    sotw: bool,
}

impl Pending {
    /// Whether a response takes back what the client has, and could have waited.
    pub(crate) fn takes(&self, response: &Response) -> bool {
        match self.sotw {
            // What is asked for is answered, and a full state leaves out what is gone.
            true => self.removals && !self.additions && !self.asked,
            false => response.removed.iter().flat_map(|name| parsed(name)).any(|name| self.gone.contains(&name)),
        }
    }
}

impl Asked {
    fn pending(&self, world: &World, origin: &Origin, of: Of) -> Pending {
        let sotw = world.setup.protocol == Variant::Sotw;
        let mut pending = Pending {
            full: self.unacked.len() >= if sotw { 1 } else { PIPELINED },
            responded: self.last_nonce.is_some(),
            anything: self.owes_answer || self.due,
            asked: self.owes_answer || self.due,
            sotw,
            ..Pending::default()
        };
        for name in world.kinds[of].names.iter().filter(|name| self.covers(world, name)) {
            let told = self.told.get(name);
            let news = told.is_none_or(|(moment, _)| origin.changed(of, name) > *moment);
            pending.anything |= news || !self.sent.contains_key(name);
            match (origin.body(of, name), told) {
                (Some(_), _) => pending.additions |= news,
                (None, Some((_, true))) if world.says_absence(of) => _ = pending.gone.insert(name.clone()),
                (None, _) => {
                    // A client that lists no members of a glob may have one that is gone (rule 100).
                    let glob = name.glob_parent().is_some_and(|glob| self.interests.contains(&Interest::Name(glob)));
                    let may_have = glob || self.held.contains_key(name) || self.parting.contains(name);
                    pending.missing |= self.fresh.contains(name) && !may_have && !sotw;
                }
            }
        }
        pending.removals = !pending.gone.is_empty();
        pending
    }

    fn delta(&mut self, world: &World, origin: &Origin, of: Of, request: &Request, first: bool) {
        if first && request.names.is_empty() && world.rule(of).legacy_wildcard {
            self.subscribe(world, Interest::Wildcard);
        }
        for name in &request.names {
            self.subscribe(world, parsed(name).unwrap().into());
        }
        if first {
            for (name, version) in &request.initial {
                let name = parsed(name).unwrap();
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

    fn sotw(&mut self, world: &World, of: Of, request: &Request) {
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
    fn subscribe(&mut self, world: &World, interest: Interest) {
        if let Interest::Name(name) = &interest
            && !(self.sent.contains_key(name) || self.held.contains_key(name) || self.parting.contains(name))
        {
            self.fresh.insert(name.clone());
        }
        let within = |name: &ResourceName| covers(&interest, name, world.setup.wildcard_covers_xdstp);
        self.sent.retain(|name, _| !within(name) && Interest::Name(name.clone()) != interest);
        self.held.retain(|name, _| !within(name));
        self.owes_answer |= interest.is_collection();
        self.interests.insert(interest);
    }

    fn unsubscribe(&mut self, world: &World, interest: &Interest) {
        if !self.interests.remove(interest) {
            return;
        }
        self.fresh.retain(|name| Interest::Name(name.clone()) != *interest);
        self.dependents.retain(|name| Interest::Name(name.clone()) != *interest);
        let left = |name: &ResourceName| covers(interest, name, true);
        self.held.retain(|name, _| !left(name));
        // Rules 52, 53: what another interest covers, or may cover in the eyes of the client, is answered once.
        self.sent.retain(|name, _| !left(name));
        self.due |= self.interests.iter().any(Interest::is_collection);
        if self.interests.contains(&Interest::Wildcard) {
            for kind in &world.kinds {
                self.parting.extend(kind.names.iter().filter(|name| covers(interest, name, true)).cloned());
            }
        }
    }

    fn covers(&self, world: &World, name: &ResourceName) -> bool {
        self.interests.iter().any(|interest| covers(interest, name, world.setup.wildcard_covers_xdstp))
    }

    /// What the origin has for it.
    fn content(&self, world: &World, origin: &Origin, of: Of) -> Content {
        let names = world.kinds[of].names.iter().filter(|name| self.covers(world, name));
        names.filter_map(|name| Some((name.clone(), origin.body(of, name)?))).collect()
    }

    /// What the client knows after a response.
    fn tell(&mut self, world: &World, origin: &Origin, of: Of, response: &Response) {
        if world.setup.protocol == Variant::Sotw && world.rule(of).full_state_in_sotw {
            self.told.values_mut().for_each(|told| *told = (origin.moment, false));
        }
        let sent = response.resources.iter().map(|sent| (&sent.name, true));
        for (name, there) in sent.chain(response.removed.iter().map(|name| (name, false))) {
            self.told.extend(parsed(name).map(|name| (name, (origin.moment, there))));
        }
    }

    /// Rule 69.
    fn check_names(&self, response: &Response) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let resources = response.resources.iter().map(|sent| &sent.name);
        for name in resources.chain(&response.removed) {
            if !seen.insert(parsed(name)?) {
                return Err(format!("rule 69: {name} twice in one response"));
            }
        }
        Ok(())
    }

    fn check_delta(&mut self, world: &World, origin: &Origin, of: Of, response: &Response) -> Result<(), String> {
        if response.resources.is_empty() && response.removed.is_empty() && !self.owes_answer {
            return Err("rule 37: an empty response that is not owed".into());
        }
        for sent in &response.resources {
            let name = parsed(&sent.name)?;
            let held = self.held.remove(&name);
            if held.is_some_and(|(held, moment)| held == sent.version && origin.changed(of, &name) <= moment) {
                return Err(format!("rule 35: {name} is sent although the client said that it holds it"));
            }
            self.check_news(origin, of, name)?;
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
            self.check_news(origin, of, name)?;
        }
        Ok(())
    }

    /// Rules 23, 37: nothing is sent again before it changes or is asked for.
    fn check_news(&mut self, origin: &Origin, of: Of, name: ResourceName) -> Result<(), String> {
        let moment = origin.changed(of, &name);
        self.fresh.remove(&name);
        match self.sent.insert(name.clone(), moment) {
            Some(before) if before == moment => Err(format!("rules 23, 37: {name} is sent again as it was")),
            _ => Ok(()),
        }
    }

    /// Returns the content that the version stands for.
    fn check_sotw(&mut self, world: &World, origin: &Origin, of: Of, response: &Response) -> Result<Content, String> {
        let content = self.content(world, origin, of);
        let sent: BTreeSet<_> = response.resources.iter().map(|sent| parsed(&sent.name)).collect::<Result<_, _>>()?;
        if world.rule(of).full_state_in_sotw {
            if sent.len() != content.len() {
                return Err(format!("rule 66: {sent:?} is not all of {content:?}"));
            }
            let news = world.kinds[of].names.iter().any(|name| {
                self.covers(world, name)
                    && (origin.changed(of, name) > self.responded
                        || !self.sent.contains_key(name) && sent.contains(name))
            });
            if !news && !self.due {
                return Err("rules 23, 37: a response without news".into());
            }
            self.sent.extend(sent.into_iter().map(|name| (name, origin.moment)));
        } else {
            if sent.is_empty() {
                return Err("rule 67: an empty response says nothing".into());
            }
            for name in sent {
                self.check_news(origin, of, name)?;
            }
        }
        Ok(content)
    }
}

fn parsed(name: &str) -> Result<ResourceName, String> {
    ResourceName::parse(name).map_err(|error| format!("{name:?} is no name: {error}"))
}
