//! What a call has of the seat of its connection.

use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::seats::Place;

/// A call on a connection: it is a stream, and holds the seat, once its client was admitted and has asked something, until it is over. It
/// is among the extensions of its request, for who admits it.
#[derive(Clone)]
pub(crate) struct Claim(Arc<Call>);

struct Call {
    place: Place,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    is_admitted: bool,
    has_asked: bool,
    is_over: bool,
}

impl Claim {
    pub(crate) fn of(place: Place) -> Self {
        Self(Arc::new(Call { place, state: Mutex::default() }))
    }

    /// By the rules that there are, and as one of the streams that there may be.
    pub(crate) fn is_admitted(&self) {
        self.change(|state| state.is_admitted = true);
    }

    /// Its client has said something.
    pub(crate) fn has_asked(&self) {
        self.change(|state| state.has_asked = true);
    }

    /// What comes later changes nothing.
    pub(crate) fn is_over(&self) {
        self.change(|state| state.is_over = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let state = &mut *lock(&self.0.state);
        let was = state.is_stream();
        change(state);
        // Still locked: it ends after it has begun.
        match (was, state.is_stream()) {
            (false, true) => self.0.place.begins(),
            (true, false) => self.0.place.ends(),
            _ => {}
        }
    }
}

impl State {
    fn is_stream(self) -> bool {
        self.is_admitted && self.has_asked && !self.is_over
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::seats::Seats;

    /// Whether a connection keeps the only seat there is, its calls being so.
    fn keeps(calls: impl FnOnce(&dyn Fn() -> Claim)) -> bool {
        let (seats, cx) = (Seats::new(1), &mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(seat)) = seats.poll_take(cx, (None, None), || {}) else { panic!("it is the first") };
        calls(&|| Claim::of(seat.place()));
        matches!(seats.poll_take(cx, (None, None), || {}), Poll::Ready(Err(_)))
    }

    #[test]
    fn a_call_is_a_stream_once_it_is_admitted_and_has_asked_until_it_is_over() {
        let [admitted, asked, over] = [Claim::is_admitted, Claim::has_asked, Claim::is_over];
        let once = |all: &[fn(&Claim)]| {
            keeps(|call| {
                let call = call();
                all.iter().for_each(|is| is(&call));
            })
        };
        assert!(once(&[admitted, asked]) && once(&[asked, admitted]) && once(&[asked, admitted, asked, admitted]));
        for not in [&[admitted][..], &[asked], &[], &[admitted, asked, over], &[admitted, over, asked], &[over, asked]]
        {
            assert!(!once(not), "{}", not.len());
        }
    }

    /// One that goes on without asking, or that nobody admits, does not keep what another had.
    #[test]
    fn what_counts_of_a_connection_are_its_streams_and_no_other_calls() {
        let streams = |over: usize| {
            keeps(|call| {
                let [asks_nothing, unadmitted] = [call(), call()];
                asks_nothing.is_admitted();
                unadmitted.has_asked();
                let streams = [call(), call()];
                for stream in &streams {
                    stream.is_admitted();
                    stream.has_asked();
                }
                streams.iter().take(over).for_each(Claim::is_over);
            })
        };
        assert_eq!([0, 1, 2].map(streams), [true, true, false]);
    }
}
