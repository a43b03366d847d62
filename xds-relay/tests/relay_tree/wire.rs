//! What messages go through: each takes its time, and they arrive in order.

use std::collections::VecDeque;

use bytes::Bytes;

/// One direction of a stream.
pub(crate) struct Wire {
    flights: VecDeque<(u64, Bytes)>,
    /// When all that was sent has left.
    free_at: u64,
    /// In µs.
    latency: u64,
    bytes_per_ms: u64,
}

impl Wire {
    pub(crate) fn new(latency: u64, bytes_per_ms: u64) -> Self {
        Self { flights: VecDeque::new(), free_at: 0, latency, bytes_per_ms }
    }

    /// Sends what is ready at `at`.
    pub(crate) fn send(&mut self, at: u64, message: Bytes) {
        self.free_at = self.free_at.max(at) + message.len() as u64 * 1000 / self.bytes_per_ms;
        self.flights.push_back((self.free_at + self.latency, message));
    }

    /// As many as this are on their way at most: who writes waits, and says the newest then.
    pub(crate) fn has_room(&self) -> bool {
        self.flights.len() < 2
    }

    /// When the next message arrives.
    pub(crate) fn next(&self) -> Option<u64> {
        self.flights.front().map(|(at, _)| *at)
    }

    pub(crate) fn receive(&mut self, now: u64) -> Option<Bytes> {
        let has_arrived = self.next().is_some_and(|at| at <= now);
        has_arrived.then(|| self.flights.pop_front()).flatten().map(|(_, message)| message)
    }
}

/// What all streams that a process serves go through: its CPU, and its interface.
pub(crate) struct Pipe {
    free_at: u64,
    /// What a message costs, in ns, and 1000 of its bytes.
    message: u64,
    kilobyte: u64,
    /// What is left of a µs.
    rest: u64,
}

impl Pipe {
    pub(crate) fn new(message: u64, kilobyte: u64) -> Self {
        Self { free_at: 0, message, kilobyte, rest: 0 }
    }

    /// When a message of so many bytes has left.
    pub(crate) fn pass(&mut self, now: u64, bytes: usize) -> u64 {
        let cost = self.message + self.kilobyte * bytes as u64 / 1000 + self.rest;
        self.rest = cost % 1000;
        self.free_at = self.free_at.max(now) + cost / 1000;
        self.free_at
    }
}
