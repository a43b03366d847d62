//! What is gone, and what never was: rules 66, 67, 69–71, 79, 80, 99, 100, 102.

use std::collections::BTreeSet;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, SCOPED_ROUTES, Server};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";
const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RUNTIME: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
const EXTENSIONS: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";

#[test]
fn rule_066_absence_from_a_sotw_response_is_deletion() {
    for (of, letter) in [(LISTENERS, "L"), (CLUSTERS, "C"), (SCOPED_ROUTES, SCOPED_ROUTES)] {
        let mut server = Server::with(of, &["a", "b", "c"]);
        let mut client = Client::sotw();
        assert_eq!(client.names(&mut server, of, &[]), [format!("{letter} a@1 b@1 c@1")]);
        server.remove(of, "b");
        assert_eq!(client.ack(&mut server, of), [format!("{letter} a@1 c@1")]);
        for name in ["a", "c"] {
            server.remove(of, name);
        }
        assert_eq!(client.ack(&mut server, of), [letter.to_string()]);
    }
}

#[test]
fn rule_066_a_scoped_route_that_is_added_does_not_drop_the_others() {
    let mut server = Server::with(SCOPED_ROUTES, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, SCOPED_ROUTES, &[]);
    server.put(SCOPED_ROUTES, "c", "1");
    assert_eq!(client.ack(&mut server, SCOPED_ROUTES), [format!("{SCOPED_ROUTES} a@1 b@1 c@1")]);
}

#[test]
fn rule_067_other_types_are_sent_only_what_changed() {
    for (of, letter) in
        [(ENDPOINTS, "E"), (ROUTES, "R"), (SECRETS, SECRETS), (RUNTIME, RUNTIME), (EXTENSIONS, EXTENSIONS)]
    {
        let mut server = Server::with(of, &["a", "b"]);
        let mut client = Client::sotw();
        client.names(&mut server, of, &["a", "b"]);
        client.ack(&mut server, of);
        server.remove(of, "a");
        assert!(client.poll(&mut server).is_empty());
        server.put(of, "b", "2");
        assert_eq!(client.poll(&mut server), [format!("{letter} b@2")]);
    }
}

#[test]
fn rule_069_a_name_stands_once_in_a_response() {
    let mut server = Server::with(CLUSTERS, &[MEMBER, "a"]);
    let mut client = Client::delta();
    let respelled = "xdstp://x/T/d/%31";
    let subscribe = ["*", "a", "a", GLOB, MEMBER, respelled, "gone", "gone", "xdstp:bad", "xdstp:bad"];
    let holds = [("gone", "1"), (MEMBER, "0"), ("other", "1")];
    client.ask(&mut server, &Ask { of: CLUSTERS, subscribe: &subscribe, holds: &holds, ..Ask::default() });
    server.remove(CLUSTERS, "a");
    server.remove(CLUSTERS, MEMBER);
    server.put(CLUSTERS, "b", "1");
    client.poll(&mut server);
    assert!(client.delta.len() > 1);
    for response in &client.delta {
        let names: Vec<_> = response.resources.iter().map(|one| &one.name).chain(&response.removed_resources).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}

#[test]
fn rule_070_a_missing_name_is_told_at_once() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["missing"]), ["E -missing"]);
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["a", "other"]).join(" "), "E a@1 -other");
}

#[test]
fn rule_070_a_relay_waits_until_it_knows() {
    let mut server = Server::relay();
    let mut client = Client::delta();
    assert!(client.subscribe(&mut server, ENDPOINTS, &["a"]).is_empty());
    server.remove(ENDPOINTS, "a");
    assert_eq!(client.poll(&mut server), ["E -a"]);
}

#[test]
fn rule_071_a_missing_name_is_told_once_per_subscription() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["a", "missing"]), ["E a@1 -missing"]);
    for version in ["2", "3", "4", "5", "6"] {
        server.put(ENDPOINTS, "a", version);
        assert_eq!(client.poll(&mut server), [format!("E a@{version}")]);
    }
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["missing"]), ["E -missing"]);
}

#[test]
fn rule_079_endpoints_are_drained_by_a_resource_without_any() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, ENDPOINTS, &["a"]);
    sotw.names(&mut server, ENDPOINTS, &["a"]);
    sotw.ack(&mut server, ENDPOINTS);
    // A removal would leave an Envoy with the hosts it has.
    server.put(ENDPOINTS, "a", "");
    assert_eq!(delta.poll(&mut server), ["E a@"]);
    assert_eq!(sotw.poll(&mut server), ["E a@"]);
    assert!(delta.delta.iter().all(|response| response.removed_resources.is_empty()));
}

#[test]
fn rule_080_resources_are_sent_whole_and_byte_for_byte() {
    use prost::Message;
    let mut server = Server::with(CLUSTERS, &["a"]);
    let held = server.cache.resource(&CLUSTERS.into(), &"a".parse().unwrap()).unwrap().value.any().clone();
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, CLUSTERS, &["a"]);
    sotw.names(&mut server, CLUSTERS, &["a"]);
    assert_eq!(delta.delta[0].resources[0].resource.as_ref().unwrap().encode_to_vec(), held);
    assert_eq!(sotw.sotw[0].resources[0].encode_to_vec(), held);
}

#[test]
fn rule_099_an_empty_glob_is_told_as_removed() {
    let mut server = Server::origin();
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &[GLOB]), [format!("C -{GLOB}")]);
    server.put(CLUSTERS, MEMBER, "1");
    assert_eq!(client.poll(&mut server), [format!("C {MEMBER}@1")]);
    server.remove(CLUSTERS, MEMBER);
    assert_eq!(client.poll(&mut server), [format!("C -{MEMBER}")]);
}

#[test]
fn rule_099_a_relay_tells_an_empty_glob_when_its_origin_did() {
    let mut server = Server::relay();
    let mut client = Client::delta();
    assert!(client.subscribe(&mut server, CLUSTERS, &[GLOB]).is_empty());
    server.answered(CLUSTERS, GLOB);
    assert_eq!(client.poll(&mut server), [format!("C -{GLOB}")]);
}

#[test]
fn rule_100_a_member_deleted_while_a_client_was_away_is_in_its_first_answer() {
    let other = "xdstp://x/T/d/2";
    let mut server = Server::with(CLUSTERS, &[MEMBER, other]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[GLOB]);
    client.stream.close(&mut server.cache);
    server.remove(CLUSTERS, MEMBER);
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &[GLOB]), [format!("C {other}@1 -{MEMBER}")]);
}

#[test]
fn rule_100_a_client_that_lists_no_members_holds_what_there_is_after_every_absence() {
    // As Envoy: what it holds of a glob it does not list when it comes back.
    let members: Vec<_> = (0..6).map(|n| format!("xdstp://x/T/d/{n}")).collect();
    let mut server = Server::with(CLUSTERS, &members.iter().map(String::as_str).collect::<Vec<_>>());
    let mut held = BTreeSet::new();
    for away in 0..5 {
        let mut client = Client::delta();
        client.subscribe(&mut server, CLUSTERS, &[GLOB]);
        server.remove(CLUSTERS, &members[away]);
        client.settle(&mut server);
        if away == 3 {
            server.put(CLUSTERS, &members[0], "2");
            client.settle(&mut server);
        }
        for response in &client.delta {
            held.extend(response.resources.iter().map(|sent| sent.name.clone()));
            response.removed_resources.iter().for_each(|name| _ = held.remove(name));
        }
        assert_eq!(held, present(&server), "connected, {away}");
        client.stream.close(&mut server.cache);
        // The next goes while nobody is there.
        if let Some(gone) = members.get(away + 1).filter(|_| away % 2 == 0) {
            server.remove(CLUSTERS, gone);
        }
    }
    assert_eq!(held, BTreeSet::from([members[0].clone(), members[5].clone()]));
}

fn present(server: &Server) -> BTreeSet<String> {
    let there = server.cache.resources().filter(|stored| stored.resource.is_some());
    there.map(|stored| stored.name.as_str().to_owned()).collect()
}

#[test]
fn rule_102_globs_over_sotw_lose_members_by_absence() {
    let other = "xdstp://x/T/d/2";
    let mut server = Server::with(CLUSTERS, &[MEMBER, other]);
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, CLUSTERS, &[GLOB]), [format!("C {MEMBER}@1 {other}@1")]);
    server.remove(CLUSTERS, other);
    assert_eq!(client.ack(&mut server, CLUSTERS), [format!("C {MEMBER}@1")]);
}

#[test]
fn rule_037_who_gives_up_what_was_not_answered_is_sent_nothing() {
    let mut server = Server::relay();
    server.put(CLUSTERS, MEMBER, "1");
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, CLUSTERS, &[MEMBER]), [format!("C {MEMBER}@1")]);
    client.ack(&mut server, CLUSTERS);
    assert_eq!(client.names(&mut server, CLUSTERS, &[MEMBER, "*"]), [""; 0]);
    assert_eq!(client.names(&mut server, CLUSTERS, &[MEMBER]), [""; 0]);
}
