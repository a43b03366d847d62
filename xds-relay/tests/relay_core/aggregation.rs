//! Rule 147, by aggregation rules: who may share what, type by type.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use prost::Message;
use xds_relay::aggregation::{Reading, Rules};
use xds_relay::config::Unmatched;
use xds_relay::relay_core::{ByRules, ClientNode, EveryNode, NodeGroup, NodeGrouping};
use xds_transport::server::{NodeError, Stream};
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node};
use xdstp_cache::TypeUrl;

use crate::support::*;

/// Clusters go by the node's cluster, listeners by its id, endpoints by its cluster and their name. Nothing is for other types,
/// nor for nodes of the cluster `odd`.
const RULES: &str = r#"
fragments:
- rules:
  - match:
      and_match:
        rules:
        - not_match: { request_node_match: { cluster_match: { exact_match: odd } } }
        - request_type_match: { types: [type.googleapis.com/envoy.config.cluster.v3.Cluster] }
    result: { request_node_fragment: { cluster_action: { exact: true } } }
  - match: { request_type_match: { types: [type.googleapis.com/envoy.config.listener.v3.Listener] } }
    result: { request_node_fragment: { id_action: { exact: true } } }
  - match: { request_type_match: { types: [type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment] } }
    result:
      and_result:
        result_predicates:
        - request_node_fragment: { cluster_action: { exact: true } }
        - resource_names_fragment: { element: 0, action: { exact: true } }
"#;

fn world(unmatched: Unmatched, more: &str) -> World {
    let mut world = World::empty();
    world.origins.push(Origin::new());
    let rules = Rules::parse("rules.yaml", RULES, Reading::Documented).unwrap();
    let text = format!("origins: [{{ name: o0, server: '127.0.0.1:1', authorities: [a] }}]\n{more}");
    let grouping = Box::new(move |otherwise| Box::new(ByRules::new(rules, unmatched, otherwise)) as Box<_>);
    world.add_relay_grouped(&text, vec![Feeder::Origin(0)], Some(grouping));
    world
}

fn client(world: &mut World, protocol: Protocol, id: &str, cluster: &str) -> usize {
    world.client_with(0, protocol, &Node { id: id.into(), cluster: cluster.into(), ..Node::default() })
}

#[test]
fn rule_147_requests_share_that_have_one_key_for_their_type() {
    for protocol in [DELTA, SOTW] {
        let mut world = world(Unmatched::OwnGroup, "");
        world.put(0, CLUSTERS, "cart", "1");
        world.put(0, LISTENERS, "edge", "1");
        let clients = [("n1", "web"), ("n2", "web"), ("n3", "api")];
        let clients = clients.map(|(id, cluster)| client(&mut world, protocol, id, cluster));
        for client in clients {
            world.subscribe(client, CLUSTERS, &["*"]);
            world.subscribe(client, LISTENERS, &["*"]);
            world.advance(SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), ["cart@1"]);
            assert_eq!(world.clients[client].held(LISTENERS), ["edge@1"]);
        }
        let mut asked = world.asked(0);
        asked.sort();
        let clusters = ["n1 Cluster +*", "n3 Cluster +*"];
        assert_eq!(
            asked,
            [&clusters[..1], &["n1 Listener +*", "n2 Listener +*"], &clusters[1..], &["n3 Listener +*"]].concat()
        );
        assert_eq!(world.streams_of(0), 5);
        // And each hears of what changes.
        world.put(0, CLUSTERS, "cart", "2");
        assert!(clients.iter().all(|client| world.clients[*client].held(CLUSTERS) == ["cart@2"]), "{protocol:?}");
    }
}

/// A key that has names in it is one for each name: by these, resources are kept apart in any case.
#[test]
fn rule_147_what_is_asked_for_by_the_same_name_is_shared_whatever_else_its_request_names() {
    for protocol in [DELTA, SOTW] {
        let mut world = world(Unmatched::Reject, "");
        for name in ["a", "b", "c"] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let (one, two) = (client(&mut world, protocol, "n1", "web"), client(&mut world, protocol, "n2", "web"));
        world.subscribe(one, ENDPOINTS, &["a", "b"]);
        world.subscribe(two, ENDPOINTS, &["b", "c"]);
        assert_eq!(world.clients[one].held(ENDPOINTS), ["a@1", "b@1"]);
        assert_eq!(world.clients[two].held(ENDPOINTS), ["b@1", "c@1"]);
        assert_eq!(world.streams_of(0), 1);
        assert_eq!(world.asked(0), ["n1 ClusterLoadAssignment +a +b", "n1 ClusterLoadAssignment +c"]);
    }
}

#[test]
fn rule_147_what_no_rule_is_for_shares_as_it_did_without_rules_or_with_no_other_stream() {
    for (unmatched, more, streams) in [
        (Unmatched::OwnGroup, "", 2),
        (Unmatched::OwnGroup, "share_by: [cluster]", 1),
        (Unmatched::Pass, "", 3),
        (Unmatched::Pass, "share_by: [cluster]", 3),
    ] {
        let mut world = world(unmatched, more);
        world.put(0, CLUSTERS, "cart", "1");
        for id in ["n1", "n1", "n2"] {
            let client = client(&mut world, DELTA, id, "odd");
            world.subscribe(client, CLUSTERS, &["*"]);
            assert_eq!(world.clients[client].held(CLUSTERS), ["cart@1"], "{unmatched:?}");
        }
        assert_eq!(world.streams_of(0), streams, "{unmatched:?} {more}");
    }
}

/// Beside it others go on, and its own other types.
#[test]
fn rule_147_what_is_refused_where_no_rule_is_for_it_is_refused_by_name() {
    for protocol in [DELTA, SOTW] {
        let mut world = world(Unmatched::Reject, "");
        world.put(0, CLUSTERS, "cart", "1");
        world.put(0, LISTENERS, "edge", "1");
        let good = client(&mut world, protocol, "n1", "web");
        world.subscribe(good, CLUSTERS, &["*"]);
        let odd = client(&mut world, protocol, "n2", "odd");
        world.subscribe(odd, LISTENERS, &["*"]);
        world.subscribe(odd, CLUSTERS, &["*"]);
        world.subscribe(odd, CLUSTERS, &["cart", "other"]);
        world.advance(20 * SECOND);
        let told = world.told(odd).join(" ");
        assert_eq!(told.matches(":7").count(), 3, "{protocol:?}: {told}");
        assert!(told.contains("!*:7") && told.contains("!cart:7") && told.contains("!other:7"), "{told}");
        assert_eq!(world.clients[odd].held(CLUSTERS), [""; 0]);

        world.put(0, CLUSTERS, "cart", "2");
        world.put(0, LISTENERS, "edge", "2");
        assert_eq!(world.clients[good].held(CLUSTERS), ["cart@2"]);
        assert_eq!(world.clients[odd].held(LISTENERS), ["edge@2"], "on the same stream");
        assert_eq!(world.asked(0), ["n1 Cluster +*", "n2 Listener +*"], "nobody asked for the other");
        assert_eq!(world.counted(0, "downstream_denied_total{reason=\"aggregation\"}"), 3);
    }
}

/// Clusters go by what is left of their names without `internal-`, or by nothing of them.
fn by_names(unmatched: Unmatched, action: &str) -> World {
    let rules = format!(
        "fragments: [{{ rules: [{{ match: {{ any_match: true }}, result: {{ resource_names_fragment: {{ {action} }} }} }}] }}]"
    );
    let mut world = World::empty();
    world.origins.push(Origin::new());
    let rules = Rules::parse("rules.yaml", &rules, Reading::Documented).unwrap();
    let text = "origins: [{ name: o0, server: '127.0.0.1:1', authorities: [a] }]";
    let grouping = Box::new(move |otherwise| Box::new(ByRules::new(rules, unmatched, otherwise)) as Box<_>);
    world.add_relay_grouped(text, vec![Feeder::Origin(0)], Some(grouping));
    for name in ["internal-x", "web"] {
        world.put(0, CLUSTERS, name, "1");
    }
    world
}

const WITHOUT_INTERNAL: &str = r#"element: 0, action: { regex_action: { pattern: "^internal-.*$", replace: "" } }"#;

/// Of two clients of different nodes that ask for this one after the other: how many streams the origin has then, and
/// how many names were refused.
fn asked_by_two(unmatched: Unmatched, action: &str, names: &[&str]) -> (usize, usize) {
    let mut found = Vec::new();
    for protocol in [DELTA, SOTW] {
        let mut world = by_names(unmatched, action);
        let mut refused = 0;
        for id in ["n1", "n2"] {
            let client = client(&mut world, protocol, id, "web");
            for name in names {
                world.subscribe(client, CLUSTERS, &[name]);
                world.advance(5 * SECOND);
            }
            let told = world.told(client).join(" ");
            refused += told.matches(":7").count();
        }
        found.push((world.streams_of(0), refused));
    }
    assert_eq!(found.first(), found.last(), "{unmatched:?} {names:?}");
    found[0]
}

#[test]
fn rule_147_a_name_that_has_no_key_is_shared_with_no_other_node() {
    for unmatched in [Unmatched::OwnGroup, Unmatched::Pass] {
        assert_eq!(asked_by_two(unmatched, WITHOUT_INTERNAL, &["internal-x"]), (2, 0));
        assert_eq!(asked_by_two(unmatched, WITHOUT_INTERNAL, &["web", "internal-x"]), (2, 0));
        assert_eq!(asked_by_two(unmatched, "element: 1, action: { exact: true }", &["web"]), (2, 0));
    }
    assert_eq!(asked_by_two(Unmatched::Reject, WITHOUT_INTERNAL, &["internal-x"]), (0, 2));
    assert_eq!(asked_by_two(Unmatched::Reject, WITHOUT_INTERNAL, &["web", "internal-x"]), (1, 2));
    assert_eq!(asked_by_two(Unmatched::Reject, "element: 1, action: { exact: true }", &["web"]), (0, 2));
    // Something always stays.
    let stays = r#"action: { regex_action: { pattern: "^internal-.*$", replace: "-" } }"#;
    for unmatched in [Unmatched::OwnGroup, Unmatched::Pass, Unmatched::Reject] {
        assert_eq!(asked_by_two(unmatched, stays, &["internal-x", "web"]), (1, 0));
    }
}

#[test]
fn rule_147_all_there_is_has_no_key_by_names_and_is_shared_with_no_other_node() {
    const EXACT: &str = "action: { exact: true }";
    for unmatched in [Unmatched::OwnGroup, Unmatched::Pass] {
        assert_eq!(asked_by_two(unmatched, EXACT, &["web"]), (1, 0));
        assert_eq!(asked_by_two(unmatched, EXACT, &["*"]), (2, 0));
        assert_eq!(asked_by_two(unmatched, EXACT, &["*", "web"]), (2, 0), "a type of a stream is of one group");
        assert_eq!(asked_by_two(unmatched, EXACT, &["web", "*"]), (1, 2), "that of names is shared");
    }
    assert_eq!(asked_by_two(Unmatched::Reject, EXACT, &["*"]), (0, 2));
    assert_eq!(asked_by_two(Unmatched::Reject, EXACT, &["web", "*"]), (1, 2));
}

/// What `keys` says of a request without names, whatever the rules take.
#[test]
fn rule_147_all_endpoints_are_shared_with_no_other_node() {
    for (unmatched, streams) in [(Unmatched::OwnGroup, 2), (Unmatched::Pass, 2), (Unmatched::Reject, 0)] {
        let rules = "fragments: [{ rules: [{ match: { any_match: true }, result: { string_fragment: all } }] }]";
        let rules = Rules::parse("rules.yaml", rules, Reading::Documented).unwrap();
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let text = "origins: [{ name: o0, server: '127.0.0.1:1', authorities: [a] }]";
        let grouping = Box::new(move |otherwise| Box::new(ByRules::new(rules, unmatched, otherwise)) as Box<_>);
        world.add_relay_grouped(text, vec![Feeder::Origin(0)], Some(grouping));
        for id in ["n1", "n2"] {
            let client = client(&mut world, DELTA, id, "web");
            world.subscribe(client, ENDPOINTS, &["*"]);
        }
        assert_eq!(world.streams_of(0), streams, "{unmatched:?}");
    }
}

#[test]
fn two_keys_that_are_called_alike_are_groups_of_different_names() {
    let rules = r#"
fragments:
- rules: [{ match: { any_match: true }, result: { request_node_fragment: { id_action: { exact: true } } } }]
- rules: [{ match: { any_match: true }, result: { request_node_fragment: { cluster_action: { exact: true } } } }]
- rules:
  - match: { request_type_match: { types: [type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment] } }
    result: { resource_names_fragment: { action: { regex_action: { pattern: '^(\w+)-\d+$', replace: "<$1>" } } } }
"#;
    let rules = Rules::parse("rules.yaml", rules, Reading::Documented).unwrap();
    let grouping = ByRules::new(rules, Unmatched::OwnGroup, Box::new(EveryNode));
    let group = |id: &str, cluster: &str, type_url: &str| {
        let node = Node { id: id.into(), cluster: cluster.into(), ..Node::default() };
        let node = ClientNode::decode(node.encode_to_vec().into()).unwrap();
        grouping.group_for(&node, &type_url.into()).unwrap().unwrap().label().to_owned()
    };
    assert_eq!(group("a_b", "c", CLUSTERS), r#"a_b_c ("a_b" "c" -)"#);
    assert_eq!(group("a", "b_c", CLUSTERS), r#"a_b_c ("a" "b_c" -)"#);
    assert_eq!(
        group("a", "b", ENDPOINTS),
        r#"a_b_(name 0, ^(\w+)-\d+$ as <$1>) ("a" "b" (name 0, "^(\\w+)-\\d+$" as "<$1>"))"#
    );
}

/// Has nothing for anybody, and counts how often it was asked.
struct Refuses(Arc<AtomicUsize>);

impl NodeGrouping for Refuses {
    fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError> {
        EveryNode.group(node)
    }

    fn goes_by_type(&self) -> bool {
        true
    }

    fn group_for(&self, _: &ClientNode, _: &TypeUrl) -> Result<Option<NodeGroup>, NodeError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(NodeError::new("nothing"))
    }
}

/// What is refused costs its rules once, however many names it lists.
#[test]
fn who_is_refused_a_type_is_looked_at_once() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let asked = Arc::<AtomicUsize>::default();
        let grouping = Box::new(Refuses(asked.clone()));
        let text = "origins: [{ name: o0, server: '127.0.0.1:1' }]";
        world.add_relay_grouped(text, vec![Feeder::Origin(0)], Some(Box::new(|_| grouping)));
        let core = world.relays[0].core.clone();
        let mut routes = core.open_stream(protocol, Waker::noop().clone(), None);
        let mut stream = Stream::new(protocol, core.settings());
        let (type_url, names) = (ENDPOINTS.to_owned(), (0..100).map(|name| name.to_string()).collect());
        let node = Node { id: "n1".into(), ..Node::default() }.encode_to_vec().into();
        let request = match protocol {
            DELTA => DeltaDiscoveryRequest { node, type_url, resource_names_subscribe: names, ..Default::default() }
                .encode_to_vec(),
            _ => DiscoveryRequest { node, type_url, resource_names: names, ..Default::default() }.encode_to_vec(),
        };
        let refused = stream.handle_message(world.now, request.into(), &mut routes).unwrap_err();
        assert_eq!((refused.to_string().as_str(), refused.code()), ("a node that is refused: nothing", 7));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{protocol:?}");
        stream.close(&mut routes);
    }
}

/// Names of authorities are everybody's, whatever the rules say of old-style names.
#[test]
fn xdstp_names_go_by_no_rules() {
    let mut world = world(Unmatched::Reject, "");
    let name = "xdstp://a/envoy.config.cluster.v3.Cluster/web/one";
    world.put(0, CLUSTERS, name, "1");
    for id in ["n1", "n2"] {
        let client = client(&mut world, DELTA, id, "odd");
        world.subscribe(client, CLUSTERS, &[name]);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@1")]);
    }
    assert_eq!(world.streams_of(0), 1);
}

/// Who leaves speaks for none of its groups any more, and what nobody wants is let go.
#[test]
fn a_stream_that_ends_leaves_the_groups_of_all_its_types() {
    let mut world = world(Unmatched::OwnGroup, "");
    let client = client(&mut world, DELTA, "n1", "web");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.subscribe(client, LISTENERS, &["*"]);
    assert_eq!(world.streams_of(0), 2);
    world.disconnect(client);
    world.advance(LINGER * 2);
    assert_eq!(world.streams_of(0), 0);
}
