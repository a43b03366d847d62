//! Rule 121: what the origin forbids to share, and what of a resource nobody may touch.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::DeltaDiscoveryResponse;

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

/// Two nodes of one group, and an origin that answers the second apart.
fn world() -> World {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]\nlinger: 1s");
    world.origins[0].answer_apart("n2");
    world
}

fn put_uncached(world: &mut World, name: &str, version: &str) {
    let now = world.now;
    for node in ["", "n2"] {
        world.origins[0].put_uncached(now, node, CLUSTERS, name, version);
    }
    world.settle();
}

#[test]
fn rule_121_what_must_not_be_shared_is_fetched_by_every_client_for_itself() {
    let glob_member = GLOB.replace('*', "u");
    for (name, interest) in [("u", "u"), ("u", "*"), (glob_member.as_str(), GLOB), (&glob_member, &glob_member)] {
        let mut world = world();
        put_uncached(&mut world, name, "1");
        let (one, two) = (world.client(DELTA, "n1"), world.client(SOTW, "n2"));
        for client in [one, two] {
            world.subscribe(client, CLUSTERS, &[interest]);
            world.advance(SECOND);
        }
        assert_eq!(world.clients[one].held(CLUSTERS), [format!("{name}@1")], "{interest}");
        assert_eq!(world.clients[two].held(CLUSTERS), [format!("{name}@1n2")], "{interest}");
        let asked = world.asked(0);
        for node in ["n1", "n2"] {
            assert!(asked.contains(&format!("{node} Cluster +{name}")), "{interest}: {asked:?}");
        }
        assert_eq!(world.streams_of(0), 3, "one for all, one for each");
        put_uncached(&mut world, name, "2");
        assert_eq!(world.clients[two].held(CLUSTERS), [format!("{name}@2n2")], "{interest}");
        // Whoever leaves, takes the own stream along.
        world.unsubscribe(one, CLUSTERS, &[interest]);
        assert_eq!(world.streams_of(0), 2, "{interest}");
        world.disconnect(two);
        assert_eq!(world.streams_of(0), 1, "{interest}");
        world.disconnect(one);
        world.advance(5 * SECOND);
        assert_eq!((world.streams_of(0), world.scopes_of(0).len()), (0, 0), "{interest}");
    }
}

/// Another part covers it still, and said long ago that there is one.
#[test]
fn rule_121_what_is_fetched_for_one_client_stays_when_one_of_two_that_ask_for_it_is_left() {
    let name = GLOB.replace('*', "u");
    for downstream in [DELTA, SOTW] {
        for specific in [GLOB, name.as_str()] {
            for leaves in ["*", specific] {
                let mut world = world();
                world.origins[0].wildcard_sends_xdstp();
                put_uncached(&mut world, &name, "1");
                world.put(0, CLUSTERS, "s", "1");
                let client = world.client(downstream, "n1");
                world.subscribe(client, CLUSTERS, &["*", "s"]);
                world.advance(20 * SECOND);
                world.subscribe(client, CLUSTERS, &[specific]);
                world.advance(20 * SECOND);
                let case = format!("{downstream:?} {specific} {leaves}");
                assert_eq!(world.clients[client].held(CLUSTERS), ["s@1", &format!("{name}@1")], "{case}");
                world.told(client);
                world.unsubscribe(client, CLUSTERS, &[leaves]);
                world.advance(20 * SECOND);
                world.put(0, CLUSTERS, "s", "2");
                world.advance(20 * SECOND);
                assert_eq!(world.clients[client].held(CLUSTERS), ["s@2", &format!("{name}@1")], "{case}");
                assert!(!world.told(client).join(" ").contains(" -"), "{case}");
            }
        }
    }
}

#[test]
fn rule_121_the_page_shows_the_streams_of_what_must_not_be_shared() {
    let mut world = world();
    put_uncached(&mut world, "u", "1");
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["u"]);
    let core = world.relays[0].core.clone();
    let dump = core.config_dump(world.now);
    let streams: Vec<_> = dump.origins[0].streams.iter().map(|stream| stream.group.as_str()).collect();
    assert_eq!(streams, ["cluster=c", "stream 1"]);
    assert!(dump.origins[0].streams.iter().all(|stream| stream.connected && stream.subscriptions == 1));
    let held: Vec<_> = dump.scopes.iter().map(|scope| (scope.scope.as_str(), scope.types[0].resources.len())).collect();
    assert_eq!(held, [("cluster=c", 1), ("stream 1", 1)]);
    world.disconnect(client);
    assert_eq!(core.config_dump(world.now).origins[0].streams.len(), 1);
}

/// Whether one scope may have the name or two, it is told at once, with what else there is.
#[test]
fn rule_128_what_may_be_shared_again_is_told_in_one_response_with_its_neighbours() {
    for interests in [["*", "*"], ["*", GLOB], [GLOB, GLOB]] {
        let [name, mate] = ["u", "mate"].map(|name| GLOB.replace('*', name));
        let mut world = world();
        world.origins[0].wildcard_sends_xdstp();
        put_uncached(&mut world, &name, "1");
        world.put(0, CLUSTERS, &mate, "1");
        let client = world.client(DELTA, "n1");
        world.subscribe(client, CLUSTERS, &interests);
        world.advance(20 * SECOND);
        world.told(client);
        let now = world.now;
        world.origins[0].put(now, CLUSTERS, &name, "2");
        world.origins[0].put(now, CLUSTERS, &mate, "2");
        world.advance(20 * SECOND);
        assert_eq!(world.told(client), [format!("Cluster {mate}@2 {name}@2")], "{interests:?}");
    }
}

#[test]
fn rule_121_a_resource_that_may_be_shared_again_is() {
    // With a glob beside, two scopes may have the name.
    for (interests, streams) in [(["*", "*"], 1), (["*", GLOB], 2)] {
        for name in ["u".to_owned(), GLOB.replace('*', "u")] {
            let mut world = world();
            world.origins[0].wildcard_sends_xdstp();
            put_uncached(&mut world, &name, "1");
            let client = world.client(DELTA, "n1");
            world.subscribe(client, CLUSTERS, &interests);
            world.advance(SECOND);
            assert_eq!(world.streams_of(0), streams + 1, "{interests:?} {name}");
            world.put(0, CLUSTERS, &name, "2");
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@2")]);
            assert_eq!(world.streams_of(0), streams, "{interests:?} {name}");
            put_uncached(&mut world, &name, "3");
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@3")]);
            assert_eq!(world.streams_of(0), streams + 1, "{interests:?} {name}");
            world.remove(0, CLUSTERS, &name);
            assert_eq!(world.clients[client].held(CLUSTERS), [""; 0]);
            assert_eq!(world.streams_of(0), streams, "{interests:?} {name}");
        }
    }
}

#[test]
fn rule_069_what_is_fetched_for_one_client_and_gone_for_all_is_named_once_in_a_response() {
    for shared_again in [false, true] {
        let mut world = world();
        // The node group's stream is the first client's.
        let (one, two) = (world.client(DELTA, "n1"), world.client(DELTA, "n2"));
        let now = world.now;
        for node in ["", "n2"] {
            world.origins[0].put_uncached(now, node, LISTENERS, "u", "1");
        }
        for client in [one, two] {
            world.subscribe(client, LISTENERS, &["*"]);
        }
        world.told(two);
        world.clients[two].stalled = true;
        world.origins[0].put_uncached(now, "n2", LISTENERS, "u", "2");
        world.settle();
        world.origins[0].remove_from(now, "", LISTENERS, "u");
        world.settle();
        if shared_again {
            world.put(0, LISTENERS, "u", "3");
        }
        world.clients[two].stalled = false;
        world.settle();
        let held = world.clients[two].held(LISTENERS);
        assert_eq!(held, if shared_again { vec!["u@3"] } else { Vec::new() });
        assert_eq!(world.streams_of(0), 1, "nothing is fetched for one client any more");
    }
}

#[test]
fn rule_150_what_must_not_be_shared_any_more_is_not_taken_from_who_holds_it() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::of(&[upstream], &[&[]], "share_by: [cluster]");
        world.put(0, CLUSTERS, "u", "1");
        world.put(0, CLUSTERS, "v", "1");
        let client = world.client(SOTW, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        world.told(client);
        let now = world.now;
        world.origins[0].put_uncached(now, "", CLUSTERS, "u", "2");
        world.origins[0].slowness = 10 * SECOND;
        world.put(0, CLUSTERS, "v", "2");
        world.advance(60 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains("-u"), "{upstream:?}: {told}");
        assert_eq!(world.clients[client].held(CLUSTERS), ["u@2", "v@2"], "{upstream:?}");
        // Who comes back with it, too.
        world.disconnect(client);
        world.connect(client, 0);
        world.advance(60 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains("-u"), "{upstream:?}: {told}");
        assert_eq!(world.clients[client].held(CLUSTERS), ["u@2", "v@2"], "{upstream:?}");
        // And gone it is when the origin says so.
        world.remove(0, CLUSTERS, "u");
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["v@2"], "{upstream:?}");
    }
}

/// Nor by an error of the stream that fetches it: neither what a client was sent, nor what it brings along.
#[test]
fn rule_150_an_error_takes_nothing_away_that_must_not_be_shared_any_more() {
    const UNAVAILABLE: i32 = 14;
    // To a client that knows nothing of errors.
    let takes_away = |chunks: &[Vec<Bytes>]| {
        let removed = |chunks: &Vec<Bytes>| {
            let response: DeltaDiscoveryResponse = Message::decode(Bytes::from(chunks.concat())).unwrap();
            !response.removed_resources.is_empty()
        };
        chunks.iter().any(removed)
    };
    let mut world = world();
    let now = world.now;
    for node in ["", "n2"] {
        world.origins[0].put_frame(now, node, CLUSTERS, "u", "1", cluster("u", "1"));
    }
    let (first, holder) = (world.client(DELTA, "n1"), world.client(DELTA, "n2"));
    for client in [first, holder] {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
    }
    let error = xdstp_cache::ResourceError::new(UNAVAILABLE, "not today");
    world.origins[0].remove_from(now, "n2", CLUSTERS, "u");
    world.origins[0].fail_for(now, "n2", CLUSTERS, "u", &error);
    world.origins[0].put_uncached(now, "", CLUSTERS, "u", "2");
    world.advance(20 * SECOND);
    assert!(world.told(holder).join(" ").contains("!u:14"));
    assert!(!takes_away(&world.clients[holder].chunks));
    // The relay forgets that it ever shared it.
    world.disconnect(first);
    world.disconnect(holder);
    world.advance(5 * SECOND);
    world.connect(first, 0);
    world.advance(SECOND);
    world.connect(holder, 0);
    world.advance(20 * SECOND);
    assert!(world.told(holder).join(" ").contains("!u:14"));
    assert!(!takes_away(&world.clients[holder].chunks));
    world.origins[0].put_uncached(now, "n2", CLUSTERS, "u", "3");
    world.advance(20 * SECOND);
    assert_eq!(world.clients[holder].held(CLUSTERS), ["u@3n2"]);
    // Who holds nothing is told that there is nothing (rule 117).
    world.origins[0].remove_from(now, "n2", CLUSTERS, "u");
    world.origins[0].fail_for(now, "n2", CLUSTERS, "u", &error);
    let other = world.client(DELTA, "n2");
    world.subscribe(other, CLUSTERS, &["*"]);
    world.advance(20 * SECOND);
    assert!(takes_away(&world.clients[other].chunks));
}

/// Over SotW it would be gone from a full state: that waits.
#[test]
fn rule_150_nor_does_it_over_sotw() {
    const UNAVAILABLE: i32 = 14;
    let mut world = world();
    let now = world.now;
    for node in ["", "n2"] {
        world.origins[0].put_frame(now, node, CLUSTERS, "u", "1", cluster("u", "1"));
    }
    let (first, holder) = (world.client(DELTA, "n1"), world.client(SOTW, "n2"));
    for client in [first, holder] {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
    }
    world.told(holder);
    world.origins[0].remove_from(now, "n2", CLUSTERS, "u");
    let error = xdstp_cache::ResourceError::new(UNAVAILABLE, "not today");
    world.origins[0].fail_for(now, "n2", CLUSTERS, "u", &error);
    world.origins[0].put_uncached(now, "", CLUSTERS, "u", "2");
    world.advance(20 * SECOND);
    assert_eq!(world.told(holder), [""; 0]);
    world.origins[0].put_uncached(now, "n2", CLUSTERS, "u", "3");
    world.advance(20 * SECOND);
    assert_eq!(world.told(holder), ["Cluster u@3n2"]);
    // And gone it is when the origin says so.
    world.origins[0].fail_for(now, "n2", CLUSTERS, "u", &xdstp_cache::ResourceError::new(5, "no more"));
    world.advance(20 * SECOND);
    assert_eq!(world.clients[holder].held(CLUSTERS), [""; 0]);
}

#[test]
fn rule_150_who_was_sent_something_else_does_not_wait_for_what_must_not_be_shared() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, CLUSTERS, "v", "1");
    let client = world.client(SOTW, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    let now = world.now;
    world.origins[0].put_uncached(now, "", CLUSTERS, "u", "1");
    world.origins[0].slowness = 10 * SECOND;
    world.put(0, CLUSTERS, "v", "2");
    world.advance(11 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["v@2"]);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["u@1", "v@2"]);
}

#[test]
fn rule_121_who_comes_back_with_an_uncached_resource_hits_the_origin_too() {
    let mut world = world();
    put_uncached(&mut world, "u", "1");
    let client = world.client(DELTA, "n2");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.disconnect(client);
    world.asked(0);
    world.connect(client, 0);
    world.advance(SECOND);
    assert_eq!(world.asked(0), ["n2 Cluster +u"]);
    assert_eq!(world.clients[client].held(CLUSTERS), ["u@1n2"]);
}

#[test]
fn rule_121_wrapper_fields_are_passed_on_byte_for_byte() {
    let mut world = World::new(DELTA);
    // An alias, cache_control without do_not_cache, metadata, and two fields that nobody here knows.
    let wrapper = Bytes::from_static(b"\x22\x05alias\x3a\x00\x4a\x02\x0a\x00\x98\x06\x05\xa2\x06\x03odd");
    let frame = cluster("a", "1").with_wrapper(wrapper.clone(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", CLUSTERS, "a", "1", frame.clone());
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    let response: Bytes = world.clients[client].chunks[0].concat().into();
    let received = xds_transport::Response::from_delta(response.clone()).unwrap();
    let passed = received.resources[0].frame.clone().unwrap();
    assert_eq!(passed.wrapper(), &wrapper);
    assert_eq!(passed.any(), frame.any());
    let decoded: DeltaDiscoveryResponse = Message::decode(response).unwrap();
    assert_eq!(decoded.resources[0].aliases, ["alias"]);
}

#[test]
fn rule_121_a_sotw_origin_can_forbid_sharing_too() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::of(&[SOTW], &[&[]], "share_by: [cluster]");
        world.origins[0].answer_apart("n2");
        put_uncached(&mut world, "u", "1");
        let (one, two) = (world.client(downstream, "n1"), world.client(downstream, "n2"));
        for client in [one, two] {
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(SECOND);
        }
        assert_eq!(world.clients[one].held(CLUSTERS), ["u@1"]);
        assert_eq!(world.clients[two].held(CLUSTERS), ["u@1n2"]);
        put_uncached(&mut world, "u", "2");
        assert_eq!(world.clients[two].held(CLUSTERS), ["u@2n2"]);
    }
}

#[test]
fn rule_048_what_is_fetched_for_one_client_is_sent_again_to_who_asks_again() {
    let name = GLOB.replace('*', "u");
    for (interests, again) in [(vec!["*"], "*"), (vec![GLOB], GLOB), (vec![&*name], &*name), (vec!["*", GLOB], GLOB)] {
        let mut world = world();
        world.origins[0].wildcard_sends_xdstp();
        put_uncached(&mut world, &name, "1");
        let client = world.client(DELTA, "n1");
        world.subscribe(client, CLUSTERS, &interests);
        world.advance(20 * SECOND);
        world.told(client);
        let (now, before) = (world.now, world.clients[client].chunks.len());
        world.clients[client].ask_again(now, CLUSTERS, &[again]);
        world.settle();
        let answers = &world.clients[client].chunks[before..];
        let named = |chunks: &Vec<Bytes>| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap().resources.len();
        assert_eq!(answers.iter().map(named).collect::<Vec<_>>(), [1], "{interests:?} {again}");
    }
}

/// The shared scope has two, of which the client's own stream says that they are one.
#[test]
fn rule_103_what_is_fetched_for_one_client_by_two_names_comes_once_in_a_response() {
    let mut world = world();
    let now = world.now;
    for name in ["u", "v"] {
        world.origins[0].put_uncached(now, "n2", CLUSTERS, name, "1");
    }
    let (two, one) = (world.client(DELTA, "n2"), world.client(DELTA, "n1"));
    world.subscribe(two, CLUSTERS, &["*"]);
    let put_aliased = |world: &mut World, version: &str| {
        // Resource { aliases: ["v"], cache_control { do_not_cache: true } }
        let fields = Bytes::from_static(b"\x22\x01v\x3a\x02\x08\x01");
        let (now, frame) = (world.now, frame(CLUSTERS, "u", version).with_wrapper(fields, None, true));
        world.origins[0].put_frame(now, "", CLUSTERS, "u", version, frame);
        world.settle();
    };
    put_aliased(&mut world, "1");
    world.subscribe(one, CLUSTERS, &["u"]);
    assert_eq!(world.clients[one].held(CLUSTERS), ["u@1"]);
    world.clients[one].stalled = true;
    put_aliased(&mut world, "2");
    world.subscribe(one, CLUSTERS, &["*"]);
    world.clients[one].stalled = false;
    world.advance(20 * SECOND);
    // The client's own machine refuses a name that stands twice in a response.
    assert_eq!(world.clients[one].held(CLUSTERS), ["u@2"]);
}

#[test]
fn rule_124_endpoints_that_are_fetched_for_one_client_are_sent_again_after_their_cluster() {
    let mut world = world();
    let now = world.now;
    // Resource.cache_control { do_not_cache: true }
    let uncached = frame(ENDPOINTS, "u", "1").with_wrapper(Bytes::from_static(b"\x3a\x02\x08\x01"), None, true);
    world.origins[0].put_frame(now, "", ENDPOINTS, "u", "1", uncached);
    world.origins[0].put_frame(now, "", CLUSTERS, "u", "1", cluster("u", "1"));
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["u"]);
    world.subscribe(client, ENDPOINTS, &["u"]);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[client].held(ENDPOINTS), ["u@1"]);
    let (now, before) = (world.now, world.clients[client].chunks.len());
    world.origins[0].put_frame(now, "", CLUSTERS, "u", "2", cluster("u", "2"));
    world.advance(20 * SECOND);
    let answers = world.clients[client].chunks.iter().skip(before);
    let types = answers.map(|chunks| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap().type_url);
    assert_eq!(types.collect::<Vec<_>>(), [CLUSTERS, ENDPOINTS]);
}
