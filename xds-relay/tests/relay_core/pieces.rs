//! Answers that come in pieces, slowly, or over links that break: rules 150, 151 and 156.

use std::time::Duration;

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

/// Twenty clusters, of which an answer holds three at a time; under names of `within`.
fn put_many(world: &mut World, within: &str) {
    let now = world.now;
    for at in 0..20 {
        let name = within.replace('*', &format!("c{at:02}"));
        world.origins[0].put_frame(now, "", CLUSTERS, &name, "1", cluster(&name, &"x".repeat(100_000)));
    }
    world.settle();
}

/// 1376 of 1500 clusters were removed when a pause was taken for an end.
#[test]
fn rule_151_no_piece_is_removed_whatever_the_time_between_the_pieces() {
    for within in ["*", GLOB] {
        for (pace, slowness) in [(1, 0), (14, 0), (0, 20), (5, 20)] {
            for downstream in [DELTA, SOTW] {
                let mut world = World::new(DELTA);
                put_many(&mut world, within);
                let client = world.client(downstream, "n");
                world.subscribe(client, CLUSTERS, &[within]);
                world.advance(20 * SECOND);
                assert_eq!(world.clients[client].held(CLUSTERS).len(), 20);
                let gone = within.replace('*', "c07");
                let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
                world.disconnect(client);
                world.told(client);
                world.remove(0, CLUSTERS, &gone);
                world.origins[0].pace = Duration::from_secs(pace);
                world.origins[0].slowness = Duration::from_secs(slowness);
                world.connect(client, cold);
                world.advance(300 * SECOND);
                let case = format!("{within} {pace} {slowness} {downstream:?}");
                let told = world.told(client).join(" ");
                assert_eq!(told.matches(" -").count(), 1, "{case}: {told:.300}");
                assert!(told.contains(&format!("-{gone}")), "{case}");
                assert_eq!(world.clients[client].held(CLUSTERS).len(), 19, "{case}");
                if downstream == DELTA {
                    assert!(!told.contains('@'), "{case}: nothing is sent that the client has");
                }
            }
        }
    }
}

/// Who comes later, while the answer to the first is on its way, may hold more than the first.
#[test]
fn rule_151_who_comes_in_the_middle_of_an_answer_loses_nothing() {
    for late in [DELTA, SOTW] {
        let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
        put_many(&mut world, "*");
        let early = world.client(DELTA, "n1");
        let client = world.client(late, "n2");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        let cold = world
            .add_relay("origins: [{name: up, server: '127.0.0.1:1'}]\nshare_by: [cluster]", vec![Feeder::Origin(0)]);
        world.disconnect(client);
        world.disconnect(early);
        world.origins[0].pace = 5 * SECOND;
        world.connect(early, cold);
        world.subscribe(early, CLUSTERS, &["*"]);
        world.advance(12 * SECOND);
        assert!(world.clients[early].held(CLUSTERS).len() < 20);
        world.told(client);
        world.connect(client, cold);
        world.advance(200 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains(" -"), "{late:?}: {told:.300}");
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 20);
        assert_eq!(world.clients[early].held(CLUSTERS).len(), 20);
    }
}

/// A relay that asks a relay holds nothing itself: what the other has so far is not all there is, to its clients.
#[test]
fn rule_151_a_cold_chain_of_relays_removes_nothing() {
    for between in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(DELTA);
            put_many(&mut world, "*");
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(20 * SECOND);
            let middle = world.add_relay_before(Feeder::Origin(0), DELTA);
            let edge = world.add_relay_before(Feeder::Relay(middle), between);
            world.disconnect(client);
            world.told(client);
            world.origins[0].pace = 5 * SECOND;
            world.connect(client, edge);
            world.advance(200 * SECOND);
            let told = world.told(client).join(" ");
            assert!(!told.contains(" -"), "{between:?} {downstream:?}: {told:.200}");
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 20, "{between:?} {downstream:?}");
        }
    }
}

/// A stream that breaks in the middle of an answer, again and again.
#[test]
fn rule_151_an_answer_that_breaks_off_removes_nothing() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        put_many(&mut world, "*");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        world.disconnect(client);
        world.told(client);
        world.origins[0].pace = 2 * SECOND;
        world.connect(client, cold);
        for _ in 0..10 {
            world.advance(3 * SECOND);
            world.set_up(0, false);
            world.advance(20 * SECOND);
            world.set_up(0, true);
        }
        world.advance(100 * SECOND);
        assert!(!world.told(client).join(" ").contains(" -"), "{downstream:?}");
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 20);
    }
}

/// A relay that is cut off from its origin holds less than another one, which is not.
#[test]
fn rule_150_a_relay_that_is_cut_off_takes_nothing_from_who_comes_from_a_better_one() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            world.put(0, CLUSTERS, "a", "1");
            let cut_off = world.add_relay_before(Feeder::Origin(1), upstream);
            world.origins.push(Origin::new());
            world.put(1, CLUSTERS, "a", "1");
            let [client, warm] = ["n", "n"].map(|node| world.client(downstream, node));
            world.connect(warm, cut_off);
            for client in [client, warm] {
                world.subscribe(client, CLUSTERS, &["*"]);
            }
            world.advance(20 * SECOND);
            world.set_up(1, false);
            world.put(0, CLUSTERS, "b", "1");
            world.told(client);
            world.disconnect(client);
            world.connect(client, cut_off);
            world.advance(3600 * SECOND);
            let told = world.told(client).join(" ");
            assert!(!told.contains(['@', '-']), "{upstream:?} {downstream:?}: {told}");
            world.put(1, CLUSTERS, "b", "1");
            world.set_up(1, true);
            world.advance(60 * SECOND);
            assert!(!world.told(client).join(" ").contains('-'), "{upstream:?} {downstream:?}");
            assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1"]);
        }
    }
}

#[test]
fn rule_156_behind_a_balancer_that_ends_every_stream_nothing_that_lingers_is_dropped() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.put(0, CLUSTERS, "a", "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        world.origins[0].hangs_up = true;
        world.disconnect(client);
        world.advance(10 * LINGER);
        world.connect(client, 0);
        let fresh = world.client(DELTA, "n");
        world.subscribe(fresh, CLUSTERS, &["*"]);
        world.advance(SECOND);
        assert_eq!(world.clients[fresh].held(CLUSTERS), ["a@1"], "{upstream:?}");
        assert!(!world.told(client).join(" ").contains('-'));
    }
}

/// What came just before a stream broke is kept as well as what came long before.
#[test]
fn rule_156_what_came_right_before_the_origin_was_lost_is_kept() {
    for (upstream, downstream) in [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)] {
        for interest in ["*", GLOB] {
            let mut world = World::new(upstream);
            let name = interest.replace('*', "x");
            world.put(0, CLUSTERS, &name, "1");
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, &[interest]);
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@1")]);
            world.set_up(0, false);
            world.disconnect(client);
            world.advance(10 * LINGER);
            let fresh = world.client(downstream, "n");
            world.subscribe(fresh, CLUSTERS, &[interest]);
            assert_eq!(
                world.clients[fresh].held(CLUSTERS),
                [format!("{name}@1")],
                "{upstream:?} {downstream:?} {interest}"
            );
        }
    }
}

/// An origin that has nothing to say to a returning relay is there nonetheless.
#[test]
fn rule_156_what_lingers_is_dropped_once_a_stream_has_been_open_for_long() {
    let mut world = World::new(DELTA);
    world.put(0, ENDPOINTS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["a"]);
    world.set_up(0, false);
    world.origins[0].silent = true;
    world.disconnect(client);
    world.set_up(0, true);
    world.advance(3 * LINGER);
    assert_eq!(world.scopes_of(0), [""; 0]);
}

/// Endpoints change all the time, on the same stream: silence never says that the clusters are complete.
#[test]
fn rule_151_a_stream_that_is_never_quiet_says_where_an_answer_ends() {
    for (within, endpoint) in [("*", "busy"), (GLOB, "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/busy")] {
        for late in [SOTW, DELTA] {
            let mut world = World::new(DELTA);
            put_many(&mut world, within);
            world.put(0, ENDPOINTS, endpoint, "0");
            let gone = within.replace('*', "c07");
            let client = world.client(late, "n");
            world.subscribe(client, CLUSTERS, &[within]);
            world.advance(20 * SECOND);
            let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
            let (busy, other) = (world.client_of(cold, DELTA, "n"), world.client_of(cold, DELTA, "n"));
            world.subscribe(busy, ENDPOINTS, &[endpoint]);
            world.disconnect(client);
            world.remove(0, CLUSTERS, &gone);
            world.told(client);
            world.asked(0);
            world.connect(client, cold);
            world.subscribe(other, CLUSTERS, &[within]);
            for second in 0..10 {
                world.put(0, ENDPOINTS, endpoint, &format!("{second}"));
                world.advance(3 * SECOND);
            }
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 19, "{within} {late:?}");
            let told = world.told(client).join(" ");
            assert_eq!(told.matches(" -").count(), 1, "{told:.300}");
            // The name that marks the end is asked for once, and left; and nobody is told of it.
            let asked = world.asked(0).join(" ");
            assert_eq!(asked.matches(".end-of-answer").count(), 2, "{asked}");
            assert!(!(told + &world.told(other).join(" ")).contains(".end-of-answer"));
        }
    }
}
