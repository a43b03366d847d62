//! What the relay counts, and shows: each thing once, however much there is and however often somebody looks.

use prost::Message as _;
use xds_transport::wire::DeltaDiscoveryResponse;

use crate::parameters::{chain, constraints, sends, vary};
use crate::support::*;

const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";

#[test]
fn what_a_client_was_sent_and_said_is_counted_once() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        for name in ["a", "b", "c"] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let client = world.client(downstream, "n");
        world.subscribe(client, ENDPOINTS, &["a", "b", "c"]);
        world.put(0, ENDPOINTS, "a", "2");
        world.clients[client].refuses = true;
        world.put(0, ENDPOINTS, "b", "2");
        world.disconnect(client);
        let sent: usize = world.clients[client].chunks.iter().flatten().map(bytes::Bytes::len).sum();
        for _ in 0..2 {
            let of = "type=\"envoy.config.endpoint.v3.ClusterLoadAssignment\"";
            let counted = ["requests", "responses", "resources_sent", "acks", "sent_bytes"]
                .map(|what| world.counted(0, &format!("downstream_{what}_total{{{of}}}")));
            assert_eq!(counted, [4, 3, 5, 2, sent as u64], "{downstream:?}");
            let nacks = ["validation", "decode", "unsupported", "internal", "other"]
                .map(|reason| world.counted(0, &format!("downstream_nacks_total{{reason=\"{reason}\",{of}}}")));
            assert_eq!(nacks, [1, 0, 0, 0, 0], "{downstream:?}");
        }
    }
}

/// Whatever a response refuses of, it is rejected once; of each resource in it, it says why.
#[test]
fn what_an_origin_sent_and_what_of_it_was_refused_is_counted_once() {
    let mut world = World::of(&[DELTA, DELTA], &[&[], &["a"]], "");
    world.origins[0].wildcard_sends_xdstp();
    for name in ["old", "older", NAME, &NAME.replace("/x", "/y")] {
        world.put(0, CLUSTERS, name, "1");
    }
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    for version in ["2", "3"] {
        world.put(0, CLUSTERS, "old", version);
    }
    let of = "{origin=\"o0\",type=\"envoy.config.cluster.v3.Cluster\"}";
    let counted =
        ["responses", "resources", "nacks"].map(|what| world.counted(0, &format!("upstream_{what}_total{of}")));
    assert_eq!(counted, [3, 6, 1]);
    assert_eq!(world.counted(0, "upstream_refused_total{origin=\"o0\"}"), 2);
}

#[test]
fn a_stream_is_counted_once_and_for_as_long_as_it_is_there() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    let upstream = |world: &World| {
        let of = "{origin=\"o0\"}";
        ["connected", "connects_total", "disconnects_total"]
            .map(|what| world.counted(0, &format!("upstream_{what}{of}")))
    };
    assert_eq!(upstream(&world), [1, 1, 0]);
    world.set_up(0, false);
    assert_eq!(upstream(&world), [0, 1, 1]);
    let downstream = |world: &World| {
        let of = "{protocol=\"delta\"}";
        ["", "_opened_total"].map(|what| world.counted(0, &format!("downstream_streams{what}{of}")))
    };
    assert_eq!(downstream(&world), [1, 1]);
    world.disconnect(client);
    assert_eq!(downstream(&world), [0, 1]);
}

#[test]
fn a_name_that_is_not_there_is_no_resource_that_is_held() {
    let mut world = World::new(DELTA);
    world.put(0, ENDPOINTS, "there", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["there", "missing"]);
    let of = "{type=\"envoy.config.endpoint.v3.ClusterLoadAssignment\"}";
    assert_eq!(world.counted(0, &format!("resources{of}")), 1);
}

/// Pages are put together a part at a time, so that nobody waits for them.
#[test]
fn the_page_shows_and_the_metrics_count_each_of_many_names_once() {
    let globs: Vec<_> = (0..600).map(|at| NAME.replace("g/x", &format!("{at:03}/*"))).collect();
    let names: Vec<_> = globs.iter().map(|glob| glob.replace('*', "x")).collect();
    let mut world = World::new(DELTA);
    for name in &names {
        let now = world.now;
        world.origins[0].put(now, CLUSTERS, name, "1");
    }
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &globs.iter().map(String::as_str).collect::<Vec<_>>());
    world.advance(SECOND);
    let dump = world.relays[0].core.config_dump(world.now);
    let shown = &dump.scopes[0].types[0];
    assert_eq!(
        shown.resources.iter().map(|resource| &resource.name).collect::<Vec<_>>(),
        names.iter().collect::<Vec<_>>()
    );
    assert_eq!(shown.globs, globs);
    assert_eq!(world.counted(0, "resources{type=\"envoy.config.cluster.v3.Cluster\"}"), 600);
}

#[test]
fn rule_121_what_is_fetched_for_one_client_is_shown_once_whatever_types_it_is_of() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    let client = world.client(DELTA, "n");
    for of in [CLUSTERS, ENDPOINTS] {
        let now = world.now;
        world.origins[0].put_uncached(now, "", of, "u", "1");
        world.subscribe(client, of, &["u"]);
    }
    assert_eq!(world.scopes_of(0), ["cluster=c", "stream 1"]);
}

/// How many of these took at most so many seconds.
fn took(world: &World, what: &str, seconds: &str) -> u64 {
    let of = "type=\"envoy.config.endpoint.v3.ClusterLoadAssignment\"";
    world.counted(0, &format!("downstream_{what}_after_seconds_bucket{{{of},le=\"{seconds}\"}}"))
}

#[test]
fn how_long_an_update_waits_is_counted_for_each_who_is_sent_it() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
        world.put(0, ENDPOINTS, "a", "1");
        let [reader, slow] = ["n", "m"].map(|node| world.client(downstream, node));
        world.subscribe(reader, ENDPOINTS, &["a"]);
        // What is there already waited for nobody.
        world.subscribe(slow, ENDPOINTS, &["a"]);
        world.clients[slow].stalled = true;
        world.put(0, ENDPOINTS, "a", "2");
        world.advance(SECOND * 3);
        world.clients[slow].stalled = false;
        world.settle();
        [reader, slow].iter().for_each(|client| world.disconnect(*client));
        // However often somebody looks.
        for _ in 0..2 {
            let sent = ["0.001", "1", "5", "+Inf"].map(|seconds| took(&world, "sent", seconds));
            assert_eq!(sent, [2, 2, 3, 3], "{downstream:?}");
            assert_eq!(took(&world, "acked", "0.001"), 4, "{downstream:?}");
        }
    }
}

#[test]
fn what_is_not_wanted_any_more_has_waited_for_nobody() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, ENDPOINTS, "a", "1");
    let [reader, slow] = ["n", "m"].map(|node| world.client(DELTA, node));
    [reader, slow].iter().for_each(|client| world.subscribe(*client, ENDPOINTS, &["a"]));
    world.clients[slow].stalled = true;
    world.put(0, ENDPOINTS, "a", "2");
    world.unsubscribe(slow, ENDPOINTS, &["a"]);
    world.advance(SECOND * 10);
    world.clients[slow].stalled = false;
    world.subscribe(slow, ENDPOINTS, &["a"]);
    assert_eq!(world.clients[slow].held(ENDPOINTS), ["a@2"]);
    [reader, slow].iter().for_each(|client| world.disconnect(*client));
    assert_eq!(["1", "+Inf"].map(|seconds| took(&world, "sent", seconds)), [2, 2]);
}

#[test]
fn what_changes_without_its_version_is_passed_on_and_counted() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    let counted = |world: &World| world.counted(0, "upstream_changed_at_same_version_total{origin=\"o0\"}");
    world.put(0, CLUSTERS, "a", "2");
    assert_eq!(counted(&world), 0);
    let (now, other) = (world.now, cluster("a", "other"));
    world.origins[0].put_frame(now, "", CLUSTERS, "a", "2", other);
    world.settle();
    assert_eq!((world.clients[client].held(CLUSTERS), counted(&world)), (vec!["a@other".to_owned()], 1));
}

#[test]
fn how_long_an_origin_says_nothing_is_told() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    let silent = |world: &World| world.counted(0, "origin_silent_seconds{origin=\"o0\"}");
    world.advance(SECOND * 30);
    assert_eq!(silent(&world), 30);
    world.put(0, CLUSTERS, "a", "2");
    assert_eq!(silent(&world), 0);
    world.set_up(0, false);
    world.advance(SECOND * 60);
    assert_eq!(silent(&world), 60);
}

#[test]
fn how_much_of_a_limit_is_used_is_told_beside_it() {
    let mut world = World::of(&[DELTA], &[&[]], "limits: { names: 7 }");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a", "b"]);
    let told =
        |world: &World| ["limit_used", "limit"].map(|what| world.counted(0, &format!("{what}{{limit=\"names\"}}")));
    assert_eq!(told(&world), [2, 7]);
    world.disconnect(client);
    assert_eq!(told(&world), [0, 7]);
}

/// In two responses, of which the second does not say that the variant of the first is gone, and in one.
#[test]
fn of_two_variants_for_the_same_parameters_one_is_served_and_it_is_counted_and_both_are_logged() {
    let (mut world, relay) = chain(DELTA, &["final", "final"]);
    let [first, second] = ["env=prod", "env=prod and v=1"].map(constraints);
    vary(&mut world, CLUSTERS, "cart", &[(&first, "1")], &[]);
    let client = world.client_selecting(relay, DELTA, sends(&[("env", "prod"), ("v", "1")]));
    world.subscribe(client, CLUSTERS, &["cart"]);
    let counted = |world: &World| world.counted(0, "upstream_overlapping_variants_total{origin=\"up\"}");
    vary(&mut world, CLUSTERS, "cart", &[(&second, "2")], &[&first]);
    assert_eq!((world.clients[client].held(CLUSTERS), counted(&world)), (vec!["cart@2".to_owned()], 0));

    let mut last = Vec::new();
    world.between = Some(Box::new(move |_, hearer, response| {
        if hearer != Hearer::Relay(0) {
            return response;
        }
        let mut response = DeltaDiscoveryResponse::decode(response).unwrap();
        response.removed_resource_names.clear();
        let before = std::mem::replace(&mut last, response.resources.clone());
        response.resources.extend(before);
        response.encode_to_vec().into()
    }));
    for (version, [put, gone], total) in [("3", [&first, &second], 1), ("4", [&second, &first], 2)] {
        let lines = logged(|| vary(&mut world, CLUSTERS, "cart", &[(put, version)], &[gone]));
        let told: Vec<_> = lines.iter().filter(|line| line.contains("two variants of a name")).collect();
        let [line] = &told[..] else { panic!("{lines:?}") };
        let words = ["origin=up", "name=cart", "env=prod", "env=prod and v=1", "names=1"];
        assert!(words.iter().all(|words| line.contains(words)), "{line}");
        assert_eq!(counted(&world), total);
        assert!(world.clients[client].held(CLUSTERS).len() == 1);
    }
}
