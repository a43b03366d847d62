//! An origin takes requests of so many bytes: a stranger who wants more than one holds has nobody else go without.

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use xds_relay::relay_core::{ClientUse, Identity, RelayCore, Routes, ServedStream};
use xds_transport::server::{Source, Stream, Tally};
use xdstp_cache::{Interest, SubscriberId};

use crate::support::*;

/// Of 1 MiB seven eighths are for names: just as much as sixteen of these.
const MANY: usize = 16;
const WORDS: &str =
    "more than 917504 bytes of names in a request to the origin (limits.max_upstream_request_bytes of the relay)";

#[derive(Default)]
struct Outside {
    refused: Mutex<Option<String>>,
    of: Option<ClientUse>,
}

impl ServedStream for Outside {
    fn peer(&self) -> &str {
        ""
    }
    fn client_use(&self) -> Option<&ClientUse> {
        self.of.as_ref()
    }
    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}
    fn end(&self, reason: &str) {
        panic!("{reason}");
    }
    fn refuse(&self, reason: &str) {
        *self.refused.lock().unwrap() = Some(reason.to_owned());
    }
}

struct Stranger {
    outside: Arc<Outside>,
    routes: Routes,
    id: SubscriberId,
}

impl Stranger {
    fn new(core: &Arc<RelayCore>) -> Self {
        Self::with(core, Outside::default())
    }

    /// A stream of who comes from an address, or is on this machine.
    fn of(core: &Arc<RelayCore>, identity: Identity) -> Self {
        let of = Some(core.admit_client((identity, false), None, Instant::now()).unwrap());
        Self::with(core, Outside { of, ..Outside::default() })
    }

    fn with(core: &Arc<RelayCore>, outside: Outside) -> Self {
        let outside = Arc::new(outside);
        let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(outside.clone()));
        let id = routes.open(&ENDPOINTS.into());
        Self { outside, routes, id }
    }

    fn ask(&mut self, names: std::ops::Range<usize>) -> Option<String> {
        for at in names {
            self.routes.subscribe(self.id, &Interest::Name(long(at).parse().unwrap()));
        }
        self.routes.resume(self.id, Vec::new());
        self.routes.refused().map(|refused| refused.to_string())
    }

    fn refused(&self) -> Option<String> {
        self.outside.refused.lock().unwrap().take()
    }

    fn close(mut self) {
        self.routes.close(self.id, &Tally::default());
    }
}

/// A sixteenth of the room, with what goes with it.
fn long(at: usize) -> String {
    let name = endpoints("b", &format!("{at:02}"));
    let padding = "x".repeat((917_504 / MANY) - 6 - name.len());
    name + &padding
}

fn world(protocol: Protocol) -> World {
    let mut world = World::of(&[protocol], &[&["a", "b"]], "limits: { max_upstream_request_bytes: 1 MiB }");
    for name in ["one", "two"] {
        world.put(0, ENDPOINTS, &endpoints("a", name), "1");
    }
    world
}

#[test]
fn who_wants_more_than_a_sotw_request_holds_is_refused_alone() {
    let world = world(SOTW);
    let mut stranger = Stranger::new(&world.relays[0].core);
    assert_eq!(stranger.ask(0..MANY), None);
    assert_eq!(stranger.ask(MANY..MANY + 1).as_deref(), Some(WORDS));
    assert!(world.metrics_of(0).contains("refused_total{limit=\"max_upstream_request_bytes\"} 1"));
}

#[test]
fn delta_has_no_such_limit() {
    let mut world = world(DELTA);
    let mut stranger = Stranger::new(&world.relays[0].core);
    assert_eq!(stranger.ask(0..2 * MANY), None);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&endpoints("a", "one")]);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
}

#[test]
fn what_is_left_makes_room_for_other_scopes_at_once() {
    let more = "limits: { max_upstream_request_bytes: 1 MiB }\nlinger: 1ms";
    let mut world = World::of(&[SOTW], &[&["a", "b"]], more);
    let wanted = endpoints("a", "one");
    world.put(0, ENDPOINTS, &wanted, "1");
    let core = world.relays[0].core.clone();
    let (mut leaves, mut stays) = (Stranger::new(&core), Stranger::new(&core));
    assert_eq!((leaves.ask(0..8), stays.ask(8..MANY)), (None, None));
    world.settle();
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&wanted]);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 0, "no room yet");
    leaves.close();
    world.settle();
    // Before a sweep looks for room, which would take it from who has most.
    world.advance(SECOND / 2);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
    world.advance(3 * SECOND);
    assert_eq!(stays.refused(), None);
}

/// The first is served although the second is there, the second as soon as the one who has most is gone.
#[test]
fn who_has_most_loses_when_there_is_no_room_for_others() {
    let mut world = world(SOTW);
    let core = world.relays[0].core.clone();
    let mut stranger = Stranger::new(&core);
    assert_eq!(stranger.ask(0..MANY), None);
    world.settle();
    let client = world.client(DELTA, "n");
    for name in ["one", "two"] {
        world.subscribe(client, ENDPOINTS, &[&endpoints("a", name)]);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 0);
    }
    // It goes to the one who has most, though others may be older or newer.
    let mut small = Stranger::new(&core);
    assert_eq!(small.ask(0..MANY - 1), None);
    world.advance(SECOND);
    assert_eq!((stranger.refused().as_deref(), small.refused()), (Some(WORDS), None));
    assert_eq!(world.counted(0, "downstream_refused_total{limit=\"max_upstream_request_bytes\"}"), 1);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 0);

    // What it leaves does not linger.
    stranger.close();
    world.advance(SECOND);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 2);
    assert_eq!(small.refused(), None);
    world.advance(60 * SECOND);
    assert_eq!(small.refused(), None);

    // It comes back, and so does a good client of another authority.
    let mut stranger = Stranger::new(&core);
    assert_eq!(stranger.ask(0..MANY), None);
    world.advance(2 * SECOND);
    assert_eq!(stranger.refused().as_deref(), Some(WORDS));
    stranger.close();
    world.put(0, ENDPOINTS, &endpoints("a", "three"), "1");
    let other = world.client(SOTW, "m");
    world.subscribe(other, ENDPOINTS, &[&endpoints("a", "three")]);
    world.advance(SECOND);
    assert_eq!(world.clients[other].held(ENDPOINTS).len(), 1);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 2);
}

/// Who of some streams with these names, of as many clients, is refused, where somebody wants one name more.
fn refused_of<const N: usize>(streams: [(Identity, std::ops::Range<usize>); N]) -> [bool; N] {
    let mut world = world(SOTW);
    let core = world.relays[0].core.clone();
    let mut streams = streams.map(|(identity, names)| (Stranger::of(&core, identity), names));
    for (stream, names) in &mut streams {
        assert_eq!(stream.ask(names.clone()), None);
    }
    world.settle();
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&endpoints("a", "one")]);
    world.advance(SECOND);
    streams.map(|(stream, _)| stream.refused().is_some())
}

fn from(last: u8) -> Identity {
    Identity::of_address(std::net::Ipv4Addr::new(192, 0, 2, last).into())
}

#[test]
fn who_has_most_on_many_streams_loses_and_of_these_the_largest() {
    let refused = refused_of([(from(1), 0..3), (from(1), 3..7), (from(1), 7..10), (from(2), 10..MANY)]);
    assert_eq!(refused, [false, true, false, false]);
}

#[test]
fn what_many_behind_one_address_all_want_is_counted_once() {
    let refused = refused_of([(from(1), 0..6), (from(1), 0..6), (from(1), 0..6), (from(2), 6..MANY)]);
    assert_eq!(refused, [false, false, false, true]);
}

#[test]
fn those_on_this_machine_may_be_many_and_each_is_alone() {
    let refused = refused_of([(Identity::Local, 0..5), (Identity::Local, 5..10), (from(2), 10..MANY)]);
    assert_eq!(refused, [false, false, true]);
}

/// What was asked for and given up makes room, over streams of the origin, too.
#[test]
fn room_that_was_taken_is_given_back() {
    let mut world = world(SOTW);
    let core = world.relays[0].core.clone();
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&endpoints("a", "one")]);
    for _ in 0..3 {
        let mut stranger = Stranger::new(&core);
        assert_eq!(stranger.ask(0..MANY - 1), None);
        world.advance(SECOND);
        world.set_up(0, false);
        world.advance(SECOND);
        world.set_up(0, true);
        world.advance(10 * SECOND);
        assert_eq!(stranger.refused(), None);
        stranger.close();
        world.advance(2 * LINGER);
    }
    world.subscribe(client, ENDPOINTS, &[&endpoints("a", "two")]);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 2);
}

/// The origin is asked when nobody is in the middle of a first request: until then what is lacking is that of before, and
/// nobody else goes for the same.
#[test]
fn while_a_first_request_is_handled_who_wants_little_is_not_ended() {
    let mut world = world(SOTW);
    let core = world.relays[0].core.clone();
    let (mut small, mut stranger) = (Stranger::new(&core), Stranger::new(&core));
    assert_eq!(small.ask(MANY..MANY + 1), None);
    world.settle();
    assert_eq!(stranger.ask(0..MANY), None);
    world.settle();
    let mut opening = Stranger::new(&core);
    opening.routes.subscribe(opening.id, &Interest::Name(long(MANY).parse().unwrap()));
    world.advance(SECOND);
    assert_eq!(stranger.refused().as_deref(), Some(WORDS));
    stranger.close();
    world.advance(10 * SECOND);
    assert_eq!((small.refused(), opening.refused()), (None, None));
    assert_eq!(opening.ask(0..1), None);
    world.advance(60 * SECOND);
    assert_eq!((small.refused(), opening.refused()), (None, None));
}
