//! What a scope wants of its origin: the union of its subscribers' interest, and what lingers (rule 141).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xds_transport::client::{Command, name_size};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::relay_core::request_room::RequestRoom;

/// A name or collection of a type.
pub(crate) type Wish = (TypeUrl, Interest);

pub(crate) struct Demand {
    linger: Duration,
    /// What is subscribed upstream, or will be when the asks are taken.
    wanted: BTreeSet<Wish>,
    /// What the origin was not told yet.
    asks: BTreeMap<Wish, Ask>,
    /// How much of that there was no room for, in bytes.
    lacking: BTreeMap<TypeUrl, usize>,
    /// What nobody wants any more since the last look at the clock.
    left: BTreeSet<Wish>,
    /// What nobody wants any more, and until when it stays subscribed.
    lingering: BTreeMap<Wish, Instant>,
    /// The same by time, but for those that stay because the origin is away.
    due: BTreeSet<(Instant, Wish)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Subscribe,
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
            lacking: BTreeMap::new(),
            left: BTreeSet::new(),
            lingering: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Somebody wants it. Whether the origin must be told: not when it lingers, unless the answer to a name is
    /// not `known` any more: nothing is remembered of a name that nobody wants and that does not exist.
    pub(crate) fn want(&mut self, wish: Wish, known: bool) -> bool {
        let lingered = self.left.remove(&wish) | self.forget_time(&wish);
        let ask = match (self.wanted.insert(wish.clone()), self.asks.get(&wish)) {
            (true, None) => Ask::Subscribe,
            (false, None) if lingered && !known && !wish.1.is_collection() => Ask::Again,
            (true, Some(_)) => Ask::Again,
            (false, _) => return false,
        };
        self.asks.insert(wish, ask);
        true
    }

    /// Nobody wants it any more.
    pub(crate) fn leave(&mut self, wish: Wish) {
        self.left.insert(wish);
    }

    /// Gives up what lingered long enough, unless it `stays`: what that is, is returned.
    pub(crate) fn expire(&mut self, now: Instant, connected: bool, stays: impl Fn(&Wish) -> bool) -> Vec<Wish> {
        self.note_left(now);
        let mut over = Vec::new();
        if connected && self.due.len() < self.lingering.len() {
            // The origin is back.
            let overdue = self.lingering.iter().filter(|(_, until)| **until <= now);
            over.extend(overdue.map(|(wish, _)| wish.clone()));
        }
        while let Some((_, wish)) = self.due.first().filter(|(until, _)| *until <= now).cloned() {
            self.due.pop_first();
            over.push(wish);
        }
        over.retain(|wish| {
            let gives_up = connected || !stays(wish);
            gives_up && self.give_up(wish)
        });
        over
    }

    /// Gives up what lingers and does not `stay`, however long it has: what that is, is returned.
    pub(crate) fn forgo(&mut self, now: Instant, stays: impl Fn(&Wish) -> bool) -> Vec<Wish> {
        self.note_left(now);
        let mut over: Vec<_> = self.lingering.keys().filter(|wish| !stays(wish)).cloned().collect();
        over.retain(|wish| self.give_up(wish));
        over
    }

    fn note_left(&mut self, now: Instant) {
        for wish in std::mem::take(&mut self.left) {
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
            if self.asks.remove(wish) != Some(Ask::Subscribe) {
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

    /// What the origin must be told, once, and its requests have room for.
    pub(crate) fn take_asks(&mut self, room: Option<&RequestRoom>, tell: &mut dyn FnMut(Command)) {
        self.lacking.clear();
        let (new, told): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.asks).into_iter().partition(|(_, ask)| *ask == Ask::Subscribe);
        for ((type_url, interest), ask) in told {
            tell(Command::Unsubscribe(type_url.clone(), interest.clone()));
            if ask == Ask::Again {
                tell(Command::Subscribe(type_url, interest));
            } else if let Some(room) = room {
                room.give_back(&type_url, &interest);
            }
        }
        for ((type_url, interest), ask) in new {
            if room.is_none_or(|room| room.take(&type_url, &interest)) {
                tell(Command::Subscribe(type_url, interest));
            } else {
                *self.lacking.entry(type_url.clone()).or_default() += name_size(interest.as_str());
                self.asks.insert((type_url, interest), ask);
            }
        }
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
        let names = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
        names.chain([Interest::Wildcard]).any(|interest| self.wants(type_url, &interest))
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
        self.wanted.is_empty() && self.asks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINGER: Duration = Duration::from_secs(30);

    fn wish(name: &str) -> Wish {
        ("T".into(), Interest::from(name.parse::<ResourceName>().unwrap()))
    }

    fn told(demand: &mut Demand) -> String {
        let mut told = Vec::new();
        demand.take_asks(None, &mut |command| match command {
            Command::Subscribe(_, interest) => told.push(format!("+{interest}")),
            Command::Unsubscribe(_, interest) => told.push(format!("-{interest}")),
            _ => {}
        });
        told.join(" ")
    }

    #[test]
    fn rule_141_what_lingers_is_not_asked_for_again_unless_its_answer_is_forgotten() {
        let now = Instant::now();
        let mut demand = Demand::new(LINGER);
        assert!(demand.want(wish("a"), false));
        assert_eq!(told(&mut demand), "+a");
        demand.leave(wish("a"));
        assert_eq!(demand.expire(now, true, |_| false), []);
        assert!(!demand.want(wish("a"), true));
        assert_eq!(demand.poll_timeout(), None);
        demand.leave(wish("a"));
        assert!(demand.want(wish("a"), false));
        assert_eq!(told(&mut demand), "-a +a");
    }

    #[test]
    fn what_was_never_told_need_not_be_taken_back() {
        let now = Instant::now();
        let mut demand = Demand::new(Duration::ZERO);
        demand.want(wish("a"), false);
        demand.leave(wish("a"));
        assert_eq!(demand.expire(now, true, |_| true), [wish("a")]);
        assert_eq!(told(&mut demand), "");
        assert!(demand.is_idle());
    }

    #[test]
    fn what_is_wanted_anew_before_the_origin_is_told_is_asked_for_again() {
        let now = Instant::now();
        let mut demand = Demand::new(Duration::ZERO);
        demand.want(wish("a"), false);
        told(&mut demand);
        demand.leave(wish("a"));
        demand.expire(now, true, |_| true);
        assert!(demand.want(wish("a"), false));
        assert_eq!(told(&mut demand), "-a +a");
    }

    /// What can be served stays while the origin is away, and its time is not reported twice.
    #[test]
    fn an_origin_that_is_away_keeps_what_it_answered() {
        let now = Instant::now();
        let mut demand = Demand::new(LINGER);
        for name in ["held", "not"] {
            demand.want(wish(name), false);
            demand.leave(wish(name));
        }
        demand.expire(now, false, |_| true);
        assert_eq!(demand.poll_timeout(), Some(now + LINGER));
        assert_eq!(demand.expire(now + LINGER, false, |wish| wish.1.as_str() == "held"), [wish("not")]);
        assert_eq!(demand.poll_timeout(), None);
        assert!(!demand.is_idle());
        assert_eq!(demand.expire(now + LINGER, true, |_| true), [wish("held")]);
        assert!(demand.wanted().is_empty());
    }

    #[test]
    fn what_lingers_without_an_answer_can_be_forgone() {
        let now = Instant::now();
        let mut demand = Demand::new(LINGER);
        for name in ["held", "not", "wanted"] {
            demand.want(wish(name), false);
        }
        assert_eq!(told(&mut demand), "+held +not +wanted");
        for name in ["held", "not"] {
            demand.leave(wish(name));
        }
        assert_eq!(demand.forgo(now, |wish| wish.1.as_str() == "held"), [wish("not")]);
        assert_eq!(told(&mut demand), "-not");
        assert_eq!(demand.expire(now + LINGER, true, |_| true), [wish("held")]);
        assert_eq!(demand.wanted(), &BTreeSet::from([wish("wanted")]));
    }

    #[test]
    fn a_type_is_wanted_as_long_as_anything_of_it_is() {
        let mut demand = Demand::new(Duration::ZERO);
        demand.want(wish("a"), false);
        assert!(demand.wants_type(&"T".into()));
        assert!(!demand.wants_type(&"S".into()));
        assert!(!demand.wants_type(&"U".into()));
    }
}
