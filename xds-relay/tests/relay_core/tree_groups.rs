//! Who a client is to the hops above the one that it is at: rule 147, over several.

use xds_transport::wire::Node;

use crate::parameters::{constraints, sends, vary};
use crate::support::*;

const SHARED: &str = "share_by: [cluster]";
const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";

/// Two edges before a regional relay before an origin that answers the nodes a1 and b1 apart.
fn tree(protocol: Protocol, regional: &str, edges: &str) -> Chain {
    let mut chain = Chain::new(&[protocol], regional);
    for _ in 0..2 {
        chain.add(Feeder::Relay(0), protocol, edges);
    }
    for node in ["a1", "b1"] {
        chain.world.origins[0].answer_apart(node);
        let now = chain.world.now;
        chain.world.origins[0].put_frame(now, node, CLUSTERS, "own", node, cluster("own", node));
    }
    chain.world.put(0, CLUSTERS, "own", "others");
    chain
}

/// A node whose cluster is the first letter of its id, and which asks for everything.
fn node(chain: &mut Chain, relay: usize, protocol: Protocol, id: &str) -> usize {
    let node = Node { id: id.into(), cluster: id[..1].into(), ..Node::default() };
    let client = chain.world.client_with(relay, protocol, &node);
    chain.world.subscribe(client, CLUSTERS, &["*"]);
    chain.world.advance(SECOND);
    client
}

fn held(chain: &Chain, clients: &[usize]) -> Vec<String> {
    clients.iter().map(|client| chain.world.clients[*client].held(CLUSTERS).join(" ")).collect()
}

#[test]
fn rule_147_groups_of_an_edge_are_groups_of_the_relay_behind_it() {
    for (protocol, downstream) in [DELTA, SOTW].into_iter().flat_map(|up| [DELTA, SOTW].map(|down| (up, down))) {
        let mut chain = tree(protocol, SHARED, SHARED);
        let first = ["a1", "b1", "a2"].map(|id| node(&mut chain, 1, downstream, id));
        let asked = chain.world.asked(0);
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0].starts_with("a1 ") && asked[1].starts_with("b1 "), "a member of each: {asked:?}");
        assert_eq!(held(&chain, &first), ["own@a1", "own@b1", "own@a1"], "{protocol:?} {downstream:?}");
        // Of another edge, others speak for the same groups; the origin hears nothing of that.
        let second = ["b2", "a3"].map(|id| node(&mut chain, 2, downstream, id));
        assert_eq!(chain.world.asked(0), [""; 0]);
        assert_eq!(held(&chain, &second), ["own@b1", "own@a1"], "{protocol:?} {downstream:?}");
        assert_eq!([0, 1, 2].map(|relay| chain.world.streams_of(relay)), [2, 2, 2]);
        let now = chain.world.now;
        chain.world.origins[0].put_frame(now, "a1", CLUSTERS, "own", "new", cluster("own", "new"));
        chain.world.settle();
        assert_eq!(held(&chain, &[first[2], second[1], second[0]]), ["own@new", "own@new", "own@b1"]);
    }
}

/// What a relay may share is for its own configuration to say: an edge that shares more does not widen that.
#[test]
fn rule_147_behind_an_edge_that_shares_who_speaks_for_a_group_is_a_node_of_its_own() {
    let mut chain = tree(DELTA, "", SHARED);
    let near = ["a1", "a2"].map(|id| node(&mut chain, 1, DELTA, id));
    let far = ["a2", "b1"].map(|id| node(&mut chain, 2, DELTA, id));
    assert_eq!(chain.world.asked(0), ["a1 Cluster +*", "a2 Cluster +*", "b1 Cluster +*"]);
    assert_eq!(held(&chain, &near), ["own@a1", "own@a1"]);
    assert_eq!(held(&chain, &far), ["own@others", "own@b1"]);
    assert_eq!(chain.world.streams_of(0), 3);
}

#[test]
fn rule_147_behind_an_edge_that_shares_nothing_equal_nodes_of_two_edges_are_one() {
    let mut chain = tree(DELTA, "", "");
    let clients = [(1, "a1"), (1, "a2"), (2, "a1")].map(|(edge, id)| node(&mut chain, edge, DELTA, id));
    assert_eq!(chain.world.asked(0), ["a1 Cluster +*", "a2 Cluster +*"]);
    assert_eq!(held(&chain, &clients), ["own@a1", "own@others", "own@a1"]);
}

/// Who spoke for a group left, and the edge's next stream is another member's: for a relay that shares by the same, nothing is new.
#[test]
fn rule_147_who_speaks_for_a_group_changes_and_nothing_is_sent_or_removed() {
    for protocol in [DELTA, SOTW] {
        let mut chain = tree(protocol, SHARED, SHARED);
        let [first, second] = ["a1", "a2"].map(|id| node(&mut chain, 1, protocol, id));
        chain.world.told(second);
        chain.world.disconnect(first);
        chain.kill(0);
        chain.world.advance(SECOND);
        chain.world.asked(0);
        chain.revive(0);
        chain.world.advance(60 * SECOND);
        let asked = chain.world.asked(0);
        assert!(asked.iter().all(|line| line.starts_with("a2 ")), "{asked:?}");
        // The origin gives this node what it gives others: its own word.
        assert_eq!(chain.world.told(second), ["Cluster own@others"], "{protocol:?}");
    }
}

/// Nobody's node is told where names do not depend on it: each hop speaks for itself.
#[test]
fn rule_147_for_names_of_authorities_each_relay_is_itself_to_the_one_behind_it() {
    let mut chain = tree(DELTA, "share_by: [cluster]\nnode: { id: regional }", "node: { id: edge }");
    chain.world.put(0, CLUSTERS, NAME, "1");
    let clients = [(1, "a1"), (1, "b1"), (2, "a1")].map(|(edge, id)| {
        let client = chain.world.client_of(edge, DELTA, id);
        chain.world.subscribe(client, CLUSTERS, &[NAME]);
        client
    });
    assert_eq!(chain.world.asked(0), [format!("regional Cluster +{NAME}")]);
    assert_eq!([0, 1, 2].map(|relay| chain.world.node_upstream(relay).id), ["regional", "edge", "edge"]);
    assert!(clients.iter().all(|client| chain.world.clients[*client].held(CLUSTERS) == [format!("{NAME}@1")]));
    assert_eq!([0, 1, 2].map(|relay| chain.world.streams_of(relay)), [1, 1, 1]);
}

#[test]
fn rule_119_parameters_pass_every_hop_and_who_has_others_is_another_there_too() {
    for protocol in [DELTA, SOTW] {
        let mut chain = Chain::new(&[protocol; 3], SHARED);
        let [prod, test] = ["env=prod", "env=test"].map(constraints);
        vary(&mut chain.world, CLUSTERS, "cart", &[(&prod, "1"), (&test, "2")], &[]);
        let envs = ["prod", "test", "prod"];
        let clients = envs.map(|env| chain.world.client_selecting(2, protocol, sends(&[("env", env)])));
        for client in clients {
            chain.world.subscribe(client, CLUSTERS, &["cart"]);
        }
        chain.world.advance(SECOND);
        assert_eq!(held(&chain, &clients), ["cart@1", "cart@2", "cart@1"], "{protocol:?}");
        assert_eq!([0, 1, 2].map(|relay| chain.world.streams_of(relay)), [2, 2, 2], "{protocol:?}: one for each set");
        clients.iter().for_each(|client| drop(chain.world.told(*client)));
        // The middle hop is another: the sets are still two, and nobody is sent anything again.
        chain.kill(1);
        chain.world.advance(SECOND);
        chain.revive(1);
        chain.world.advance(60 * SECOND);
        assert_eq!(clients.map(|client| chain.world.told(client).join(" ")), [""; 3], "{protocol:?}");
        vary(&mut chain.world, CLUSTERS, "cart", &[(&test, "3")], &[]);
        assert_eq!(
            clients.map(|client| chain.world.told(client).join(" ")),
            ["", "Cluster cart@3", ""],
            "{protocol:?}"
        );
    }
}
