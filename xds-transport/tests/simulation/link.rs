//! One direction of a connection: messages on their way, in order but for types that overtake.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::random::Random;

#[derive(Default)]
pub(crate) struct Link {
    /// In the order they were sent.
    flights: Vec<Flight>,
    /// When the last one of each type arrives.
    lanes: BTreeMap<String, u64>,
    /// Nothing arrives before.
    pub(crate) stalled_until: u64,
    /// What is sent from now on gets lost.
    cut: bool,
}

struct Flight {
    at: u64,
    message: Bytes,
}

impl Link {
    pub(crate) fn has_room(&self, window: usize) -> bool {
        self.flights.len() < window
    }

    /// `lane` is the type where types may overtake, and empty elsewhere.
    pub(crate) fn send(&mut self, at: u64, lane: &str, message: Bytes) {
        if self.cut {
            return;
        }
        // The first message of a stream opens it: nothing arrives before.
        let opened = self.lanes.get("").copied();
        let last = self.lanes.get(lane).copied().or(opened).unwrap_or(0);
        let at = at.max(last);
        if opened.is_none() {
            self.lanes.insert(String::new(), at);
        }
        self.lanes.insert(lane.into(), at);
        self.flights.push(Flight { at, message });
    }

    /// When the next message arrives.
    pub(crate) fn next(&self) -> Option<u64> {
        self.flights.iter().map(|flight| flight.at.max(self.stalled_until)).min()
    }

    pub(crate) fn receive(&mut self, now: u64) -> Option<Bytes> {
        if self.stalled_until > now {
            return None;
        }
        let first = self.flights.iter().enumerate().min_by_key(|(order, flight)| (flight.at, *order))?;
        if first.1.at > now {
            return None;
        }
        let at = first.0;
        Some(self.flights.remove(at).message)
    }

    /// The connection breaks: some of what is on its way still arrives.
    pub(crate) fn cut(&mut self, random: &mut Random) {
        self.cut = true;
        let arrive = random.index(self.flights.len() + 1);
        self.flights.truncate(arrive);
    }
}
