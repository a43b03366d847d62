//! What an origin says about resources it does not send, and what cannot be had of it, reaches who asked for it: TP3,
//! rules 2, 117 and 118.

use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse};

use crate::support::*;

const NOT_FOUND: i32 = 5;
const UNAVAILABLE: i32 = 14;

#[test]
fn rule_117_an_error_passes_a_relay_whatever_is_spoken_on_either_side() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            let (name, missing) = (endpoints("a", "there"), endpoints("a", "missing"));
            world.put(0, ENDPOINTS, &name, "1");
            world.fail(0, ENDPOINTS, &missing, NOT_FOUND, "why");
            let client = world.client(downstream, "n");
            world.subscribe(client, ENDPOINTS, &[&name, &missing]);
            let told = world.told(client).join(" ");
            assert!(told.contains(&format!("-!{missing}:5")), "{upstream:?} {downstream:?}: {told}");
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
            // What the origin has trouble with stays in use.
            world.fail(0, ENDPOINTS, &name, UNAVAILABLE, "why");
            assert!(world.told(client).join(" ").contains(&format!("-!{name}:14")));
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
            // Who comes later is told from the cache.
            world.asked(0);
            let later = world.client(downstream, "n");
            world.subscribe(later, ENDPOINTS, &[&name, &missing]);
            let told = world.told(later).join(" ");
            assert!(told.contains(&format!("-!{name}:14")) && told.contains(&format!("-!{missing}:5")), "{told}");
            assert_eq!(world.asked(0), [""; 0]);
            world.put(0, ENDPOINTS, &missing, "2");
            for client in [client, later] {
                assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{missing}@2"), format!("{name}@1")]);
            }
        }
    }
}

/// It may stand in the answer that has the glob empty.
#[test]
fn rule_117_an_error_of_a_whole_glob_passes_a_relay_and_that_there_is_none_ends_its_members() {
    const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    for (code, stays) in [(5, false), (7, true), (UNAVAILABLE, true)] {
        let mut world = World::new(DELTA);
        world.put(0, CLUSTERS, MEMBER, "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &[GLOB]);
        assert_eq!(errors(&mut world, client), [""; 0]);
        world.fail(0, CLUSTERS, GLOB, code, "why");
        let told = [format!("{GLOB}:{code} why")];
        assert_eq!(errors(&mut world, client), told);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), usize::from(stays), "{code}");
        // Who comes later is told from the cache.
        let later = world.client(DELTA, "n");
        world.subscribe(later, CLUSTERS, &[GLOB]);
        assert_eq!(errors(&mut world, later), told);
        world.put(0, CLUSTERS, MEMBER, "2");
        for client in [client, later] {
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{MEMBER}@2")], "{code}");
        }
    }
}

/// A full state has what one of two scopes has, whichever it is: an error of the other has no place beside it.
#[test]
fn rule_117_over_sotw_no_error_stands_beside_what_one_of_two_scopes_has() {
    const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    for [named, wild] in [[true, true], [true, false], [false, true], [false, false]] {
        for specific in [NAME, GLOB] {
            let mut world = World::new(DELTA);
            world.origins[0].wildcard_sends_xdstp_to("n");
            let now = world.now;
            for (node, there) in [("", named), ("n", wild)] {
                if there {
                    world.origins[0].put_frame(now, node, CLUSTERS, NAME, "1", frame(CLUSTERS, NAME, "1"));
                }
            }
            let client = world.client(SOTW, "n");
            world.subscribe(client, CLUSTERS, &["*", specific]);
            world.advance(20 * SECOND);
            let error = xdstp_cache::ResourceError::new(UNAVAILABLE, "not today");
            world.origins[0].fail_for(now, "", CLUSTERS, NAME, &error);
            world.advance(20 * SECOND);
            // What comes then is a full state again.
            world.origins[0].put_frame(now, "n", CLUSTERS, "c", "1", frame(CLUSTERS, "c", "1"));
            world.advance(20 * SECOND);
            let responses = world.clients[client].chunks.iter();
            let responses = responses.map(|chunks| DiscoveryResponse::decode(&*chunks.concat()).unwrap());
            let told = responses.filter(|response| !response.resource_errors.is_empty()).count();
            let case = format!("{specific}: {named} {wild}");
            assert_eq!(told, usize::from(!named && !wild), "{case}");
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 1 + usize::from(named || wild), "{case}");
        }
    }
}

#[test]
fn rule_117_an_error_is_over_for_a_relay_when_nobody_asks_any_more() {
    let mut world = World::new(DELTA);
    world.fail(0, CLUSTERS, "a", UNAVAILABLE, "why");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    assert!(world.told(client).join(" ").contains("-!a:14"));
    world.unsubscribe(client, CLUSTERS, &["a"]);
    world.advance(LINGER + SECOND);
    world.asked(0);
    world.subscribe(client, CLUSTERS, &["a"]);
    assert_eq!(world.asked(0).len(), 1);
    assert!(world.told(client).join(" ").contains("-!a:14"));
}

/// Of a name of several scopes more than its own is looked at.
#[test]
fn rule_117_an_error_is_told_alike_to_who_asks_for_names_of_several_authorities() {
    for downstream in [DELTA, SOTW] {
        let name = endpoints("a", "x");
        let told = [None, Some(endpoints("b", "x"))].map(|beside| {
            let mut world = World::new(DELTA);
            world.put(0, ENDPOINTS, &name, "1");
            let clients = ["n", "m"].map(|node| world.client(downstream, node));
            if let Some(beside) = &beside {
                clients.iter().for_each(|client| world.subscribe(*client, ENDPOINTS, &[beside]));
            }
            let mut told = Vec::new();
            for (code, client) in [(UNAVAILABLE, clients[0]), (NOT_FOUND, clients[1])] {
                world.subscribe(client, ENDPOINTS, &[&name]);
                world.advance(20 * SECOND);
                clients.iter().for_each(|client| drop(world.told(*client)));
                world.fail(0, ENDPOINTS, &name, code, "why");
                world.advance(20 * SECOND);
                let held = clients.map(|client| world.clients[client].held(ENDPOINTS));
                told.push((clients.map(|client| world.told(client)), held));
            }
            told
        });
        assert_eq!(told[0], told[1], "{downstream:?}");
    }
}

#[test]
fn an_origin_s_words_about_a_resource_are_bounded() {
    let mut world = World::new(DELTA);
    world.fail(0, CLUSTERS, "a", UNAVAILABLE, &"x".repeat(100_000));
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    let bytes: usize = world.clients[client].chunks.iter().flatten().map(bytes::Bytes::len).sum();
    assert!((1024..4096).contains(&bytes), "{bytes}");
}

/// Over SotW no virtual host could be taken back: who asks for all of them is told so, and not left to wait.
#[test]
fn rule_002_a_wildcard_of_what_is_delta_only_is_refused_aloud_where_the_origin_is_asked_over_sotw() {
    const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    let refusal = format!("*:12 there is no state of the world of {HOSTS}: it comes over delta only");
    for (upstream, refused) in [(SOTW, true), (DELTA, false)] {
        let mut world = World::new(upstream);
        world.put(0, CLUSTERS, "a", "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, HOSTS, &["*"]);
        let again = || if refused { vec![refusal.clone()] } else { Vec::new() };
        assert_eq!(errors(&mut world, client), again(), "{upstream:?}");
        world.advance(60 * SECOND);
        assert_eq!(errors(&mut world, client), [""; 0], "once");
        world.unsubscribe(client, HOSTS, &["*"]);
        world.subscribe(client, HOSTS, &["*"]);
        assert_eq!(errors(&mut world, client), again(), "and to who asks again");
        // Of other types, and for the rest of the stream, it is nothing.
        world.subscribe(client, CLUSTERS, &["*"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
        assert_eq!(errors(&mut world, client), [""; 0]);
        assert_eq!(world.asked(0).join(" ").contains("VirtualHost"), !refused);
    }
}

/// The errors of the responses since the last look.
fn errors(world: &mut World, client: usize) -> Vec<String> {
    let responses = std::mem::take(&mut world.clients[client].chunks);
    let decoded = responses.iter().map(|chunks| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap());
    let said = decoded.flat_map(|response| response.resource_errors).map(|error| {
        let status = error.error_detail.unwrap();
        format!("{}:{} {}", error.resource_name.unwrap().name, status.code, status.message)
    });
    said.collect()
}
