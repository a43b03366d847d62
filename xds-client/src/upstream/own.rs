//! Which connections of a pool take no room of others: one that new streams go to, and one that is being left. So no server is without a
//! connection, whatever others take, and a pool has at most these two and what there is room for, however often it is led elsewhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::heard::Heard;
use crate::federation::{OverLimit, Quota, Share};

/// The connections of a pool, wherever it led when they were made.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    connections: BTreeMap<u64, Taken>,
    next: u64,
}

#[derive(Debug, Default)]
struct Taken {
    /// None of a connection that takes no room.
    room: Option<Share>,
    /// None before it is there.
    heard: Option<Heard>,
    /// The pool leads elsewhere since.
    is_of_former_lead: bool,
}

/// That a connection is, or is being made: until this is dropped.
#[derive(Debug)]
pub(super) struct Stake {
    own: Arc<Own>,
    connection: u64,
}

impl Own {
    /// For one more connection.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn take(self: &Arc<Self>, room: &Arc<Quota>) -> Result<Stake, OverLimit> {
        let mut state = self.lock();
        let room = if state.settle() { None } else { Some(room.take()?) };
        let connection = state.next;
        state.next += 1;
        state.connections.insert(connection, Taken { room, ..Taken::default() });
        drop(state);
        Ok(Stake { own: self.clone(), connection })
    }

    /// Those that there are get no more streams of the pool.
    pub(super) fn leave(&self) {
        self.lock().connections.values_mut().for_each(|taken| taken.is_of_former_lead = true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives back the room of connections that need take none. Whether another need take none either.
    fn settle(&mut self) -> bool {
        let most = 1 + usize::from(self.connections.values().any(Taken::is_being_left));
        let free = self.connections.values().filter(|taken| taken.room.is_none()).count();
        let with_room = self.connections.values_mut().filter(|taken| taken.room.is_some());
        let freed = with_room.take(most.saturating_sub(free)).map(|taken| taken.room = None).count();
        free + freed < most
    }
}

impl Taken {
    fn is_being_left(&self) -> bool {
        self.is_of_former_lead || self.heard.as_ref().is_some_and(Heard::is_over)
    }
}

impl Stake {
    /// The connection is there.
    pub(super) fn connected(&self, heard: Heard) {
        if let Some(taken) = self.own.lock().connections.get_mut(&self.connection) {
            taken.heard = Some(heard);
        }
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        let mut state = self.own.lock();
        state.connections.remove(&self.connection);
        state.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(heard: &Heard) {
        heard.note_end("");
    }

    #[test]
    fn a_connection_that_is_made_while_another_is_being_left_takes_no_room_and_the_next_does() {
        let (own, room) = (Arc::new(Own::default()), Quota::new("connections", "connections", 0));
        let (first, heard) = (own.take(&room).unwrap(), Heard::default());
        first.connected(heard.clone());
        assert!(own.take(&room).is_err());
        end(&heard);
        let (second, heard) = (own.take(&room).unwrap(), Heard::default());
        second.connected(heard.clone());
        end(&heard);
        assert!(own.take(&room).is_err(), "both are open, though neither takes streams");
        drop(first);
        assert!(own.take(&room).is_ok());
    }

    #[test]
    fn which_of_the_connections_takes_no_room_is_all_the_same() {
        let (own, room) = (Arc::new(Own::default()), Quota::new("connections", "connections", 1));
        let (first, second) = (own.take(&room).unwrap(), own.take(&room).unwrap());
        assert_eq!(room.used(), 1);
        drop(first);
        assert_eq!(room.used(), 0);
        drop(second);
        assert_eq!((room.used(), own.lock().connections.len()), (0, 0));
    }

    #[test]
    fn however_often_a_pool_is_led_elsewhere_what_is_left_of_it_is_counted() {
        let (own, room) = (Arc::new(Own::default()), Quota::new("connections", "connections", 3));
        let mut kept = Vec::new();
        for _ in 0..5 {
            kept.push(own.take(&room).unwrap());
            own.leave();
        }
        assert_eq!(room.used(), 3);
        assert!(own.take(&room).is_err());
    }
}
