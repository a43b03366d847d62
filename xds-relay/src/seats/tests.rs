use std::cell::Cell;
use std::net::Ipv4Addr;

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
    seat.place().asks();
}

fn must_leave(seat: &Seat) -> bool {
    seat.place().poll_leave(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn who_is_longest_without_a_stream_gives_its_seat_to_who_comes_and_who_has_one_keeps_it() {
    let world = World::new(4, None);
    let [streaming, silent, was_busy, opens] = [1, 2, 3, 4].map(|client| world.sits(from(client)));
    asks(&streaming);
    // Of what was idle all the time the first is not this, which had a stream until now.
    asks(&was_busy);
    was_busy.place().ends();
    // A call on which nothing is asked is no stream.
    opens.place().begins();
    assert!(world.comes(from(5)).is_pending());
    assert_eq!([&streaming, &silent, &was_busy, &opens].map(must_leave), [false, true, false, false]);
    assert!(world.comes(from(5)).is_pending(), "it has its seat still");
    assert_eq!((world.told.get(), world.seats.taken()), (1, 4), "one for one");
    drop(silent);
    let newcomer = world.sits(from(5));
    // It is idle since it came, which was after the other's last stream.
    let mut kept = Vec::new();
    for leaves in [opens, was_busy] {
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

/// What is asked, or over, of a connection that is gone, or on a call that is over.
#[test]
fn what_comes_late_changes_nothing() {
    let world = World::new(1, Some(1));
    let seat = world.sits(from(1));
    let place = seat.place();
    place.begins();
    place.ends();
    place.asks();
    assert!(world.comes(from(1)).is_pending(), "it has no stream");
    drop(seat);
    place.begins();
    place.asks();
    place.ends();
    let seat = world.sits(from(1));
    assert!(!must_leave(&seat) && place.poll_leave(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(seat);
    let table = lock(&world.seats.table);
    assert_eq!((table.taken.len(), table.idle.len(), table.clients.len()), (0, 0, 0), "nothing is left of anybody");
}
