//! The scopes that one stream feeds: found by what is in them, and looked at when they have something to say, so that
//! nothing that happens to one costs more the more others there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use slab::Slab;

use crate::federation::lock::lock;
use crate::federation::of_origin::OfOrigin;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;

/// Where a scope stands among those of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    at: usize,
    /// Which of the scope's servers the stream is to.
    pub(crate) server: usize,
    /// There are several.
    pub(crate) of_several: bool,
    /// How often the scope was led to another origin before.
    pub(crate) leads: usize,
}

impl Seat {
    /// What the scope tells, and heeds, what is there by.
    pub(crate) fn key(self) -> (usize, usize) {
        (self.leads, self.server)
    }
}

/// A scope, its seat, and what it has there in common with others of its origin.
pub(crate) struct Found {
    pub(crate) seat: Seat,
    pub(crate) scope: Arc<Scope>,
    pub(crate) of_origin: Arc<OfOrigin>,
}

#[derive(Default)]
pub(crate) struct Scopes(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    taken: Slab<Taken>,
    /// How many seats scopes of an origin have, by its position.
    origins: BTreeMap<usize, usize>,
    by_authority: HashMap<String, Seat>,
    /// The one that the stream carries alone.
    own: Option<Seat>,
    /// That of old-style names, where these come over the stream of all others.
    of_every_node: Option<Seat>,
    /// They have something to tell the origin.
    asking: BTreeSet<Seat>,
    /// They are left, and the stream still asks for what was wanted there.
    leaving: BTreeSet<Seat>,
}

struct Taken {
    seat: Seat,
    scope: Weak<Scope>,
    origin: usize,
    /// Of the scope, if it is that of one.
    authority: Option<String>,
    of_origin: Arc<OfOrigin>,
}

impl Scopes {
    /// It asks from now on, until it [leaves](Self::leave).
    pub(crate) fn insert(&self, scope: &Arc<Scope>, server: usize, of_origin: &Arc<OfOrigin>) -> Seat {
        let leads = scope.leads();
        let mut seats = lock(&self.0);
        let entry = seats.taken.vacant_entry();
        let seat = Seat { at: entry.key(), server, of_several: of_origin.has_several, leads };
        let authority = scope.key.authority().map(str::to_owned);
        let (origin, of_origin) = (scope.origin(), of_origin.clone());
        entry.insert(Taken { seat, scope: Arc::downgrade(scope), origin, authority: authority.clone(), of_origin });
        *seats.origins.entry(origin).or_default() += 1;
        if let Some(authority) = authority {
            seats.by_authority.insert(authority, seat);
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

    /// A scope leaves its seat. Whether the stream is to be told so first: what comes for it until then is still its.
    pub(crate) fn leave(&self, seat: Seat) -> bool {
        // Not under the lock: a scope has its own.
        let leaves_any = self.at(seat).is_some_and(|scope| scope.leaves_any(seat.key()));
        let mut seats = lock(&self.0);
        seats.asking.remove(&seat);
        match leaves_any {
            true => _ = seats.leaving.insert(seat),
            false => seats.remove(seat),
        }
        leaves_any
    }

    /// The stream was told all.
    pub(crate) fn has_left(&self, seat: Seat) {
        lock(&self.0).remove(seat);
    }

    /// Those that leave.
    pub(crate) fn leaving(&self) -> Vec<(Seat, Option<Arc<Scope>>)> {
        let seats = lock(&self.0);
        let scope = |seat: &Seat| seats.taken.get(seat.at).and_then(|taken| taken.scope.upgrade());
        seats.leaving.iter().map(|seat| (*seat, scope(seat))).collect()
    }

    /// Whether the scope of an authority does: what comes for it is nobody's.
    pub(crate) fn leaves(&self, authority: Option<&str>) -> bool {
        let seats = lock(&self.0);
        let seat = authority.filter(|_| !seats.leaving.is_empty()).and_then(|name| seats.by_authority.get(name));
        seat.is_some_and(|seat| seats.leaving.contains(seat))
    }

    /// Whether any does.
    pub(crate) fn is_left(&self) -> bool {
        !lock(&self.0).leaving.is_empty()
    }

    /// A scope has something to tell the origin.
    pub(crate) fn ask(&self, seat: Seat) {
        lock(&self.0).asking.insert(seat);
    }

    /// Those that have, once.
    pub(crate) fn take_asking(&self) -> BTreeSet<Seat> {
        std::mem::take(&mut lock(&self.0).asking)
    }

    /// All that are there, and do not leave.
    pub(crate) fn all(&self) -> Vec<(Seat, Arc<Scope>)> {
        let seats = lock(&self.0);
        let stays = |taken: &&Taken| !seats.leaving.contains(&taken.seat);
        let taken = seats.taken.iter().map(|(_, taken)| taken).filter(stays);
        taken.filter_map(|taken| Some((taken.seat, taken.scope.upgrade()?))).collect()
    }

    pub(crate) fn at(&self, seat: Seat) -> Option<Arc<Scope>> {
        lock(&self.0).taken.get(seat.at)?.scope.upgrade()
    }

    /// What a scope has in common with others of its origin.
    pub(crate) fn of_origin(&self, seat: Seat) -> Option<Arc<OfOrigin>> {
        lock(&self.0).taken.get(seat.at).map(|taken| taken.of_origin.clone())
    }

    /// Whether the stream feeds any scope of an origin, by its position.
    pub(crate) fn feed_any_of(&self, origin: usize) -> bool {
        lock(&self.0).origins.contains_key(&origin)
    }

    pub(crate) fn own(&self) -> Option<Found> {
        let seats = lock(&self.0);
        seats.find(seats.own?)
    }

    pub(crate) fn of_every_node(&self) -> Option<Found> {
        let seats = lock(&self.0);
        seats.find(seats.of_every_node?)
    }

    pub(crate) fn of_authority(&self, authority: &str) -> Option<Found> {
        let seats = lock(&self.0);
        seats.find(*seats.by_authority.get(authority)?)
    }
}

impl Seats {
    fn find(&self, seat: Seat) -> Option<Found> {
        let taken = self.taken.get(seat.at)?;
        Some(Found { seat, scope: taken.scope.upgrade()?, of_origin: taken.of_origin.clone() })
    }

    fn remove(&mut self, seat: Seat) {
        self.leaving.remove(&seat);
        let Some(taken) = self.taken.try_remove(seat.at) else { return };
        if let Some(count) = self.origins.get_mut(&taken.origin) {
            *count -= 1;
            if *count == 0 {
                self.origins.remove(&taken.origin);
            }
        }
        // Another scope of the authority may have come meanwhile, or the same one again.
        if let Some(authority) = taken.authority
            && self.by_authority.get(&authority) == Some(&seat)
        {
            self.by_authority.remove(&authority);
        }
        self.own = self.own.filter(|own| *own != seat);
        self.of_every_node = self.of_every_node.filter(|other| *other != seat);
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

    fn of_origin() -> Arc<OfOrigin> {
        Arc::new(OfOrigin { name: "origin".into(), has_several: false, mixed: Default::default() })
    }

    fn scope(authority: &str) -> Arc<Scope> {
        Arc::new(Scope::streamed(ScopeKey::Authority(authority.into()), 0, Duration::ZERO, None, 1))
    }

    #[test]
    fn who_asks_is_looked_at_once_and_others_are_not() {
        let scopes = Scopes::default();
        let (a, b) = (scope("a"), scope("b"));
        let (at_a, at_b) = (scopes.insert(&a, 0, &of_origin()), scopes.insert(&b, 0, &of_origin()));
        assert_eq!(scopes.take_asking(), BTreeSet::from([at_a, at_b]), "they have not asked for anything yet");
        scopes.ask(at_b);
        scopes.ask(at_b);
        assert_eq!(scopes.take_asking(), BTreeSet::from([at_b]));
        assert!(scopes.take_asking().is_empty());
        scopes.ask(at_b);
        assert!(!scopes.leave(at_b), "the stream was asked for nothing");
        assert!(scopes.take_asking().is_empty() && scopes.at(at_b).is_none());
        assert_eq!(scopes.all().len(), 1);
    }

    #[test]
    fn a_scope_is_found_by_its_authority_until_it_leaves() {
        let scopes = Scopes::default();
        let (old, new) = (scope("a"), scope("a"));
        let at_old = scopes.insert(&old, 0, &of_origin());
        assert!(scopes.of_authority("a").is_some_and(|found| found.seat == at_old && Arc::ptr_eq(&found.scope, &old)));
        let at_new = scopes.insert(&new, 1, &of_origin());
        scopes.leave(at_old);
        assert!(
            scopes.of_authority("a").is_some_and(|found| found.seat.server == 1 && Arc::ptr_eq(&found.scope, &new)),
            "it came meanwhile"
        );
        scopes.leave(at_new);
        assert!(scopes.of_authority("a").is_none() && scopes.own().is_none());
    }

    #[test]
    fn only_a_scope_with_a_stream_of_its_own_is_that_streams_own() {
        let scopes = Scopes::default();
        scopes.insert(&scope("a"), 0, &of_origin());
        assert!(scopes.own().is_none());
        let own = Arc::new(Scope::streamed(ScopeKey::Private(0), 0, Duration::ZERO, None, 1));
        let seat = scopes.insert(&own, 0, &of_origin());
        assert!(scopes.own().is_some_and(|found| Arc::ptr_eq(&found.scope, &own)));
        scopes.leave(seat);
        assert!(scopes.own().is_none());
    }

    #[test]
    fn what_is_due_comes_in_its_time_and_the_last_word_counts() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let (mut due, [a, b, c]) =
            (Due::default(), [0, 1, 2].map(|at| Seat { at, server: 0, of_several: false, leads: 0 }));
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
