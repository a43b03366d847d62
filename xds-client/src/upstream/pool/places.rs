//! Which connection a stream goes to, and when another one is made: without I/O.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::backoff::Backoff;
use crate::upstream::heard::Heard;

/// How many connections are made at a time to an origin that is known to be there.
const DIALS: usize = 8;

/// How long no connection is made after one on which every stream was ended without an answer. The streams have backoffs of
/// their own: what is wrong may be wrong with one node, and another must not wait long for it.
const LULL: Duration = Duration::from_millis(500);

/// The connections to an origin, each of them a `C`, and the places for streams on them.
#[derive(Debug)]
pub(super) struct Places<C> {
    per_connection: usize,
    /// How many streams of a connection one stream here may be.
    each: usize,
    /// How many of these the last connection bore.
    borne: usize,
    backoff: Backoff,
    connections: BTreeMap<Connection, Carrying<C>>,
    next: u64,
    dialing: usize,
    /// What went wrong last, if nothing went well since.
    failed: Option<Unreachable>,
    /// How many streams were answered and are open.
    answered: usize,
}

/// Names a connection, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connection(u64);

#[derive(Debug)]
struct Carrying<C> {
    heard: Heard,
    by: C,
    streams: usize,
    /// A stream on it was, some time.
    answered: bool,
    /// It is known that it is over.
    lost: bool,
}

/// No connection, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct Unreachable {
    /// What went wrong.
    pub error: String,
    /// When the next attempt is made, for all streams.
    pub retry_at: Instant,
    /// It is only that the streams of others were ended: no news of the stream that asks.
    pub(in crate::upstream) is_lull: bool,
}

/// A stream has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left<C> {
    /// The connection is no good any more; until then no other is made.
    pub(super) retry_at: Option<Instant>,
    /// The connection carries nothing any more: to be closed.
    pub(super) empty: Option<C>,
}

impl<C: Clone> Places<C> {
    /// Of connections with so many streams at most, of which `each` stream here may be several.
    pub(super) fn new(per_connection: usize, each: usize, backoff: Backoff) -> Self {
        let each = each.max(1);
        let per_connection = (per_connection / each).max(1);
        Self {
            per_connection,
            each,
            borne: per_connection,
            backoff,
            connections: BTreeMap::new(),
            next: 0,
            dialing: 0,
            failed: None,
            answered: 0,
        }
    }

    /// A place on a connection that has room: the fullest, so that others come to be empty.
    pub(super) fn take(&mut self) -> Option<(Connection, C)> {
        let (per_connection, each) = (self.per_connection, self.each);
        let with_room = self.connections.iter_mut().filter(|(_, carrying)| {
            carrying.streams < per_connection && carrying.streams < room(&carrying.heard, each)
        });
        let (connection, carrying) = with_room.max_by_key(|(_, carrying)| carrying.streams)?;
        carrying.streams += 1;
        Some((*connection, carrying.by.clone()))
    }

    /// How many connections to make, now that so many streams are `waiting` for a place. `random` is uniform over its
    /// range.
    ///
    /// # Errors
    /// None before a time that has not come; those that are being made are for who waits already.
    pub(super) fn dial(&mut self, waiting: usize, now: Instant, random: u64) -> Result<usize, Unreachable> {
        if let Some(failed) = self.failed.as_ref().filter(|failed| failed.retry_at > now) {
            return if self.dialing > 0 { Ok(0) } else { Err(failed.clone()) };
        }
        if self.connections.values().any(|carrying| carrying.heard.bears_none()) {
            return Err(self.fail(now, "the origin bears no streams at the moment".to_owned(), random));
        }
        // One finds out whether the origin is there, and how many streams it bears.
        let at_once = if self.connections.values().any(|carrying| !carrying.heard.is_over()) { DIALS } else { 1 };
        let dials = waiting.div_ceil(self.borne).min(at_once).saturating_sub(self.dialing);
        self.dialing += dials;
        Ok(dials)
    }

    /// A connection was made.
    pub(super) fn dialed(&mut self, heard: Heard, by: C) -> Connection {
        (self.dialing, self.failed) = (self.dialing.saturating_sub(1), None);
        self.borne = room(&heard, self.each).clamp(1, self.per_connection);
        let connection = Connection(self.next);
        self.next += 1;
        self.connections.insert(connection, Carrying { heard, by, streams: 0, answered: false, lost: false });
        connection
    }

    /// One could not be made; what those who wait are told, unless another that is being made may do for them. `random` is
    /// uniform over its range.
    pub(super) fn undialed(&mut self, now: Instant, error: String, random: u64) -> Option<Unreachable> {
        self.dialing = self.dialing.saturating_sub(1);
        let unreachable = self.fail(now, error, random);
        (self.dialing == 0).then_some(unreachable)
    }

    /// A stream was answered. Whether it is the only one: then the origin may just have come back.
    pub(super) fn answered(&mut self, on: Connection) -> bool {
        if let Some(carrying) = self.connections.get_mut(&on) {
            carrying.answered = true;
        }
        self.backoff.reset();
        self.answered += 1;
        self.answered == 1
    }

    /// A stream has ended; `answered` says whether it was. When its connection is over, so are the others on it, and one
    /// backoff is enough (rule 89).
    pub(super) fn end(&mut self, on: Connection, answered: bool, now: Instant, random: u64) -> Left<C> {
        let empty = self.leave(on, answered);
        let Some(carrying) = self.connections.get_mut(&on) else { return Left { retry_at: None, empty: None } };
        let over = carrying.heard.is_over();
        let retry_at = if over && !std::mem::replace(&mut carrying.lost, over) {
            let said = carrying.heard.go_away().map(|said| format!("; {said}")).unwrap_or_default();
            Some(self.fail(now, format!("the connection ended{said}"), random).retry_at)
        } else if over {
            Some(self.failed.as_ref().map_or(now, |failed| failed.retry_at.max(now)))
        } else {
            if empty && !carrying.answered {
                let error = "the origin ended every stream".to_owned();
                self.failed = Some(Unreachable { error, retry_at: now + LULL, is_lull: true });
            }
            None
        };
        Left { retry_at, empty: self.remove_if_empty(on) }
    }

    /// A stream is not wanted any more; whether its connection carries nothing.
    pub(super) fn leave(&mut self, on: Connection, answered: bool) -> bool {
        self.answered -= usize::from(answered).min(self.answered);
        self.connections.get_mut(&on).is_some_and(|carrying| {
            carrying.streams = carrying.streams.saturating_sub(1);
            carrying.streams == 0
        })
    }

    /// Removes a connection that carries nothing; it is to be closed.
    pub(super) fn remove_if_empty(&mut self, connection: Connection) -> Option<C> {
        let empty = self.connections.get(&connection).is_some_and(|carrying| carrying.streams == 0);
        if empty { self.connections.remove(&connection).map(|carrying| carrying.by) } else { None }
    }

    /// Several that fail at a time are one failure.
    fn fail(&mut self, now: Instant, error: String, random: u64) -> Unreachable {
        let retry_at = match &self.failed {
            Some(failed) if failed.retry_at > now => failed.retry_at,
            _ => now + self.backoff.next(random),
        };
        self.failed.insert(Unreachable { error, retry_at, is_lull: false }).clone()
    }
}

/// How many there may be on a connection, each of which may be several of its streams: one, if it bears any.
fn room(heard: &Heard, each: usize) -> usize {
    let streams = heard.room();
    (streams / each).max(usize::from(streams > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::frames::Said;

    fn places(per_connection: usize) -> Places<()> {
        Places::new(per_connection, 1, Backoff::default())
    }

    fn bearing(max_streams: Option<u32>) -> Heard {
        let heard = Heard::default();
        heard.note(Said::Settings { max_streams });
        heard
    }

    /// How many connections there are once `streams` have a place, each of which bears what `max_streams` says.
    fn connections(places: &mut Places<()>, streams: usize, max_streams: Option<u32>) -> usize {
        let (now, mut waiting) = (Instant::now() + Duration::from_secs(60), streams);
        loop {
            while waiting > 0 && places.take().is_some() {
                waiting -= 1;
            }
            if waiting == 0 {
                return places.connections.len();
            }
            for _ in 0..places.dial(waiting, now, u64::MAX).unwrap() {
                places.dialed(bearing(max_streams), ());
            }
        }
    }

    #[test]
    fn streams_share_connections_as_far_as_these_go() {
        assert_eq!(connections(&mut places(100), 250, None), 3);
        assert_eq!(connections(&mut places(100), 250, Some(1000)), 3);
        assert_eq!(connections(&mut places(100), 250, Some(40)), 7);
        assert_eq!(connections(&mut places(1), 25, None), 25);
        // Each may be several, and no connection bears more than it can.
        let nine = || Places::new(100, 9, Backoff::default());
        assert_eq!(connections(&mut nine(), 25, None), 3);
        assert_eq!(connections(&mut nine(), 25, Some(40)), 7);
        assert_eq!(connections(&mut nine(), 25, Some(5)), 25);
        assert_eq!(connections(&mut Places::new(3, 9, Backoff::default()), 25, None), 25);
    }

    #[test]
    fn connections_are_made_for_as_many_streams_as_one_bears() {
        let (mut places, now) = (places(100), Instant::now());
        assert_eq!(places.dial(250, now, 0), Ok(1));
        places.dialed(bearing(Some(1)), ());
        assert!(places.take().is_some() && places.take().is_none());
        // Not three, and in the end one after the other.
        assert_eq!(places.dial(249, now, 0), Ok(DIALS));
    }

    #[test]
    fn an_origin_that_bears_no_stream_at_the_moment_is_asked_for_one_and_gets_no_more_connections() {
        let (mut places, now) = (places(100), Instant::now());
        assert_eq!(places.dial(3, now, 0), Ok(1));
        let heard = bearing(Some(0));
        places.dialed(heard.clone(), ());
        assert!(places.take().is_some() && places.take().is_none());
        let waits = places.dial(2, now, u64::MAX).unwrap_err().retry_at - now;
        assert_eq!(waits, Duration::from_millis(500));
        assert!(places.dial(2, now + waits, u64::MAX).is_err());
        heard.note(Said::Settings { max_streams: Some(100) });
        assert!(places.take().is_some());
    }

    #[test]
    fn one_connection_too_many_takes_nothing_from_those_that_are_being_made() {
        let (mut places, now) = (places(2), Instant::now());
        connections(&mut places, 2, None);
        assert_eq!(places.dial(6, now, 0), Ok(3));
        assert_eq!(places.undialed(now, "too many".into(), u64::MAX), None);
        assert_eq!(places.dial(6, now, 0), Ok(0));
        places.dialed(bearing(None), ());
        assert!(places.take().is_some() && places.take().is_some());
        assert_eq!(places.dial(4, now, 0), Ok(1));
        assert_eq!(places.undialed(now, "too many".into(), u64::MAX), None);
        let unreachable = places.undialed(now, "too many".into(), u64::MAX);
        assert!(unreachable.is_some() && places.dial(4, now, 0).err() == unreachable);
    }

    #[test]
    fn one_connection_is_tried_before_many_are() {
        let (mut places, now) = (places(100), Instant::now());
        assert_eq!(places.dial(5000, now, u64::MAX), Ok(1));
        assert_eq!(places.dial(5000, now, u64::MAX), Ok(0));
        places.dialed(bearing(None), ());
        assert_eq!(places.dial(4900, now, u64::MAX), Ok(DIALS));
        assert_eq!(places.dial(4900, now, u64::MAX), Ok(0));
    }

    #[test]
    fn a_connection_without_a_stream_is_over_and_others_are_filled_first() {
        let (mut places, now) = (places(2), Instant::now());
        assert_eq!(connections(&mut places, 4, None), 2);
        let (first, second) = (Connection(0), Connection(1));
        assert_eq!(places.end(first, false, now, 0), Left { retry_at: None, empty: None });
        assert_eq!(places.take(), Some((first, ())));
        assert!(!places.leave(first, false) && places.leave(first, false));
        assert_eq!(places.remove_if_empty(first), Some(()));
        places.end(second, false, now, 0);
        assert_eq!(places.take(), Some((second, ())));
        assert!(places.take().is_none() && places.remove_if_empty(second).is_none());
    }

    #[test]
    fn rule_089_the_backoff_of_an_origin_is_one_for_all_its_streams() {
        let (mut places, mut now) = (places(100), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..3 {
            assert_eq!(places.dial(1000, now, u64::MAX), Ok(1));
            let failed = places.undialed(now, "refused".into(), u64::MAX).unwrap();
            assert_eq!(places.dial(1000, now, u64::MAX), Err(failed.clone()));
            waits.push((failed.retry_at - now).as_millis());
            now = failed.retry_at;
        }
        // A connection on which nothing is answered is no success.
        for answered in [false, true, true] {
            let heard = bearing(None);
            assert_eq!(places.dial(2, now, u64::MAX), Ok(1));
            let connection = places.dialed(heard.clone(), ());
            assert!(places.take().is_some() && places.take().is_some());
            assert!(!answered || places.answered(connection));
            heard.note_end("");
            let retry_at = places.end(connection, answered, now, u64::MAX).retry_at.unwrap();
            assert_eq!(
                places.end(connection, false, now, u64::MAX),
                Left { retry_at: Some(retry_at), empty: Some(()) }
            );
            waits.push((retry_at - now).as_millis());
            now = retry_at;
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 500, 500]);
    }

    #[test]
    fn where_every_stream_is_ended_connections_are_few_and_who_is_new_does_not_wait_long() {
        let (mut places, mut now) = (places(2), Instant::now());
        for round in 0..9 {
            assert_eq!(places.dial(2, now, u64::MAX), Ok(1));
            let connection = places.dialed(bearing(None), ());
            assert!(places.take().is_some() && places.take().is_some());
            assert_eq!(places.end(connection, false, now, u64::MAX), Left { retry_at: None, empty: None });
            assert_eq!(places.end(connection, false, now, u64::MAX), Left { retry_at: None, empty: Some(()) });
            let waits = places.dial(1, now, u64::MAX).unwrap_err().retry_at - now;
            assert_eq!(waits, LULL, "{round}");
            now += waits;
        }
    }

    #[test]
    fn while_one_connection_has_room_the_loss_of_another_keeps_nobody_waiting() {
        let (mut places, now) = (places(2), Instant::now());
        connections(&mut places, 4, None);
        places.end(Connection(0), true, now, 0);
        places.connections[&Connection(1)].heard.note_end("");
        let left = places.end(Connection(1), true, now, u64::MAX);
        assert_eq!(left.retry_at, Some(now + Duration::from_millis(500)));
        assert_eq!(places.take(), Some((Connection(0), ())));
        assert!(places.take().is_none() && places.dial(1, now, u64::MAX).is_err());
    }

    #[test]
    fn the_first_answer_after_none_is_told_apart() {
        let (mut places, now) = (places(2), Instant::now());
        connections(&mut places, 2, None);
        assert_eq!([places.answered(Connection(0)), places.answered(Connection(0))], [true, false]);
        places.end(Connection(0), true, now, 0);
        assert!(!places.answered(Connection(0)));
        places.leave(Connection(0), true);
        places.leave(Connection(0), true);
        assert!(places.answered(Connection(0)));
    }
}
