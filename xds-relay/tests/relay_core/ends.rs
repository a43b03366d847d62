//! Where an answer ends, and where it does not: what a client holds is not taken away by a word that is no end (rules 150, 151).

use std::time::Duration;

use bytes::Bytes;

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const ENDPOINTS_GLOB: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/g/*";
const BUSY: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/busy";
const MEMBERS: usize = 20;

/// The first origin has as many as an answer of several pieces.
fn put_many(world: &mut World, of: &str, within: &str) {
    let now = world.now;
    for at in 0..MEMBERS {
        let name = within.replace('*', &format!("c{at:02}"));
        world.origins[0].put_frame(now, "", of, &name, "1", frame(of, &name, &"x".repeat(100_000)));
    }
    world.settle();
}

/// A client that holds all of a collection, and leaves.
fn holds(world: &mut World, protocol: Protocol, of: &str, within: &str) -> usize {
    let client = world.client(protocol, "n");
    world.subscribe(client, of, &[within]);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[client].held(of).len(), MEMBERS);
    world.disconnect(client);
    world.told(client);
    client
}

fn losses(world: &mut World, client: usize) -> usize {
    world.told(client).join(" ").matches(" -").count()
}

#[test]
fn rule_151_a_resource_by_the_name_of_the_marker_ends_no_answer() {
    for late in [SOTW, DELTA] {
        let mut world = World::new(DELTA);
        put_many(&mut world, CLUSTERS, GLOB);
        let client = holds(&mut world, late, CLUSTERS, GLOB);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        let marker = GLOB.replace('*', &format!("xds-relay.{}.end-of-answer", world.relays[cold].core.instance()));
        let busy = world.client_of(cold, DELTA, "n");
        world.subscribe(busy, ENDPOINTS, &[BUSY]);
        world.origins[0].pace = Duration::from_secs(6);
        world.connect(client, cold);
        for second in 0..30 {
            world.put(0, ENDPOINTS, BUSY, &format!("{second}"));
            if second == 5 {
                let now = world.now;
                world.origins[0].put_frame(now, "", CLUSTERS, &marker, "1", frame(CLUSTERS, &marker, "made up"));
            }
            world.advance(3 * SECOND);
        }
        assert_eq!(losses(&mut world, client), 0);
    }
}

/// What is not in a SotW answer may be in the next: the relay before such an origin knows no end of it.
#[test]
fn rule_150_a_relay_says_nothing_of_a_marker_of_which_its_origin_said_nothing() {
    for late in [SOTW, DELTA] {
        let mut world = World::new(DELTA);
        put_many(&mut world, ENDPOINTS, ENDPOINTS_GLOB);
        let client = holds(&mut world, late, ENDPOINTS, ENDPOINTS_GLOB);
        let upper = world.add_relay_before(Feeder::Origin(0), SOTW);
        let cold = world.add_relay_before(Feeder::Relay(upper), DELTA);
        world.origins[0].pace = Duration::from_secs(12);
        world.connect(client, cold);
        world.advance(150 * SECOND);
        assert_eq!(losses(&mut world, client), 0);
    }
}

#[test]
fn rule_150_the_silence_of_a_relay_without_its_origin_ends_no_answer() {
    for late in [SOTW, DELTA] {
        let mut world = World::new(DELTA);
        put_many(&mut world, CLUSTERS, GLOB);
        let client = holds(&mut world, late, CLUSTERS, GLOB);
        let upper = world.add_relay_before(Feeder::Origin(0), DELTA);
        let cold = world.add_relay_before(Feeder::Relay(upper), DELTA);
        world.origins[0].pace = Duration::from_secs(6);
        world.connect(client, cold);
        world.advance(12 * SECOND);
        world.set_up(0, false);
        world.advance(90 * SECOND);
        world.set_up(0, true);
        world.advance(90 * SECOND);
        assert_eq!(losses(&mut world, client), 0);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), MEMBERS);
    }
}

#[test]
fn rule_151_behind_a_relay_an_answer_ends_with_its_marker() {
    let mut world = World::new(DELTA);
    put_many(&mut world, CLUSTERS, GLOB);
    let client = holds(&mut world, SOTW, CLUSTERS, GLOB);
    let upper = world.add_relay_before(Feeder::Origin(0), DELTA);
    let cold = world.add_relay_before(Feeder::Relay(upper), DELTA);
    world.remove(0, CLUSTERS, &GLOB.replace('*', "c07"));
    world.connect(client, cold);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS).len(), MEMBERS - 1);
}

#[test]
fn a_marker_is_left_when_silence_ends_the_answer() {
    let mut world = World::new(DELTA);
    put_many(&mut world, CLUSTERS, "*");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["busy"]);
    world.subscribe(client, CLUSTERS, &["*"]);
    for second in 0..4 {
        world.put(0, ENDPOINTS, "busy", &format!("{second}"));
        world.advance(4 * SECOND - SECOND / 4);
    }
    // From here on it says nothing of missing names, nor of anything else.
    world.origins[0].silent = true;
    world.advance(60 * SECOND);
    let asked = world.asked(0).join(" | ");
    assert_eq!(asked.matches("+xds-relay").count(), 1, "{asked}");
    assert_eq!(asked.matches("-xds-relay").count(), 1, "{asked}");
}

/// What lived for a time goes by itself, and its origin says nothing with that.
#[test]
fn rule_150_that_a_time_has_passed_is_no_word_of_an_origin_that_is_silent() {
    for late in [SOTW, DELTA] {
        let mut world = World::new(DELTA);
        let lives = frame(CLUSTERS, "a", "1").with_wrapper(Bytes::new(), Some(60 * SECOND), false);
        let now = world.now;
        world.origins[0].put_frame(now, "", CLUSTERS, "a", "1", lives);
        put_many(&mut world, CLUSTERS, "*");
        let client = world.client(late, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), MEMBERS + 1);
        world.disconnect(client);
        world.told(client);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        world.origins[0].pace = 20 * SECOND;
        world.connect(client, cold);
        world.advance(SECOND);
        world.set_up(0, false);
        world.origins[0].silent = true;
        world.set_up(0, true);
        world.advance(150 * SECOND);
        let told = world.told(client);
        assert!(told.iter().all(|line| line.matches(" -").count() <= 1), "{told:?}");
    }
}
