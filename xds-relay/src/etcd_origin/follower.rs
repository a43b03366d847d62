//! What becomes of what is listed and told: without I/O, and by a clock that is an argument.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use xdstp_client::federation::Held;
use xdstp_client::state::{Event, Listing, Op, Revision};

use super::contents::{Contents, Done};

/// How long what removes much is held before it is listed again.
pub(super) const HELD: Duration = Duration::from_secs(30);
/// It removes more than so many keys, and more than one in five; or all, of several.
const MUCH: usize = 10;
const ONE_IN: usize = 5;

/// An origin's content, and what is to be done next.
#[derive(Debug)]
pub(super) struct Follower {
    contents: Contents,
    held: Option<Candidate>,
    /// What is served was not told since it changed; at first nothing is known.
    news: bool,
    refused: u64,
}

/// A removal that waits until it is seen again.
#[derive(Debug)]
struct Candidate {
    gone: BTreeSet<String>,
    since: Instant,
}

/// What is to be asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// What is done after this revision.
    Watch(Revision),
    /// All, not before this moment.
    List(Instant),
}

impl Follower {
    pub(super) fn new(contents: Contents) -> Self {
        Self { contents, held: None, news: false, refused: 0 }
    }

    /// All that there is, at one revision.
    pub(super) fn listed(&mut self, listing: &Listing, now: Instant) -> Next {
        let there: BTreeSet<&str> = listing.entries.iter().map(|entry| entry.key.as_str()).collect();
        let gone = self.contents.missing(&there);
        if let Some(until) = self.holds(gone, now) {
            return Next::List(until);
        }
        let deleted = self.contents.keys().filter(|key| !there.contains(key)).map(Op::delete).collect::<Vec<_>>();
        let put = listing.entries.iter().map(|entry| Op::Put(entry.key.clone(), entry.value.clone()));
        let ops: Vec<_> = deleted.into_iter().chain(put).collect();
        let done = self.contents.apply(&ops);
        self.note(&done);
        // That there is nothing is news, too, for who knew nothing.
        self.news = true;
        Next::Watch(listing.revision)
    }

    /// What was done since, whole revisions: each is one change. `None`: what is done next is told next.
    pub(super) fn told(&mut self, events: &[Event], now: Instant) -> Option<Next> {
        for events in events.chunk_by(|one, other| one.revision == other.revision) {
            let ops: Vec<_> = events.iter().map(|event| event.op.clone()).collect();
            if let Some(until) = self.holds(self.contents.removed_by(&ops), now) {
                return Some(Next::List(until));
            }
            let done = self.contents.apply(&ops);
            self.note(&done);
        }
        None
    }

    fn note(&mut self, Done { changed, refused }: &Done) {
        self.news |= changed;
        self.refused += refused;
    }

    /// Until when this removal is held, if it is: one that removes much counts once a second listing that is so much later says the
    /// same. What is gone beside it by then, if that is not much, was removed meanwhile.
    fn holds(&mut self, gone: BTreeSet<String>, now: Instant) -> Option<Instant> {
        let good = if gone.len() > 1 { self.contents.good() } else { 0 };
        // All there was, be it little, is much.
        let is_much = |gone: usize| (gone > MUCH && gone.saturating_mul(ONE_IN) > good) || (gone > 1 && gone >= good);
        if !is_much(gone.len()) {
            if self.held.take().is_some() {
                tracing::info!("what was gone is there again");
            }
            return None;
        }
        if let Some(Candidate { gone: before, since }) = &self.held
            && !is_much(gone.difference(before).count())
        {
            let until = *since + HELD;
            if now < until {
                return Some(until);
            }
            tracing::warn!("{} of {good} keys are gone for {} s: they are removed", gone.len(), HELD.as_secs());
            self.held = None;
            return None;
        }
        let first = gone.first().map(|key| key.escape_debug().to_string()).unwrap_or_default();
        tracing::error!(
            "{} of {good} keys are gone at once, {first} among them: nothing changes until a list after {} s says the same",
            gone.len(),
            HELD.as_secs(),
        );
        self.held = Some(Candidate { gone, since: now });
        Some(now + HELD)
    }

    /// All that is served, if it is otherwise than at the last call.
    pub(super) fn news(&mut self) -> Option<Vec<Held>> {
        std::mem::take(&mut self.news).then(|| self.contents.held())
    }

    /// How many values were refused since the last call.
    pub(super) fn newly_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// How many keys have a value that is refused, and the first of them.
    pub(super) fn refused(&self) -> (u64, Option<String>) {
        self.contents.refused()
    }

    /// How many keys are gone and served all the same.
    pub(super) fn held_back(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.gone.len())
    }
}
