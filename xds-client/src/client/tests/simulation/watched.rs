//! A watch of a program, and what it was told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::wire::Read;
use super::super::{Client, Cluster, RDS};
use super::books::{Books, Why};
use super::history::{Target, authority_of};
use super::server::Key;
use crate::{Content, Error, Event, Watch};

/// What a watch yields, of whatever type.
pub(super) type Heard = Event<String>;

pub(super) struct Watched {
    pub(super) target: Target,
    next: Box<dyn FnMut() -> Option<Heard>>,
    /// By the names of resources.
    pub(super) shown: BTreeMap<String, Shown>,
    pub(super) lost: Lost,
    /// It was told that nobody may be asked.
    pub(super) refused: bool,
}

/// What a program has of one name, as it was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) held: Option<String>,
    pub(super) error: Option<Why>,
}

/// Whether it was told that no server can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lost {
    #[default]
    No,
    Yes,
    /// Something else was told since, which may stand for its end.
    Perhaps,
}

/// What the world is like when a watch is looked at.
pub(super) struct At {
    pub(super) now: Instant,
    pub(super) patience: Duration,
    pub(super) waits: bool,
    /// Nothing is left to be done before time passes.
    pub(super) settled: bool,
}

impl Watched {
    pub(super) fn open(client: &Client, target: Target) -> Self {
        let (type_url, name) = target.asked();
        let next = match type_url {
            RDS => events(client.watch_as::<Read<1>>(&name), |of| of.text().to_owned()),
            _ => events(client.watch_as::<Cluster>(&name), |of| of.0.clone()),
        };
        Self { target, next, shown: BTreeMap::new(), lost: Lost::No, refused: false }
    }

    /// All that is news is heard, and is what it may be.
    pub(super) fn look(&mut self, books: &mut Books, at: &At) {
        while let Some(event) = (self.next)() {
            books.log.push(format!("{}: {event:?}", self.target.key().1));
            self.hear(event, books, at);
        }
        self.is_as_it_is(books, at);
    }

    fn hear(&mut self, event: Heard, books: &mut Books, at: &At) {
        let key = self.target.key();
        match event {
            Event::Put { name, resource, .. } => {
                self.may_be_put(name.as_str(), &resource, books);
                self.shown.insert(name.to_string(), Shown { held: Some(resource), error: None });
            }
            Event::Removed { name } => {
                self.may_be_removed(name.as_str(), books);
                self.shown.remove(name.as_str());
            }
            Event::Failed { name: None, error: Error::Unreachable { .. } } => {
                self.shown.values_mut().for_each(|shown| shown.held = None);
                self.loses(books, at);
            }
            Event::Ambient { name: None, error: Some(Error::Unreachable { .. }) } => self.loses(books, at),
            Event::Ambient { name: None, error: None } => self.lost = Lost::No,
            Event::Failed { name, error } => {
                let name = name.map_or(key.1.clone(), |name| name.to_string());
                let why = self.why(&name, &error, books, at);
                if name == key.1 {
                    self.shown.clear();
                }
                self.shown.insert(name, Shown { held: None, error: why });
            }
            Event::Ambient { name: Some(name), error: Some(error) } => {
                let why = self.why(name.as_str(), &error, books, at);
                self.shown.entry(name.to_string()).or_default().error = why;
            }
            Event::Ambient { name: Some(name), error: None } => {
                self.shown.entry(name.to_string()).or_default().error = None;
            }
            Event::Answered if !matches!(self.target, Target::One(_) | Target::Or(..)) => {}
            other => books.fault(format!("{}: {other:?}", key.1)),
        }
    }

    fn loses(&mut self, books: &mut Books, at: &At) {
        self.lost = Lost::Yes;
        let of = authority_of(&self.target.key().1);
        let others = books.authorities[of].asked < books.lists[of].len();
        let wrong = match books.lists[of].len() {
            0 | 1 => books.seats(of).any(|book| book.answers),
            _ => !books.all_fail(of) || others && books.lacks(of, at.now, at.patience),
        };
        if wrong && !matches!(self.target, Target::Or(..)) {
            books.fault(format!("authority {of}: no server can be reached, it is told"));
        }
    }

    fn why(&mut self, name: &str, error: &Error, books: &mut Books, at: &At) -> Option<Why> {
        if self.lost == Lost::Yes {
            self.lost = Lost::Perhaps;
        }
        Some(match error {
            Error::Absent => Why::Absent,
            Error::Invalid { .. } => Why::Invalid,
            Error::Refused { code, .. } => Why::Refused(*code),
            Error::Unreachable { .. } if !self.is_plain() => Why::Unreachable,
            Error::UnknownAuthority { .. } if !self.is_plain() => {
                self.refused = true;
                Why::Absent
            }
            Error::Timeout { is_absence, .. } => {
                if *is_absence == at.waits {
                    books.fault(format!("{name}: {error:?}"));
                }
                if self.is_plain() {
                    times_out(&self.target.key(), books, at);
                }
                Why::Timeout
            }
            other => {
                books.fault(format!("{name}: {other:?}"));
                return None;
            }
        })
    }

    /// It is one name, and leads to no other.
    pub(super) fn is_plain(&self) -> bool {
        matches!(&self.target, Target::One(_)) && !super::history::may_redirect(&self.target.key().1)
    }
}

/// A silence is one of a name that nothing was said of for so long.
fn times_out(key: &Key, books: &mut Books, at: &At) {
    let known = books.entries.get(key).cloned().unwrap_or_default();
    match (known.held, known.error) {
        (None, None) if books.since(key).is_some_and(|since| at.now >= since + at.patience) => {
            books.entries.entry(key.clone()).or_default().error = Some(Why::Timeout);
        }
        (None, Some(Why::Timeout)) => {}
        known => books.fault(format!("{}: a silence, where {known:?} is known", key.1)),
    }
}

/// All that a watch yields, with texts in place of resources.
pub(super) fn events<R: Content>(
    mut watch: Watch<R>,
    text: impl Fn(&R::Value) -> String + 'static,
) -> Box<dyn FnMut() -> Option<Heard>> {
    Box::new(move || {
        Some(match watch.try_next()? {
            Event::Put { name, version, resource } => Event::Put { name, version, resource: text(&resource) },
            Event::Removed { name } => Event::Removed { name },
            Event::Failed { name, error } => Event::Failed { name, error },
            Event::Ambient { name, error } => Event::Ambient { name, error },
            Event::Answered => Event::Answered,
        })
    })
}
