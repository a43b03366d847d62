//! What a scope of an origin of several servers comes over.

use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;

use crate::federation::choice::Standing;
use crate::federation::dial::Dialed;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::lock::lock;
use crate::federation::origin::Speaker;
use crate::federation::scope::Scope;
use crate::federation::servers::Servers;
use crate::federation::speakers::Speakers;
use crate::federation::supply::{ServerState, ServerStatus, Status, Supply};
use crate::federation::turns::Turns;
use crate::federation::upstream::Seated;
use crate::upstream::Consumer;

/// A seat at the stream of each server that the scope asks. The streams are shared as those of one server are.
pub(crate) struct Fallback {
    servers: Arc<Servers>,
    scope: Weak<Scope>,
    speaker: Speaker,
    /// Who speaks for a node group speaks for it to every server.
    speakers: Arc<Mutex<Speakers>>,
    /// The first first.
    seats: Mutex<Vec<Arc<Seated>>>,
    /// Who opens and closes them.
    choosing: Turns,
}

impl Fallback {
    /// Feeds a scope, from the first of the servers as long as it can.
    pub(crate) fn feed(servers: Arc<Servers>, scope: &Arc<Scope>, speaker: Speaker) {
        scope.choose_among(servers.names());
        let (speakers, seats, choosing) = (Arc::default(), Mutex::default(), Turns::default());
        let fallback = Arc::new(Self { servers, scope: Arc::downgrade(scope), speaker, speakers, seats, choosing });
        scope.feed_from(fallback.clone());
        fallback.choose();
    }

    fn seats(&self) -> Vec<Arc<Seated>> {
        lock(&self.seats).clone()
    }

    /// How each server is doing, of which some are asked, and which counts.
    fn statuses(&self) -> (Vec<ServerStatus>, Option<usize>) {
        let Some(scope) = self.scope.upgrade() else { return Default::default() };
        let asked = scope.asked();
        let status = |(at, name): (usize, &Arc<str>)| {
            let state = match asked.servers.get(at) {
                None => ServerState::NotAsked,
                Some(Standing::Silent) => ServerState::Asked,
                Some(Standing::Answers) => ServerState::Answers,
                Some(Standing::Fails(reason)) => ServerState::Fails(reason.clone()),
            };
            ServerStatus { name: name.to_string(), in_use: asked.counts == Some(at), state }
        };
        (self.servers.names().iter().enumerate().map(status).collect(), asked.counts)
    }
}

impl Supply for Fallback {
    fn ask(&self) {
        self.seats().iter().for_each(|seat| seat.ask());
    }

    /// Others may be at it, and it may be asked for while a stream is opened or ends: then it is done again, as the scope says
    /// by then.
    fn choose(&self) {
        self.choosing.take(|| {
            let Some(scope) = self.scope.upgrade() else { return };
            let asked = scope.asks();
            let closed: Vec<_> = {
                let mut seats = lock(&self.seats);
                let left = asked.min(seats.len());
                #[cfg(test)]
                let left = if planted(Fault::HeedServersBelow) { seats.len() } else { left };
                seats.drain(left..).collect()
            };
            drop(closed);
            let left = lock(&self.seats).len();
            for at in left..asked {
                let Some(seat) = self.servers.seat(at, &scope, &self.speaker, &self.speakers) else { return };
                let seat = Arc::new(seat);
                lock(&self.seats).push(seat.clone());
                seat.ask();
            }
        });
    }

    fn label(&self) -> &str {
        &self.speaker.label
    }

    fn status(&self) -> Status {
        let ((servers, counts), seats) = (self.statuses(), self.seats());
        let seat = counts.and_then(|counts| seats.get(counts)).or(seats.first());
        Status { servers, ..seat.map(|seat| seat.status()).unwrap_or_default() }
    }

    /// There is no other that would be asked.
    fn unreachable_since(&self, since: Instant) -> Option<String> {
        let are_lost = self.seats().iter().all(|seat| seat.unreachable_since(since).is_some());
        self.scope.upgrade()?.asked().trouble.filter(|_| are_lost)
    }

    fn dial_beside(&self, consumer: Box<dyn Consumer>) -> Option<Box<dyn Dialed>> {
        let (counts, seats) = (self.statuses().1, self.seats());
        counts.and_then(|counts| seats.get(counts)).or(seats.first())?.dial_beside(consumer)
    }

    fn join(&self, routes: u64, node: Bytes) {
        lock(&self.speakers).join(routes, node);
    }

    fn leave(&self, routes: u64) {
        lock(&self.speakers).leave(routes);
    }
}
