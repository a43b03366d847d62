//! Clients that held something when they came: to a relay that knows nothing yet.

use crate::support::*;

#[test]
fn rule_083_a_cold_relay_resends_nothing_that_is_equal_and_removes_nothing_before_the_origin_answered() {
    let mut world = World::new(DELTA);
    for name in ["a", "b", "c"] {
        world.put(0, CLUSTERS, name, "1");
    }
    let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.told(client);
    world.remove(0, CLUSTERS, "b");
    world.put(0, CLUSTERS, "c", "2");
    world.disconnect(client);
    world.told(client);
    world.remove(0, CLUSTERS, "a");
    world.put(0, CLUSTERS, "d", "1");
    world.set_up(0, false);
    world.connect(client, cold);
    world.advance(60 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    let told = world.told(client).join("|");
    assert_eq!(told, "Cluster d@1 -a ok");
}

/// A wildcard that is answered in many responses is not complete with the first.
#[test]
fn a_cold_relay_removes_nothing_while_the_answer_is_on_its_way() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        let now = world.now;
        // More than one response: each holds 256 KiB.
        for at in 0..20 {
            let name = format!("c{at:02}");
            world.origins[0].put_frame(now, "", CLUSTERS, &name, "1", cluster(&name, &"x".repeat(100_000)));
        }
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 20);
        world.told(client);
        world.disconnect(client);
        world.connect(client, cold);
        world.advance(10 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains('-'), "{downstream:?}: {told}");
        assert!(!told.contains('@') || downstream == SOTW, "{downstream:?}: {told}");
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 20);
    }
}

#[test]
fn rule_146_a_client_that_switches_relays_is_resent_nothing() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            if upstream == SOTW {
                world.origins[0].set_version(CLUSTERS, "v7");
            }
            for name in ["a", "b"] {
                world.put(0, CLUSTERS, name, "1");
            }
            let other = world.add_relay_before(Feeder::Origin(0), upstream);
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
            world.told(client);
            let before = world.clients[client].chunks.len();
            world.disconnect(client);
            world.connect(client, other);
            world.advance(SECOND);
            assert!(!world.told(client).join(" ").contains('@'), "{upstream:?} {downstream:?}");
            let responses = world.clients[client].chunks.len() - before;
            assert_eq!(responses, usize::from(downstream == DELTA), "{upstream:?} {downstream:?}");
        }
    }
}

#[test]
fn xdstp_names_of_a_wildcard_are_not_removed_on_resume() {
    let mut world = World::new(SOTW);
    let name = "xdstp://a/envoy.config.cluster.v3.Cluster/x";
    // An origin may send to a wildcard what it likes.
    world.origins[0].wildcard_sends_xdstp();
    world.put(0, CLUSTERS, "a", "1");
    world.put(0, CLUSTERS, name, "1");
    let other = world.add_relay_before(Feeder::Origin(0), SOTW);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS).len(), 2);
    for relay in [0, other] {
        world.disconnect(client);
        world.connect(client, relay);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 2);
    }
}
