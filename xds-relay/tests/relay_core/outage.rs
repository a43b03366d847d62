//! The origin goes and returns.

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

#[test]
fn rule_143_a_lost_origin_changes_nothing_and_its_return_only_what_changed() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            for name in ["a", "b", "c"] {
                world.put(0, CLUSTERS, name, "1");
            }
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
            world.told(client);
            world.set_up(0, false);
            world.advance(60 * SECOND);
            assert_eq!(world.told(client), [""; 0]);
            world.remove(0, CLUSTERS, "b");
            world.put(0, CLUSTERS, "c", "2");
            world.asked(0);
            world.set_up(0, true);
            world.advance(60 * SECOND);
            let told = world.told(client).join(" ");
            assert_eq!(told.matches("-b").count(), 1, "{upstream:?} {downstream:?}: {told}");
            assert_eq!(told.matches("c@2").count(), 1, "{upstream:?} {downstream:?}: {told}");
            assert!(!told.contains("a@1"), "{upstream:?} {downstream:?}: {told}");
            if upstream == DELTA {
                assert_eq!(world.asked(0), ["n Cluster =a@1 =b@1 =c@1"]);
            }
        }
    }
}

#[test]
fn rule_144_a_glob_member_removed_during_the_cut_is_told() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        let (a, b) = (GLOB.replace('*', "a"), GLOB.replace('*', "b"));
        world.put(0, CLUSTERS, &a, "1");
        world.put(0, CLUSTERS, &b, "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.advance(SECOND);
        world.told(client);
        world.set_up(0, false);
        world.remove(0, CLUSTERS, &b);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.told(client), [format!("Cluster -{b}")], "{upstream:?}");
    }
}

/// It lingers for as long as its origin is away.
#[test]
fn rule_143_what_was_answered_stays_when_a_wildcard_that_was_not_is_given_up() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.put(0, ENDPOINTS, "b", "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &["b"]);
        world.advance(SECOND);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["*"]);
        world.advance(SECOND);
        world.disconnect(client);
        world.advance(120 * SECOND);
        let next = world.client(DELTA, "n");
        world.subscribe(next, ENDPOINTS, &["b"]);
        assert_eq!(world.told(next), ["ClusterLoadAssignment b@1"], "{upstream:?}");
    }
}

#[test]
fn a_client_that_comes_while_the_origin_is_away_is_served() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
        world.put(0, CLUSTERS, "a", "1");
        let first = world.client(DELTA, "n1");
        world.subscribe(first, CLUSTERS, &["*"]);
        world.advance(SECOND);
        world.set_up(0, false);
        let second = world.client(downstream, "n2");
        world.subscribe(second, CLUSTERS, &["*"]);
        assert_eq!(world.clients[second].held(CLUSTERS), ["a@1"]);
    }
}

#[test]
fn nothing_that_can_still_be_served_is_dropped_while_the_origin_is_away() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, CLUSTERS, "a", "1");
    world.put(0, ENDPOINTS, "a", "1");
    let first = world.client(DELTA, "n1");
    world.subscribe(first, CLUSTERS, &["*"]);
    world.subscribe(first, ENDPOINTS, &["a"]);
    world.advance(SECOND);
    world.set_up(0, false);
    world.disconnect(first);
    world.advance(20 * LINGER);
    let second = world.client(DELTA, "n2");
    world.subscribe(second, CLUSTERS, &["*"]);
    world.subscribe(second, ENDPOINTS, &["a"]);
    assert_eq!(world.told(second), ["Cluster a@1 ok", "ClusterLoadAssignment a@1"]);
    // Once it is back, what nobody wants goes.
    world.disconnect(second);
    world.advance(2 * LINGER);
    world.asked(0);
    world.set_up(0, true);
    world.advance(2 * LINGER);
    assert_eq!(world.scopes_of(0), [""; 0]);
    assert_eq!(world.origins[0].streams, 0);
}

/// An origin that stays away must not make the relay hold on to everybody who ever asked.
#[test]
fn who_came_and_went_while_the_origin_is_away_leaves_nothing_behind() {
    let mut world = World::new(DELTA);
    world.set_up(0, false);
    for at in 0..5 {
        let client = world.client(DELTA, &format!("n{at}"));
        world.subscribe(client, CLUSTERS, &["*", &format!("xdstp://a{at}/envoy.config.cluster.v3.Cluster/g/*")]);
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.disconnect(client);
    }
    assert_eq!(world.scopes_of(0).len(), 10);
    world.advance(2 * LINGER);
    assert_eq!(world.scopes_of(0), [""; 0]);
    assert_eq!(world.streams_of(0), 0);
}

#[test]
fn who_left_before_there_was_an_answer_is_not_asked_for_on_the_next_stream() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::of(&[protocol], &[&[]], "share_by: [cluster]");
        world.put(0, CLUSTERS, "a", "1");
        let stays = world.client(DELTA, "n1");
        world.subscribe(stays, CLUSTERS, &["a"]);
        world.set_up(0, false);
        world.asked(0);
        let leaves = world.client(DELTA, "n2");
        world.subscribe(leaves, CLUSTERS, &["a", "b"]);
        world.disconnect(leaves);
        world.set_up(0, true);
        world.advance(10 * SECOND);
        let asked = world.asked(0);
        assert!(
            asked.iter().any(|line| line.contains('a')) && !asked.iter().any(|line| line.contains('b')),
            "{asked:?}"
        );
    }
}

#[test]
fn after_everybody_left_no_scope_stream_or_upstream_is_left() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.put(0, CLUSTERS, "a", "1");
        let clients = [(DELTA, "n1"), (SOTW, "n2")].map(|(protocol, node)| world.client(protocol, node));
        for client in clients {
            world.subscribe(client, CLUSTERS, &["*", GLOB, &GLOB.replace('*', "x"), "missing"]);
            world.subscribe(client, ENDPOINTS, &["a", "b"]);
        }
        world.advance(20 * SECOND);
        assert_eq!(world.streams_of(0), 3, "two nodes, and one for xdstp names");
        world.unsubscribe(clients[0], ENDPOINTS, &["a"]);
        for client in clients {
            world.disconnect(client);
        }
        world.advance(LINGER + 3 * SECOND);
        assert_eq!(world.scopes_of(0), [""; 0]);
        assert_eq!((world.streams_of(0), world.origins[0].streams), (0, 0));
        let dump = world.relays[0].core.config_dump(world.now);
        assert!(dump.clients.is_empty());
    }
}

/// A client that needs a whole answer waits for silence after its members; a stream that ends in it must not end the wait
/// for good: the next one is told the members, and has no more to say of them.
#[test]
fn an_answer_that_a_cut_interrupts_is_complete_on_the_next_stream() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, &GLOB.replace('*', "a"), "1");
    let eager = world.client(DELTA, "n");
    world.subscribe(eager, CLUSTERS, &[GLOB]);
    world.set_up(0, false);
    let whole = world.client(SOTW, "n");
    world.subscribe(whole, CLUSTERS, &["*", GLOB]);
    world.set_up(0, true);
    world.advance(10 * SECOND);
    assert_eq!(world.clients[whole].held(CLUSTERS), [format!("{}@1", GLOB.replace('*', "a"))]);
}
