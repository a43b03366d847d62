//! The scopes that one stream feeds: found by what is in them, and looked at when they have something to say, so that
//! nothing that happens to one costs more the more others there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use slab::Slab;

use crate::federation::lock::lock;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;

/// Where a scope stands among those of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    at: usize,
    /// Which of the scope's servers the stream is to.
    pub(crate) server: usize,
}

#[derive(Default)]
pub(crate) struct Scopes(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    scopes: Slab<(usize, Weak<Scope>)>,
    by_authority: HashMap<String, Seat>,
    /// The one that the stream carries alone.
    own: Option<Seat>,
    /// That of old-style names, where these come over the stream of all others.
    of_every_node: Option<Seat>,
    /// They have something to tell the origin.
    asking: BTreeSet<Seat>,
}

impl Scopes {
    /// It asks from now on, until it is [removed](Self::remove).
    pub(crate) fn insert(&self, scope: &Arc<Scope>, server: usize) -> Seat {
        let mut seats = lock(&self.0);
        let seat = Seat { at: seats.scopes.insert((server, Arc::downgrade(scope))), server };
        if let Some(authority) = scope.key.authority() {
            seats.by_authority.insert(authority.to_owned(), seat);
        }
        if scope.key.has_own_stream() {
            seats.own = Some(seat);
        }
        if *scope.key.of_all() == ScopeKey::EveryNode {
            seats.of_every_node = Some(seat);
        }
        seats.asking.insert(seat);
        seat
    }

    /// A scope leaves its seat, that of an authority if it is one.
    pub(crate) fn remove(&self, authority: Option<&str>, seat: Seat) {
        let mut seats = lock(&self.0);
        seats.scopes.try_remove(seat.at);
        seats.asking.remove(&seat);
        // Another scope of the authority may have come meanwhile.
        if let Some(authority) = authority
            && seats.by_authority.get(authority) == Some(&seat)
        {
            seats.by_authority.remove(authority);
        }
        seats.own = seats.own.filter(|own| *own != seat);
        seats.of_every_node = seats.of_every_node.filter(|other| *other != seat);
    }

    /// A scope has something to tell the origin.
    pub(crate) fn ask(&self, seat: Seat) {
        lock(&self.0).asking.insert(seat);
    }

    /// Those that have, once.
    pub(crate) fn take_asking(&self) -> BTreeSet<Seat> {
        std::mem::take(&mut lock(&self.0).asking)
    }

    /// All that are there.
    pub(crate) fn all(&self) -> Vec<(Seat, Arc<Scope>)> {
        let seats = lock(&self.0);
        let seated = |(at, (server, scope)): (usize, &(usize, Weak<Scope>))| {
            Some((Seat { at, server: *server }, scope.upgrade()?))
        };
        seats.scopes.iter().filter_map(seated).collect()
    }

    pub(crate) fn at(&self, seat: Seat) -> Option<Arc<Scope>> {
        lock(&self.0).scopes.get(seat.at)?.1.upgrade()
    }

    pub(crate) fn own(&self) -> Option<(Seat, Arc<Scope>)> {
        let seat = lock(&self.0).own?;
        Some((seat, self.at(seat)?))
    }

    pub(crate) fn of_every_node(&self) -> Option<(Seat, Arc<Scope>)> {
        let seat = lock(&self.0).of_every_node?;
        Some((seat, self.at(seat)?))
    }

    pub(crate) fn of_authority(&self, authority: &str) -> Option<(Seat, Arc<Scope>)> {
        let seat = lock(&self.0).by_authority.get(authority).copied()?;
        Some((seat, self.at(seat)?))
    }
}

/// When scopes are to be looked at although they do not ask.
#[derive(Default)]
pub(crate) struct Due {
    by_seat: BTreeMap<Seat, Instant>,
    by_time: BTreeSet<(Instant, Seat)>,
}

impl Due {
    pub(crate) fn set(&mut self, seat: Seat, at: Option<Instant>) {
        if let Some(before) = self.by_seat.remove(&seat) {
            self.by_time.remove(&(before, seat));
        }
        if let Some(at) = at {
            self.by_seat.insert(seat, at);
            self.by_time.insert((at, seat));
        }
    }

    pub(crate) fn take(&mut self, now: Instant) -> Vec<Seat> {
        let mut due = Vec::new();
        while let Some((_, seat)) = self.by_time.first().filter(|(at, _)| *at <= now).copied() {
            self.set(seat, None);
            due.push(seat);
        }
        due
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn scope(authority: &str) -> Arc<Scope> {
        Arc::new(Scope::streamed(ScopeKey::Authority(authority.into()), 0, Duration::ZERO, None, 1))
    }

    #[test]
    fn who_asks_is_looked_at_once_and_others_are_not() {
        let scopes = Scopes::default();
        let (a, b) = (scope("a"), scope("b"));
        let (at_a, at_b) = (scopes.insert(&a, 0), scopes.insert(&b, 0));
        assert_eq!(scopes.take_asking(), BTreeSet::from([at_a, at_b]), "they have not asked for anything yet");
        scopes.ask(at_b);
        scopes.ask(at_b);
        assert_eq!(scopes.take_asking(), BTreeSet::from([at_b]));
        assert!(scopes.take_asking().is_empty());
        scopes.ask(at_b);
        scopes.remove(b.key.authority(), at_b);
        assert!(scopes.take_asking().is_empty() && scopes.at(at_b).is_none());
        assert_eq!(scopes.all().len(), 1);
    }

    #[test]
    fn a_scope_is_found_by_its_authority_until_it_leaves() {
        let scopes = Scopes::default();
        let (old, new) = (scope("a"), scope("a"));
        let at_old = scopes.insert(&old, 0);
        assert!(scopes.of_authority("a").is_some_and(|(seat, found)| seat == at_old && Arc::ptr_eq(&found, &old)));
        let at_new = scopes.insert(&new, 1);
        scopes.remove(old.key.authority(), at_old);
        assert!(
            scopes.of_authority("a").is_some_and(|(seat, found)| seat.server == 1 && Arc::ptr_eq(&found, &new)),
            "it came meanwhile"
        );
        scopes.remove(new.key.authority(), at_new);
        assert!(scopes.of_authority("a").is_none() && scopes.own().is_none());
    }

    #[test]
    fn only_a_scope_with_a_stream_of_its_own_is_that_streams_own() {
        let scopes = Scopes::default();
        scopes.insert(&scope("a"), 0);
        assert!(scopes.own().is_none());
        let own = Arc::new(Scope::streamed(ScopeKey::Private(0), 0, Duration::ZERO, None, 1));
        let seat = scopes.insert(&own, 0);
        assert!(scopes.own().is_some_and(|(_, found)| Arc::ptr_eq(&found, &own)));
        scopes.remove(own.key.authority(), seat);
        assert!(scopes.own().is_none());
    }

    #[test]
    fn what_is_due_comes_in_its_time_and_the_last_word_counts() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let (mut due, [a, b, c]) = (Due::default(), [0, 1, 2].map(|at| Seat { at, server: 0 }));
        due.set(a, Some(at(3)));
        due.set(b, Some(at(2)));
        due.set(c, Some(at(1)));
        due.set(a, Some(at(1)));
        due.set(c, None);
        assert_eq!(due.next(), Some(at(1)));
        assert!(due.take(now).is_empty());
        assert_eq!(due.take(at(1)), [a]);
        assert_eq!(due.next(), Some(at(2)));
        assert_eq!(due.take(at(9)), [b]);
        assert_eq!((due.next(), due.take(at(9)).len()), (None, 0));
    }
}
