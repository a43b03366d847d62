//! Dynamic parameters (TP2) that clients have by their nodes: they send names only.

use xds_matcher::DynamicParameters;
use xds_relay::api::{ClientQuery, ExplainQuery};
use xds_transport::wire::{Node, Struct, Value, value};
use xdstp_cache::{Selector, Variant};

use crate::support::{CLUSTERS, DELTA, Feeder, LINGER, Origin, Protocol, SECOND, SOTW, World, endpoints};
use crate::support::{ENDPOINTS, LISTENERS};

const BOTH: [Protocol; 2] = [DELTA, SOTW];
/// Which parts of nodes are parameters.
const PARAMETERS: &str = "node_parameters: { version: metadata.version, zone: locality.zone }\nshare_by: [cluster]\n";

fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

/// One of a cluster, which says its version if it has one.
fn node(version: Option<&str>) -> Node {
    let text = |text: &str| Value { kind: Some(value::Kind::StringValue(text.to_owned())) };
    let metadata = version.map(|version| Struct { fields: [("version".to_owned(), text(version))].into() });
    Node { id: format!("n{}", version.unwrap_or_default()), cluster: "c".into(), metadata, ..Node::default() }
}

/// A relay before an origin that has more configuration than the origin.
fn relay_before(world: &mut World, feeder: Feeder, protocol: Protocol, more: &str) -> usize {
    let protocol = if protocol == DELTA { "delta" } else { "sotw" };
    let text = format!("origins: [{{ name: up, server: '127.0.0.1:1', protocol: {protocol} }}]\n{more}");
    world.add_relay(&text, vec![feeder])
}

fn world(protocol: Protocol) -> World {
    let mut world = World::empty();
    world.origins.push(Origin::new());
    relay_before(&mut world, Feeder::Origin(0), protocol, PARAMETERS);
    world
}

fn vary(world: &mut World, of: &str, name: &str, put: &[(&Variant, &str)], gone: &[&Variant]) {
    let now = world.now;
    world.origins[0].vary(now, of, name, put, gone);
    world.settle();
}

fn held(world: &World, clients: &[usize], of: &str) -> Vec<String> {
    clients.iter().map(|client| world.clients[*client].held(of).join(" ")).collect()
}

/// Of one node group each: what the origin says for the one is not said to the other.
#[test]
fn rule_119_who_sends_names_only_is_served_the_variant_that_its_node_selects() {
    for (upstream, downstream) in BOTH.into_iter().flat_map(|up| BOTH.map(|down| (up, down))) {
        for asked in ["cart", "*"] {
            let mut world = world(upstream);
            let [v1, v2, other] = ["version=v1", "version=v2", "not exists(version)"].map(constraints);
            vary(&mut world, CLUSTERS, "cart", &[(&v1, "1"), (&v2, "2"), (&other, "0")], &[]);
            let nodes = [Some("v1"), Some("v2"), Some("v3"), None].map(node);
            let clients = nodes.map(|node| world.client_with(0, downstream, &node));
            for client in clients {
                world.subscribe(client, CLUSTERS, &[asked]);
            }
            world.advance(SECOND);
            let context = format!("{upstream:?} {downstream:?} {asked}");
            assert_eq!(held(&world, &clients, CLUSTERS), ["cart@1", "cart@2", "", "cart@0"], "{context}");
            assert_eq!(world.origins[0].streams, 4, "one for each set: {context}");
            // What changes for one is not told to others.
            clients.iter().for_each(|client| world.clients[*client].told.clear());
            vary(&mut world, CLUSTERS, "cart", &[(&v2, "3")], &[]);
            assert_eq!(held(&world, &clients, CLUSTERS), ["cart@1", "cart@3", "", "cart@0"], "{context}");
            vary(&mut world, CLUSTERS, "cart", &[], &[&v1]);
            assert_eq!(held(&world, &clients, CLUSTERS), ["", "cart@3", "", "cart@0"], "{context}");
            let told = clients.map(|client| world.told(client).join("; "));
            assert_eq!(told, ["Cluster -cart", "Cluster cart@3", "", ""], "{context}");
            // It comes back for the one that it is for.
            let v1_or_3 = constraints("version=v1 or version=v3");
            vary(&mut world, CLUSTERS, "cart", &[(&v1_or_3, "4")], &[]);
            assert_eq!(held(&world, &clients, CLUSTERS), ["cart@4", "cart@3", "cart@4", "cart@0"], "{context}");
        }
    }
}

#[test]
fn who_has_the_same_parameters_is_one_to_the_origin_and_is_missed_by_it_when_gone() {
    let mut world = world(DELTA);
    vary(&mut world, CLUSTERS, "cart", &[(&constraints("version=v1"), "1"), (&constraints("version=v2"), "2")], &[]);
    let clients = ["v1", "v1", "v2"].map(|version| world.client_with(0, DELTA, &node(Some(version))));
    for client in clients {
        world.subscribe(client, CLUSTERS, &["cart"]);
    }
    assert_eq!(world.asked(0), ["nv1 Cluster +cart{version=v1}", "nv2 Cluster +cart{version=v2}"]);
    for client in [clients[0], clients[1]] {
        world.unsubscribe(client, CLUSTERS, &["cart"]);
    }
    world.advance(LINGER + SECOND);
    assert_eq!(world.asked(0), ["nv1 Cluster -cart{version=v1}"]);
    assert_eq!(held(&world, &clients[2..], CLUSTERS), ["cart@2"]);
}

/// By authority, by node group and by what is fetched for one alone; with a glob, too.
#[test]
fn every_scope_is_asked_with_the_parameters_of_the_node() {
    for protocol in BOTH {
        let mut world = World::of(&[protocol], &[&["a"]], PARAMETERS);
        let [v1, v2] = ["version=v1", "version=v2"].map(constraints);
        let (name, glob) = (endpoints("a", "x/1"), endpoints("a", "x/*"));
        vary(&mut world, ENDPOINTS, &name, &[(&v1, "1"), (&v2, "2")], &[]);
        let now = world.now;
        world.origins[0].put_uncached(now, "", LISTENERS, "own", "1");
        let clients = ["v1", "v2"].map(|version| world.client_with(0, protocol, &node(Some(version))));
        for client in clients {
            let asked = if protocol == DELTA { &glob } else { &name };
            world.subscribe(client, ENDPOINTS, &[asked]);
            world.subscribe(client, LISTENERS, &["own"]);
        }
        let bodies = |world: &World, of| clients.map(|client| world.clients[client].bodies(of).join(" "));
        assert_eq!(bodies(&world, ENDPOINTS), ["1", "2"], "{protocol:?}");
        assert_eq!(bodies(&world, LISTENERS), ["1", "1"], "{protocol:?}");
        let asked = world.asked(0);
        let of_listeners: Vec<_> = asked.iter().filter(|line| line.contains("Listener")).collect();
        let with = |version: &str| of_listeners.iter().filter(|line| line.contains(version)).count();
        assert_eq!([with("{version=v1}"), with("{version=v2}")], [2, 2], "shared, and alone: {of_listeners:?}");
    }
}

/// What it sends is all that counts for what it asks for with that, and a locator without parameters is a name.
#[test]
fn rule_120_who_sends_parameters_of_its_own_is_served_by_those() {
    for protocol in BOTH {
        let mut world = world(protocol);
        let [v1, prod] = ["version=v1", "env=prod"].map(constraints);
        vary(&mut world, CLUSTERS, "cart", &[(&v1, "1"), (&prod, "2")], &[]);
        let own = Selector::Parameters(DynamicParameters::from_iter([("env", "prod")]));
        let clients = [own, Selector::default()].map(|selector| {
            let mut client =
                crate::support::Client::new(protocol, prost::Message::encode_to_vec(&node(Some("v1"))).into())
                    .selecting(xds_transport::Dialect::Final, selector);
            client.connect(&world.relays[0].core, world.now);
            world.clients.push(client);
            world.clients.len() - 1
        });
        for client in clients {
            world.subscribe(client, CLUSTERS, &["cart"]);
        }
        assert_eq!(held(&world, &clients, CLUSTERS), ["cart@2", "cart@1"], "{protocol:?}");
    }
}

/// Variants of a name may have one version: who comes back holds it of the variant that it had before its node, or the relay's
/// configuration, was another one.
#[test]
fn who_comes_with_the_version_of_another_variant_is_sent_its_own() {
    for protocol in BOTH {
        for asked in ["cart", "*"] {
            let mut world = world(protocol);
            let without = relay_before(&mut world, Feeder::Origin(0), protocol, "share_by: [cluster]\n");
            let now = world.now;
            for (variant, body) in [("version=v1", "for v1"), ("not exists(version)", "for others")] {
                world.origins[0].put_variant(now, CLUSTERS, "cart", &constraints(variant), "1", body);
            }
            world.origins[0].set_version(CLUSTERS, "1");
            let client = world.client_with(without, protocol, &node(Some("v1")));
            world.subscribe(client, CLUSTERS, &[asked]);
            assert_eq!(held(&world, &[client], CLUSTERS), ["cart@for others"], "{protocol:?} {asked}");
            world.connect(client, 0);
            assert_eq!(held(&world, &[client], CLUSTERS), ["cart@for v1"], "{protocol:?} {asked}");
        }
    }
}

/// A relay before clients knows their nodes; the one behind it is asked with parameters, in its own form.
#[test]
fn a_chain_is_asked_with_the_parameters_of_the_nodes_in_either_form() {
    for (protocol, form) in BOTH.into_iter().flat_map(|protocol| ["final", "draft"].map(|form| (protocol, form))) {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let speaks = if protocol == DELTA { "delta" } else { "sotw" };
        let origin = format!("name: up, server: '127.0.0.1:1', protocol: {speaks}, dynamic_parameters: {form}");
        let far = format!("origins: [{{ {origin} }}]\ndynamic_parameters: {form}\n");
        let far = world.add_relay(&far, vec![Feeder::Origin(0)]);
        let near = world.add_relay(&format!("origins: [{{ {origin} }}]\n{PARAMETERS}"), vec![Feeder::Relay(far)]);
        let [v1, v2] = ["v1", "v2"].map(|version| match form {
            "draft" => Variant::Parameters(DynamicParameters::from_iter([("version", version)])),
            _ => constraints(&format!("version={version}")),
        });
        vary(&mut world, CLUSTERS, "cart", &[(&v1, "1"), (&v2, "2")], &[]);
        let clients = ["v1", "v2"].map(|version| world.client_with(near, protocol, &node(Some(version))));
        for client in clients {
            world.subscribe(client, CLUSTERS, &["cart"]);
        }
        assert_eq!(held(&world, &clients, CLUSTERS), ["cart@1", "cart@2"], "{protocol:?} {form}");
        vary(&mut world, CLUSTERS, "cart", &[(&v1, "3")], &[&v2]);
        assert_eq!(held(&world, &clients, CLUSTERS), ["cart@3", ""], "{protocol:?} {form}");
    }
}

#[test]
fn it_is_explained_which_parameters_a_node_has_and_which_it_lacks() {
    let mut world = world(DELTA);
    let [v1, other] = ["version=v1", "not exists(version)"].map(constraints);
    vary(&mut world, CLUSTERS, "cart", &[(&v1, "1"), (&other, "2")], &[]);
    for node in [node(Some("v1")), node(None)] {
        let client = world.client_with(0, DELTA, &node);
        world.subscribe(client, CLUSTERS, &["cart"]);
    }
    let core = &world.relays[0].core;
    let query = ExplainQuery { type_url: Some(CLUSTERS.to_owned()), name: Some("cart".to_owned()) };
    let ids = core.clients(&ClientQuery::default(), world.now).clients.into_iter().map(|row| row.id);
    let explained: Vec<_> = ids.filter_map(|id| core.client(id, &query, world.now)?.explained).collect();
    let parameters: Vec<_> = explained.iter().map(|of| of.parameters.as_deref().unwrap_or("-")).collect();
    assert_eq!(parameters, ["{version=v1}", "-"]);
    let of_node = |at: usize| -> Vec<_> {
        explained[at].reasons.iter().filter(|reason| reason.contains("node says")).map(String::as_str).collect()
    };
    assert_eq!(
        of_node(0),
        [
            "These parameters are what its node says (node_parameters).",
            "Its node says nothing of zone (locality.zone): that is no parameter of it."
        ]
    );
    let lacking =
        "Its node says nothing of version (metadata.version), zone (locality.zone): that is no parameter of it.";
    assert_eq!(of_node(1), [lacking]);
}
