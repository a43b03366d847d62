//! Rule 147: who may share old-style resources.

use crate::support::*;
use xds_transport::wire::{Locality, Node, Struct, Value, value};

#[test]
fn rule_147_two_nodes_never_share_unless_configured() {
    let mut world = World::new(DELTA);
    world.origins[0].answer_apart("n2");
    let now = world.now;
    world.put(0, CLUSTERS, "for-all", "1");
    world.origins[0].put_frame(now, "n2", CLUSTERS, "for-n2", "1", cluster("for-n2", "1"));
    let (one, two) = (world.client(DELTA, "n1"), world.client(DELTA, "n2"));
    world.subscribe(one, CLUSTERS, &["*"]);
    world.subscribe(two, CLUSTERS, &["*"]);
    assert_eq!(world.clients[one].held(CLUSTERS), ["for-all@1"]);
    assert_eq!(world.clients[two].held(CLUSTERS), ["for-n2@1"]);
    assert_eq!(world.asked(0), ["n1 Cluster +*", "n2 Cluster +*"]);
}

#[test]
fn rule_147_equal_nodes_are_one_group() {
    let mut world = World::new(DELTA);
    for _ in 0..2 {
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
    }
    assert_eq!(world.streams_of(0), 1);
}

fn node(cluster: &str, locality: [&str; 3], metadata: &[(&str, value::Kind)]) -> Node {
    let [region, zone, sub_zone] = locality.map(str::to_owned);
    let fields = metadata.iter().map(|(key, kind)| ((*key).to_owned(), Value { kind: Some(kind.clone()) })).collect();
    Node {
        cluster: cluster.into(),
        locality: Some(Locality { region, zone, sub_zone }),
        metadata: Some(Struct { fields }),
        ..Node::default()
    }
}

fn text(text: &str) -> value::Kind {
    value::Kind::StringValue(text.into())
}

/// How many groups these nodes make.
fn groups(share_by: &str, nodes: &[Node]) -> usize {
    let mut world = World::of(&[DELTA], &[&[]], &format!("share_by: [{share_by}]"));
    for (at, node) in nodes.iter().enumerate() {
        let id = if share_by == "id" { node.id.clone() } else { format!("n{at}") };
        let client = world.client_with(0, DELTA, &Node { id, ..node.clone() });
        world.subscribe(client, CLUSTERS, &["*"]);
    }
    world.streams_of(0)
}

#[test]
fn rule_147_share_by_every_kind_of_field() {
    let none = ["", "", ""];
    assert_eq!(groups("cluster", &[node("a", none, &[]), node("a", none, &[])]), 1);
    assert_eq!(groups("cluster", &[node("a", none, &[]), node("b", none, &[])]), 2);
    let with_id = |id: &str| Node { id: id.into(), ..Node::default() };
    assert_eq!(groups("id", &[with_id("a"), with_id("a"), with_id("b")]), 2);
    let (near, far) = (["r", "z", "s"], ["r", "z2", "s"]);
    for field in ["locality", "locality.zone"] {
        assert_eq!(groups(field, &[node("a", near, &[]), node("b", near, &[]), node("a", far, &[])]), 2, "{field}");
    }
    for field in ["locality.region", "locality.sub_zone"] {
        assert_eq!(groups(field, &[node("a", near, &[]), node("b", far, &[])]), 1, "{field}");
    }
    let tier = |kind| node("a", none, &[("tier", kind)]);
    assert_eq!(groups("metadata.tier", &[tier(text("x")), tier(text("x")), tier(text("y"))]), 2);
}

/// Absent is not empty, a number is not its text, and no value runs into the next.
#[test]
fn rule_147_values_that_only_look_alike_do_not_share() {
    let none = ["", "", ""];
    let tier = |kind| node("a", none, &[("tier", kind)]);
    assert_eq!(groups("metadata.tier", &[node("a", none, &[]), tier(text(""))]), 2);
    assert_eq!(groups("metadata.tier", &[tier(text("1")), tier(value::Kind::NumberValue(1.0))]), 2);
    assert_eq!(groups("metadata.tier", &[tier(text("true")), tier(value::Kind::BoolValue(true))]), 2);
    assert_eq!(groups("locality", &[node("a", ["a/b", "c", ""], &[]), node("a", ["a", "b/c", ""], &[])]), 2);
    let two = |a: &str, b: &str| node(a, ["", b, ""], &[]);
    assert_eq!(groups("cluster, locality.zone", &[two("ab", "c"), two("a", "bc")]), 2);
}

#[test]
fn the_origin_is_told_the_node_but_for_features_of_the_transport() {
    let mut world = World::new(DELTA);
    let features = ["xds.config.supports-resource-ttl", "envoy.lb.x", "mentions xds.config.y"].map(str::to_owned);
    let node = Node { id: "n".into(), client_features: features.into(), ..Node::default() };
    let client = world.client_with(0, DELTA, &node);
    world.subscribe(client, CLUSTERS, &["*"]);
    let told = world.node_upstream(0);
    assert_eq!(
        told.client_features,
        [
            "envoy.lb.x",
            "mentions xds.config.y",
            "xds.config.resource-in-sotw",
            "xds.config.supports-resource-ttl",
            "xds.config.asks-for-others"
        ]
    );
    assert_eq!(told.id, "n");
}
