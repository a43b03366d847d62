//! Since when the streams to a control plane are answered: who was away, or is silent, says nothing again.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use xdstp_client::upstream::Connection;

use crate::lock::lock;

/// The streams to a control plane.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<Answered>);

#[derive(Debug, Default)]
struct Answered {
    /// How many are.
    streams: usize,
    /// Since when it is these.
    since: Option<Instant>,
}

/// One of them.
pub(super) struct OneStream {
    all: Arc<Streams>,
    is_answered: bool,
}

impl Streams {
    /// Since when it is those that are answered now, if any is.
    pub(super) fn answered_since(&self) -> Option<Instant> {
        let answered = lock(&self.0);
        answered.since.filter(|_| answered.streams > 0)
    }

    /// Another one, of which there is no answer yet.
    pub(super) fn another(self: &Arc<Self>) -> OneStream {
        OneStream { all: self.clone(), is_answered: false }
    }
}

impl OneStream {
    pub(super) fn hears(&mut self, now: Instant, connection: &Connection) {
        let is_answered = match connection {
            Connection::Answered => true,
            Connection::Disconnected { .. } => false,
            _ => return,
        };
        if std::mem::replace(&mut self.is_answered, is_answered) == is_answered {
            return;
        }
        let mut answered = lock(&self.all.0);
        answered.since = Some(now);
        match is_answered {
            true => answered.streams += 1,
            false => answered.streams -= 1,
        }
    }
}

impl Drop for OneStream {
    fn drop(&mut self) {
        if self.is_answered {
            lock(&self.all.0).streams -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stream_that_is_open_is_not_answered_and_one_that_was_lost_begins_anew() {
        let (all, now) = (Arc::<Streams>::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        let lost = |at| Connection::Disconnected { error: None, retry_at: at };
        let mut one = all.another();
        one.hears(at(0), &Connection::Connected);
        assert_eq!(all.answered_since(), None);
        one.hears(at(1), &Connection::Answered);
        assert_eq!(all.answered_since(), Some(at(1)));
        let mut other = all.another();
        other.hears(at(2), &lost(at(3)));
        assert_eq!(all.answered_since(), Some(at(1)), "one that never was there is not missed");
        other.hears(at(4), &Connection::Answered);
        assert_eq!(all.answered_since(), Some(at(4)));
        other.hears(at(5), &lost(at(6)));
        assert_eq!(all.answered_since(), Some(at(5)), "the other is there, and what it said may be all");
        one.hears(at(6), &lost(at(7)));
        one.hears(at(7), &Connection::Connected);
        assert_eq!(all.answered_since(), None);
        one.hears(at(8), &Connection::Answered);
        assert_eq!(all.answered_since(), Some(at(8)));
        drop(one);
        assert_eq!(all.answered_since(), None);
    }
}
