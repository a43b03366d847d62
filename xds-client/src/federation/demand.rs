//! What a scope wants of its origin: the union of its subscribers' interest, and what lingers (rule 141).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xds_transport::client::{Command, name_size};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::request_room::RequestRoom;

/// A name or collection of a type.
pub(crate) type Wish = (TypeUrl, Interest);

pub(crate) struct Demand {
    linger: Duration,
    /// What is subscribed upstream, or will be when the asks are taken.
    wanted: BTreeSet<Wish>,
    /// What the origin was not told yet of what it knows of.
    asks: BTreeMap<Wish, Ask>,
    /// What it was never told of.
    new: BTreeSet<Wish>,
    /// That, as far as there was no room for it when it was to be told last.
    short: BTreeSet<Wish>,
    /// How much that is, in bytes.
    lacking: BTreeMap<TypeUrl, usize>,
    /// There was more to tell than was told at once.
    telling: bool,
    /// How much room was given back before the telling began.
    returns: u64,
    /// What nobody wants any more since the last look at the clock.
    left: BTreeSet<Wish>,
    /// What nobody wants any more, and until when it stays subscribed.
    lingering: BTreeMap<Wish, Instant>,
    /// The same by time, but for those that stay because the origin is away.
    due: BTreeSet<(Instant, Wish)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Unsubscribe,
    /// It was dropped, and wanted again before the origin was told; or its answer must be heard again.
    Again,
}

impl Demand {
    pub(crate) fn new(linger: Duration) -> Self {
        Self {
            linger,
            wanted: BTreeSet::new(),
            asks: BTreeMap::new(),
            new: BTreeSet::new(),
            short: BTreeSet::new(),
            lacking: BTreeMap::new(),
            telling: false,
            returns: 0,
            left: BTreeSet::new(),
            lingering: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Somebody wants it. Whether the origin must be told: not when it lingers, unless the answer to a name is
    /// not `known` any more: nothing is remembered of a name that nobody wants and that does not exist.
    pub(crate) fn want(&mut self, wish: Wish, known: bool) -> bool {
        let lingered = self.left.remove(&wish) | self.forget_time(&wish);
        let is_new = self.wanted.insert(wish.clone());
        if is_new && !self.asks.contains_key(&wish) {
            self.new.insert(wish);
            return true;
        }
        let told = !self.asks.contains_key(&wish) && !self.is_untold(&wish);
        let again = is_new || lingered && !known && !wish.1.is_collection() && told;
        if again {
            self.asks.insert(wish, Ask::Again);
        }
        again
    }

    /// Whether the origin was never told of what is wanted.
    pub(crate) fn is_untold(&self, wish: &Wish) -> bool {
        self.new.contains(wish) || self.short.contains(wish)
    }

    /// Nobody wants it any more.
    pub(crate) fn leave(&mut self, wish: Wish) {
        self.left.insert(wish);
    }

    /// Gives up what lingered long enough, unless it `stays`, and notes what was left: of either not more than `most` at
    /// once. What is given up is returned, and whether there may be more to do.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        most: usize,
        connected: bool,
        stays: impl Fn(&Wish) -> bool,
    ) -> (Vec<Wish>, bool) {
        self.note_left(now, most);
        let mut over = Vec::new();
        if connected && self.due.len() < self.lingering.len() {
            // The origin is back.
            let overdue = self.lingering.iter().filter(|(_, until)| **until <= now);
            over.extend(overdue.map(|(wish, _)| wish.clone()).take(most));
        }
        while over.len() < most
            && let Some((_, wish)) = self.due.first().filter(|(until, _)| *until <= now).cloned()
        {
            self.due.pop_first();
            over.push(wish);
        }
        let more = over.len() >= most || !self.left.is_empty();
        over.retain(|wish| {
            let gives_up = connected || !stays(wish);
            gives_up && self.give_up(wish)
        });
        (over, more)
    }

    /// Gives up what lingers and does not `stay`, however long it has: what that is, is returned.
    pub(crate) fn forgo(&mut self, now: Instant, stays: impl Fn(&Wish) -> bool) -> Vec<Wish> {
        self.note_left(now, usize::MAX);
        let mut over: Vec<_> = self.lingering.keys().filter(|wish| !stays(wish)).cloned().collect();
        over.retain(|wish| self.give_up(wish));
        over
    }

    fn note_left(&mut self, now: Instant, most: usize) {
        for _ in 0..most {
            let Some(wish) = self.left.pop_first() else { return };
            self.lingering.insert(wish.clone(), now + self.linger);
            self.due.insert((now + self.linger, wish));
        }
    }

    /// Whether it was lingering.
    fn give_up(&mut self, wish: &Wish) -> bool {
        let lingered = self.forget_time(wish);
        if lingered {
            self.wanted.remove(wish);
            // What the origin was never told of, it need not be told to forget.
            if !self.new.remove(wish) && !self.short.remove(wish) {
                self.asks.insert(wish.clone(), Ask::Unsubscribe);
            }
        }
        lingered
    }

    fn forget_time(&mut self, wish: &Wish) -> bool {
        let until = self.lingering.remove(wish);
        if let Some(until) = until {
            self.due.remove(&(until, wish.clone()));
        }
        until.is_some()
    }

    /// What the origin must be told, once, and its requests have room for: `most` at a time. Whether there is more.
    pub(crate) fn take_asks(&mut self, room: Option<&RequestRoom>, most: usize, tell: &mut dyn FnMut(Command)) -> bool {
        let returns = room.map_or(0, RequestRoom::returns);
        if !self.telling {
            self.lacking.clear();
            self.new.append(&mut self.short);
            self.returns = returns;
        }
        for taken in 0.. {
            self.telling = taken == most && !(self.asks.is_empty() && self.new.is_empty());
            if taken == most {
                break;
            }
            // What is left makes room.
            if let Some(((type_url, interest), ask)) = self.asks.pop_first() {
                tell(Command::Unsubscribe(type_url.clone(), interest.clone()));
                if ask == Ask::Again {
                    tell(Command::Subscribe(type_url, interest));
                } else if let Some(room) = room {
                    room.give_back(&type_url, &interest);
                }
            } else if let Some((type_url, interest)) = self.new.pop_first() {
                if room.is_none_or(|room| room.take(&type_url, &interest)) {
                    tell(Command::Subscribe(type_url, interest));
                } else {
                    *self.lacking.entry(type_url.clone()).or_default() += name_size(interest.as_str());
                    self.short.insert((type_url, interest));
                }
            } else {
                break;
            }
        }
        // Meanwhile others may have made room for what had none.
        self.telling || !self.short.is_empty() && returns != self.returns
    }

    /// Whether only a part of what there is was told.
    pub(crate) fn is_telling(&self) -> bool {
        self.telling
    }

    /// How many bytes of names there was no room for, by type.
    pub(crate) fn lacking(&self) -> &BTreeMap<TypeUrl, usize> {
        &self.lacking
    }

    /// When the next one has lingered long enough.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    /// What is subscribed upstream.
    pub(crate) fn wanted(&self) -> &BTreeSet<Wish> {
        &self.wanted
    }

    /// Whether just this is subscribed upstream.
    pub(crate) fn wants(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        self.wanted.contains(&(type_url.clone(), interest.clone()))
    }

    /// Whether anything that covers a name is subscribed upstream.
    pub(crate) fn wants_by(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        covering(name).any(|interest| self.wants(type_url, &interest))
    }

    /// Whether the origin was asked for anything that covers a name, and was not told otherwise: it may answer still.
    pub(crate) fn asks_for(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        covering(name).any(|interest| self.may_answer(&(type_url.clone(), interest)))
    }

    /// The same of just this name.
    pub(crate) fn asks_for_itself(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        self.may_answer(&(type_url.clone(), Interest::Name(name.clone())))
    }

    fn may_answer(&self, wish: &Wish) -> bool {
        self.wanted.contains(wish) || self.asks.contains_key(wish)
    }

    /// Whether anything of a type is subscribed upstream.
    pub(crate) fn wants_type(&self, type_url: &TypeUrl) -> bool {
        // The wildcard is the first interest in their order.
        let first = (type_url.clone(), Interest::Wildcard);
        self.wanted.range(first..).next().is_some_and(|(wanted, _)| wanted == type_url)
    }

    /// Whether anything of a type was given up, and the origin was not told yet: it may answer still.
    pub(crate) fn gives_up(&self, type_url: &TypeUrl) -> bool {
        let first = (type_url.clone(), Interest::Wildcard);
        let asks = self.asks.range(first..).take_while(|((of, _), _)| of == type_url);
        asks.into_iter().any(|(_, ask)| *ask == Ask::Unsubscribe)
    }

    /// Whether nothing is subscribed upstream and the origin knows it.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.asks.is_empty() && self.new.is_empty() && self.short.is_empty()
    }
}

/// What may ask for a name: it itself, its glob, the wildcard.
fn covering(name: &ResourceName) -> impl Iterator<Item = Interest> {
    let names = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
    names.chain([Interest::Wildcard])
}

#[cfg(test)]
mod tests;
