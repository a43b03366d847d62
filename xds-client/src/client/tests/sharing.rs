//! Clients that are one, and clients that are not: S119 to S122.

use super::wire::requests;
use super::*;
use crate::BuildError;

fn another(world: &World) -> Client {
    let node = xds_transport::wire::Node { id: "another".into(), ..Default::default() };
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure)).with_node(node);
    Client::builder(bootstrap).transport(world.network.clone()).build().unwrap()
}

#[test]
fn s119_clones_of_a_client_are_one_which_is_closed_with_the_last_of_them() {
    let world = World::new();
    world.put(CDS, "x", "1");
    world.put(CDS, "y", "1");
    let clone = world.client.clone();
    let (mut x, mut same, mut y) = (world.watch("x"), clone.watch_as::<Cluster>("x"), clone.watch_as::<Cluster>("y"));
    world.network.settle();
    assert_eq!(
        (heard(&mut x), heard(&mut same), heard(&mut y)),
        (vec!["put x 1".into()], vec!["put x 1".into()], vec!["put y 1".into()])
    );
    let names: Vec<_> = requests(&world.top(), Protocol::Delta).into_iter().flat_map(|request| request.names).collect();
    assert_eq!((names, world.top().opened()), (vec!["x".to_owned(), "y".to_owned()], 1), "each once");

    let World { network, client } = world;
    drop((client, x));
    network.settle();
    assert_eq!(network.server(TOP).streams(), 1, "one is left");
    network.server(TOP).put(CDS, "x", "2", &message("x", "2"));
    network.settle();
    assert_eq!(heard(&mut same), ["put x 2"]);
    drop((same, y, clone));
    network.settle();
    assert_eq!(network.server(TOP).streams(), 0);
}

#[test]
fn s120_two_clients_have_streams_of_their_own_and_the_end_of_one_is_nothing_to_the_other() {
    let world = World::new();
    world.put(CDS, "x", "1");
    let other = another(&world);
    let (mut one, mut two) = (world.watch("x"), other.watch_as::<Cluster>("x"));
    world.network.settle();
    assert_eq!((heard(&mut one), heard(&mut two)), (vec!["put x 1".into()], vec!["put x 1".into()]));
    let nodes: Vec<_> = requests(&world.top(), Protocol::Delta)
        .into_iter()
        .filter_map(|request| request.node)
        .map(|node| node.id)
        .collect();
    assert_eq!((nodes, world.top().streams()), (vec!["me".to_owned(), "another".into()], 2));
    drop((two, other));
    world.network.settle();
    assert_eq!(world.top().streams(), 1);
    world.put(CDS, "x", "2");
    assert_eq!(heard(&mut one), ["put x 2"]);
    assert_eq!(world.client.status(true).generic_xds_configs.len(), 1);
}

#[test]
fn s121_a_client_is_closed_once_and_a_watch_that_outlives_it_is_of_use_until_it_ends() {
    let World { network, client } = World::new();
    network.server(TOP).put(CDS, "x", "1", &message("x", "1"));
    let mut watch = client.watch_as::<Cluster>("x");
    network.settle();
    drop(client);
    network.settle();
    assert_eq!(heard(&mut watch), ["put x 1"]);
    network.server(TOP).put(CDS, "x", "2", &message("x", "2"));
    network.settle();
    assert_eq!(heard(&mut watch), ["put x 2"]);
    drop(watch);
    network.settle();
    assert_eq!(network.server(TOP).streams(), 0);
    // What was closed says nothing more, and dials no more.
    network.server(TOP).take_requests();
    network.server(TOP).go_down("away");
    network.pass(Duration::from_secs(600));
    network.server(TOP).come_up();
    network.pass(Duration::from_secs(600));
    assert_eq!((network.server(TOP).take_requests().len(), network.dialed(), network.server(TOP).opened()), (0, 1, 1));
}

#[test]
fn s121_a_watch_that_cannot_be_says_so_once_and_nothing_is_sent_for_it() {
    let world = World::new();
    let mut never = world.watch(&xdstp("unknown", CDS, "x"));
    assert_eq!(heard(&mut never).len(), 1);
    for _ in 0..2 {
        world.client.sweep(world.network.now());
        world.network.pass(PATIENCE);
        assert!(heard(&mut never).is_empty());
    }
    assert_eq!((world.network.dialed(), world.top().take_requests().len()), (0, 0));
}

#[test]
fn s122_there_is_no_client_without_servers_or_without_a_way_to_speak_to_them() {
    for none in
        ["{}", r#"{ "xds_servers": [] }"#, r#"{ "xds_servers": [{ "server_uri": "a:1", "channel_creds": [] }] }"#]
    {
        assert!(Bootstrap::from_json(none).is_err(), "{none}");
    }
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
    assert!(
        matches!(Client::builder(bootstrap).build(), Err(BuildError::NoRuntime)),
        "neither a runtime nor a transport"
    );
}
