//! Scenarios that are of no other subject: programs that watch within what they are called by, slow ones, clients among clients.

use std::sync::OnceLock;

use super::fallback::{SERVERS, several, told};
use super::*;

#[test]
fn s037_who_comes_after_a_removal_is_told_of_it_at_once() {
    for (protocol, type_url) in [(Protocol::Delta, LDS), (Protocol::Sotw, LDS), (Protocol::Delta, EDS)] {
        let world = World::of(protocol, DROPS);
        world.put(type_url, "x", "1");
        let _first = world.watch_raw(type_url, "x");
        world.top().remove(type_url, "x");
        world.network.settle();
        world.top().take_asked();
        let mut late = world.client.watch(type_url, "x");
        assert_eq!(heard(&mut late), ["failed x: absent"], "{protocol:?}");
        world.network.settle();
        assert!(world.top().take_asked().is_empty(), "nobody is asked for what is known");
    }
}

static WATCHING: OnceLock<Client> = OnceLock::new();

/// Watches itself and another one as it is read.
struct Curious;

impl Resource for Curious {
    fn type_url() -> String {
        CDS.into()
    }

    fn decode(_: Bytes) -> Result<Self, Reason> {
        let client = WATCHING.get().ok_or_else(|| Reason::new("too early"))?;
        drop([client.watch(CDS, "x"), client.watch(CDS, "y"), client.watch(LDS, "x")]);
        Ok(Self)
    }
}

#[test]
fn s040_a_program_may_watch_and_let_go_while_it_is_asked_what_a_resource_is() {
    let world = World::new();
    WATCHING.get_or_init(|| world.client.clone());
    world.put(CDS, "x", "1");
    let mut watch = world.client.watch_as::<Curious>("x");
    world.network.settle();
    assert_eq!(heard(&mut watch), ["put x 1"]);
    world.put(CDS, "x", "2");
    assert_eq!(heard(&mut watch), ["put x 2"]);
}

#[test]
fn s045_an_error_that_was_told_is_told_no_more_though_that_of_another_resource_is_new() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let mut watches = ["x", "y"].map(|name| world.client.watch_as::<Cluster>(name));
        world.top().put(CDS, "x", "bad", &message("x", "bad"));
        world.top().put(CDS, "y", "bad", &message("y", "bad"));
        world.network.settle();
        let told = |name: &str, version: &str| format!("failed {name}: invalid at \"{version}\" ({version} is bad)");
        assert_eq!(watches.each_mut().map(heard), [[told("x", "bad")], [told("y", "bad")]]);
        // Of one it is the same content, of the other it is not.
        world.top().put(CDS, "x", "bad", &message("x", "bad"));
        world.top().put(CDS, "y", "bad too", &message("y", "bad too"));
        world.network.settle();
        assert_eq!(watches.each_mut().map(heard), [vec![], vec![told("y", "bad too")]], "{protocol:?}");
    }
}

#[test]
fn s046_a_stream_that_ends_unanswered_is_told_and_the_next_one_asks_for_the_same() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let mut watches = ["x", "y"].map(|name| world.watch(name));
        world.top().take_asked();
        world.top().end_streams();
        world.network.settle();
        let told = ["failed all: unreachable (nobody is there)"];
        assert_eq!(watches.each_mut().map(heard), [told, told], "{protocol:?}");
        assert_eq!(world.top().opened(), 1, "not at once");
        world.network.pass(Duration::from_secs(5));
        let asked = world.top().take_asked().join(" ").replace('+', "");
        assert_eq!((asked.as_str(), world.top().opened()), ("x y", 2), "{protocol:?}");
        // It is not told again for every attempt.
        world.top().end_streams();
        world.network.pass(Duration::from_secs(10));
        assert_eq!(watches.each_mut().map(heard), [[""; 0]; 2]);
    }
}

#[test]
fn s050_the_first_request_of_each_stream_says_who_asks_and_no_other() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let _watches = [(CDS, "x"), (CDS, "y"), (EDS, "x"), (LDS, "x")].map(|(of, name)| world.watch_raw(of, name));
        world.put(CDS, "x", "2");
        assert_eq!((world.top().opened(), world.top().introductions()), (1, 1), "{protocol:?}");
        world.top().end_streams();
        world.network.pass(Duration::from_secs(5));
        world.put(CDS, "x", "3");
        assert_eq!((world.top().opened(), world.top().introductions()), (2, 2), "{protocol:?}");
    }
}

/// In grpc-go nothing more is read until both have heard. Here who is slow holds nobody up, and nothing queues for it: it hears
/// the newest, and only that.
#[test]
fn s053_to_s056_who_is_slow_holds_up_neither_the_stream_nor_another_watch() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, DROPS);
        for name in ["x", "y"] {
            world.put(CDS, name, "1");
        }
        let mut slow = ["x", "y"].map(|name| world.watch(name));
        let mut quick = ["x", "y"].map(|name| world.watch(name));
        assert_eq!(quick.each_mut().map(heard), [["put x 1"], ["put y 1"]]);
        // One resource, and several.
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut quick[0]), ["put x 2"], "{protocol:?}");
        world.put(CDS, "y", "2");
        assert_eq!(heard(&mut quick[1]), ["put y 2"]);
        // What is refused, and is gone.
        world.put(CDS, "x", "bad");
        assert_eq!(heard(&mut quick[0]), ["failed x: invalid at \"bad\" (bad is bad)"]);
        assert_eq!(world.top().take_refused(), ["x: bad is bad"], "it was answered");
        world.top().remove(CDS, "y");
        world.network.settle();
        assert_eq!(heard(&mut quick[1]), ["failed y: absent"]);
        assert_eq!(slow.each_mut().map(heard), [["failed x: invalid at \"bad\" (bad is bad)"], ["failed y: absent"]]);
    }
}

#[test]
fn s059_where_the_first_server_is_away_at_the_start_the_second_serves_and_no_error_is_told() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = several(protocol, &[KEEPS; 2]);
        world.network.server(SERVERS[0]).go_down("away");
        world.network.server(SERVERS[1]).put(CDS, "x", "1", &message("x", "1"));
        let mut watch = world.watch("x");
        assert_eq!(told(&mut watch), ["put x 1"], "{protocol:?}");
        world.network.pass(Duration::from_secs(200));
        assert_eq!(told(&mut watch), [""; 0], "{protocol:?}");
    }
}

#[test]
fn s065_a_server_that_cannot_be_spoken_to_is_the_error_of_who_needs_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let bad = Server::new("no such: scheme", ChannelCreds::Insecure);
    let bootstrap = Bootstrap::new(Server::new("127.0.0.1:1", ChannelCreds::Insecure))
        .with_authority("bad", Authority::default().with_server(bad));
    let client = Client::builder(bootstrap).build().unwrap();
    let mut watch = client.watch(CDS, &xdstp("bad", CDS, "x"));
    let Some(Event::Failed { error: Error::Unusable { server, .. }, .. }) = watch.try_next() else {
        panic!("{watch:?}")
    };
    assert_eq!(&*server, "no such: scheme");
    assert!(client.watch(CDS, "x").try_next().is_none(), "others may be asked");
}

#[test]
fn s119_handles_of_one_client_share_its_streams_until_the_last_of_them_is_gone() {
    let world = World::new();
    let other = world.client.clone();
    let watches = [world.client.watch(CDS, "x"), other.watch(CDS, "y")];
    world.network.settle();
    assert_eq!((world.network.dialed(), world.top().streams()), (1, 1));
    let World { network, client } = world;
    drop((client, watches));
    network.settle();
    assert_eq!(network.server(TOP).streams(), 1, "one handle is there still");
    drop(other);
    network.settle();
    assert_eq!(network.server(TOP).streams(), 0);
}

#[test]
fn s120_two_clients_of_one_bootstrap_know_nothing_of_each_other() {
    let network = Network::new(now());
    let client = |name: &str| {
        let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
        let node = xds_transport::wire::Node { id: name.into(), ..Default::default() };
        Client::builder(bootstrap.with_node(node)).transport(network.clone()).build().unwrap()
    };
    let (one, other) = (client("one"), client("other"));
    network.server(TOP).put(CDS, "x", "1", &message("x", "1"));
    let mut watches = [one.watch(CDS, "x"), other.watch(CDS, "x")];
    network.settle();
    assert_eq!((network.dialed(), network.server(TOP).streams()), (2, 2));
    drop(one);
    network.server(TOP).put(CDS, "x", "2", &message("x", "2"));
    network.settle();
    assert_eq!(heard(&mut watches[1]), ["put x 2"]);
}

/// There is nothing to close: a client ends with the last of its handles and watches, and a watch is a handle.
#[test]
fn s121_a_watch_goes_on_without_the_client_that_it_was_opened_by() {
    let World { network, client } = World::new();
    let mut watch = client.watch(CDS, "x");
    drop(client);
    network.server(TOP).put(CDS, "x", "1", &message("x", "1"));
    network.settle();
    assert_eq!(heard(&mut watch).last().map(String::as_str), Some("put x 1"));
    drop(watch);
    network.settle();
    assert_eq!(network.server(TOP).streams(), 0);
}
