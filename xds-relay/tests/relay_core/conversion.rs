//! Rule 149: whatever is spoken on either side, clients hold what the origin holds.

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

fn every_pair(scenario: impl Fn(&mut World, usize, &str)) {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            let client = world.client(downstream, "n");
            scenario(&mut world, client, &format!("{upstream:?} to {downstream:?}"));
        }
    }
}

#[test]
fn rule_149_clusters_come_change_and_go_by_wildcard() {
    every_pair(|world, client, pair| {
        world.put(0, CLUSTERS, "a", "1");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "{pair}");
        world.put(0, CLUSTERS, "b", "1");
        world.put(0, CLUSTERS, "a", "2");
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@2", "b@1"], "{pair}");
        world.remove(0, CLUSTERS, "b");
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"], "{pair}");
        world.remove(0, CLUSTERS, "a");
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{pair}");
    });
}

#[test]
fn rule_149_clusters_come_change_and_go_by_name() {
    every_pair(|world, client, pair| {
        world.put(0, CLUSTERS, "a", "1");
        world.subscribe(client, CLUSTERS, &["a", "b"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "{pair}");
        world.put(0, CLUSTERS, "b", "1");
        world.put(0, CLUSTERS, "a", "2");
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@2", "b@1"], "{pair}");
        world.remove(0, CLUSTERS, "b");
        world.advance(16 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"], "{pair}");
    });
}

#[test]
fn rule_149_endpoints_come_and_change_by_name() {
    every_pair(|world, client, pair| {
        world.put(0, ENDPOINTS, "a", "1");
        world.subscribe(client, ENDPOINTS, &["a", "b"]);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@1"], "{pair}");
        world.put(0, ENDPOINTS, "b", "1");
        world.put(0, ENDPOINTS, "a", "2");
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@2", "b@1"], "{pair}");
    });
}

#[test]
fn rule_149_members_of_a_glob_come_change_and_go() {
    every_pair(|world, client, pair| {
        let (a, b) = (member("a"), member("b"));
        world.put(0, CLUSTERS, &a, "1");
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{a}@1")], "{pair}");
        world.put(0, CLUSTERS, &b, "1");
        world.put(0, CLUSTERS, &a, "2");
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{a}@2"), format!("{b}@1")], "{pair}");
        world.remove(0, CLUSTERS, &b);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{a}@2")], "{pair}");
    });
}

#[test]
fn rule_149_an_empty_glob_is_answered() {
    every_pair(|world, client, pair| {
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.advance(16 * SECOND);
        assert_eq!(world.told(client), ["Cluster ok"], "{pair}");
        world.put(0, CLUSTERS, &member("a"), "1");
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 1, "{pair}");
        world.remove(0, CLUSTERS, &member("a"));
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 0, "{pair}");
    });
}

/// No payload is decoded on the way: it is the origin that is to see to it, as a cache and the relay's own files do.
#[test]
fn rule_082_a_relay_hands_on_what_an_origin_calls_otherwise_than_its_payload_does() {
    // Over SotW in a wrapper, which has a name outside too.
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        let now = world.now;
        world.origins[0].put_frame(now, "", CLUSTERS, "outside", "1", frame(CLUSTERS, "inside", "1"));
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["outside@1"], "{upstream:?}");
        let response: Vec<_> = world.clients[client].chunks.iter().flatten().flatten().copied().collect();
        assert!(response.windows(6).any(|part| part == b"inside"), "as the origin wrote it");
        // Under the name that was told it goes, too.
        world.remove(0, CLUSTERS, "outside");
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{upstream:?}");
    }
}

/// That it was all of it is known only once the origin was silent for a moment.
#[test]
fn rule_037_a_full_state_is_sent_once_though_its_glob_is_answered_later() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        for name in ["x", "y"] {
            world.put(0, CLUSTERS, &member(name), "1");
        }
        let client = world.client(SOTW, "n");
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.advance(60 * SECOND);
        let sent = |world: &World| (world.clients[client].held(CLUSTERS).len(), world.clients[client].chunks.len());
        assert_eq!(sent(&world), (2, 1), "{upstream:?}");
        // What has nothing in it is answered all the same, to who asks for it later.
        world.subscribe(client, CLUSTERS, &[&GLOB.replace("/g/", "/empty/")]);
        world.advance(60 * SECOND);
        assert!(sent(&world).1 > 1, "{upstream:?}");
    }
}
