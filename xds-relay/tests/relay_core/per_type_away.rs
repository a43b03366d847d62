//! What clients, other relays and what lingers notice of a type that an origin cannot be asked for, or not now.

use prost::Message as _;
use xds_relay::Config;
use xds_transport::wire::DeltaDiscoveryResponse;

use crate::per_type::{BOTH, client, goes_away, is_back, world};
use crate::support::*;

/// What lingered long enough is asked for anew: of what is told at once, the relay kept it.
fn is_kept(world: &mut World, client: usize, of: &str, name: &str) -> bool {
    world.origins.iter_mut().for_each(|origin| origin.up = false);
    world.settle();
    world.told(client);
    world.subscribe(client, of, &[name]);
    !world.told(client).is_empty()
}

/// In a full state, what lacks is gone: whether the client held it, or would wait for it.
#[test]
fn no_full_state_lacks_what_the_origin_has_no_method_for() {
    for (protocol, holds) in BOTH.into_iter().flat_map(|of| [(of, true), (of, false)]) {
        for (of, name) in [(LISTENERS, "l"), (CLUSTERS, "a"), (LISTENERS, "*"), (CLUSTERS, "*")] {
            let mut world = world(protocol);
            let before = world.add_relay_before(Feeder::Origin(0), DELTA);
            let late = world.client_of(before, SOTW, "n");
            if holds {
                world.subscribe(late, of, &[name]);
                world.advance(SECOND);
            }
            world.disconnect(late);
            world.clients[late].chunks.clear();
            world.origins[0].without.insert(of.into(), 12);
            let all = client(&mut world, DELTA);
            world.subscribe(late, of, &[name]);
            world.connect(late, 0);
            world.advance(60 * SECOND);
            let context = format!("{protocol:?} {of} {name} {holds}");
            assert_eq!(world.clients[late].chunks.len(), 0, "{context}");
            assert_eq!(world.clients[all].held(of), [""; 0], "{context}");
            is_back(&mut world);
            world.advance(60 * SECOND);
            let there = [(LISTENERS, "l@1"), (CLUSTERS, "a@1"), (CLUSTERS, "b@1")];
            let there = there.iter().filter(|(its, told)| *its == of && (name == "*" || told.starts_with(name)));
            assert_eq!(world.clients[late].held(of), there.map(|(_, told)| *told).collect::<Vec<_>>(), "{context}");
        }
    }
}

/// Its clients may hold what this one does not, and it would be the origin's word to it.
#[test]
fn a_relay_behind_it_waits_for_what_the_origin_has_no_method_for() {
    for (protocol, below) in BOTH.into_iter().flat_map(|of| BOTH.map(|below| (of, below))) {
        let mut world = world(protocol);
        world.origins[0].without.insert(ENDPOINTS.into(), 12);
        let reads = client(&mut world, DELTA);
        world.subscribe(reads, ENDPOINTS, &["new"]);
        let second = world.add_relay_before(Feeder::Relay(0), below);
        let client = world.client_of(second, DELTA, "n");
        for (of, names) in [(LISTENERS, "*"), (CLUSTERS, "*"), (ENDPOINTS, "a")] {
            world.subscribe(client, of, &[names]);
        }
        world.advance(60 * SECOND);
        assert!(world.told(reads).join(" ").contains("-!new:12"), "{protocol:?}");
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1"], "{protocol:?} {below:?}");
        for chunks in &world.clients[client].chunks {
            let response = DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap();
            assert_eq!(response.removed_resources, [""; 0], "{protocol:?} {below:?}");
            assert_eq!(response.resource_errors.len(), 0, "{protocol:?} {below:?}");
        }
        is_back(&mut world);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@1"], "{protocol:?} {below:?}");
    }
}

/// Whose streams of types end is of no concern any more.
#[test]
fn a_type_that_is_away_at_one_origin_is_there_at_the_one_that_its_authority_is_led_to() {
    let mut world = World::empty();
    world.origins.extend([Origin::new(), Origin::new()]);
    let text = |first: &str, second: &str| {
        let of = "server: '127.0.0.1:1', authorities:";
        format!(
            "default_origin: o0\norigins:\n  - {{ name: o0, methods: per_type, {of} {first} }}\n  - {{ name: o1, {of} {second} }}\n"
        )
    };
    world.add_relay(&text("[y]", "[z]"), vec![Feeder::Origin(0), Feeder::Origin(1)]);
    let [y, z] = ["y", "z"].map(|authority| endpoints(authority, "e"));
    world.put(0, ENDPOINTS, &y, "1");
    world.put(1, ENDPOINTS, &z, "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.subscribe(client, ENDPOINTS, &[&y, &z]);
    world.advance(40 * SECOND);
    goes_away(&mut world, ENDPOINTS, 14);
    world.origins[1].silent = true;
    world.relays[0].core.lead(&Config::parse("relay.yaml", &text("[]", "[y, z]")).unwrap());
    world.settle();
    world.unsubscribe(client, ENDPOINTS, &[&y]);
    world.advance(3 * LINGER);
    assert!(!is_kept(&mut world, client, ENDPOINTS, &y));
}

/// A proxy waits for a backend that is not there longer than a stream that lasts needs to be taken for one.
#[test]
fn a_type_whose_next_streams_nobody_answers_is_away() {
    let mut world = world(DELTA);
    let client = client(&mut world, DELTA);
    world.origins[0].hangs.insert(ENDPOINTS.into());
    world.end_type(ENDPOINTS, 14);
    world.unsubscribe(client, ENDPOINTS, &["a"]);
    for _ in 0..4 {
        world.advance(90 * SECOND);
        world.end_type(ENDPOINTS, 14);
    }
    assert!(is_kept(&mut world, client, ENDPOINTS, "a"));
}

/// It may have nothing to say to who comes back with all that it has.
#[test]
fn an_origin_whose_other_streams_last_is_there_whatever_one_type_does() {
    let mut world = world(DELTA);
    let client = world.client(DELTA, "n");
    for (of, names) in [(LISTENERS, "*"), (CLUSTERS, "a"), (ENDPOINTS, "a")] {
        world.subscribe(client, of, &[names]);
    }
    world.advance(40 * SECOND);
    world.set_up(0, false);
    world.origins[0].silent = true;
    world.origins[0].without.insert(ENDPOINTS.into(), 7);
    world.set_up(0, true);
    world.advance(SECOND);
    world.unsubscribe(client, CLUSTERS, &["a"]);
    world.advance(58 * SECOND);
    assert!(!is_kept(&mut world, client, CLUSTERS, "a"));
}
