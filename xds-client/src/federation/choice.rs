//! Which of several servers a scope is fed by (gRFC A71).
//!
//! An origin may be several servers in order of priority, all of which have the same resources. The first is asked, and the
//! next one only once all before it fail *and* something is wanted that nothing is known of: who has everything loses
//! nothing by waiting. A higher one that answers takes over, and those below it are left. That nothing comes of a name in
//! time is no failure of a server, and so there is no way to say it here.
//!
//! How scopes will stand on it. What is chosen for is what shares one cache, so each [scope](crate::federation::scope) of an
//! origin of several servers has a [`Choice`] under its own lock, beside its demand; the indices are of the origin's
//! servers.
//!
//! - Such an origin is one `Origin` over several `Server`s, and its `Supply` holds a seat at the stream of each server that is
//!   [asked](Choice::is_asked): [`Turn::Opens`] takes one, [`Turn::Closes`] drops them, as seats are taken and dropped today
//!   where a scope gets and loses its supply. The streams stay shared by scopes and reach several of them at once; a seat that
//!   is taken at a stream which fails already is told so at once, and the choice goes on to the next.
//! - A feed says [`failed`](Choice::failed) to the scopes of its seats for a stream that ended without a response, and
//!   [`answered`](Choice::answered) before it stores. A scope drops what comes from who is not asked
//!   any more, and a stream that breaks after it was answered is no failure.
//! - A scope says [`unknown`](Choice::unknown) as its demand says it: whenever the last name that nothing is known of is
//!   answered or left, and whenever there is a first one.
//! - The cache stays as it is over all of it. Each seat is told of all that is wanted; the versions that a request names are
//!   those which that server gave, so a seat begins with none, and `begin_stream` asks of each as if the scope had nothing.
//!   Who speaks for a node group speaks for it to every server.
//! - What [`trouble`](Choice::trouble) says is what subscribers are told: those who have a resource go on with it, and the
//!   relay's `unreachable_since` looks there and not at one stream.

use std::ops::Range;

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
enum Standing {
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
        if self.unknown && !self.asked.is_empty() && self.all_fail() { self.open() } else { Turn::Stays }
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
