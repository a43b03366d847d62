//! Spelling, globs and odd names: rules 94–98, 103, 104, 109.

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::{DiscoveryResponse, Resource};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server, payload, seconds};

const FEATURES: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];

const NOT_FOUND: i32 = 5;
const UNAVAILABLE: i32 = 14;

#[test]
fn rule_094_the_order_and_the_escapes_of_parameters_make_no_other_name() {
    let spellings = ["xdstp://a/T/x?a=2&b=1", "xdstp://a/T/x?b=1&a=2", "xdstp://a/T/%78?%62=1&a=%32"];
    let mut server = Server::with(ENDPOINTS, &["xdstp://a/T/x?a=2&b=1"]);
    let mut client = Client::delta();
    let said = client.subscribe(&mut server, ENDPOINTS, &spellings);
    assert_eq!(said, [format!("E {}@1", spellings[2])], "one resource, in the last spelling");
    server.put(ENDPOINTS, spellings[1], "2");
    assert_eq!(client.poll(&mut server), [format!("E {}@2", spellings[2])]);
    assert!(client.unsubscribe(&mut server, ENDPOINTS, &[spellings[0]]).is_empty());
    server.put(ENDPOINTS, spellings[0], "3");
    assert!(client.poll(&mut server).is_empty(), "whatever the spelling it was left in");
}

#[test]
fn rule_095_names_come_back_in_the_spelling_of_the_client() {
    let canonical = "xdstp://a/T/x?a=2&b=1";
    for spelled in ["xdstp://a/T/x?b=1&a=2", "xdstp://a/T/%78?a=2&b=1", canonical] {
        let mut server = Server::with(CLUSTERS, &[canonical]);
        let mut client = Client::delta();
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &[spelled]), [format!("C {spelled}@1")]);
        server.remove(CLUSTERS, canonical);
        assert_eq!(client.poll(&mut server), [format!("C -{spelled}")]);
    }
    let glob = "xdstp://a/T/*?b=1&a=2";
    assert_eq!(Client::delta().subscribe(&mut Server::origin(), CLUSTERS, &[glob]), [format!("C -{glob}")]);
}

#[test]
fn rule_095_what_a_client_brought_along_is_told_in_its_spelling() {
    let (spelled, gone) = ("xdstp://a/T/x?b=1&a=2", "xdstp://a/T/y?b=1&a=2");
    let mut server = Server::with(CLUSTERS, &["xdstp://a/T/x?a=2&b=1"]);
    let glob = "xdstp://a/T/*?a=2&b=1";
    let holds = &[(spelled, "0"), (gone, "0")];
    let mut client = Client::delta();
    let said = client.ask(&mut server, &Ask { of: CLUSTERS, subscribe: &[glob], holds, ..Ask::default() });
    assert_eq!(said, [format!("C {spelled}@1 -{gone}")]);
    // Where it asks for the name too, that is how it writes it.
    let canonical = "xdstp://a/T/x?a=2&b=1";
    let ask = Ask { of: CLUSTERS, subscribe: &[canonical], holds: &[(spelled, "0")], ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), [format!("C {canonical}@1")]);
}

#[test]
fn rule_095_two_clients_may_spell_one_name_differently() {
    let mut server = Server::with(CLUSTERS, &["xdstp://a/T/x?a=2&b=1"]);
    let spellings = ["xdstp://a/T/x?b=1&a=2", "xdstp://a/T/x?a=2&b=1"];
    let mut clients = [Client::delta(), Client::delta()];
    for (client, spelled) in clients.iter_mut().zip(spellings) {
        assert_eq!(client.subscribe(&mut server, CLUSTERS, &[spelled]), [format!("C {spelled}@1")]);
    }
    // The last spelling of a client counts.
    assert_eq!(clients[0].subscribe(&mut server, CLUSTERS, &[spellings[1]]), [format!("C {}@1", spellings[1])]);
}

#[test]
fn rule_095_an_error_names_what_fails_in_the_spelling_of_the_client() {
    let (held, missing, glob) = ("xdstp://a/T/x?b=1&a=2", "xdstp://a/T/y?b=1&a=2", "xdstp://a/U/*?b=1&a=2");
    let fail = |client: &mut Client, server: &mut Server, of: &str| {
        client.want(server, of, &[held, missing, glob]);
        client.settle(server);
        [(missing, NOT_FOUND), (held, UNAVAILABLE), (glob, UNAVAILABLE)].map(|(name, code)| {
            server.fail(of, name, code);
            client.settle(server).join("|")
        })
    };
    for of in [CLUSTERS, ENDPOINTS] {
        let (mut server, mut client) = (Server::with(of, &[held]), Client::delta());
        let said = fail(&mut client, &mut server, of);
        let c = if of == CLUSTERS { "C" } else { "E" };
        let told =
            [format!("{c} -{missing} !{missing}:5"), format!("{c} !{held}:14"), format!("{c} -{glob} !{glob}:14")];
        assert_eq!(said, told);
    }
    // A full state has what is beside its error, and says no error of it.
    let (mut server, mut client) = (Server::with(CLUSTERS, &[held]), Client::sotw());
    let said = fail(&mut client, &mut server, CLUSTERS);
    assert_eq!(said, [format!("C {held}@1 !{missing}:5"), String::new(), format!("C {held}@1 !{glob}:14")]);
    let (mut server, mut client) = (Server::with(ENDPOINTS, &[held]), Client::sotw());
    let said = fail(&mut client, &mut server, ENDPOINTS);
    assert_eq!(said, [format!("E !{missing}:5"), format!("E !{held}:14"), format!("E !{glob}:14")]);
}

#[test]
fn rule_095_a_resource_is_kept_alive_in_the_spelling_of_the_client() {
    let spelled = "xdstp://a/T/x?b=1&a=2";
    let server_of = |of: &str| {
        let mut server = Server::origin();
        let frame = Frame::of_message(&of.into(), &payload(spelled, "1"));
        server.put_frame(of, spelled, "1", frame.with_wrapper(Bytes::new(), Some(seconds(30)), false));
        server
    };
    let mut server = server_of(ENDPOINTS);
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &[spelled]);
    client.ack(&mut server, ENDPOINTS);
    let told = |client: &Client| {
        let [one] = &client.delta.last().unwrap().resources[..] else { panic!("one resource") };
        (one.name.clone(), one.resource.is_some(), one.ttl.is_some())
    };
    // As long as it lives a heartbeat is enough, ...
    server.now += seconds(10);
    assert_eq!(client.settle(&mut server).len(), 1);
    assert_eq!(told(&client), (spelled.to_owned(), false, true));
    // ... once it is over at the client the resource is needed, ...
    server.now += seconds(31);
    assert_eq!(client.settle(&mut server).len(), 1);
    assert_eq!(told(&client), (spelled.to_owned(), true, true));
    // ... and that it lives for ever now is told with it.
    let held = server.cache.value_mut(&ENDPOINTS.into(), &spelled.parse().unwrap()).unwrap();
    held.refresh(None, None);
    server.now += seconds(10);
    assert_eq!(client.settle(&mut server).len(), 1);
    assert_eq!(told(&client), (spelled.to_owned(), true, false));
    // Over SotW names are outside where the client understands the wrapper.
    for of in [CLUSTERS, ENDPOINTS] {
        let mut server = server_of(of);
        let mut client = Client::sotw_with_ttl().with_features(&FEATURES);
        client.names(&mut server, of, &[spelled]);
        client.ack(&mut server, of);
        server.now += seconds(10);
        assert_eq!(client.poll(&mut server).len(), 1);
        let outside = Resource::decode(&*client.sotw.last().unwrap().resources[0].value).unwrap();
        assert_eq!((outside.name.as_str(), outside.ttl.is_some()), (spelled, true));
    }
}

#[test]
fn rule_096_keys_are_sorted_whatever_the_control_plane_wrote() {
    let mut server = Server::with(ENDPOINTS, &["xdstp://a/T/x?b=1&a=2"]);
    let sorted = "xdstp://a/T/x?a=2&b=1";
    assert_eq!(Client::delta().subscribe(&mut server, ENDPOINTS, &[sorted]), [format!("E {sorted}@1")]);
}

#[test]
fn rule_097_a_glob_covers_one_level_of_one_authority_type_and_parameters() {
    let mut server = Server::with(
        CLUSTERS,
        &[
            "xdstp://a/T/d/child?k=v",
            "xdstp://a/T/d/child/grandchild?k=v",
            "xdstp://a/T/d?k=v",
            "xdstp://b/T/d/child?k=v",
            "xdstp://a/U/d/child?k=v",
            "xdstp://a/T/d/child",
            "xdstp://a/T/d/child?k=w",
            "xdstp://a/T/d/child?j=v&k=v",
            "xdstp://a/T/dd/child?k=v",
            "child",
        ],
    );
    let glob = "xdstp://a/T/d/*?k=v";
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &[glob]), ["C xdstp://a/T/d/child?k=v@1"]);
    assert_eq!(Client::sotw().names(&mut server, CLUSTERS, &[glob]), ["C xdstp://a/T/d/child?k=v@1"]);
}

#[test]
fn rule_098_members_come_under_concrete_names_with_the_parameters_of_the_glob() {
    let mut server = Server::with(CLUSTERS, &["xdstp://a/T/d/x?b=1&a=2"]);
    let mut client = Client::delta();
    assert_eq!(client.subscribe(&mut server, CLUSTERS, &["xdstp://a/T/d/*?b=1&a=2"]), ["C xdstp://a/T/d/x?a=2&b=1@1"]);
}

/// The spelling of a name counts as long as the name is asked for.
#[test]
fn rule_098_a_member_that_was_left_as_a_name_comes_under_its_concrete_name_again() {
    let (spelled, concrete) = ("xdstp://a/T/d/x?b=1&a=2", "xdstp://a/T/d/x?a=2&b=1");
    let mut server = Server::with(CLUSTERS, &[concrete]);
    let mut client = Client::delta();
    let said = client.subscribe(&mut server, CLUSTERS, &["xdstp://a/T/d/*?a=2&b=1", spelled]);
    assert_eq!(said, [format!("C {spelled}@1")]);
    client.unsubscribe(&mut server, CLUSTERS, &[spelled]);
    server.put(CLUSTERS, concrete, "2");
    assert_eq!(client.poll(&mut server), [format!("C {concrete}@2")]);
    // Over SotW names are outside where the client understands the wrapper.
    let mut client = Client::sotw().with_features(&["xds.config.resource-in-sotw"]);
    let glob = "xdstp://a/T/d/*?a=2&b=1";
    client.names(&mut server, CLUSTERS, &[glob, spelled]);
    client.names(&mut server, CLUSTERS, &[glob]);
    server.put(CLUSTERS, concrete, "3");
    client.settle(&mut server);
    let outside = |response: &DiscoveryResponse| Resource::decode(&*response.resources[0].value).unwrap().name;
    assert_eq!(outside(&client.sotw[0]), spelled);
    assert_eq!(outside(client.sotw.last().unwrap()), concrete);
}

#[test]
fn rule_103_what_is_matched_twice_is_sent_once_and_stays_when_one_match_goes() {
    let mut options = xdstp_cache::Options::default();
    options.wildcard_covers_xdstp = true;
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::new(options.clone());
        server.put(CLUSTERS, "xdstp://a/T/x/a", "1");
        let glob = "xdstp://a/T/x/*";
        assert_eq!(client.want(&mut server, CLUSTERS, &["*", glob, "xdstp://a/T/x/a"]), ["C xdstp://a/T/x/a@1"]);
        if client.sotw.is_empty() {
            client.unsubscribe(&mut server, CLUSTERS, &[glob]);
        } else {
            client.names(&mut server, CLUSTERS, &["*"]);
        }
        client.settle(&mut server);
        server.put(CLUSTERS, "xdstp://a/T/x/a", "2");
        assert_eq!(client.settle(&mut server), ["C xdstp://a/T/x/a@2"]);
    }
}

#[test]
fn rule_109_an_odd_name_that_is_given_up_before_it_is_told_is_not_told() {
    let mut server = Server::with(ENDPOINTS, &["ok"]);
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, ENDPOINTS, &["xdstp:", "ok"]), ["E ok@1"]);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["ok"]), [""; 0]);
    // Rule 47: who asks and takes it back in one request asks for nothing.
    let ask = Ask { of: ENDPOINTS, subscribe: &["xdstp:"], unsubscribe: &["xdstp:"], ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), [""; 0]);
}

#[test]
fn rule_109_odd_names_have_a_defined_answer_and_end_nothing() {
    let mut server = Server::with(CLUSTERS, &["ok"]);
    let long = "x".repeat(4096);
    let long_xdstp = format!("xdstp://a/T/{}", "x".repeat(100_000));
    for odd in [long.as_str(), "a\u{1}b", "", "xdstp:", "xdstp://a/T/%ff%fe", "xdstp://a/T/x#entry=e", &long_xdstp] {
        let mut client = Client::delta();
        let said = client.subscribe(&mut server, CLUSTERS, &[odd, "ok"]).join(" ");
        assert!(said.contains("ok@1"), "{odd:?}: {said}");
        assert!(client.delta.iter().any(|response| response.removed_resources.iter().any(|name| name == odd)), "{odd}");
        let mut client = Client::sotw();
        assert_eq!(client.names(&mut server, CLUSTERS, &[odd, "ok"]), ["C ok@1"]);
    }
}
