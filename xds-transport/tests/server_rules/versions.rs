//! Versions, and equal content: rules 33–37.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use xds_transport::Frame;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server};

#[test]
fn rule_033_a_sotw_version_changes_with_the_content_and_only_with_it() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut versions = Vec::new();
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    for change in 0..3 {
        match change {
            0 => server.put(CLUSTERS, "a", "2"),
            1 => server.remove(CLUSTERS, "b"),
            _ => server.put(CLUSTERS, "b", "2"),
        }
        client.ack(&mut server, CLUSTERS);
    }
    versions.extend(client.sotw.iter().map(|response| response.version_info.clone()));
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), 4, "{versions:?}");
    // Rule 34: the same content has the same version on another server, in whatever order it came.
    let mut replica = Server::with(CLUSTERS, &["b", "a"]);
    let mut client = Client::sotw();
    client.names(&mut replica, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, versions[0]);
}

#[test]
fn what_is_told_by_changes_has_the_version_of_all_there_is() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    for version in ["2", "3"] {
        client.ack(&mut server, ENDPOINTS);
        server.put(ENDPOINTS, "a", version);
        client.poll(&mut server);
    }
    let versions: BTreeSet<_> = client.sotw.iter().map(|response| &response.version_info).collect();
    assert_eq!(versions.len(), 3, "{versions:?}");
    let mut other = Client::sotw();
    other.names(&mut server, ENDPOINTS, &["a", "b"]);
    assert_eq!(other.sotw[0].version_info, client.sotw[2].version_info);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn rule_033_equal_versions_are_equal_contents(
        changes in prop::collection::vec((0..3_usize, prop::option::of(0..3_u8)), 1..30),
    ) {
        let mut server = Server::origin();
        let mut client = Client::sotw();
        client.names(&mut server, CLUSTERS, &[]);
        let mut contents = BTreeMap::new();
        for (name, version) in changes {
            match version {
                Some(version) => server.put(CLUSTERS, ["a", "b", "c"][name], &version.to_string()),
                None => server.remove(CLUSTERS, ["a", "b", "c"][name]),
            }
            client.settle(&mut server);
            let last = client.sotw.last().unwrap();
            let mut bodies: Vec<_> = last.resources.iter().map(|any| any.value.clone()).collect();
            bodies.sort();
            let content = contents.entry(last.version_info.clone()).or_insert_with(|| bodies.clone());
            prop_assert_eq!(&*content, &bodies);
        }
        let distinct: BTreeSet<_> = contents.values().collect();
        prop_assert_eq!(distinct.len(), contents.len(), "and equal contents are equal versions");
    }
}

#[test]
fn rule_034_the_hash_over_a_type_is_part_of_the_contract() {
    let mut server = Server::origin();
    server.put(CLUSTERS, "a", "2");
    server.put(CLUSTERS, "b", "2");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, "48652f5a1a8a2175735c1616ae768564");
}

#[test]
fn rule_034_the_version_an_origin_gave_is_passed_on() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    server.cache.set_type_version(&CLUSTERS.into(), Some("origin-5".into()));
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    assert_eq!(client.sotw[0].version_info, "origin-5");
}

#[test]
fn rule_035_versions_survive_a_change_of_replica() {
    let frame = || Frame::of_message(&CLUSTERS.into(), b"same");
    let resource = frame().into_resource(None);
    assert_eq!(resource, frame().into_resource(None));
    let version = resource.version.clone();
    let mut replica = Server::origin();
    let mut edit = replica.cache.edit(replica.now);
    edit.put(&CLUSTERS.into(), &"a".parse().unwrap(), resource);
    let _ = edit.finish();
    let mut client = Client::delta();
    let holds = &[("a", version.as_str())];
    assert_eq!(client.ask(&mut replica, &Ask { of: CLUSTERS, holds, ..Ask::default() }), ["C"]);
}

#[test]
fn rule_035_the_content_hash_is_part_of_the_contract() {
    let frame = Frame::of_message(&"t/T".into(), b"body");
    assert_eq!(frame.into_resource(None).version.as_str(), "d97ae0cd71a60053b323113f3e2d9a21");
}

#[test]
fn rule_036_a_version_of_the_whole_is_nothing_to_delta() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    for version in ["1", "2"] {
        server.cache.set_type_version(&CLUSTERS.into(), Some(version.into()));
        assert!(client.poll(&mut server).is_empty());
        assert!(client.ack(&mut server, CLUSTERS).is_empty());
    }
}

#[test]
fn rule_037_equal_content_is_not_sent() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["*"]);
    sotw.names(&mut server, CLUSTERS, &[]);
    sotw.ack(&mut server, CLUSTERS);
    server.woken.clear();
    server.put(CLUSTERS, "a", "1");
    assert!(server.woken.is_empty());
    assert!(delta.poll(&mut server).is_empty() && sotw.poll(&mut server).is_empty());
}

#[test]
fn rule_037_a_removal_of_what_never_was_changes_nothing() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["*"]);
    delta.ack(&mut server, CLUSTERS);
    sotw.names(&mut server, CLUSTERS, &[]);
    sotw.ack(&mut server, CLUSTERS);
    server.remove(CLUSTERS, "b");
    assert!(sotw.poll(&mut server).is_empty());
    // A client that was away may hold it (rule 100), and is told once.
    assert_eq!(delta.poll(&mut server), ["C -b"]);
    delta.ack(&mut server, CLUSTERS);
    server.remove(CLUSTERS, "b");
    assert!(delta.poll(&mut server).is_empty() && sotw.poll(&mut server).is_empty());
}
