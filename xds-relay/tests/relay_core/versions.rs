//! Versions over several hops.

use crate::support::*;

#[test]
fn rule_146_versions_are_equal_over_two_relays_in_a_chain() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::new(protocol);
        let second = world.add_relay_before(Feeder::Relay(0), protocol);
        world.put(0, CLUSTERS, "a", "a-1");
        world.put(0, CLUSTERS, "b", "b-1");
        if protocol == SOTW {
            world.origins[0].set_version(CLUSTERS, "v7");
        }
        let near = world.client_of(0, protocol, "n");
        let far = world.client_of(second, protocol, "n");
        for client in [near, far] {
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
        }
        assert_eq!(world.clients[near].versions, world.clients[far].versions, "{protocol:?}");
        let expected: &[&str] = if protocol == SOTW { &["v7"] } else { &["a-1", "b-1"] };
        assert_eq!(world.clients[far].versions, expected);
    }
}

#[test]
fn rule_146_converted_versions_are_equal_on_every_relay() {
    for (upstream, downstream) in [(DELTA, SOTW), (SOTW, DELTA)] {
        let mut world = World::new(upstream);
        let second = world.add_relay_before(Feeder::Origin(0), upstream);
        world.put(0, CLUSTERS, "a", "1");
        world.put(0, CLUSTERS, "b", "1");
        let clients = [world.client_of(0, downstream, "n1"), world.client_of(second, downstream, "n2")];
        for client in clients {
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
        }
        assert!(!world.clients[clients[0]].versions.is_empty());
        assert_eq!(world.clients[clients[0]].versions, world.clients[clients[1]].versions);
    }
}

/// The version must not be seen beside older content: who resumes with it would be sent nothing.
#[test]
fn rule_146_a_sotw_version_goes_with_its_content() {
    let mut world = World::new(SOTW);
    world.origins[0].set_version(CLUSTERS, "v1");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(SOTW, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.origins[0].set_version(CLUSTERS, "v2");
    world.put(0, CLUSTERS, "a", "2");
    assert_eq!(world.clients[client].versions, ["v1", "v2"]);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"]);
}

/// It is for people, and is not sent alone.
#[test]
fn rule_036_what_a_delta_origin_says_beside_resources_is_told_to_delta_clients() {
    let mut world = World::new(DELTA);
    let second = world.add_relay_before(Feeder::Relay(0), DELTA);
    world.origins[0].set_version(CLUSTERS, "v1");
    world.put(0, CLUSTERS, "a", "1");
    let clients = [world.client(DELTA, "n"), world.client_of(second, DELTA, "n")];
    for client in clients {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
    }
    world.origins[0].set_version(CLUSTERS, "v2");
    world.advance(60 * SECOND);
    world.put(0, CLUSTERS, "a", "2");
    for client in clients {
        assert_eq!(world.clients[client].system_versions, ["v1", "v2"]);
        assert_eq!(world.clients[client].versions, ["1", "2"]);
    }
}

#[test]
fn rule_033_what_a_delta_origin_says_beside_resources_is_no_version_over_sotw() {
    let mut world = World::new(DELTA);
    world.origins[0].set_version(CLUSTERS, "v1");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(SOTW, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.put(0, CLUSTERS, "a", "2");
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"]);
    let [first, second] = &world.clients[client].versions[..] else { panic!("{:?}", world.clients[client].versions) };
    assert!(first != second && [first, second].iter().all(|version| version.len() == 32), "{first} {second}");
}

/// What comes from two origins has a version of neither.
#[test]
fn of_two_origins_no_one_s_version_is_told() {
    let mut world = World::of(&[DELTA, DELTA], &[&[], &["b"]], "");
    world.origins[0].set_version(ENDPOINTS, "v1");
    world.origins[1].set_version(ENDPOINTS, "v2");
    world.put(0, ENDPOINTS, "x", "1");
    world.put(1, ENDPOINTS, &endpoints("b", "y"), "1");
    let [one, both] = [world.client(DELTA, "n"), world.client(DELTA, "n")];
    world.subscribe(one, ENDPOINTS, &[&endpoints("b", "y")]);
    world.subscribe(both, ENDPOINTS, &["x", &endpoints("b", "y")]);
    world.advance(SECOND);
    assert_eq!(world.clients[one].system_versions, ["v2"]);
    assert!(world.clients[both].system_versions.iter().all(String::is_empty));
    assert_eq!(world.clients[both].held(ENDPOINTS).len(), 2);
}

#[test]
fn a_type_that_nobody_wants_any_more_forgets_its_version() {
    let mut world = World::of(&[SOTW], &[&[]], "share_by: [cluster]\nlinger: 1s");
    world.origins[0].set_version(CLUSTERS, "v1");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(SOTW, "n");
    world.subscribe(client, ENDPOINTS, &["x"]);
    world.subscribe(client, CLUSTERS, &["a"]);
    world.advance(SECOND);
    world.unsubscribe(client, CLUSTERS, &["a"]);
    world.advance(3 * SECOND);
    let types = &world.relays[0].core.config_dump(world.now).scopes[0].types;
    assert!(types.iter().all(|of| of.type_url != CLUSTERS), "{types:?}");
}

#[test]
fn a_version_is_known_for_as_long_as_anything_of_its_type_is_wanted() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::of(&[protocol], &[&[]], "share_by: [cluster]\nlinger: 1s");
        world.origins[0].set_version(ENDPOINTS, "v1");
        for name in ["a", "b"] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let [first, late] = ["n1", "n2"].map(|node| world.client(protocol, node));
        world.subscribe(first, ENDPOINTS, &["a", "b"]);
        world.unsubscribe(first, ENDPOINTS, &["b"]);
        world.advance(3 * SECOND);
        world.subscribe(late, ENDPOINTS, &["a"]);
        let told = |world: &World| match protocol {
            DELTA => world.clients[late].system_versions.clone(),
            SOTW => world.clients[late].versions.clone(),
        };
        assert_eq!(told(&world), ["v1"], "{protocol:?}");
        if protocol == DELTA {
            // No longer: the origin that is asked anew says none.
            world.subscribe(first, CLUSTERS, &["x"]);
            for client in [first, late] {
                world.unsubscribe(client, ENDPOINTS, &["a"]);
            }
            world.advance(3 * SECOND);
            world.origins[0].set_version(ENDPOINTS, "");
            world.subscribe(late, ENDPOINTS, &["a"]);
            assert_eq!(told(&world), ["v1", ""]);
        }
    }
}
