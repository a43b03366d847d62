use std::cell::Cell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

fn from(last: u8) -> Option<IpAddr> {
    Some(Ipv4Addr::new(10, 0, 0, last).into())
}

struct World {
    seats: Arc<Seats>,
    /// How many connections from one address may have.
    part: Option<usize>,
    told: Cell<usize>,
}

impl World {
    fn new(most: usize, part: Option<usize>) -> Self {
        Self { seats: Seats::new(most), part, told: Cell::new(0) }
    }

    fn comes(&self, client: Option<IpAddr>) -> Poll<Result<Seat, Full>> {
        let cx = &mut Context::from_waker(Waker::noop());
        self.seats.poll_take(cx, (client, self.part), || self.told.set(self.told.get() + 1))
    }

    /// There is room.
    fn sits(&self, client: Option<IpAddr>) -> Seat {
        match self.comes(client) {
            Poll::Ready(Ok(seat)) => seat,
            Poll::Ready(Err(full)) => panic!("{full:?}"),
            Poll::Pending => panic!("somebody is told to leave"),
        }
    }

    fn refuses(&self, client: Option<IpAddr>) -> Full {
        match self.comes(client) {
            Poll::Ready(Err(full)) => full,
            _ => panic!("it is let in"),
        }
    }
}

fn asks(seat: &Seat) {
    seat.place().begins();
}

/// Counts how often a newcomer is to look again.
#[derive(Default)]
struct Looks(AtomicUsize);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn must_leave(seat: &Seat) -> bool {
    seat.place().poll_leave(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn who_is_longest_without_a_stream_gives_its_seat_to_who_comes_and_who_has_one_keeps_it() {
    let world = World::new(4, None);
    let [streaming, silent, was_busy, other] = [1, 2, 3, 4].map(|client| world.sits(from(client)));
    asks(&streaming);
    // Of what was idle all the time the first is not this, which had a stream until now.
    asks(&was_busy);
    was_busy.place().ends();
    assert!(world.comes(from(5)).is_pending());
    assert_eq!([&streaming, &silent, &was_busy, &other].map(must_leave), [false, true, false, false]);
    assert!(world.comes(from(5)).is_pending(), "it has its seat still");
    assert_eq!((world.told.get(), world.seats.taken()), (1, 4), "one for one");
    drop(silent);
    let newcomer = world.sits(from(5));
    // It is idle since it came, which was after the other's last stream.
    let mut kept = Vec::new();
    for leaves in [other, was_busy] {
        assert!(world.comes(from(6)).is_pending());
        assert_eq!((must_leave(&leaves), must_leave(&newcomer)), (true, false));
        drop(leaves);
        kept.push(world.sits(from(6)));
        kept.iter().for_each(asks);
    }
    asks(&newcomer);
    assert_eq!((world.refuses(from(7)), must_leave(&streaming)), (Full::All, false));
}

#[test]
fn a_connection_that_asks_while_somebody_waits_for_another_seat_keeps_its_own() {
    let world = World::new(2, None);
    let [first, second] = [1, 2].map(|client| world.sits(from(client)));
    assert!(world.comes(from(3)).is_pending());
    asks(&second);
    drop(first);
    let third = world.sits(from(3));
    asks(&third);
    assert!(!must_leave(&second));
    assert_eq!(world.refuses(from(4)), Full::All);
}

#[test]
fn who_has_as_many_as_one_client_may_gives_up_its_own_and_nobody_elses() {
    let world = World::new(10, Some(2));
    let theirs = world.sits(from(1));
    let [first, second] = [(); 2].map(|()| world.sits(from(2)));
    asks(&first);
    assert!(world.comes(from(2)).is_pending());
    assert_eq!([&theirs, &first, &second].map(must_leave), [false, false, true]);
    drop(second);
    let second = world.sits(from(2));
    asks(&second);
    assert_eq!(world.refuses(from(2)), Full::OfClient);
    let _others = (world.sits(from(1)), world.sits(from(3)));
    second.place().ends();
    first.place().ends();
    assert!(world.comes(from(2)).is_pending());
    assert_eq!(
        [&theirs, &first, &second].map(must_leave),
        [false, false, true],
        "in the order in which they were left"
    );
}

#[test]
fn who_comes_without_an_address_has_as_many_as_there_are() {
    let world = World::new(3, Some(1));
    let all = [(); 3].map(|()| world.sits(None));
    all.iter().for_each(asks);
    assert_eq!(world.refuses(None), Full::All);
    drop(all);
    assert_eq!(world.seats.taken(), 0);
}

/// Who takes all that is free, again and again, takes it from himself.
#[test]
fn however_many_connections_somebody_makes_others_keep_theirs_until_they_have_a_stream() {
    let world = World::new(10, None);
    let honest = [1, 2, 3].map(|client| world.sits(from(client)));
    let mut flood: VecDeque<_> = (0..7).map(|_| world.sits(from(9))).collect();
    let mut others = Vec::new();
    for round in 0..30 {
        // Others come as well.
        let client = from(if round % 10 == 5 { 4 } else { 9 });
        assert!(world.comes(client).is_pending());
        assert_eq!(honest.each_ref().map(must_leave), [false; 3], "{round}");
        let oldest = flood.iter().position(must_leave);
        assert_eq!(oldest, Some(0), "{round}: of its own the one that is longest without a stream");
        flood.pop_front();
        let seat = world.sits(client);
        if client == from(9) {
            flood.push_back(seat);
        } else {
            asks(&seat);
            others.push(seat);
        }
    }
    // As many of another as of the first one: who was there first goes first.
    flood.truncate(2);
    let second = [(); 2].map(|()| world.sits(from(8)));
    assert!(world.comes(from(5)).is_pending());
    assert!(must_leave(&flood[0]) && !second.iter().any(must_leave));
}

#[test]
fn who_asks_after_it_was_told_to_leave_stays_and_who_waits_looks_for_another() {
    let world = World::new(2, None);
    let [first, second] = [1, 2].map(|client| world.sits(from(client)));
    let looks = Arc::<Looks>::default();
    let waker = Waker::from(looks.clone());
    let comes = || world.seats.poll_take(&mut Context::from_waker(&waker), (from(3), None), || {});
    assert!(comes().is_pending() && must_leave(&first));
    asks(&first);
    assert_eq!((must_leave(&first), looks.0.load(Ordering::Relaxed)), (false, 1));
    assert!(comes().is_pending());
    assert_eq!([&first, &second].map(must_leave), [false, true]);
    asks(&second);
    assert!(matches!(comes(), Poll::Ready(Err(Full::All))));
    assert_eq!([&first, &second].map(must_leave), [false; 2]);
}

#[test]
fn a_seat_that_is_free_is_given_though_somebody_else_is_to_leave() {
    let world = World::new(3, Some(2));
    let [first, second, _third] = [1, 2, 3].map(|client| world.sits(from(client)));
    assert!(world.comes(from(4)).is_pending() && must_leave(&first));
    drop(second);
    let _fourth = world.sits(from(4));
    // Who leaves does so for the next one.
    assert!(world.comes(from(5)).is_pending());
    assert_eq!(world.told.get(), 1);
    drop(first);
    let _fifth = world.sits(from(5));
    assert!(world.comes(from(6)).is_pending());
    assert_eq!(world.told.get(), 2);
}

/// What is asked, or over, of a connection that is gone.
#[test]
fn what_comes_late_changes_nothing() {
    let world = World::new(1, Some(1));
    let seat = world.sits(from(1));
    let place = seat.place();
    place.begins();
    place.ends();
    assert!(world.comes(from(1)).is_pending(), "it has no stream");
    drop(seat);
    place.begins();
    place.ends();
    let seat = world.sits(from(1));
    assert!(!must_leave(&seat) && place.poll_leave(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(seat);
    let table = lock(&world.seats.table);
    assert_eq!((table.taken.len(), table.idle.len(), table.clients.len()), (0, 0, 0), "nothing is left of anybody");
}
