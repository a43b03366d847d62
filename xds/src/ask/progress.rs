//! What is known of everything that was asked for: what is news, what is missing, and what the exit code is. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use xdstp_client::Error;
use xdstp_uri::ResourceName;

use super::covered::{Covered, Held};
use super::event::{Event, Failure, Kind, What};
use super::wanted::Name;

/// What came of all that was asked for, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    There,
    /// Something does not exist, or was not to be asked for.
    Wrong,
    /// Something is not known: nobody answered, or the server does not want to be asked.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Progress {
    asked: Vec<Asked>,
    servers: Vec<Server>,
    covered: Covered,
    is_wrong: bool,
}

/// Where a watch has something from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct From {
    /// The server that counts for it, if that is one of those that are known.
    pub(super) server: Option<usize>,
    /// What it holds is from before.
    pub(super) stale: bool,
}

#[derive(Debug)]
struct Asked {
    name: Name,
    server: usize,
    state: State,
    /// Members of a collection that are not to be had.
    lacking: BTreeMap<ResourceName, Kind>,
    /// Its server said why it does not send the collection.
    withheld: bool,
    /// The server whose trouble it heard of. Of several that is the last that is asked.
    lost: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// There, or a collection that was answered.
    There,
    Failed(Kind),
}

#[derive(Debug)]
struct Server {
    name: String,
    lost: Option<Failure>,
}

impl Progress {
    pub(crate) fn new(servers: impl IntoIterator<Item = String>) -> Self {
        let servers = servers.into_iter().map(|name| Server { name, lost: None }).collect();
        Self { asked: Vec::new(), servers, covered: Covered::default(), is_wrong: false }
    }

    /// Something more is asked for, of the server at this place.
    pub(super) fn ask(&mut self, name: Name, server: usize) {
        let (state, lacking, withheld, lost) = (State::Waiting, BTreeMap::new(), false, None);
        self.asked.push(Asked { name, server, state, lacking, withheld, lost });
    }

    /// Something cannot be asked for.
    pub(super) fn refuse(&mut self, name: &str, reason: &str) -> Event {
        self.is_wrong = true;
        let failure = Failure { kind: Kind::Invalid, message: format!("{name}: {reason}") };
        Event { server: None, name: Some(name.to_owned()), what: What::Error(failure) }
    }

    /// The name of what came, where that is of another authority than what was asked for: a list has members anywhere.
    pub(super) fn elsewhere<'a>(&self, place: usize, event: &'a xdstp_client::Event) -> Option<&'a ResourceName> {
        use xdstp_client::Event::{Ambient, Failed, Put, Removed};
        let (Put { name, .. } | Removed { name } | Failed { name: Some(name), .. } | Ambient { name: Some(name), .. }) =
            event
        else {
            return None;
        };
        let asked = self.asked.get(place)?.name.name();
        Some(name).filter(|name| name.authority().is_some() && name.authority() != asked.authority())
    }

    /// A watch saw something: the news in it, if there are any. A resource that several names cover comes for each of them.
    pub(super) fn seen(&mut self, place: usize, from: From, event: xdstp_client::Event) -> Vec<Event> {
        use xdstp_client::Event::{Ambient, Answered, Failed, Put, Removed};
        let Some(asked) = self.asked.get_mut(place) else { return Vec::new() };
        let server = from.server.unwrap_or(asked.server);
        let of = |name: &ResourceName, what| Event { server: Some(server), name: Some(name.as_str().to_owned()), what };
        match event {
            Put { name, version, resource: any } => {
                asked.lacking.remove(&name);
                if !asked.name.is_collection() {
                    asked.state = State::There;
                }
                let held = Held::new(version, any, server, from.stale);
                self.covered.put(place, &name, held).into_iter().map(|what| of(&name, what)).collect()
            }
            Removed { name } => {
                asked.lacking.remove(&name);
                self.covered.gone(place, &name).map(|what| of(&name, what)).into_iter().collect()
            }
            Answered => {
                // It may be an answer of before, or say no more than that what does not exist has no members.
                if !asked.withheld {
                    asked.state = State::There;
                }
                let name = Some(asked.name.as_str().to_owned());
                vec![Event { server: Some(server), name, what: What::Answered }]
            }
            Failed { name: None, error } if !matches!(error, Error::Unreachable { .. }) => {
                asked.state = State::Failed(Kind::Invalid);
                let name = asked.name.as_str().to_owned();
                let failure = Failure { kind: Kind::Invalid, message: format!("{name}: {error}") };
                vec![Event { server: None, name: Some(name), what: What::Error(failure) }]
            }
            Failed { name: None, error } | Ambient { name: None, error: Some(error) } => {
                self.lost(place, &error).into_iter().collect()
            }
            Ambient { name: None, error: None } => self.found(place).into_iter().collect(),
            Failed { name: Some(name), error } => self.failed(place, server, &name, &error, false),
            Ambient { name: Some(name), error: Some(error) } => self.failed(place, server, &name, &error, true),
            Ambient { name: Some(name), error: None } => {
                if asked.name.is_list() && name == *asked.name.name() && matches!(asked.state, State::Failed(_)) {
                    asked.state = State::There;
                }
                self.covered.well(place, &name).map(|what| of(&name, what)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// What one name covers was told as stale, and its server has spoken of it: what did not come again is as it was.
    pub(super) fn confirmed(&mut self, place: usize) -> Vec<Event> {
        let told = self.covered.confirmed(place);
        let event = |(name, server): (ResourceName, usize)| Event {
            server: Some(server),
            name: Some(name.as_str().to_owned()),
            what: What::Ambient(None),
        };
        told.into_iter().map(event).collect()
    }

    /// Something is not to be had, or not any more; what is used on is so only if it is `beside` that.
    fn failed(&mut self, place: usize, server: usize, name: &ResourceName, error: &Error, beside: bool) -> Vec<Event> {
        let server = self.server_of(error).unwrap_or(server);
        let Some(asked) = self.asked.get(place) else { return Vec::new() };
        let is_list = asked.name.is_list();
        let is_name = !asked.name.is_collection() || name == asked.name.name();
        let failure = Failure::of(error, if is_name { asked.name.as_str() } else { name.as_str() }, name);
        let mut told = Vec::new();
        if is_name && !matches!(error, Error::Unreachable { .. }) {
            // A watch says this once more in place of the end of a lost stream.
            told.extend(self.found(place));
        }
        if is_name && is_list {
            told.extend(self.failed_list(place, server, name, failure, beside));
            return told;
        }
        let what = self.failed_one(place, name, failure, is_name);
        told.extend(what.map(|what| Event { server: Some(server), name: Some(name.as_str().to_owned()), what }));
        told
    }

    fn failed_one(&mut self, place: usize, name: &ResourceName, failure: Failure, is_name: bool) -> Option<What> {
        let (asked, kind) = (self.asked.get_mut(place)?, failure.kind);
        asked.withheld |= is_name;
        // Whoever watches goes on with what is deleted: here it is shown what the server has.
        let was_held = self.covered.has(place, name);
        if kind != Kind::Absent && was_held {
            return self.covered.amiss(place, name, failure);
        }
        let is_news = match is_name {
            // Nothing else tells that what was answered before is refused now.
            true => match std::mem::replace(&mut asked.state, State::Failed(kind)) {
                State::There => kind == Kind::Refused,
                before => before == State::Waiting,
            },
            false => asked.lacking.insert(name.clone(), kind) != Some(kind),
        };
        let gone = self.covered.gone(place, name);
        if was_held { gone } else { is_news.then_some(What::Error(failure)) }
    }

    /// A list is not to be had: its members go with it, but where they are used on.
    fn failed_list(
        &mut self,
        place: usize,
        server: usize,
        list: &ResourceName,
        failure: Failure,
        beside: bool,
    ) -> Vec<Event> {
        let of = |name: &ResourceName, what| Event { server: Some(server), name: Some(name.as_str().to_owned()), what };
        let Some(asked) = self.asked.get_mut(place) else { return Vec::new() };
        if beside {
            if failure.kind == Kind::Absent {
                asked.state = State::Failed(Kind::Absent);
            }
            return self.covered.amiss(place, list, failure).map(|what| of(list, what)).into_iter().collect();
        }
        asked.lacking.clear();
        let is_news = std::mem::replace(&mut asked.state, State::Failed(failure.kind)) != State::Failed(failure.kind);
        let _ = self.covered.well(place, list);
        let members = self.covered.of(place);
        let gone = members.iter().filter_map(|name| Some(of(name, self.covered.gone(place, name)?)));
        let mut told: Vec<_> = gone.collect();
        told.extend(is_news.then(|| of(list, What::Error(failure))));
        told
    }

    /// The place of the server that an error is about.
    fn server_of(&self, error: &Error) -> Option<usize> {
        let Error::Unreachable { server, .. } = error else { return None };
        self.servers.iter().position(|known| *known.name == **server)
    }

    /// There is no stream to a server, or a document cannot be read: that is said once.
    fn lost(&mut self, place: usize, error: &Error) -> Option<Event> {
        let at = self.server_of(error);
        let asked = self.asked.get_mut(place)?;
        let (first, is_document) = (asked.server, asked.name.is_document());
        let at = at.unwrap_or(first);
        asked.lost = Some(at);
        let of_same = |place: usize| self.asked.get(place).is_some_and(|asked| asked.server == first);
        let holds = self.covered.has_any(of_same);
        let server = self.servers.get_mut(at).filter(|server| server.lost.is_none())?;
        let words = match error {
            Error::Unreachable { reason, .. } => reason.to_string(),
            error => error.to_string(),
        };
        let kind = Kind::of_ended_stream(&words);
        let message = match is_document {
            true => format!("{}: {words}", server.name),
            false => format!("no stream to {}: {words}", server.name),
        };
        let failure = Failure { kind, message };
        server.lost = Some(failure.clone());
        let what = if holds { What::Ambient(Some(failure)) } else { What::Error(failure) };
        Some(Event { server: Some(at), name: None, what })
    }

    /// A server answers again: it is the trouble that was told that is over, whichever of several answers.
    fn found(&mut self, place: usize) -> Option<Event> {
        let at = self.asked.get_mut(place)?.lost.take()?;
        self.servers.get_mut(at)?.lost.take()?;
        Some(Event { server: Some(at), name: None, what: What::Ambient(None) })
    }

    /// Nobody waits any longer for servers that do not want to be asked.
    pub(super) fn give_up_refused(&mut self) -> Vec<Event> {
        self.fail(|server, name| {
            let Failure { kind, message } = server.lost.as_ref().filter(|failure| failure.kind == Kind::Refused)?;
            Some(Failure { kind: *kind, message: format!("{name}: {message}") })
        })
    }

    /// Nobody waits any longer, after this time.
    pub(super) fn give_up(&mut self, after: Duration) -> Vec<Event> {
        self.fail(|server, name| {
            let message = format!("no answer for {name} within {} s", after.as_secs_f64());
            Some(match &server.lost {
                Some(lost) => Failure { kind: lost.kind, message: format!("{message}: {}", lost.message) },
                None => Failure { kind: Kind::Timeout, message },
            })
        })
    }

    /// Whether something was not answered yet: of a member that cannot be reached nobody has said anything.
    pub(super) fn is_waiting(&self) -> bool {
        let waits_for_member = |asked: &Asked| asked.lacking.values().any(|kind| *kind == Kind::Unreachable);
        self.asked.iter().any(|asked| asked.state == State::Waiting || waits_for_member(asked))
    }

    /// Whether something was shown that is from before, and its server has neither spoken of it nor failed.
    pub(super) fn is_doubtful(&self) -> bool {
        self.covered.stale().any(|(_, server)| !self.is_lost(server))
    }

    /// Nobody waits any longer for the servers' word of what is from before.
    pub(super) fn doubt(&self) -> Vec<Event> {
        let doubtful = self.covered.stale().filter(|(_, server)| !self.is_lost(*server));
        let event = |(name, server): (&ResourceName, usize)| {
            let message = format!("{name} is as it was before: its server has not spoken of it yet");
            let what = What::Ambient(Some(Failure { kind: Kind::Timeout, message }));
            Event { server: Some(server), name: Some(name.as_str().to_owned()), what }
        };
        doubtful.map(event).collect()
    }

    fn is_lost(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(|server| server.lost.is_some())
    }

    pub(super) fn has_collections(&self) -> bool {
        self.asked.iter().any(|asked| asked.name.is_collection())
    }

    /// Whether there is anything that a server is asked for.
    pub(super) fn has_any(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let lacking = |asked: &Asked| asked.lacking.values().map(|kind| State::Failed(*kind)).collect::<Vec<_>>();
        let states = || self.asked.iter().flat_map(move |asked| [asked.state].into_iter().chain(lacking(asked)));
        let unknown = |state| match state {
            State::Waiting => true,
            State::Failed(kind) => kind.is_unknown(),
            State::There => false,
        };
        if states().any(unknown) {
            return Verdict::Unknown;
        }
        let wrong = self.is_wrong || states().any(|state| state != State::There);
        if wrong { Verdict::Wrong } else { Verdict::There }
    }

    /// What there is.
    pub(crate) fn into_held(self) -> BTreeMap<ResourceName, Held> {
        self.covered.into_held()
    }

    fn fail(&mut self, why: impl Fn(&Server, &str) -> Option<Failure>) -> Vec<Event> {
        let mut events = Vec::new();
        for asked in self.asked.iter_mut().filter(|asked| asked.state == State::Waiting) {
            let at = asked.lost.unwrap_or(asked.server);
            let server = self.servers.get(at);
            let Some(failure) = server.and_then(|server| why(server, asked.name.as_str())) else { continue };
            asked.state = State::Failed(failure.kind);
            let name = Some(asked.name.as_str().to_owned());
            events.push(Event { server: Some(at), name, what: What::Error(failure) });
        }
        events
    }
}

#[cfg(test)]
mod tests;
