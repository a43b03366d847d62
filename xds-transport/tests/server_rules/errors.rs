//! Why a resource is not sent, as a server tells it: rule 117.

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::Protocol;
use xds_transport::server::ASKS_FOR_OTHERS;
use xds_transport::wire::walk::Fields;

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server, payload, seconds};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";
const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const UNAVAILABLE: i32 = 14;

#[test]
fn rule_117_an_error_is_told_once_and_with_a_removal_beside_it() {
    for code in [NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE] {
        let mut server = Server::with(ENDPOINTS, &["a"]);
        server.fail(ENDPOINTS, "missing", code);
        let mut client = Client::delta();
        let told = client.subscribe(&mut server, ENDPOINTS, &["a", "missing"]);
        assert_eq!(told, ["E a@1".to_owned(), format!("E -missing !missing:{code}")]);
        server.fail(ENDPOINTS, "missing", code);
        server.put(ENDPOINTS, "a", "2");
        assert_eq!(client.poll(&mut server), ["E a@2"]);
        // Who asks again is told again, and so is everybody when it is another error.
        assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["missing"]), [format!("E -missing !missing:{code}")]);
        server.fail(ENDPOINTS, "missing", 13);
        assert_eq!(client.poll(&mut server), ["E -missing !missing:13"]);
        server.put(ENDPOINTS, "missing", "1");
        assert_eq!(client.poll(&mut server), ["E missing@1"]);
    }
}

#[test]
fn rule_117_not_found_removes_what_was_there_and_other_errors_leave_it() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["a", "b"]);
    server.fail(CLUSTERS, "a", NOT_FOUND);
    server.fail(CLUSTERS, "b", UNAVAILABLE);
    assert_eq!(client.poll(&mut server), ["C -a !a:5 !b:14"]);
    // The resource, and then its error: never both in one response.
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &["b"]), ["C b@1", "C !b:14"]);
    // That it is over is told by the resource, though it is the same.
    server.put(CLUSTERS, "b", "1");
    assert_eq!(client.poll(&mut server), ["C b@1"]);
}

#[test]
fn rule_117_what_a_client_brought_along_is_not_removed_for_an_error_that_passes() {
    for (code, told) in [(UNAVAILABLE, "E !a:14"), (PERMISSION_DENIED, "E -a !a:7"), (NOT_FOUND, "E -a !a:5")] {
        let mut server = Server::relay();
        let mut client = Client::delta();
        let ask = Ask { of: ENDPOINTS, subscribe: &["a"], holds: &[("a", "1")], ..Ask::default() };
        // Endpoints that are asked for are sent again whatever the client has: to the server, it has none.
        assert!(client.ask(&mut server, &ask).is_empty());
        let mut clusters = Client::delta();
        let ask = Ask { of: CLUSTERS, ..ask };
        assert!(clusters.ask(&mut server, &ask).is_empty());
        server.fail(CLUSTERS, "a", code);
        assert_eq!(clusters.poll(&mut server), [told.replace('E', "C")]);
        server.put(CLUSTERS, "a", "1");
        assert_eq!(clusters.poll(&mut server), ["C a@1"], "or it would not know that the error is over");
    }
}

#[test]
fn rule_118_the_end_of_a_member_s_error_is_told_though_it_was_told_as_gone_before() {
    let mut server = Server::with(CLUSTERS, &[MEMBER]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[GLOB]);
    server.remove(CLUSTERS, MEMBER);
    assert_eq!(client.poll(&mut server), [format!("C -{MEMBER}")]);
    server.fail(CLUSTERS, MEMBER, UNAVAILABLE);
    assert_eq!(client.poll(&mut server), [format!("C -{MEMBER} !{MEMBER}:14")]);
    server.remove(CLUSTERS, MEMBER);
    assert_eq!(client.poll(&mut server), [format!("C -{MEMBER}")]);
}

#[test]
fn rule_117_a_collection_has_errors_and_members_of_a_glob_have_and_what_a_wildcard_has_has_none() {
    let mut server = Server::with(CLUSTERS, &[MEMBER, "a"]);
    let (mut globs, mut wildcards) = (Client::delta(), Client::delta());
    globs.subscribe(&mut server, CLUSTERS, &[GLOB]);
    wildcards.subscribe(&mut server, CLUSTERS, &["*"]);
    for name in ["xdstp://x/T/d/2", GLOB, "a", "*"] {
        server.fail(CLUSTERS, name, PERMISSION_DENIED);
    }
    let told = format!("C -xdstp://x/T/d/2 !{GLOB}:7 !xdstp://x/T/d/2:7");
    assert_eq!(globs.poll(&mut server), [told]);
    // Whoever asks for all is told why it is not sent all, which removes nothing, and of nothing else.
    assert_eq!(wildcards.poll(&mut server), ["C !*:7"]);
    // Who comes later is told too: of what is sent of a collection, with it.
    assert_eq!(Client::delta().subscribe(&mut server, CLUSTERS, &["*"]), ["C a@1 !*:7"]);
    let later = Client::delta().subscribe(&mut server, CLUSTERS, &[GLOB]);
    assert_eq!(later, [format!("C {MEMBER}@1 !{GLOB}:7"), "C -xdstp://x/T/d/2 !xdstp://x/T/d/2:7".to_owned()]);
}

#[test]
fn rule_117_over_sotw_an_error_is_told_beside_the_full_state_without_its_name() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    server.fail(CLUSTERS, "missing", NOT_FOUND);
    server.fail(CLUSTERS, "b", UNAVAILABLE);
    let mut client = Client::sotw();
    // What is sent has no error in the same response, and full state is always sent.
    assert_eq!(client.names(&mut server, CLUSTERS, &["a", "b", "missing"]), ["C a@1 b@1 !missing:5"]);
    assert_eq!(client.ack(&mut server, CLUSTERS), [""; 0]);
    server.put(CLUSTERS, "a", "2");
    assert_eq!(client.poll(&mut server), ["C a@2 b@1"]);
    client.ack(&mut server, CLUSTERS);
    server.fail(CLUSTERS, "b", NOT_FOUND);
    assert_eq!(client.poll(&mut server), ["C a@2 !b:5"]);
}

/// What a full state lacks is gone to who asks for all: why it lacks that, is not said after it.
#[test]
fn rule_117_over_sotw_a_full_state_says_itself_what_collections_it_lacks() {
    for asked in ["*", GLOB] {
        for names in [&[asked][..], &["a", asked]] {
            let mut server = Server::with(CLUSTERS, &["a"]);
            server.fail(CLUSTERS, asked, PERMISSION_DENIED);
            let mut client = Client::sotw();
            let there = if names.len() > 1 || asked == "*" { " a@1" } else { "" };
            assert_eq!(client.names(&mut server, CLUSTERS, names), [format!("C{there} !{asked}:7")]);
            assert_eq!(client.ack(&mut server, CLUSTERS), [""; 0], "once");
            // And when it begins to.
            let mut client = Client::sotw();
            client.names(&mut server, CLUSTERS, &["a"]);
            client.ack(&mut server, CLUSTERS);
            let told = client.names(&mut server, CLUSTERS, &["a", asked]);
            assert_eq!(told, [format!("C a@1 !{asked}:7")]);
        }
    }
    // Nor of another type, though what a response lacks is not gone there.
    let mut server = Server::with(ENDPOINTS, &["a"]);
    server.fail(ENDPOINTS, "*", PERMISSION_DENIED);
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a", "*"]), ["E a@1 !*:7"]);
    assert_eq!(client.ack(&mut server, ENDPOINTS), [""; 0]);
}

#[test]
fn rule_033_over_sotw_what_an_error_removes_is_in_the_version_no_more() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a"]);
    client.ack(&mut server, ENDPOINTS);
    server.fail(ENDPOINTS, "a", NOT_FOUND);
    assert_eq!(client.poll(&mut server), ["E !a:5"]);
    let [with, without] = &client.sotw[..] else { panic!("two responses") };
    assert_ne!(with.version_info, without.version_info);
}

#[test]
fn rule_033_what_is_yet_to_be_told_as_failing_is_in_the_version_no_more() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    server.fail(ENDPOINTS, "a", NOT_FOUND);
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), ["E b@2"]);
    assert_eq!(client.ack(&mut server, ENDPOINTS), ["E !a:5"]);
    let [_, changed, failed] = &client.sotw[..] else { panic!("three responses") };
    assert_eq!(changed.version_info, failed.version_info, "of b alone");
}

#[test]
fn rule_118_what_a_client_lets_go_because_of_its_error_is_not_refreshed() {
    const FEATURES: [&str; 2] = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];
    for client in [Client::delta(), Client::sotw_with_ttl()] {
        let mut server = Server::origin();
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1"));
        server.put_frame(ENDPOINTS, "a", "1", frame.with_wrapper(Bytes::new(), Some(seconds(30)), false));
        let mut client = client.with_features(&FEATURES);
        match client.stream.protocol() {
            Protocol::Delta => client.subscribe(&mut server, ENDPOINTS, &["a"]),
            Protocol::Sotw => client.names(&mut server, ENDPOINTS, &["a"]),
        };
        client.ack(&mut server, ENDPOINTS);
        server.fail(ENDPOINTS, "a", PERMISSION_DENIED);
        assert_eq!(client.poll(&mut server), ["E !a:7"]);
        client.ack(&mut server, ENDPOINTS);
        assert_eq!(client.stream.poll_timeout(), None);
    }
}

#[test]
fn rule_117_over_sotw_an_error_of_another_type_is_told_alone() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a", "missing"]);
    client.ack(&mut server, ENDPOINTS);
    server.fail(ENDPOINTS, "missing", NOT_FOUND);
    assert_eq!(client.poll(&mut server), ["E !missing:5"]);
    client.ack(&mut server, ENDPOINTS);
    server.fail(ENDPOINTS, "a", UNAVAILABLE);
    assert_eq!(client.poll(&mut server), ["E !a:14"]);
}

#[test]
fn rule_117_to_who_asks_for_a_virtual_host_an_alias_of_nothing_says_it() {
    let mut server = Server::with(HOSTS, &["rc/a"]);
    server.fail(HOSTS, "rc/missing", NOT_FOUND);
    let mut client = Client::delta();
    client.subscribe(&mut server, HOSTS, &["rc/a", "rc/missing"]);
    let absent = client.delta.last().unwrap();
    assert_eq!(absent.resources[0].aliases, ["rc/missing"]);
    assert!(absent.resource_errors.is_empty() && absent.removed_resources.is_empty());
    server.fail(HOSTS, "rc/a", NOT_FOUND);
    assert_eq!(client.poll(&mut server), [format!("{HOSTS} -rc/a !rc/a:5")]);
}

#[test]
fn rule_117_more_errors_than_a_response_holds_are_told_in_several() {
    let mut server = Server::origin();
    let names: Vec<_> = (0..1000).map(|n| format!("{n:0>500}")).collect();
    for name in &names {
        server.fail(CLUSTERS, name, -1);
    }
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(client.delta.len() > 3);
    let told: usize = client.delta.iter().map(|response| response.resource_errors.len()).sum();
    assert_eq!(told, names.len());
    assert_eq!(client.delta[0].resource_errors[0].error_detail.as_ref().unwrap().code, -1);
    let encoded = prost::Message::encode_to_vec(&client.delta[0]);
    assert!(Fields::of(&encoded).all(|field| field.is_ok()));
}

/// A text that starts as an `xdstp:` name and is none is told to be none, once, and the others of its request are served.
#[test]
fn a_name_that_does_not_parse_is_refused_in_words_over_sotw() {
    const BAD: &str = "xdstp://a";
    for of in [CLUSTERS, ENDPOINTS] {
        let mut server = Server::with(of, &["a"]);
        let mut client = Client::sotw();
        let mut said = client.names(&mut server, of, &["a", BAD]);
        said.extend(client.settle(&mut server));
        let said = said.join("|");
        assert_eq!(said.matches(&format!("!{BAD}:3")).count(), 1, "{said}");
        assert!(said.contains("a@1"), "{said}");
        server.put(of, "a", "2");
        let said = client.settle(&mut server).join("|");
        assert!(said.contains("a@2") && !said.contains(BAD), "once: {said}");
        let mut alone = Client::sotw();
        assert!(alone.names(&mut server, of, &[BAD]).join("|").contains(BAD));
    }
}

#[test]
fn rule_034_what_stays_beside_an_error_stays_in_the_version() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let versions = |client: &Client| client.sotw.last().unwrap().version_info.clone();
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    server.fail(ENDPOINTS, "a", 14);
    assert_eq!(client.poll(&mut server), ["E !a:14"]);
    client.ack(&mut server, ENDPOINTS);
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), ["E b@2"]);
    let mut other = Client::sotw();
    assert_eq!(other.names(&mut server, ENDPOINTS, &["a", "b"]), ["E a@1 b@2"]);
    assert_eq!(versions(&client), versions(&other));
}

/// Without its error, what others asked for would be taken for the answer: over SotW for one that lacks all else.
#[test]
fn rule_118_what_is_sent_of_a_collection_that_is_refused_comes_with_its_error() {
    for (of, letter) in [(CLUSTERS, 'C'), (ENDPOINTS, 'E')] {
        for (asked, member) in [("*", "a"), (GLOB, MEMBER)] {
            let mut server = Server::relay();
            let (mut named, mut delta) = (Client::delta(), Client::delta());
            named.subscribe(&mut server, of, &[member]);
            delta.subscribe(&mut server, of, &[asked]);
            let (mut sotw, mut back) = (Client::sotw(), Client::sotw().with_features(&[ASKS_FOR_OTHERS]));
            sotw.names(&mut server, of, &[asked]);
            back.names_at(&mut server, of, &[asked], "v");
            server.fail(of, asked, PERMISSION_DENIED);
            delta.poll(&mut server);
            for client in [&mut sotw, &mut back] {
                assert_eq!(client.poll(&mut server), [format!("{letter} !{asked}:7")]);
                assert_eq!(client.ack(&mut server, of), [""; 0]);
            }
            for version in ["1", "2"] {
                server.put(of, member, version);
                assert_eq!(named.poll(&mut server), [format!("{letter} {member}@{version}")]);
                let told = [format!("{letter} {member}@{version} !{asked}:7")];
                assert_eq!(delta.poll(&mut server), told);
                for client in [&mut sotw, &mut back] {
                    assert_eq!(client.poll(&mut server), told);
                    // As it is once it is asked for beside something else.
                    assert_eq!(client.ack(&mut server, of), [""; 0]);
                }
            }
            server.answered(of, asked);
            server.put(of, member, "3");
            for client in [&mut delta, &mut sotw, &mut back] {
                assert_eq!(client.poll(&mut server), [format!("{letter} {member}@3")]);
            }
        }
    }
}

/// A full state is what it holds from then on, to a client that knows no errors: there is none of what is not answered. That is no
/// matter of types whose absences say nothing.
#[test]
fn rule_151_over_sotw_who_comes_back_loses_nothing_to_a_refusal() {
    for (of, told) in [(CLUSTERS, None), (ENDPOINTS, Some("E !*:7"))] {
        let mut server = Server::relay();
        server.fail(of, "*", PERMISSION_DENIED);
        let mut client = Client::sotw();
        client.names_at(&mut server, of, &["*"], "v");
        server.fail(of, "*", PERMISSION_DENIED);
        assert_eq!(client.poll(&mut server), told.as_slice());
    }
}

/// A control plane answers for all there is, and says so to who comes back too.
#[test]
fn rule_117_over_sotw_who_comes_back_to_a_control_plane_is_told_what_it_refuses() {
    for of in [CLUSTERS, ENDPOINTS] {
        for asked in ["*", GLOB] {
            // The version that its state has, too: an equal one says that a client holds all there is.
            for version in ["", "old", "v"] {
                let mut server = Server::with(of, &["a"]);
                server.cache.set_type_version(&of.into(), Some("v".into()));
                server.fail(of, asked, PERMISSION_DENIED);
                let mut client = Client::sotw();
                let mut told = client.names_at(&mut server, of, &[asked], version);
                told.extend(client.ack(&mut server, of));
                assert!(told.concat().contains(&format!("!{asked}:7")), "{of} {asked} {version}: {told:?}");
            }
        }
    }
}
