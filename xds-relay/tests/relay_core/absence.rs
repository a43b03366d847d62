//! When a name is absent: the origin said so, or a SotW origin answered without it, and did not add it for 15 seconds.

use crate::support::*;

#[test]
fn rule_070_what_a_delta_origin_does_not_have_is_told_at_once() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["missing"]);
    assert_eq!(world.told(client), ["ClusterLoadAssignment -missing"]);
}

#[test]
fn rule_150_what_a_sotw_origin_leaves_out_of_a_later_response_for_15_seconds_is_absent() {
    let mut world = World::new(SOTW);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["missing", "there"]);
    // It is connected, and says nothing of the type.
    world.advance(3600 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.put(0, ENDPOINTS, "there", "1");
    assert_eq!(world.told(client), ["ClusterLoadAssignment there@1"]);
    world.advance(14 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.advance(2 * SECOND);
    assert_eq!(world.told(client), ["ClusterLoadAssignment -missing"]);
    world.put(0, ENDPOINTS, "missing", "1");
    assert_eq!(world.told(client), ["ClusterLoadAssignment missing@1"]);
}

/// 485 of 883 requests were refused when a relay took the silence of an origin for an answer.
#[test]
fn rule_150_a_connected_origin_that_is_silent_takes_nothing_away() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    let member = GLOB.replace('*', "x");
    for (upstream, downstream) in [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)] {
        let mut world = World::new(upstream);
        for (of, name) in [(CLUSTERS, "a"), (CLUSTERS, member.as_str()), (ENDPOINTS, "a")] {
            world.put(0, of, name, "1");
        }
        let cold = world.add_relay_before(Feeder::Origin(0), upstream);
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*", GLOB]);
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.advance(20 * SECOND);
        let held = [CLUSTERS, ENDPOINTS].map(|of| world.clients[client].held(of));
        world.told(client);
        world.origins[0].silent = true;
        world.connect(client, cold);
        world.advance(3600 * SECOND);
        assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
        world.origins[0].silent = false;
        world.advance(60 * SECOND);
        assert_eq!([CLUSTERS, ENDPOINTS].map(|of| world.clients[client].held(of)), held);
        assert!(!world.told(client).join(" ").contains('-'), "{upstream:?} {downstream:?}");
    }
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

/// The 15 seconds are for who asks, and not for who brings it along: what it holds it may go on to hold.
#[test]
fn rule_150_what_a_sotw_origin_leaves_out_is_left_to_who_brought_it_along() {
    let mut world = World::new(DELTA);
    for name in ["brought", "there"] {
        world.put(0, ENDPOINTS, name, "1");
    }
    let holder = world.client(DELTA, "n");
    world.subscribe(holder, ENDPOINTS, &["brought", "there"]);
    let cold = world.add_relay_before(Feeder::Origin(1), SOTW);
    world.origins.push(Origin::new());
    world.told(holder);
    world.connect(holder, cold);
    world.put(1, ENDPOINTS, "there", "2");
    world.put(1, ENDPOINTS, "there", "3");
    world.advance(60 * SECOND);
    assert!(!world.told(holder).join(" ").contains('-'));
    assert_eq!(world.clients[holder].held(ENDPOINTS), ["brought@1", "there@3"]);
    world.put(1, ENDPOINTS, "brought", "2");
    assert_eq!(world.told(holder), ["ClusterLoadAssignment brought@2"]);
}

/// What the origin said of a name counts while it is away, absence as well as presence: it is an answer. A name that it
/// said nothing of is left to who brings it along, whatever else was answered.
#[test]
fn rule_150_an_absence_that_the_origin_told_is_an_answer_while_it_is_away() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        for name in ["told", "untold"] {
            world.put(0, CLUSTERS, name, "1");
        }
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["told", "untold"]);
        world.advance(SECOND);
        let other = world.add_relay_before(Feeder::Origin(1), DELTA);
        world.origins.push(Origin::new());
        let asks = world.client_of(other, DELTA, "n");
        world.subscribe(asks, CLUSTERS, &["told"]);
        assert_eq!(world.told(asks), ["Cluster -told"]);
        world.set_up(1, false);
        world.told(client);
        world.connect(client, other);
        world.advance(3600 * SECOND);
        let told = world.told(client).join(" ");
        match downstream {
            DELTA => assert_eq!(told, "Cluster -told"),
            // A full state without the one would take the other, too.
            SOTW => assert_eq!(told, ""),
        }
        // Who asks for it alone has its answer over SotW, too.
        world.unsubscribe(client, CLUSTERS, &["untold"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["untold@1"], "{downstream:?}: left, and not told as gone");
        for name in ["told", "untold"] {
            world.put(1, CLUSTERS, name, "2");
        }
        world.subscribe(client, CLUSTERS, &["untold"]);
        world.set_up(1, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["told@2", "untold@2"], "{downstream:?}");
        assert!(!world.told(client).join(" ").contains("-untold"), "{downstream:?}");
    }
}

#[test]
fn rule_099_an_empty_glob_is_told_at_once_over_delta() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["xdstp://a/envoy.config.cluster.v3.Cluster/g/*"]);
    assert_eq!(world.told(client), ["Cluster ok"]);
}

/// Silence ends an answer; an origin that is never silent has answered after a while.
#[test]
fn a_wildcard_is_complete_once_its_answer_falls_silent() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "0");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    // What comes is passed on at once, to who is there and to who comes.
    assert_eq!(world.told(client), ["Cluster a@0 ok"]);
    let eager = world.client(SOTW, "n");
    world.subscribe(eager, CLUSTERS, &["*"]);
    for round in 1..40 {
        world.put(0, CLUSTERS, "a", &round.to_string());
        assert_eq!(world.told(eager), [""; 0], "round {round}");
        world.advance(SECOND / 10);
    }
    world.advance(SECOND / 5);
    assert_eq!(world.told(eager), ["Cluster a@39 ok"]);

    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "0");
    let client = world.client(SOTW, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    for round in 1..60 {
        world.put(0, CLUSTERS, "a", &round.to_string());
        world.advance(SECOND / 10);
    }
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@59"]);
}
