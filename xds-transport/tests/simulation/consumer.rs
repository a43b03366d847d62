//! The client's user: what it wants, and what it holds because it was told so.

mod converged;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::client::{Changed, Update, Verdict};
use xds_transport::{Protocol, Rejected};
use xdstp_cache::{Interest, ResourceError};
use xdstp_uri::ResourceName;

use crate::ledger::hears;
use crate::messages::Response;
use crate::origin::Origin;
use crate::world::{Of, World, covers, read};

const UNAVAILABLE: i32 = 14;

#[derive(Default)]
pub(crate) struct Consumer {
    kinds: BTreeMap<Of, Kind>,
}

#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) wants: BTreeSet<Interest>,
    /// When each of these was asked for, in ms.
    since: BTreeMap<Interest, u64>,
    view: BTreeMap<ResourceName, Held>,
    absent: BTreeSet<ResourceName>,
    answered: BTreeSet<Interest>,
    /// Versions and bodies it refused last.
    refused: BTreeMap<ResourceName, u8>,
    /// What it took although it answers nothing that is wanted: see [`Cause::answers`].
    crossed: BTreeSet<ResourceName>,
    /// What the origin does not send, and why, as far as it was told.
    errors: BTreeMap<ResourceName, (i32, String)>,
    /// The globs among these that were refused while they were asked for, and the stream that said so.
    refused_on: BTreeMap<ResourceName, u64>,
    /// Those of these that may be over: their glob is empty since.
    over_unsaid: BTreeSet<ResourceName>,
    /// What it let go for an error of the resource itself, at which moment of the origin.
    denied: BTreeMap<ResourceName, u64>,
    /// The moment of what came last and ended an error of a glob, in its eyes.
    recovered: BTreeMap<ResourceName, u64>,
    /// Its time was over, and the origin has said nothing of it since.
    expired: BTreeSet<ResourceName>,
    /// Given up since the last rest, under a wildcard that to the client covers everything: they may be told as removed,
    /// or left out of a full state, although they are wanted again.
    parting: BTreeSet<ResourceName>,
}

/// The response that arrived last, and may be what an update is about.
#[derive(Clone, Default)]
pub(crate) struct Cause {
    /// The stream that it came by.
    pub(crate) stream: u64,
    /// The moment of the origin when it was sent.
    pub(crate) moment: u64,
    /// When that was, in ms.
    pub(crate) sent_at: u64,
    /// What was asked for by then.
    pub(crate) asked: BTreeSet<Interest>,
    /// What it says is removed.
    pub(crate) removed: BTreeSet<ResourceName>,
    /// The response itself, and when it arrived, in ms: none where a time ran out.
    pub(crate) response: Option<(Response, u64)>,
}

impl Cause {
    /// Whether it brings a name for what is wanted now. A delta response does not say which request it answers: what
    /// crossed the end of one interest is taken for another that covers it, too. If it goes before the other is asked
    /// for, nobody can tell until the next stream.
    fn answers(&self, world: &World, kind: &Kind, name: &ResourceName) -> bool {
        self.asked_for(kind).any(|interest| covers(interest, name, world.setup.wildcard_covers_xdstp))
    }

    /// What was asked for by then, and is wanted still. What was given up meanwhile, and asked for anew, is another one.
    fn asked_for<'a>(&'a self, kind: &'a Kind) -> impl Iterator<Item = &'a Interest> {
        let since = |interest: &Interest| kind.since.get(interest).copied().unwrap_or(0);
        self.asked.intersection(&kind.wants).filter(move |interest| since(interest) <= self.sent_at)
    }
}

#[derive(Debug)]
struct Held {
    body: u8,
    version: String,
    /// The moment of the origin when it was sent.
    moment: u64,
    /// When its time is over, in ms, by what arrived, and by what its user was told.
    until: [Option<u64>; 2],
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
    pub(crate) fn subscribe(&mut self, of: Of, interest: Interest, now: u64) {
        let kind = self.kinds.entry(of).or_default();
        kind.since.entry(interest.clone()).or_insert(now);
        kind.wants.insert(interest);
    }

    /// What is not wanted any more is forgotten.
    pub(crate) fn unsubscribe(&mut self, world: &World, of: Of, interest: &Interest) {
        let Some(kind) = self.kinds.get_mut(&of) else { return };
        kind.wants.remove(interest);
        kind.since.remove(interest);
        kind.answered.remove(interest);
        let wants = std::mem::take(&mut kind.wants);
        let covered = |name: &ResourceName| wants.iter().any(|interest| covers(interest, name, true));
        kind.view.retain(|name, _| covered(name));
        kind.absent.retain(|name| covered(name));
        kind.refused.retain(|name, _| covered(name));
        kind.expired.retain(|name| covered(name));
        kind.denied.retain(|name, _| covered(name));
        kind.recovered.retain(|glob, _| wants.iter().any(|interest| hears(interest, glob)));
        kind.errors.retain(|name, _| wants.iter().any(|interest| hears(interest, name)));
        kind.refused_on.retain(|glob, _| wants.contains(&Interest::Name(glob.clone())));
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
        if !update.rejected.is_empty() && !kind.may_reject(&update, cause) {
            return Err(format!("the machine cannot read {:?}", update.rejected));
        }
        if let Some((response, _)) = &cause.response
            && response.version != update.version
        {
            return Err(format!("version {:?} is told to the client as {:?}", response.version, update.version));
        }
        let mut reasons = Vec::new();
        for changed in update.changed {
            let body = read(&payload(changed.resource.value.any())).1;
            if !kind.covers(&changed.name) {
                continue; // It was given up while the update was on its way here.
            }
            kind.end_errors(&changed.name, cause);
            kind.denied.remove(&changed.name);
            kind.absent.remove(&changed.name);
            kind.expired.remove(&changed.name);
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
            let until = [None, cause.until(&changed)];
            kind.view.insert(changed.name, Held { body, version, moment: cause.moment, until });
        }
        for repeated in &update.repeated {
            if !kind.covers(&repeated.name) {
                continue;
            }
            let body = read(&payload(repeated.resource.value.any())).1;
            let held = kind.view.get_mut(&repeated.name).filter(|held| held.body == body);
            let Some(held) = held else {
                return Err(format!("{} is told as repeated, and is not held", repeated.name));
            };
            held.until[1] = cause.until(repeated);
            kind.end_errors(&repeated.name, cause);
        }
        for (name, ttl) in &update.refreshed {
            if let (Some(held), Some((_, at))) = (kind.view.get_mut(name), &cause.response) {
                held.until[1] = Some(at + ttl.as_millis() as u64);
            }
        }
        kind.note_lives(cause)?;
        let failing: Vec<_> = update.errors.iter().map(|(name, _)| name.clone()).collect();
        for name in update.removed.into_iter().chain(update.missing) {
            if kind.covers(&name) {
                let held = kind.view.remove(&name);
                kind.crossed.remove(&name);
                if let (None, Some(held)) = (&cause.response, &held) {
                    if held.until[0].is_none_or(|until| until > origin.now) {
                        return Err(format!("rule 115: {name} is over for the client as {held:?}"));
                    }
                    kind.expired.insert(name);
                    continue;
                }
                kind.refused.remove(&name);
                // Whatever became of the connection: only the origin removes. What it said was checked as it was said.
                if let Some(held) = held.filter(|held| origin.is_there_since(of, &name, held.moment))
                    && kind.serves(world, &name)
                    && !cause.removed.contains(&name)
                    && !kind.parting.contains(&name)
                    && !failing.iter().any(|failing| name.answers(failing))
                {
                    return Err(format!("{name} is taken from the client as {held:?}, and the origin has it"));
                }
                // The error that it is removed by follows.
                kind.errors.remove(&name);
                kind.denied.remove(&name);
                kind.expired.remove(&name);
                kind.absent.insert(name);
            }
        }
        for complete in &update.complete {
            if let (Interest::Name(glob), Protocol::Delta) = (complete, world.setup.protocol) {
                kind.errors.remove(glob);
                // Of a member that failed nothing else may be said once that is over; of names it says nothing (rule 99).
                if cause.removed.contains(glob) {
                    let Kind { errors, wants, over_unsaid, .. } = &mut *kind;
                    let of_glob =
                        |name: &&ResourceName| name.answers(glob) && !wants.contains(&Interest::Name((*name).clone()));
                    over_unsaid.extend(errors.keys().filter(of_glob).cloned());
                }
                kind.recovered.insert(glob.clone(), cause.moment);
            }
        }
        kind.take_answers(cause, &update.answered)?;
        kind.check_told(cause, &update.errors)?;
        for (name, error) in update.errors {
            let said = cause.response.as_ref().is_some_and(|(response, _)| {
                response.errors.iter().any(|failed| {
                    (failed.code, &*failed.message) == (error.code, &*error.message) && failed.name == name.as_str()
                })
            });
            if !said {
                return Err(format!("the client is told of {error} of {name}, and nobody said so"));
            }
            if kind.wants.iter().any(|interest| hears(interest, &name)) {
                if !error.is_transient() {
                    kind.denied.insert(name.clone(), cause.moment);
                }
                kind.over_unsaid.remove(&name);
                kind.note_refusal(cause, &name, &error);
                kind.errors.insert(name, (error.code, error.message.to_string()));
            }
        }
        kind.answered.extend(update.answered.into_iter().filter(|interest| kind.wants.contains(interest)));
        Ok(if reasons.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons } })
    }

    /// Whether it is without a name once that is over: not what it refused a newer one of, nor what only it takes for a
    /// part of its wildcard.
    pub(crate) fn loses(&self, world: &World, of: Of, name: &ResourceName) -> bool {
        let loses = |kind: &Kind| kind.view.contains_key(name) && !kind.refused.contains_key(name);
        self.kinds.get(&of).is_some_and(|kind| loses(kind) && kind.serves(world, name))
    }

    /// When the next of what it holds is over, in ms.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.kinds.values().flat_map(|kind| kind.view.values()).filter_map(|held| held.until[0]).min()
    }

    /// Whether everything that it wants was answered, so far as it can be.
    pub(crate) fn is_answered(&self) -> bool {
        self.kinds.values().all(|kind| kind.wants.iter().all(|interest| kind.is_answered(interest)))
    }
}

impl Cause {
    /// When the time of what came is over, by what its user is told.
    fn until(&self, changed: &Changed) -> Option<u64> {
        let (_, at) = self.response.as_ref()?;
        Some(at + changed.resource.value.ttl()?.as_millis() as u64)
    }
}

impl Kind {
    /// What comes ends the errors of its name and of the glob it belongs to, but that one is refused: see `take_answers`.
    fn end_errors(&mut self, name: &ResourceName, cause: &Cause) {
        self.errors.remove(name);
        let moment = cause.moment;
        if let Some(glob) = name.glob_parent() {
            if self.is_refused(&glob) {
                self.note_unsaid(cause, name, glob);
                return;
            }
            self.errors.remove(&glob);
            self.recovered.insert(glob, moment);
        }
    }

    /// Rule 118: what a response says is wrong with what was asked for is told.
    fn check_told(&self, cause: &Cause, told: &[(ResourceName, ResourceError)]) -> Result<(), String> {
        let said = cause.response.iter().flat_map(|(response, _)| &response.errors);
        for failed in said {
            let Ok(name) = ResourceName::parse(&failed.name) else { continue };
            let hears = cause.asked_for(self).any(|interest| hears(interest, &name));
            if hears && !told.iter().any(|(told, error)| *told == name && error.code == failed.code) {
                return Err(format!("rule 118: the error of {name} is not told to the client's user"));
            }
        }
        Ok(())
    }

    /// A machine cannot use what says that something lives on that is over by now.
    fn may_reject(&self, update: &Update, cause: &Cause) -> bool {
        let heartbeat = |name: &str| {
            let sent = cause.response.iter().flat_map(|(response, _)| &response.resources);
            sent.into_iter().find(|sent| sent.heartbeat && sent.name == name)
        };
        let held = |name: &str| self.view.iter().find(|(held, _)| held.as_str() == name).map(|(_, held)| &held.version);
        update
            .rejected
            .iter()
            .all(|rejected| heartbeat(&rejected.name).is_some_and(|sent| held(&rejected.name) != Some(&sent.version)))
    }

    /// How long what it holds lives, by what arrived: its user must know as much.
    fn note_lives(&mut self, cause: &Cause) -> Result<(), String> {
        let Some((response, at)) = &cause.response else { return Ok(()) };
        for sent in response.resources.iter().filter(|sent| sent.heartbeat || sent.body() != World::BAD) {
            let Ok(name) = ResourceName::parse(&sent.name) else { continue };
            // What it refused does not live on.
            let lives_on = |held: &&mut Held| !sent.heartbeat || held.version == sent.version;
            let Some(held) = self.view.get_mut(&name).filter(lives_on) else { continue };
            held.until[0] = sent.ttl.map(|ttl| at + ttl.as_millis() as u64);
            if held.until[0] != held.until[1] {
                return Err(format!("rule 111: {name} is told to the client as {held:?}"));
            }
        }
        Ok(())
    }

    fn is_answered(&self, interest: &Interest) -> bool {
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                self.view.contains_key(name) || self.knows(name) || self.refused.contains_key(name)
            }
            Interest::Name(glob) => self.answered.contains(interest) || self.errors.contains_key(glob),
            Interest::Wildcard => self.answered.contains(interest),
        }
    }

    /// Whether it knows why a name is not there.
    fn knows(&self, name: &ResourceName) -> bool {
        self.absent.contains(name) || self.errors.contains_key(name) || self.expired.contains(name)
    }
}

/// The value in an encoded `Any`.
fn payload(any: &[u8]) -> Vec<u8> {
    use prost::Message;
    xds_transport::wire::Any::decode(any).unwrap().value.to_vec()
}
