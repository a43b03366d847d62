//! What is known of everything that was asked for: what is news, what is missing, and what the exit code is. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use xdstp_cache::Version;
use xdstp_client::Error;
use xdstp_uri::ResourceName;

use super::wanted::Name;

/// What happened, with the place of the server that it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) server: Option<usize>,
    /// What was asked for, or what came; none where it is about all that the server has.
    pub(crate) name: Option<String>,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A resource is new or changed.
    Put {
        version: Version,
        any: Bytes,
        /// It is from before, and the server did not say yet that it is so.
        stale: bool,
    },
    /// A resource is gone.
    Removed,
    /// A collection is known.
    Answered,
    /// It is not to be had.
    Error(Failure),
    /// What was printed of the server may be out of date, because of this; or it is not any more.
    Ambient(Option<Failure>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// For people, with the name of what failed.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no stream to the server.
    Unreachable,
    /// It cannot be asked for: the name is none, or not one of this type, or nobody is known to have it.
    Invalid,
    /// The server does not want to be asked.
    Refused,
    /// It does not exist.
    Absent,
    /// The server is there, and said nothing of it.
    Timeout,
}

impl Kind {
    /// Whether it was not said if there is such a thing.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::Unreachable | Self::Refused | Self::Timeout)
    }
}

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
    held: BTreeMap<ResourceName, Held>,
    is_wrong: bool,
}

/// A resource as it came last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) version: Version,
    pub(crate) any: Bytes,
    server: usize,
}

#[derive(Debug)]
struct Asked {
    name: Name,
    server: usize,
    state: State,
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
        Self { asked: Vec::new(), servers, held: BTreeMap::new(), is_wrong: false }
    }

    /// Something more is asked for, of the server at this place.
    pub(super) fn ask(&mut self, name: Name, server: usize) {
        self.asked.push(Asked { name, server, state: State::Waiting });
    }

    /// Something cannot be asked for.
    pub(super) fn refuse(&mut self, name: &str, reason: &str) -> Event {
        self.is_wrong = true;
        let failure = Failure { kind: Kind::Invalid, message: format!("{name}: {reason}") };
        Event { server: None, name: Some(name.to_owned()), what: What::Error(failure) }
    }

    /// A watch saw something, when this server counted for it: the news in it, if there are any. A resource that several names
    /// cover comes for each of them.
    pub(super) fn seen(&mut self, place: usize, by: Option<usize>, event: xdstp_client::Event) -> Option<Event> {
        use xdstp_client::Event::{Ambient, Answered, Failed, Put, Removed};
        let asked = self.asked.get_mut(place)?;
        let server = by.unwrap_or(asked.server);
        let (name, what) = match event {
            Put { name, version, resource: any } => {
                if !asked.name.is_collection() {
                    asked.state = State::There;
                }
                let held = Held { version: version.clone(), any: any.clone(), server };
                let before = self.held.insert(name.clone(), held.clone());
                let is_news = before.is_none_or(|before| before != held);
                (name.as_str().to_owned(), is_news.then_some(What::Put { version, any, stale: false })?)
            }
            Removed { name } => (name.as_str().to_owned(), self.held.remove(&name).map(|_| What::Removed)?),
            Answered => {
                asked.state = State::There;
                (asked.name.as_str().to_owned(), What::Answered)
            }
            Failed { name: None, error } if !matches!(error, Error::Unreachable { .. }) => {
                asked.state = State::Failed(Kind::Invalid);
                let name = asked.name.as_str().to_owned();
                let failure = Failure { kind: Kind::Invalid, message: format!("{name}: {error}") };
                return Some(Event { server: None, name: Some(name), what: What::Error(failure) });
            }
            Failed { name: None, error } | Ambient { name: None, error: Some(error) } => {
                let (place, is_document) = (asked.server, asked.name.is_document());
                return self.lost(place, is_document, &error);
            }
            Ambient { name: None, error: None } => {
                self.servers.get_mut(asked.server)?.lost.take()?;
                return Some(Event { server: Some(server), name: None, what: What::Ambient(None) });
            }
            // Whoever watches goes on with it: here it is shown what the server has.
            Failed { name: Some(name), error } | Ambient { name: Some(name), error: Some(error) } => {
                (name.as_str().to_owned(), self.failed(place, &name, &error)?)
            }
            _ => return None,
        };
        Some(Event { server: Some(server), name: Some(name), what })
    }

    /// Something is not to be had, or not any more.
    fn failed(&mut self, place: usize, name: &ResourceName, error: &Error) -> Option<What> {
        let asked = self.asked.get_mut(place)?;
        let (kind, message) = match error {
            error if error.is_absence() => (Kind::Absent, format!("there is no {}", asked.name.as_str())),
            Error::Timeout { .. } => (Kind::Timeout, format!("{name}: {error}")),
            Error::Invalid { .. }
            | Error::BadName { .. }
            | Error::Unresolved { .. }
            | Error::UnknownAuthority { .. } => (Kind::Invalid, format!("{name}: {error}")),
            Error::Unreachable { .. } => (Kind::Unreachable, format!("{name}: {error}")),
            _ => (Kind::Refused, format!("{name}: {error}")),
        };
        let failure = Failure { kind, message };
        if kind != Kind::Absent && self.held.contains_key(name) {
            return Some(What::Ambient(Some(failure)));
        }
        // A list is one resource itself.
        let is_name = !asked.name.is_collection() || name == asked.name.name();
        let is_first = is_name && std::mem::replace(&mut asked.state, State::Failed(kind)) == State::Waiting;
        match self.held.remove(name) {
            Some(_) => Some(What::Removed),
            None => (is_first || !is_name).then_some(What::Error(failure)),
        }
    }

    /// There is no stream to a server, or a document cannot be read: that is said once.
    fn lost(&mut self, place: usize, is_document: bool, error: &Error) -> Option<Event> {
        let holds = self.held.values().any(|held| held.server == place);
        let server = self.servers.get_mut(place).filter(|server| server.lost.is_none())?;
        let words = match error {
            Error::Unreachable { reason, .. } => reason.to_string(),
            error => error.to_string(),
        };
        let kind = if is_refusal(&words) { Kind::Refused } else { Kind::Unreachable };
        let message = match is_document {
            true => format!("{}: {words}", server.name),
            false => format!("no stream to {}: {words}", server.name),
        };
        let failure = Failure { kind, message };
        server.lost = Some(failure.clone());
        let what = if holds { What::Ambient(Some(failure)) } else { What::Error(failure) };
        Some(Event { server: Some(place), name: None, what })
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

    /// Whether something was not answered yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.asked.iter().any(|asked| asked.state == State::Waiting)
    }

    pub(super) fn has_collections(&self) -> bool {
        self.asked.iter().any(|asked| asked.name.is_collection())
    }

    /// Whether there is anything that a server is asked for.
    pub(super) fn has_any(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let states = || self.asked.iter().map(|asked| asked.state);
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
        self.held
    }

    fn fail(&mut self, why: impl Fn(&Server, &str) -> Option<Failure>) -> Vec<Event> {
        let mut events = Vec::new();
        for asked in self.asked.iter_mut().filter(|asked| asked.state == State::Waiting) {
            let server = self.servers.get(asked.server);
            let Some(failure) = server.and_then(|server| why(server, asked.name.as_str())) else { continue };
            asked.state = State::Failed(failure.kind);
            let name = Some(asked.name.as_str().to_owned());
            events.push(Event { server: Some(asked.server), name, what: What::Error(failure) });
        }
        events
    }
}

/// Whether a server that ended a stream with these words would say the same to the next.
fn is_refusal(error: &str) -> bool {
    // The client has no more than words; they begin with the status, or have it in brackets.
    const REFUSALS: [&str; 5] =
        ["FailedPrecondition: ", "InvalidArgument: ", "PermissionDenied: ", "Unauthenticated: ", "Unimplemented: "];
    REFUSALS.iter().any(|status| error.starts_with(status) || error.contains(&format!("({status}")))
}

#[cfg(test)]
mod tests;
