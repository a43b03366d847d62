//! One upstream interest for many clients.

use crate::support::*;

#[test]
fn rule_141_one_upstream_subscribe_for_many_and_one_unsubscribe_after_the_linger() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, ENDPOINTS, "a", "1");
    let clients = [(DELTA, "n1"), (SOTW, "n2"), (DELTA, "n3")].map(|(protocol, node)| world.client(protocol, node));
    for client in clients {
        world.subscribe(client, ENDPOINTS, &["a"]);
    }
    assert_eq!(world.asked(0), ["n1 ClusterLoadAssignment +a"]);
    assert_eq!(world.streams_of(0), 1);
    for client in clients {
        assert_eq!(world.told(client), ["ClusterLoadAssignment a@1"]);
        world.unsubscribe(client, ENDPOINTS, &["a"]);
    }
    world.advance(LINGER - SECOND);
    assert_eq!(world.asked(0), [""; 0]);
    world.advance(2 * SECOND);
    assert_eq!(world.asked(0), ["n1 ClusterLoadAssignment -a"]);
}

#[test]
fn rule_141_who_comes_back_within_the_linger_is_not_noticed() {
    let mut world = World::new(DELTA);
    world.put(0, ENDPOINTS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["a"]);
    world.unsubscribe(client, ENDPOINTS, &["a"]);
    world.advance(LINGER - SECOND);
    world.subscribe(client, ENDPOINTS, &["a"]);
    world.advance(2 * LINGER);
    assert_eq!(world.asked(0), ["n ClusterLoadAssignment +a"]);
    assert_eq!(world.told(client), ["ClusterLoadAssignment a@1", "ClusterLoadAssignment a@1"]);
}

#[test]
fn rule_142_a_cached_name_is_served_without_the_origin() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, ENDPOINTS, "a", "1");
    let first = world.client(DELTA, "n1");
    world.subscribe(first, ENDPOINTS, &["a", "missing"]);
    assert_eq!(world.told(first).join("|"), "ClusterLoadAssignment a@1 -missing");
    world.asked(0);
    world.set_up(0, false);
    let second = world.client(DELTA, "n2");
    world.subscribe(second, ENDPOINTS, &["a", "missing", "unknown"]);
    assert_eq!(world.told(second).join("|"), "ClusterLoadAssignment a@1 -missing", "the unknown one waits");
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(world.told(second), ["ClusterLoadAssignment -unknown"]);
}

/// Nothing is remembered of a name that does not exist once nobody asks for it: the next who does must
/// have it asked for again, though it is still subscribed upstream.
#[test]
fn rule_142_a_name_that_does_not_exist_is_told_again_within_the_linger() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &["missing", "there"]);
        for version in ["1", "2"] {
            // Over SotW only another response says that the name is not there: one that surely came after it was asked
            // for again.
            world.put(0, ENDPOINTS, "there", version);
            world.put(0, ENDPOINTS, "there", &format!("{version}.1"));
            world.advance(16 * SECOND);
            let told = world.told(client).join("|");
            assert_eq!(told.matches("-missing").count(), 1, "{upstream:?}: {told}");
            world.unsubscribe(client, ENDPOINTS, &["missing"]);
            world.subscribe(client, ENDPOINTS, &["missing"]);
        }
    }
}

#[test]
fn rule_145_a_refusal_stays_where_it_is() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    let (picky, other) = (world.client(DELTA, "n1"), world.client(DELTA, "n2"));
    world.clients[picky].refuses = true;
    for client in [picky, other] {
        world.subscribe(client, CLUSTERS, &["*"]);
    }
    world.put(0, CLUSTERS, "a", "1");
    world.put(0, CLUSTERS, "a", "2");
    assert_eq!(world.clients[other].held(CLUSTERS), ["a@2"]);
    // A reconnected stream names what was accepted: the relay accepted it all.
    world.asked(0);
    world.set_up(0, false);
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(world.asked(0), ["n1 Cluster =a@2"]);
}

#[test]
fn rule_140_every_client_is_sent_the_same_allocation() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    let now = world.now;
    world.origins[0].put_frame(now, "", CLUSTERS, "a", "1", cluster("a", &"x".repeat(8000)));
    let clients = [(DELTA, "n1"), (SOTW, "n2"), (DELTA, "n3")].map(|(protocol, node)| world.client(protocol, node));
    for client in clients {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
    }
    let sent = clients.map(|client| {
        let chunks = world.clients[client].chunks.iter().flatten();
        chunks.filter(|chunk| chunk.len() > 8000).map(|chunk| chunk.as_ptr()).collect::<Vec<_>>()
    });
    assert_eq!(sent[0].len(), 1);
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[0], sent[2]);
}

#[test]
fn rule_128_a_stalled_client_costs_nothing_and_is_sent_the_newest_state_once() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    for protocol in [DELTA, SOTW] {
        let (slow, quick) = (world.client(protocol, "slow"), world.client(protocol, "quick"));
        for client in [slow, quick] {
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
        }
        world.clients[slow].stalled = true;
        world.told(quick);
        let before = world.clients[slow].chunks.len();
        for version in 0..1000 {
            world.put(0, CLUSTERS, "a", &format!("{version}"));
        }
        assert_eq!(world.told(quick).len(), 1000);
        world.clients[slow].stalled = false;
        world.settle();
        assert_eq!(world.clients[slow].chunks.len() - before, 1);
        assert_eq!(world.clients[slow].held(CLUSTERS), ["a@999"]);
        world.remove(0, CLUSTERS, "a");
    }
}

#[test]
fn rule_124_what_the_origin_sends_again_is_sent_again() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        world.put(0, ENDPOINTS, "a", "1");
        let client = world.client(protocol, "n");
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.told(client);
        world.origins[0].touch(world.now, ENDPOINTS, "a");
        world.settle();
        assert_eq!(world.told(client), ["ClusterLoadAssignment a@1 again"], "{protocol:?}");
    }
}

#[test]
fn rule_124_a_changed_cluster_has_its_endpoints_sent_again() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.put(0, CLUSTERS, "a", "1");
        world.put(0, ENDPOINTS, "a", "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.advance(SECOND);
        world.told(client);
        world.put(0, CLUSTERS, "a", "2");
        let told = world.told(client);
        assert_eq!(told[0], "Cluster a@2", "{upstream:?}");
        assert_eq!(told[1], "ClusterLoadAssignment a@1 again", "{upstream:?}");
    }
}

/// What two nodes may not share they still hold once, for as long as either does.
#[test]
fn equal_bodies_of_node_groups_are_held_once() {
    let mut world = World::new(DELTA);
    world.put(0, ENDPOINTS, "a", "1");
    let clients = ["n1", "n2", "n3"].map(|node| world.client(DELTA, node));
    for client in clients {
        world.subscribe(client, ENDPOINTS, &["a"]);
        assert_eq!(world.told(client), ["ClusterLoadAssignment a@1"]);
    }
    assert_eq!((world.streams_of(0), bodies(&world)), (3, 1));
    world.put(0, ENDPOINTS, "a", "2");
    world.settle();
    world.advance(2 * SECOND);
    assert_eq!(bodies(&world), 1, "of the newest state");
    for client in clients {
        world.unsubscribe(client, ENDPOINTS, &["a"]);
    }
    world.advance(2 * LINGER);
    assert_eq!(bodies(&world), 0);
}

fn bodies(world: &World) -> u64 {
    let metrics = world.metrics_of(0);
    metrics.lines().find_map(|line| line.strip_prefix("xds_relay_bodies ")?.parse().ok()).unwrap()
}

#[test]
fn of_more_names_that_nobody_wants_than_may_linger_the_first_go_and_no_stream_ends() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]\nlimits: { lingering_names: 2 }");
    // Under a rule it is known how a stream ended.
    let [client, other] = ["n1", "n2"].map(|node| world.client_under("wildcard: true", DELTA, node));
    let names = ["a", "b", "c", "d", "kept"];
    names.iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
    world.subscribe(client, CLUSTERS, &names[..4]);
    world.subscribe(other, CLUSTERS, &["kept"]);
    world.told(other);
    world.asked(0);
    for name in &names[..4] {
        world.unsubscribe(client, CLUSTERS, &[name]);
        world.advance(2 * SECOND);
    }
    assert_eq!(world.asked(0), ["n1 Cluster -a", "n1 Cluster -b"], "the others linger");
    assert_eq!([client, other].map(|client| world.clients[client].ended()), [None, None]);
    world.put(0, CLUSTERS, "kept", "2");
    assert_eq!(world.told(other), ["Cluster kept@2"]);
}
