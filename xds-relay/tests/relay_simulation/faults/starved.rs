//! Responses that a faulty relay keeps back as long as it has others to send.

use std::collections::VecDeque;

use bytes::Bytes;

/// As long as there was another within so many ms.
const LULL: u64 = 1000;

#[derive(Default)]
pub(crate) struct Starved {
    held: VecDeque<Bytes>,
    until: u64,
}

impl Starved {
    /// Whether a response is kept back.
    pub(crate) fn holds(&mut self, now: u64, starves: bool, message: &Bytes) -> bool {
        if !starves {
            self.until = now + LULL;
            return false;
        }
        let holds = now < self.until;
        if holds {
            self.held.push_back(message.clone());
        }
        holds
    }

    pub(crate) fn release(&mut self, now: u64) -> Option<Bytes> {
        if self.until <= now { self.held.pop_front() } else { None }
    }

    /// When something is released, if nothing else is sent.
    pub(crate) fn next(&self) -> Option<u64> {
        (!self.held.is_empty()).then_some(self.until)
    }
}
