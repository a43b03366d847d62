//! The scopes that one stream feeds: found by what is in them, and looked at when they have something to say, so that
//! nothing that happens to one costs more the more others there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use slab::Slab;

use crate::relay_core::lock;
use crate::relay_core::scope::Scope;

/// Where a scope stands among those of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat(usize);

#[derive(Default)]
pub(crate) struct Scopes(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    scopes: Slab<Weak<Scope>>,
    by_authority: HashMap<String, Seat>,
    /// The one that the stream carries alone.
    own: Option<Seat>,
    /// They have something to tell the origin.
    asking: BTreeSet<Seat>,
}

impl Scopes {
    /// It asks from now on, until it is [removed](Self::remove).
    pub(crate) fn insert(&self, scope: &Arc<Scope>) -> Seat {
        let mut seats = lock(&self.0);
        let seat = Seat(seats.scopes.insert(Arc::downgrade(scope)));
        if let Some(authority) = scope.key.authority() {
            seats.by_authority.insert(authority.to_owned(), seat);
        }
        if scope.key.has_own_stream() {
            seats.own = Some(seat);
        }
        seats.asking.insert(seat);
        seat
    }

    pub(crate) fn remove(&self, scope: &Scope, seat: Seat) {
        let mut seats = lock(&self.0);
        seats.scopes.try_remove(seat.0);
        seats.asking.remove(&seat);
        if let Some(authority) = scope.key.authority() {
            seats.by_authority.remove(authority);
        }
        seats.own = seats.own.filter(|own| *own != seat);
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
        seats.scopes.iter().filter_map(|(seat, scope)| Some((Seat(seat), scope.upgrade()?))).collect()
    }

    pub(crate) fn at(&self, seat: Seat) -> Option<Arc<Scope>> {
        lock(&self.0).scopes.get(seat.0)?.upgrade()
    }

    pub(crate) fn own(&self) -> Option<Arc<Scope>> {
        let seat = lock(&self.0).own?;
        self.at(seat)
    }

    pub(crate) fn of_authority(&self, authority: &str) -> Option<Arc<Scope>> {
        let seat = lock(&self.0).by_authority.get(authority).copied()?;
        self.at(seat)
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
