//! Which scope and which origin a name belongs to.

use prost::Message;
use xds_transport::wire::DeltaDiscoveryResponse;

use crate::support::*;

#[test]
fn rule_004_one_session_over_old_style_names_and_two_authorities_of_two_origins() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
        let (a, b) = (endpoints("a", "x"), endpoints("b", "x"));
        world.put(0, ENDPOINTS, "old", "1");
        world.put(0, ENDPOINTS, &a, "1");
        world.put(1, ENDPOINTS, &b, "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, ENDPOINTS, &["old", &a, &b]);
        let held = ["old@1".to_owned(), format!("{a}@1"), format!("{b}@1")];
        assert_eq!(world.clients[client].held(ENDPOINTS), held);
        assert_eq!(
            world.asked(0),
            ["n ClusterLoadAssignment +old".to_owned(), format!("xds-relay ClusterLoadAssignment +{a}")]
        );
        assert_eq!(world.asked(1), [format!("xds-relay ClusterLoadAssignment +{b}")]);
        world.put(1, ENDPOINTS, &b, "2");
        assert_eq!(world.clients[client].held(ENDPOINTS)[2], format!("{b}@2"));
        // Each goes for itself.
        world.unsubscribe(client, ENDPOINTS, &[&b]);
        world.advance(LINGER + 3 * SECOND);
        assert_eq!(world.asked(1), [format!("xds-relay ClusterLoadAssignment -{b}")]);
        assert_eq!(world.origins[1].streams, 0, "and its scope with it");
        world.put(0, ENDPOINTS, &a, "2");
        assert_eq!(world.clients[client].held(ENDPOINTS)[1], format!("{a}@2"));
    }
}

#[test]
fn an_authority_that_no_origin_lists_comes_from_the_default_origin() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
    let name = endpoints("c", "x");
    world.put(0, ENDPOINTS, &name, "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&name]);
    assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
    assert_eq!(world.streams_of(0), 1);
}

#[test]
fn authorities_of_one_origin_share_a_stream() {
    let mut world = World::new(DELTA);
    let names = ["a", "b", "c"].map(|authority| endpoints(authority, "x"));
    for name in &names {
        world.put(0, ENDPOINTS, name, "1");
        for node in ["n1", "n2"] {
            let client = world.client(DELTA, node);
            world.subscribe(client, ENDPOINTS, &[name]);
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
        }
    }
    assert_eq!(world.streams_of(0), 1);
    assert_eq!(world.asked(0).len(), 3);
}

#[test]
fn an_origin_of_files_is_asked_nothing_and_keeps_nothing_of_its_clients() {
    let mut world = World::empty();
    let files = world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
    let core = world.relays[files].core.clone();
    assert_ne!(core.readiness(), xds_relay::admin::Readiness::Ready);
    core.set_files(0, vec![file(CLUSTERS, "a", "1"), file(ENDPOINTS, &endpoints("z", "x"), "1")], world.now);
    assert_eq!(core.readiness(), xds_relay::admin::Readiness::Ready);
    let clients = [(DELTA, "n1"), (SOTW, "n2")].map(|(protocol, node)| world.client_of(files, protocol, node));
    for client in clients {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, ENDPOINTS, &[&endpoints("z", "x"), "missing"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
    }
    core.set_files(0, vec![file(CLUSTERS, "b", "1")], world.now);
    world.settle();
    for client in clients {
        assert_eq!(world.clients[client].held(CLUSTERS), ["b@1"]);
        world.disconnect(client);
    }
    // What they had is remembered for a while, for when they come back.
    world.advance(3602 * SECOND);
    assert_eq!(world.scopes_of(files), [""; 0]);
}

#[test]
fn of_what_a_client_asks_files_for_it_can_leave_a_part() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::empty();
        let files = world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
        let core = world.relays[files].core.clone();
        core.set_files(0, vec![file(ENDPOINTS, "a", "1"), file(ENDPOINTS, "b", "1")], world.now);
        let client = world.client_of(files, protocol, "n");
        for name in ["a", "b"] {
            world.subscribe(client, ENDPOINTS, &[name]);
        }
        assert_eq!(world.counted(files, "subscribers"), 1, "of one type on one stream");
        world.unsubscribe(client, ENDPOINTS, &["a"]);
        world.told(client);
        core.set_files(0, vec![file(ENDPOINTS, "a", "2"), file(ENDPOINTS, "b", "2")], world.now);
        world.settle();
        assert_eq!(world.told(client), ["ClusterLoadAssignment b@2"], "{protocol:?}");
    }
}

#[test]
fn leaving_what_was_never_asked_for_opens_no_scope() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["a", &endpoints("z", "x")]);
    world.unsubscribe(client, ENDPOINTS, &["b", &endpoints("y", "x")]);
    assert_eq!(world.scopes_of(0).len(), 2);
}

/// To a client its wildcard covers every name; to the relay it is about the names of its node group.
#[test]
fn rule_052_a_name_of_an_authority_that_is_left_under_a_wildcard_is_told_as_removed() {
    let glob = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/g/*";
    for left in [glob.replace('*', "x"), glob.to_owned()] {
        let mut world = World::new(DELTA);
        world.put(0, ENDPOINTS, &glob.replace('*', "x"), "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &["*", &left]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
        world.unsubscribe(client, ENDPOINTS, &[&left]);
        assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0], "{left}");
        world.put(0, ENDPOINTS, &glob.replace('*', "x"), "2");
        assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0], "{left}");
    }
}

#[test]
fn rule_139_a_relay_says_who_it_is_on_either_side() {
    let node = "node: {id: relay-7, cluster: edge, locality: {region: r, zone: z, sub_zone: s}, metadata: {k: v}}";
    let mut world = World::of(&[DELTA], &[&["a"]], node);
    let name = endpoints("a", "x");
    world.put(0, ENDPOINTS, &name, "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&name]);
    let response = DeltaDiscoveryResponse::decode(&*world.clients[client].chunks[0].concat()).unwrap();
    assert_eq!(response.control_plane.unwrap().identifier, "relay-7");
    let told = world.node_upstream(0);
    assert_eq!(
        (told.id.as_str(), told.cluster.as_str(), told.user_agent_name.as_str()),
        ("relay-7", "edge", "xds-relay")
    );
    let locality = told.locality.unwrap();
    assert_eq!([locality.region, locality.zone, locality.sub_zone], ["r", "z", "s"]);
    assert!(told.metadata.unwrap().fields.contains_key("k"));
}
