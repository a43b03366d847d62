//! Which of several servers a scope is fed by (gRFC A71).
//!
//! An origin may be several servers in order of priority, all of which have the same resources. The first is asked, and the
//! next one only once all before it fail *and* something is wanted that nothing is known of: who has everything loses
//! nothing by waiting. A higher one that answers takes over, and those below it are left. That nothing comes of a name in
//! time is no failure of a server, and so there is no way to say it here.
//!
//! What is chosen for is what shares one cache: each [scope](crate::federation::scope) of an origin of several servers has a
//! [`Choice`] under its own lock, and does what it says: `scope/choosing.rs`. The indices are of the origin's servers.

use std::ops::Range;

#[cfg(test)]
use crate::federation::faults::{Fault, planted};

/// A scope's servers in order of priority, by index from 0, and which of them it is fed by.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    servers: usize,
    /// Those that are asked, the highest first, and how each of them is doing.
    asked: Vec<Standing>,
    /// The one that answered last.
    counts: Option<usize>,
    /// Something is wanted that nothing is known of.
    unknown: bool,
}

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not answered, and did not fail.
    Silent,
    Answers,
    /// It did not answer when it was last asked, and why. It is tried on.
    Fails(String),
}

/// What is to be done because something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "streams are opened and closed by it"]
pub(crate) enum Turn {
    /// Nothing.
    Stays,
    /// One more server is asked, for all that is wanted.
    Opens(usize),
    /// These are not asked any more, and what they go on to say does not count.
    Closes(Range<usize>),
}

impl Choice {
    /// Among so many servers; nothing is wanted yet, and none is asked.
    pub(crate) fn new(servers: usize) -> Self {
        Self { servers, asked: Vec::new(), counts: None, unknown: false }
    }

    /// Whether a stream to this server is wanted, and what it says counts.
    pub(crate) fn is_asked(&self, server: usize) -> bool {
        server < self.asked.len()
    }

    /// The server that what is known was said by last.
    pub(crate) fn counts(&self) -> Option<usize> {
        self.counts
    }

    /// Something is wanted: the highest is asked.
    pub(crate) fn wanted(&mut self) -> Turn {
        if self.asked.is_empty() { self.open() } else { Turn::Stays }
    }

    /// Nothing is wanted any more, and what was known may go: it begins anew.
    pub(crate) fn unwanted(&mut self) -> Turn {
        (self.counts, self.unknown) = (None, false);
        self.close_from(0)
    }

    /// Whether something is wanted that nothing is known of. Where all that are asked fail already, that alone has the next one
    /// asked.
    pub(crate) fn unknown(&mut self, unknown: bool) -> Turn {
        self.unknown = unknown;
        self.fall_back()
    }

    /// A stream to a server ended before any response, or there was none.
    pub(crate) fn failed(&mut self, server: usize, reason: impl Into<String>) -> Turn {
        let Some(standing) = self.asked.get_mut(server) else { return Turn::Stays };
        *standing = Standing::Fails(reason.into());
        self.fall_back()
    }

    /// A server answered: those below it are left.
    pub(crate) fn answered(&mut self, server: usize) -> Turn {
        let Some(standing) = self.asked.get_mut(server) else { return Turn::Stays };
        *standing = Standing::Answers;
        self.counts = Some(server);
        self.close_from(server + 1)
    }

    /// There is a stream to a server: it may answer.
    pub(crate) fn connected(&mut self, server: usize) {
        if let Some(standing @ Standing::Fails(_)) = self.asked.get_mut(server) {
            *standing = Standing::Silent;
        }
    }

    /// Those that are asked, the highest first.
    pub(crate) fn asked(&self) -> &[Standing] {
        &self.asked
    }

    /// Whether the next one would be asked if something that is wanted were unknown.
    pub(crate) fn may_fall_back(&self) -> bool {
        #[cfg(test)]
        if planted(Fault::ForgetOrder) {
            return !self.asked.is_empty() && self.asked.len() < self.servers;
        }
        !self.asked.is_empty() && self.asked.len() < self.servers && self.all_fail()
    }

    /// Whether any that is asked answers.
    pub(crate) fn any_answers(&self) -> bool {
        self.asked.contains(&Standing::Answers)
    }

    /// Why nothing more comes at present: all that are asked fail, and there is no other that would be. The reason is that of
    /// the last of them.
    pub(crate) fn trouble(&self) -> Option<&str> {
        match self.asked.last() {
            Some(Standing::Fails(reason)) if self.all_fail() => Some(reason),
            _ => None,
        }
    }

    fn all_fail(&self) -> bool {
        self.asked.iter().all(|standing| matches!(standing, Standing::Fails(_)))
    }

    fn fall_back(&mut self) -> Turn {
        if self.unknown && self.may_fall_back() { self.open() } else { Turn::Stays }
    }

    fn open(&mut self) -> Turn {
        let server = self.asked.len();
        if server == self.servers {
            return Turn::Stays;
        }
        self.asked.push(Standing::Silent);
        Turn::Opens(server)
    }

    fn close_from(&mut self, first: usize) -> Turn {
        let closed = first..self.asked.len();
        self.asked.truncate(first);
        if closed.is_empty() { Turn::Stays } else { Turn::Closes(closed) }
    }
}

#[cfg(test)]
mod tests;
