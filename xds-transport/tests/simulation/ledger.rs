//! What a server may send on one stream: kept from what passes by, apart from the server's own books.

mod asked;
mod checks;
mod errors;
mod leaving;
mod lives;
mod pending;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use self::errors::Errors;
pub(crate) use self::errors::hears;
use self::lives::Lives;
pub(crate) use self::pending::Pending;
use crate::messages::{Request, Response};
use crate::origin::Origin;
use crate::world::{Of, World};

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
    /// What it left: what was on its way then may be told still.
    left: BTreeSet<Interest>,
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
    /// The moment of the last response, and of the one before: what is wrong goes in a response of its own.
    responded: u64,
    responded_before: u64,
    errors: Errors,
    lives: Lives,
}

impl Ledger {
    /// A request arrives at the server as the client wrote it.
    pub(crate) fn request(&mut self, world: &World, origin: &Origin, request: &Request) {
        let Some(of) = world.of(&request.type_url) else { return };
        let first = !self.types.contains_key(&of);
        let asked = self.types.entry(of).or_default();
        match world.setup.protocol {
            Protocol::Delta => {
                if let Some(at) = asked.unacked.iter().position(|nonce| *nonce == request.nonce) {
                    asked.unacked.drain(..=at);
                    asked.lives.answered(&request.nonce, request.error.is_some());
                }
                asked.delta(world, origin, of, request, first);
            }
            Protocol::Sotw => {
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
                // Of what an origin gives to a type, a version says nothing of the names that a client has.
                let holds = match world.setup.type_versions {
                    true => {
                        let given = origin.type_version(of);
                        given.is_some_and(|given| given.as_str() == request.version)
                            && asked.interests.iter().eq([&Interest::Wildcard])
                    }
                    false => origin.versions.get(&(of, request.version.clone())) == Some(&content),
                };
                if first && holds {
                    // Rule 87: it holds all of this.
                    asked.told.extend(content.keys().map(|name| (name.clone(), (origin.moment, true))));
                    asked.sent.extend(content.into_keys().map(|name| (name, 0)));
                    asked.responded = origin.moment;
                }
            }
        }
    }

    /// A response leaves the server. Whether it tells more than that something lives on.
    pub(crate) fn response(&mut self, world: &World, origin: &mut Origin, response: &Response) -> Result<bool, String> {
        let of = world.of(&response.type_url).ok_or("a response of a type nobody asked for")?;
        if response.nonce.is_empty() || !self.nonces.insert(response.nonce.clone()) {
            return Err(format!("rule 13: nonce {:?} is empty or came before", response.nonce));
        }
        let asked = self.types.get_mut(&of).ok_or("rule 10: a type that was not asked for on this stream")?;
        let limit = if world.setup.protocol == Protocol::Delta { PIPELINED } else { 1 };
        asked.unacked.push_back(response.nonce.clone());
        if asked.unacked.len() > limit {
            return Err(format!("rule 129: {} responses wait for their ACK", asked.unacked.len()));
        }
        asked.last_nonce = Some(response.nonce.clone());
        asked.check_names(response)?;
        let mut touched = Vec::new();
        let leaving = asked.all_leaving(world, origin, of, response).next().is_some();
        check_version(world, origin, of, leaving, response)?;
        let news = !asked.lives.only_refreshes(world, origin, of, response);
        asked.errors.check(world, origin, of, &asked.interests, &asked.lives, response)?;
        for sent in &response.resources {
            let name = parsed(&sent.name)?;
            if let Some(departed) = asked.leaving(world, origin, of, &name) {
                if sent.body() != departed.body || !sent.version.is_empty() && sent.version != departed.version.as_str()
                {
                    return Err(format!("rule 122: {name} is gone, and sent as it was not"));
                }
                continue;
            }
            let there = origin.resource(of, &name).ok_or(format!("{name} is sent, and the origin has none"))?;
            asked.lives.check(world, origin, of, sent)?;
            if !sent.heartbeat && origin.body(of, &name) != Some(sent.body()) {
                return Err(format!("rule 128: {name} is not sent in its newest state"));
            }
            if !sent.version.is_empty() && sent.version != there.version.as_str() {
                return Err(format!("{name} is sent at version {:?}, not {:?}", sent.version, there.version));
            }
            if !asked.covers(world, &name) {
                return Err(format!("rule 63: {name} is sent unasked"));
            }
            if sent.heartbeat {
                continue;
            }
            asked.dependents.remove(&name);
            // A full state repeats what is no news.
            let news = !asked.sent.contains_key(&name) || origin.changed(of, &name) > asked.responded;
            touched.extend(world.dependents(of, &sent.any.value).into_iter().map(|(of, name)| (of, name, news)));
        }
        match world.setup.protocol {
            Protocol::Delta => asked.check_delta(world, origin, of, response)?,
            Protocol::Sotw => {
                let content = asked.check_sotw(world, origin, of, response)?;
                // What an origin gave is checked above.
                if leaving || origin.type_version(of).is_none() {
                    let versions = &mut origin.versions;
                    let before = versions.entry((of, response.version.clone())).or_insert_with(|| content.clone());
                    if *before != content {
                        let version = &response.version;
                        return Err(format!("rules 33, 34: version {version:?} of {before:?} and {content:?}"));
                    }
                }
            }
        }
        let asked = self.types.entry(of).or_default();
        (asked.owes_answer, asked.due, asked.responded_before) = (false, false, asked.responded);
        asked.responded = origin.moment;
        asked.tell(world, origin, of, response);
        asked.errors.told(origin, of, response);
        asked.lives.told(world, origin, of, response);
        for (of, name, news) in touched {
            let Some(asked) = self.types.get_mut(&of) else { continue };
            if asked.interests.contains(&Interest::Name(name.clone())) {
                asked.errors.referred_to(&name);
                asked.sent.remove(&name);
                asked.held.remove(&name);
                if news {
                    asked.dependents.insert(name);
                }
            }
        }
        Ok(news)
    }

    /// Nothing more is to be sent.
    pub(crate) fn check_at_rest(&self, world: &World, origin: &Origin) -> Result<(), String> {
        for (of, asked) in &self.types {
            asked.errors.check_at_rest(world, origin, *of, &asked.interests)?;
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

/// What an origin gave is told as it is, but of what is not all there any more; over delta nothing else is (rules 33, 36, 146).
fn check_version(world: &World, origin: &Origin, of: Of, leaving: bool, response: &Response) -> Result<(), String> {
    let given = origin.type_version(of).map(|given| given.to_string());
    let expected = match world.setup.protocol {
        Protocol::Delta => given.unwrap_or_default(),
        Protocol::Sotw if leaving && given.as_ref() == Some(&response.version) => "another".to_owned(),
        Protocol::Sotw => given.filter(|_| !leaving).unwrap_or_else(|| response.version.clone()),
    };
    if response.version != expected {
        return Err(format!("rule 33: the version of {of} is told as {:?}, not {expected:?}", response.version));
    }
    Ok(())
}

fn parsed(name: &str) -> Result<ResourceName, String> {
    ResourceName::parse(name).map_err(|error| format!("{name:?} is no name: {error}"))
}
