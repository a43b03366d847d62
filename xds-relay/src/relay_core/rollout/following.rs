//! What other relays do with the same releases.

use std::time::Instant;

use xdstp_client::state::{Event, Op};

use super::{Releases, State};
use crate::lock::lock;
use crate::releases::{Instance, StoredError};

impl Releases {
    /// What was done in the store, as it is heard: it is served, if it says so. Whether nobody publishes any more.
    pub(in crate::relay_core) fn hear(&self, events: &[Event], now: Instant) -> bool {
        let mut is_free = false;
        let _ = self.learn(now, |state| {
            if events.iter().any(|event| state.stored.is_about(event)) {
                state.unread.clear();
            }
            for event in events {
                if event.op.key() == state.stored.turn() && matches!(event.op, Op::Put(..)) {
                    state.turn.is_others();
                }
                if let Some(of) = state.stored.tally_of(event.op.key()) {
                    self.hear_tally(state, of, value_of(&event.op), now);
                }
            }
            let control;
            (is_free, control) = state.stored.hear(events, &self.rollout.stages);
            if is_free {
                state.turn.is_free();
            }
            control
        });
        is_free
    }

    /// Something was done that was not heard. Whether the store answered.
    pub(in crate::relay_core) fn read_anew(&self, now: Instant) -> bool {
        self.learn(now, |state| {
            state.turn.is_free();
            state.unread.clear();
            state.stored.read_anew(&self.rollout.stages)
        })
    }

    /// What this relay told is counted already.
    pub(super) fn hear_tally(&self, state: &mut State, of: Instance, said: Option<&[u8]>, now: Instant) {
        if of != self.instance {
            state.tallies.hear(of, said, now);
        }
    }

    fn learn(&self, now: Instant, learn: impl FnOnce(&mut State) -> Result<(), StoredError>) -> bool {
        let learned = learn(&mut lock(&self.state));
        if let Err(error) = &learned {
            tracing::error!(scope = self.rollout.scope(), "what is known of its releases holds on: {error}");
        }
        self.show(now);
        !matches!(learned, Err(StoredError::Store(_)))
    }
}

fn value_of(op: &Op) -> Option<&[u8]> {
    match op {
        Op::Put(_, value) => Some(value),
        Op::Delete(_) => None,
    }
}
