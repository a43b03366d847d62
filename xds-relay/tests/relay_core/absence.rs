//! When a name is absent: the origin said so, or a SotW origin was silent for 15 seconds.

use crate::support::*;

#[test]
fn rule_070_what_a_delta_origin_does_not_have_is_told_at_once() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["missing"]);
    assert_eq!(world.told(client), ["ClusterLoadAssignment -missing"]);
}

#[test]
fn rule_074_what_a_sotw_origin_does_not_send_for_15_seconds_is_absent() {
    let mut world = World::new(SOTW);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["missing"]);
    world.advance(14 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.advance(2 * SECOND);
    assert_eq!(world.told(client), ["ClusterLoadAssignment -missing"]);
    world.put(0, ENDPOINTS, "missing", "1");
    assert_eq!(world.told(client), ["ClusterLoadAssignment missing@1"]);
}

#[test]
fn an_unreachable_origin_makes_nothing_absent() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.set_up(0, false);
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.subscribe(client, CLUSTERS, &["*", "xdstp://a/envoy.config.cluster.v3.Cluster/g/*"]);
        world.advance(60 * SECOND);
        assert_eq!(world.told(client), [""; 0], "{upstream:?}");
        world.put(0, ENDPOINTS, "a", "1");
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@1"], "{upstream:?}");
        assert!(world.told(client).iter().any(|line| line == "Cluster ok"), "{upstream:?}");
    }
}

#[test]
fn rule_099_an_empty_glob_is_told_at_once_over_delta() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["xdstp://a/envoy.config.cluster.v3.Cluster/g/*"]);
    assert_eq!(world.told(client), ["Cluster ok"]);
}
