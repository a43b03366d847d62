//! Variants of names that an origin of files has (TP2): who is served which.

use std::sync::Arc;

use xds_matcher::DynamicParameters;
use xds_relay::config::Rollout;
use xds_relay::relay_core::Held;
use xds_relay::releases::Stages;
use xds_relay::state::Memory;
use xds_transport::wire::Node;
use xdstp_cache::{Resource, Selector};

use crate::parameters::{BOTH, constraints, sends, wants};
use crate::support::{CLUSTERS, DELTA, Protocol, SECOND, World, endpoints, frame};
use crate::support::{ENDPOINTS, file};

fn varied(of: &str, name: &str, variant: &str, body: &str) -> Held {
    let resource: Resource<_> = frame(of, name, body).of_variant(Some(constraints(variant))).into_resource(None);
    (of.into(), name.parse().unwrap(), resource)
}

/// A relay of files, whose clients' clusters are a parameter.
fn world(more: &str) -> World {
    let mut world = World::empty();
    let text = format!("origins: [{{name: files, files: .}}]\nnode_parameters: {{ env: cluster }}\n{more}");
    world.add_relay(&text, Vec::new());
    world
}

fn set(world: &mut World, files: Vec<Held>) {
    let now = world.now;
    world.relays[0].core.set_files(0, files, now);
    world.settle();
}

fn client_of_cluster(world: &mut World, protocol: Protocol, cluster: &str) -> usize {
    world.client_with(0, protocol, &Node { id: "n".into(), cluster: cluster.into(), ..Node::default() })
}

#[test]
fn rule_119_files_have_a_variant_for_each_client_by_its_node_and_by_what_it_sends() {
    for protocol in BOTH {
        for asked in ["cart", "*"] {
            let mut world = world("");
            let others = "not env=prod and not env=test";
            let files = |body: &str| {
                vec![
                    varied(CLUSTERS, "cart", "env=prod", body),
                    file(CLUSTERS, "plain", "all"),
                    varied(CLUSTERS, "cart", "env=test", "test"),
                    varied(CLUSTERS, "cart", others, "others"),
                ]
            };
            set(&mut world, files("prod"));
            let by_node = ["prod", "test", "qa", ""].map(|cluster| client_of_cluster(&mut world, protocol, cluster));
            let sending = ["prod", "test"].map(|env| world.client_selecting(0, protocol, sends(&[("env", env)])));
            let clients = [by_node.as_slice(), &sending].concat();
            for client in &clients {
                world.subscribe(*client, CLUSTERS, &[asked, "plain"]);
            }
            let held = |world: &World| -> Vec<String> {
                clients.iter().map(|client| world.clients[*client].bodies(CLUSTERS).join(" ")).collect()
            };
            let context = format!("{protocol:?} {asked}");
            let expected = ["prod all", "test all", "others all", "others all", "prod all", "test all"];
            assert_eq!(held(&world), expected, "{context}");
            // A file changes what one of them has, and nobody else hears of it.
            clients.iter().for_each(|client| world.clients[*client].told.clear());
            set(&mut world, files("new"));
            assert_eq!(held(&world), ["new all", "test all", "others all", "others all", "new all", "test all"]);
            let told: Vec<_> = clients.iter().map(|client| !world.clients[*client].told.is_empty()).collect();
            assert_eq!(told, [true, false, false, false, true, false], "{context}");
            // The variants go over into one for everybody, and come apart again.
            set(&mut world, vec![file(CLUSTERS, "cart", "one"), file(CLUSTERS, "plain", "all")]);
            assert_eq!(held(&world), ["one all"; 6], "{context}");
            set(&mut world, files("prod"));
            assert_eq!(held(&world), expected, "{context}");
            // None is for who is left out.
            set(&mut world, vec![varied(CLUSTERS, "cart", "env=test", "test"), file(CLUSTERS, "plain", "all")]);
            let expected = ["all", "test all", "all", "all", "all", "test all"];
            assert_eq!(held(&world), expected, "{context}");
        }
    }
}

#[test]
fn files_of_an_authority_have_variants_too_and_are_asked_by_the_draft() {
    for protocol in BOTH {
        let text = "origins: [{name: files, files: ., authorities: [a]}]\ndynamic_parameters: draft\n";
        let mut world = World::empty();
        world.add_relay(text, Vec::new());
        let name = endpoints("a", "x");
        let files = ["prod", "test"].map(|env| varied(ENDPOINTS, &name, &format!("env={env}"), env));
        set(&mut world, files.into());
        for (asked, expected) in [("env=prod", "prod"), ("env=test and version=v1", "test"), ("env=qa", "")] {
            let client = world.client_selecting(0, protocol, wants(asked));
            world.subscribe(client, ENDPOINTS, &[&name]);
            assert_eq!(world.clients[client].bodies(ENDPOINTS).join(" "), expected, "{protocol:?} {asked}");
        }
    }
}

/// Each set of parameters is held apart: clients may not make as many as they like.
#[test]
fn sets_of_parameters_are_bounded_for_files_too() {
    let mut world = world("limits: { groups: 2 }");
    set(&mut world, vec![file(CLUSTERS, "cart", "1")]);
    let clients = ["1", "2", "3"].map(|env| {
        let selector = Selector::Parameters(DynamicParameters::from_iter([("n", env)]));
        let client = world.client_selecting(0, DELTA, selector);
        world.subscribe(client, CLUSTERS, &["cart"]);
        client
    });
    let held = clients.map(|client| world.clients[client].bodies(CLUSTERS).join(" "));
    assert_eq!(held, ["1", "1", ""]);
    let told = world.clients[clients[2]].told.join("; ");
    assert!(told.starts_with("ended 8: ") && told.contains("limits.groups of the relay"), "{told}");
}

/// What is stable is kept with what each variant is for: the origin need not be there to say it.
#[test]
fn variants_of_what_is_stable_are_served_after_a_restart_without_an_origin() {
    let (mut world, store) = (world(""), Arc::<Memory>::default());
    let now = world.now;
    let rollout = || Rollout::new(None, Stages::default());
    world.relays[0].core.roll_out(rollout(), store.clone(), now).unwrap();
    set(&mut world, ["prod", "test"].map(|env| varied(CLUSTERS, "cart", &format!("env={env}"), env)).into());
    world.advance(5 * SECOND);
    world.add_relay("origins: [{name: files, files: .}]\nnode_parameters: { env: cluster }", Vec::new());
    world.relays[1].core.roll_out(rollout(), store, world.now).unwrap();
    let clients = ["prod", "test", "qa"].map(|cluster| {
        let node = Node { id: "n".into(), cluster: cluster.into(), ..Node::default() };
        let client = world.client_with(1, DELTA, &node);
        world.subscribe(client, CLUSTERS, &["cart"]);
        client
    });
    world.advance(SECOND);
    assert_eq!(clients.map(|client| world.clients[client].bodies(CLUSTERS).join(" ")), ["prod", "test", ""]);
}
