//! What becomes of what is listed and told: without I/O, and by a clock that is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

use super::contents::{Change, Contents, Done, Read, Staged, shown_name};

/// How long what removes much is held before it is listed again.
pub(crate) const HELD: Duration = Duration::from_secs(30);
/// It removes more than so many resources, and more than one in five; or all, of several.
const MUCH: usize = 10;
const ONE_IN: usize = 5;

/// An origin's content, and what is to be done next.
///
/// It is told in parts, each of which is all keys that begin alike, and is listed and watched by itself.
#[derive(Debug)]
pub(crate) struct Follower<R> {
    contents: Contents<R>,
    /// What is held, by part.
    held: BTreeMap<String, Candidate>,
    /// The parts of which nothing is known: what the origin lacks is not known before they are listed.
    unlisted: BTreeSet<String>,
    /// What is served was not told since it changed; at first nothing is known.
    news: bool,
    refused: u64,
}

/// A removal that waits until it is seen again.
#[derive(Debug)]
struct Candidate {
    gone: BTreeSet<(TypeUrl, ResourceName)>,
    since: Instant,
}

/// What is to be asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// What is done after that.
    Watch,
    /// All, not before this moment.
    List(Instant),
}

impl<R: Read> Follower<R> {
    /// Of an origin with these parts.
    pub(crate) fn new(contents: Contents<R>, parts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let unlisted = parts.into_iter().map(Into::into).collect();
        Self { contents, held: BTreeMap::new(), unlisted, news: false, refused: 0 }
    }

    /// All that there is in a part, at one moment.
    pub(crate) fn listed(&mut self, part: &str, values: Vec<Change>, now: Instant) -> Next {
        if let next @ Next::List(_) = self.replaced(part, part, values, now) {
            return next;
        }
        self.unlisted.remove(part);
        // That there is nothing is news, too, for who knew nothing.
        self.news = true;
        Next::Watch
    }

    /// All keys of a part with a prefix have these values from now on, and no others.
    pub(crate) fn replaced(&mut self, part: &str, prefix: &str, values: Vec<Change>, now: Instant) -> Next {
        let changes = self.contents.replacing(prefix, values);
        self.told(part, &changes, now)
    }

    /// All keys of a part with these prefixes are gone, as one change.
    pub(crate) fn removed(&mut self, part: &str, prefixes: &BTreeSet<String>, now: Instant) -> Next {
        let changes: Vec<_> = prefixes.iter().flat_map(|prefix| self.contents.replacing(prefix, Vec::new())).collect();
        self.told(part, &changes, now)
    }

    /// What was done in a part since, as one change.
    pub(crate) fn told(&mut self, part: &str, changes: &[Change], now: Instant) -> Next {
        let staged = self.contents.stage(changes);
        if let Some(until) = self.holds(part, &staged, now) {
            return Next::List(until);
        }
        let Done { changed, refused } = self.contents.commit(staged);
        self.news |= changed;
        self.refused += refused;
        Next::Watch
    }

    /// Until when this removal is held, if it is: one that removes much counts once a second listing that is so much later says the
    /// same. What is gone beside it by then, if that is not much, was removed meanwhile.
    fn holds(&mut self, part: &str, staged: &Staged, now: Instant) -> Option<Instant> {
        let gone = &staged.gone;
        let good = if gone.len() > 1 { self.contents.good(part) } else { 0 };
        // All there was, be it little, is much.
        let is_much = |gone: usize| (gone > MUCH && gone.saturating_mul(ONE_IN) > good) || (gone > 1 && gone >= good);
        if !is_much(gone.len()) {
            if self.held.remove(part).is_some() {
                tracing::info!("what was gone is there again");
            }
            return None;
        }
        if let Some(Candidate { gone: before, since }) = self.held.get(part)
            && !is_much(gone.difference(before).count())
        {
            let until = *since + HELD;
            if now < until {
                return Some(until);
            }
            tracing::warn!("{} of {good} resources are gone for {} s: they are removed", gone.len(), HELD.as_secs());
            self.held.remove(part);
            return None;
        }
        let first = gone.first().map(shown_name).unwrap_or_default();
        tracing::error!(
            "{} of {good} resources are gone at once, {first} among them: nothing changes until a list after {} s says the same",
            gone.len(),
            HELD.as_secs(),
        );
        self.held.insert(part.to_owned(), Candidate { gone: gone.clone(), since: now });
        Some(now + HELD)
    }

    /// All that is served, if it is otherwise than at the last call, and all parts were listed.
    pub(crate) fn news(&mut self) -> Option<Vec<Held>> {
        (self.unlisted.is_empty() && std::mem::take(&mut self.news)).then(|| self.contents.held())
    }

    /// How many values were refused since the last call.
    pub(crate) fn newly_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// How many values are refused, or have what another one has, and the first of them.
    pub(crate) fn refused(&self) -> (u64, Option<String>) {
        self.contents.refused()
    }

    /// How many resources are gone and served all the same.
    pub(crate) fn held_back(&self) -> usize {
        self.held.values().map(|held| held.gone.len()).sum()
    }
}
