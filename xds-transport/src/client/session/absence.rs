//! Names that were asked for, and that no answer brings: rule 74.

use std::time::{Duration, Instant};

use xdstp_cache::Interest;

use crate::client::session::wanted::{Wanted, Wish};
use crate::deadlines::Deadlines;

/// Most servers have no way to say that a name does not exist, or do not use it: this much silence says it.
const ABSENT_AFTER: Duration = Duration::from_secs(15);

/// What it says of a name that an origin is silent about it for 15 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Silence {
    /// That it does not exist: for who watches it and has to go on (rule 74). The time runs from the request.
    #[default]
    IsAbsence,
    /// The same after this time (gRFC A88 has 30 seconds for servers of which that is no absence).
    IsAbsenceAfter(Duration),
    /// Nothing, because others would be told so (rule 150). Over SotW a response that came after the request and lacks the
    /// name says something: the time runs from there, or from the last byte of [whatever came](crate::client::Stream::received).
    IsNoAnswer,
}

/// What waits for an answer, and how long.
#[derive(Debug)]
pub(crate) struct Absences {
    silence: Silence,
    /// Asked for, and no response came since.
    unheard: Vec<Interest>,
    due: Deadlines<Interest>,
    /// When bytes of any type came last.
    received_at: Option<Instant>,
}

impl Absences {
    pub(crate) fn new(silence: Silence) -> Self {
        Self { silence, unheard: Vec::new(), due: Deadlines::default(), received_at: None }
    }

    pub(crate) fn clear(&mut self) {
        self.unheard.clear();
        self.due.clear();
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// A request asked for it.
    pub(crate) fn asked(&mut self, now: Instant, interest: Interest, wanted: &mut Wanted) {
        match self.silence {
            Silence::IsAbsence | Silence::IsAbsenceAfter(_) => self.wait(now, interest, wanted),
            Silence::IsNoAnswer if !interest.is_collection() => self.unheard.push(interest),
            Silence::IsNoAnswer => {}
        }
    }

    /// A response of the type came: what it lacks may not be there.
    pub(crate) fn heard(&mut self, now: Instant, wanted: &mut Wanted) {
        for interest in std::mem::take(&mut self.unheard) {
            if wanted.wish(&interest).is_some_and(Wish::is_open) {
                self.wait(now, interest, wanted);
            }
        }
    }

    pub(crate) fn received(&mut self, at: Instant) {
        self.received_at = Some(at);
    }

    /// Something that waited long enough. A deadline is not taken back when an answer comes, or the name goes: it is found
    /// void here.
    pub(crate) fn pop(&mut self, now: Instant, wanted: &Wanted) -> Option<Interest> {
        let patience = self.patience();
        loop {
            let interest = self.due.pop(now)?;
            let waits_since = wanted.wish(&interest).filter(|wish| wish.is_open()).and_then(|wish| wish.waits_since);
            if waits_since.and_then(|since| since.checked_add(patience)).is_none_or(|due| due > now) {
                continue;
            }
            let received_at = self.received_at.filter(|_| self.silence == Silence::IsNoAnswer);
            match received_at.and_then(|at| at.checked_add(patience)).filter(|due| *due > now) {
                Some(due) => self.due.insert(due, interest),
                None => return Some(interest),
            }
        }
    }

    fn wait(&mut self, now: Instant, interest: Interest, wanted: &mut Wanted) {
        wanted.waits_since(&interest, now);
        if let Some(due) = now.checked_add(self.patience()) {
            self.due.insert(due, interest);
        }
    }

    fn patience(&self) -> Duration {
        match self.silence {
            Silence::IsAbsenceAfter(patience) => patience,
            Silence::IsAbsence | Silence::IsNoAnswer => ABSENT_AFTER,
        }
    }
}
