//! The scopes of a stream: which of them have something to say, and what time tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use xds_transport::client::Command;
use xdstp_cache::{Interest, TypeUrl};

use super::Feed;
use crate::federation::changes::Changes;
use crate::federation::demand::Wish;
use crate::federation::lock::lock;
use crate::federation::places::{Part, Places};
use crate::federation::scope::Scope;
use crate::federation::scopes::Seat;
use crate::federation::server::Server;
use crate::federation::settling::Settled;

impl Feed {
    /// The scopes that have something to tell the origin: those that ask, and those whose time has come. When the origin
    /// comes or goes, all are looked at.
    pub(super) fn with_work(&mut self, now: Instant, there: bool) -> Vec<(Seat, Arc<Scope>)> {
        let mut seats = self.scopes.take_asking();
        seats.extend(self.due.take(now));
        if self.was_there.replace(there) != Some(there) {
            return self.scopes.all();
        }
        self.seated(seats)
    }

    pub(super) fn seated(&self, seats: BTreeSet<Seat>) -> Vec<(Seat, Arc<Scope>)> {
        seats.into_iter().filter_map(|seat| Some((seat, self.scopes.at(seat)?))).collect()
    }

    /// Takes note of a command on its way to the stream. Whether it makes room there.
    pub(super) fn note(&mut self, command: &Command) -> bool {
        match command {
            Command::Unsubscribe(type_url, interest) => {
                self.settling.forget(type_url, interest);
                self.markers.forget(type_url, interest);
                return true;
            }
            Command::Hold(type_url, _, collections) => self.settling.resume(type_url, collections),
            _ => {}
        }
        false
    }

    /// Has the stream forget what was wanted of it at seats that were left. Whether that makes room.
    pub(super) fn see_off(&mut self, apply: &mut dyn FnMut(Command)) -> bool {
        let mut left = false;
        for (seat, scope) in self.scopes.leaving() {
            let more = scope.is_some_and(|scope| {
                scope.take_left(seat.key(), &mut |command| {
                    left |= self.note(&command);
                    apply(command);
                })
            });
            if !more {
                self.scopes.has_left(seat);
            }
        }
        left
    }

    /// Tells a scope of which this server is one how that is doing.
    pub(super) fn stands(&self, seat: Seat, scope: &Scope, fails: bool) {
        let answers = lock(&self.state).answered;
        if answers && scope.answered(seat.server) {
            let Server { name, observer, .. } = &*self.server;
            let of_origin = self.scopes.of_origin(seat);
            let origin = of_origin.as_ref().map_or("", |of_origin| &of_origin.name);
            observer.switched(origin, name);
            tracing::info!(%origin, server = %name, scope = %scope.key, "it answers, and is used from now on");
        } else if fails {
            self.tell_failed(seat, scope, false);
        }
    }

    /// It fails `anew`, or still.
    pub(super) fn tell_failed(&self, seat: Seat, scope: &Scope, anew: bool) {
        let reason = lock(&self.state).last_error.clone();
        scope.failed(seat.server, reason.as_deref().unwrap_or("it ended the stream"), anew);
    }

    /// The stream of one type is over: what is here of it is served, and what others say ends no answer for it.
    pub(super) fn pause_type(&mut self, now: Instant, type_url: &TypeUrl, why: &str) {
        let words = format!("the stream of {type_url} ended: {why}");
        if self.says(&words, now) {
            tracing::info!(origin = %self.server.origin, stream = %self.label, "{words}");
        } else {
            tracing::debug!(origin = %self.server.origin, stream = %self.label, "{words}");
        }
        self.markers.forget_type(type_url);
        let settled = self.settling.pause_type(type_url);
        self.settle(settled, now);
        self.scopes.all().iter().for_each(|(seat, scope)| scope.type_lost(seat.server, type_url));
    }

    /// Tells the scopes how far their collections are answered.
    pub(super) fn settle(&mut self, settled: Settled, now: Instant) {
        settled.complete.iter().for_each(|(type_url, collection)| self.markers.forget(type_url, collection));
        let mut types: BTreeMap<TypeUrl, Places<'_>> = BTreeMap::new();
        let mut tell = |(type_url, interest): Wish, change: &dyn Fn(&mut Changes, Interest)| {
            let places = types.entry(type_url).or_insert_with(|| Places::of(&self.scopes, &self.server.authorities));
            if let Some(place) = places.of_interest(&interest) {
                places.put(place, |part| change(part, interest));
            }
        };
        settled.begun.into_iter().for_each(|wish| tell(wish, &|part, interest| part.begun.push(interest)));
        settled.complete.into_iter().for_each(|wish| tell(wish, &|part, interest| part.complete.push(interest)));
        for (type_url, places) in types {
            for Part { scope, changes, .. } in places.into_parts() {
                if !changes.is_empty() {
                    scope.store(&type_url, changes, now);
                }
            }
        }
    }
}
