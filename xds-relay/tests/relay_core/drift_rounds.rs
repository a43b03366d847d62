//! Drift that is looked for without being asked for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use prost::Message;
use xds_relay::relay_core::{DriftRounds, ServedStream};
use xds_transport::server::Stream;
use xds_transport::wire::{DeltaDiscoveryRequest, Node};

use crate::support::*;

const EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// What is seen over a time, with no more than one stream at a time for it; the moments at which there was one.
fn look(world: &mut World, rounds: &mut DriftRounds, seconds: u32) -> Vec<u32> {
    let streams = world.streams_of(0);
    let (mut moments, mut was_asked) = (Vec::new(), false);
    for tenth in 0..seconds * 10 {
        world.advance(SECOND / 10);
        rounds.poll(world.now);
        world.settle();
        let more = world.streams_of(0) - streams.min(world.streams_of(0));
        assert!(more <= 1, "{more} streams for it at a time");
        if more == 1 && !was_asked {
            moments.push(tenth / 10);
        }
        was_asked = more == 1;
    }
    moments
}

fn differing(world: &World) -> u64 {
    world.counted(0, "drift_resources{origin=\"o0\"}")
}

fn checks(world: &World, result: &str) -> u64 {
    world.counted(0, &format!("drift_checks_total{{origin=\"o0\",result=\"{result}\"}}"))
}

fn clients(world: &World, why: &str) -> u64 {
    world.counted(0, &format!("drift_clients{{why=\"{why}\"}}"))
}

#[test]
fn what_is_stuck_is_seen_in_its_time_without_being_asked_for_and_is_no_drift_once_it_came() {
    let mut world = World::of(&[DELTA], &[&["a"]], "");
    ["x", "y", "z"].iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x", "y", "z"]);
    world.advance(SECOND);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || 0);
    look(&mut world, &mut rounds, 60);
    assert_eq!((differing(&world), checks(&world, "differs")), (0, 0));
    assert!(checks(&world, "same") >= 1);
    world.stick(0);
    ["x", "y"].iter().for_each(|name| world.put(0, CLUSTERS, name, "2"));
    look(&mut world, &mut rounds, 75);
    assert_eq!(differing(&world), 2);
    assert!(checks(&world, "differs") >= 1);
    // The origin takes it back.
    ["x", "y"].iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
    world.advance(SECOND);
    assert_eq!(differing(&world), 2, "what was seen stays until it is looked at again");
    look(&mut world, &mut rounds, 75);
    assert_eq!(differing(&world), 0);
    assert!(world.counted(0, "drift_age_seconds{origin=\"o0\"}") < 60);
}

#[test]
fn one_scope_is_compared_after_the_other_and_each_once_in_a_round() {
    let mut world = World::of(&[DELTA], &[&["a", "b", "c"]], "");
    let names = ["a", "b", "c"].map(|authority| endpoints(authority, "x"));
    names.iter().for_each(|name| world.put(0, ENDPOINTS, name, "1"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &names.each_ref().map(String::as_str));
    world.advance(SECOND);
    // A random number is as good as its middle, in which nothing is moved.
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    let moments = look(&mut world, &mut rounds, 30 + 60 + 5);
    assert_eq!(moments.len(), 4, "{moments:?}");
    assert!(moments.iter().zip([30, 50, 70, 90]).all(|(at, about)| at.abs_diff(about) <= 1), "{moments:?}");
    assert_eq!((checks(&world, "same"), differing(&world)), (4, 0));
}

#[test]
fn an_origin_that_cannot_be_asked_is_not_known_to_drift() {
    let mut world = World::of(&[DELTA], &[&["a"]], "");
    world.put(0, CLUSTERS, "x", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x"]);
    world.advance(SECOND);
    world.set_up(0, false);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || 0);
    look(&mut world, &mut rounds, 60);
    assert!(checks(&world, "unknown") >= 1);
    assert_eq!((differing(&world), checks(&world, "differs"), checks(&world, "same")), (0, 0, 0));
}

/// All scopes of a world of authorities have one resource each, and one stream asks for all of them.
fn world_of(authorities: &[&str]) -> (World, usize, Vec<String>) {
    let mut world = World::of(&[DELTA], &[authorities], "linger: 5s");
    let names: Vec<_> = authorities.iter().map(|authority| endpoints(authority, "x")).collect();
    names.iter().for_each(|name| world.put(0, ENDPOINTS, name, "1"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &names.iter().map(String::as_str).collect::<Vec<_>>());
    world.advance(SECOND);
    (world, client, names)
}

#[test]
fn drift_that_was_seen_is_not_over_because_nothing_can_be_compared() {
    let (mut world, _, names) = world_of(&["a"]);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    world.put(0, ENDPOINTS, &names[0], "2");
    look(&mut world, &mut rounds, 60);
    assert_eq!(differing(&world), 1);
    world.set_up(0, false);
    look(&mut world, &mut rounds, 180);
    assert!(checks(&world, "unknown") >= 2);
    assert_eq!((differing(&world), checks(&world, "same")), (1, 0));
    assert!(world.counted(0, "drift_age_seconds{origin=\"o0\"}") > 180, "that was no comparison");
    world.put(0, ENDPOINTS, &names[0], "1");
    world.set_up(0, true);
    look(&mut world, &mut rounds, 120);
    assert_eq!(differing(&world), 0);
    assert!(checks(&world, "same") >= 1);
}

#[test]
fn what_differs_for_a_moment_is_no_drift() {
    let (mut world, _, names) = world_of(&["a"]);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    world.put(0, ENDPOINTS, &names[0], "2");
    assert_eq!(look(&mut world, &mut rounds, 33), [30]);
    world.put(0, ENDPOINTS, &names[0], "1");
    assert_eq!(look(&mut world, &mut rounds, 20).len(), 1, "it is asked again");
    assert_eq!((checks(&world, "same"), checks(&world, "differs"), differing(&world)), (1, 0, 0));
}

/// The origin says something else at the version that it had first.
fn put_as_first(world: &mut World, name: &str, body: u32) {
    let now = world.now;
    world.origins[0].put_frame(now, "", ENDPOINTS, name, "1", frame(ENDPOINTS, name, &body.to_string()));
    world.settle();
}

#[test]
fn what_changes_all_the_time_is_no_drift_and_drift_that_begins_to_is_none_any_more() {
    let (mut world, _, names) = world_of(&["a"]);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    world.put(0, ENDPOINTS, &names[0], "2");
    look(&mut world, &mut rounds, 60);
    assert_eq!(differing(&world), 1);
    // It is another one each time that it is looked at, and as it was for longer than a look takes: whatever its version says.
    for body in 3..60 {
        put_as_first(&mut world, &names[0], body);
        look(&mut world, &mut rounds, 4);
    }
    assert_eq!(differing(&world), 0);
    look(&mut world, &mut rounds, 75);
    assert_eq!(differing(&world), 1, "it stands still, and is not what is served");
}

#[test]
fn what_changes_all_the_time_is_not_told_for_what_stands_beside_it() {
    let (mut world, client, names) = world_of(&["a"]);
    let other = endpoints("a", "other");
    world.put(0, ENDPOINTS, &other, "1");
    world.subscribe(client, ENDPOINTS, &[&other]);
    world.advance(SECOND);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    world.put(0, ENDPOINTS, &other, "2");
    for body in 2..60 {
        put_as_first(&mut world, &names[0], body);
        look(&mut world, &mut rounds, 4);
    }
    assert_eq!(differing(&world), 1);
}

/// What it is given does not come to clients, and it is another one each time that it is looked at.
#[test]
fn a_relay_that_is_stuck_is_told_while_its_origin_goes_on() {
    let (mut world, _, names) = world_of(&["a"]);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    look(&mut world, &mut rounds, 35);
    world.stick(0);
    for version in 2..60_u32 {
        match version % 5 {
            0 => world.remove(0, ENDPOINTS, &names[0]),
            _ => world.put(0, ENDPOINTS, &names[0], &version.to_string()),
        }
        look(&mut world, &mut rounds, 3);
    }
    assert_eq!((differing(&world), checks(&world, "same")), (1, 1));
}

#[test]
fn a_name_that_nobody_wants_any_more_differs_no_more() {
    let (mut world, client, names) = world_of(&["a"]);
    let other = endpoints("a", "other");
    world.put(0, ENDPOINTS, &other, "1");
    world.subscribe(client, ENDPOINTS, &[&other]);
    world.advance(SECOND);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    [&names[0], &other].iter().for_each(|name| world.put(0, ENDPOINTS, name, "2"));
    look(&mut world, &mut rounds, 60);
    assert_eq!(differing(&world), 2);
    world.unsubscribe(client, ENDPOINTS, &[&other]);
    look(&mut world, &mut rounds, 120);
    assert_eq!(differing(&world), 1);
}

#[test]
fn a_scope_that_is_gone_before_its_turn_differs_no_more() {
    let (mut world, client, names) = world_of(&["a", "b", "c"]);
    let mut rounds = DriftRounds::new(world.relays[0].core.clone(), EVERY, || u64::MAX / 2);
    world.stick(0);
    names.iter().for_each(|name| world.put(0, ENDPOINTS, name, "2"));
    look(&mut world, &mut rounds, 93);
    assert_eq!((differing(&world), checks(&world, "differs")), (3, 4), "the first is compared for the second time");
    world.disconnect(client);
    look(&mut world, &mut rounds, 50);
    assert_eq!(differing(&world), 1, "the others had their turn since");
}

/// A stream that counts how often it is looked at.
#[derive(Default)]
struct Counted(AtomicUsize);

impl ServedStream for Counted {
    fn peer(&self) -> &str {
        "somebody"
    }

    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self, _: &str) {}
}

#[test]
fn clients_are_not_looked_at_for_each_scope() {
    let (mut world, ..) = world_of(&["a", "b", "c"]);
    let core = world.relays[0].core.clone();
    let counted = Arc::new(Counted::default());
    // Who has not said who it is is not looked at for what it lacks either.
    let _routes = core.open_stream(DELTA, Waker::noop().clone(), Some(counted.clone()));
    let mut rounds = DriftRounds::new(core, EVERY, || u64::MAX / 2);
    look(&mut world, &mut rounds, 95);
    assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    assert_eq!(checks(&world, "same"), 4);
}

#[test]
fn where_nobody_looks_nothing_is_told() {
    let world = World::of(&[DELTA], &[&["a"]], "");
    assert!(!world.metrics_of(0).contains("xds_relay_drift"), "{}", world.metrics_of(0));
}

/// A stream that others see.
struct Shown(Arc<Mutex<Stream>>);

impl ServedStream for Shown {
    fn peer(&self) -> &str {
        "somebody"
    }

    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        look(&self.0.lock().unwrap());
    }

    fn end(&self, _: &str) {}
}

#[test]
fn a_client_that_is_not_sent_what_there_is_is_behind_and_one_that_rejects_it_has_it_not_either() {
    let mut world = World::of(&[DELTA], &[&["a"]], "share_by: [cluster]");
    world.put(0, CLUSTERS, "x", "1");
    let node = |id: &str| Node { id: id.into(), cluster: "c".into(), ..Node::default() };
    let rejects = world.shown_client(DELTA, &node("r"));
    world.subscribe(rejects, CLUSTERS, &["x"]);
    let core = world.relays[0].core.clone();
    let stream = Arc::new(Mutex::new(Stream::new(DELTA, core.settings())));
    let shown = Arc::new(Shown(stream.clone()));
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(shown));
    let asks = DeltaDiscoveryRequest {
        node: node("s").encode_to_vec().into(),
        type_url: CLUSTERS.to_owned(),
        resource_names_subscribe: vec!["x".to_owned()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.lock().unwrap().handle_message(world.now, asks.encode_to_vec().into(), &mut routes).unwrap();
    world.advance(SECOND);
    let mut rounds = DriftRounds::new(core, EVERY, || 0);
    look(&mut world, &mut rounds, 18);
    assert_eq!(clients(&world, "behind"), 0, "that may be on its way, or wait for another type");
    look(&mut world, &mut rounds, 5);
    assert_eq!((clients(&world, "behind"), clients(&world, "rejected")), (1, 0));
    assert!(stream.lock().unwrap().poll_transmit(world.now, &mut routes).unwrap().is_some());
    world.clients[rejects].refuses = true;
    world.put(0, CLUSTERS, "x", "2");
    world.advance(SECOND);
    look(&mut world, &mut rounds, 75);
    assert_eq!(clients(&world, "rejected"), 1);
    assert_eq!(clients(&world, "behind"), 0, "what it was sent waits for its answer");
}
