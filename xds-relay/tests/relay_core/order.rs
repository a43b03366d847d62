//! Make before break: no cluster goes before the listener that stops using it has come, however long what nobody wants
//! any more lingers, and in whatever order the origin says it.

use std::task::Waker;
use std::time::Duration;

use prost::Message;
use xds_transport::server::Stream;
use xds_transport::wire::{DiscoveryRequest, DiscoveryResponse, Node};

use crate::support::*;

const LINGERS: [&str; 3] = ["1ms", "50ms", "30s"];
const VARIANTS: [(Protocol, Protocol); 4] = [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)];

/// A client with a listener `l` and the cluster `a` that it uses.
fn world(upstream: Protocol, downstream: Protocol, linger: &str, interest: &str) -> (World, usize) {
    let mut world = World::of(&[upstream], &[&[]], &format!("linger: {linger}"));
    world.put(0, LISTENERS, "l", "uses-a");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(downstream, "n");
    world.subscribe(client, LISTENERS, &["l"]);
    world.subscribe(client, CLUSTERS, &[interest]);
    world.advance(2 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
    world.told(client);
    (world, client)
}

/// Both changes at once; an origin that keeps to the order says them in several responses.
#[test]
fn rule_122_a_cluster_goes_after_the_listener_of_the_same_change() {
    for (upstream, downstream) in VARIANTS {
        for linger in LINGERS {
            for interest in ["a", "*"] {
                for pace in [0, 300, 5000] {
                    let (mut world, client) = world(upstream, downstream, linger, interest);
                    world.origins[0].pace = Duration::from_millis(pace);
                    let now = world.now;
                    world.origins[0].remove(now, CLUSTERS, "a");
                    world.origins[0].put(now, LISTENERS, "l", "uses-b");
                    world.advance(20 * SECOND);
                    let told = world.told(client);
                    let case = format!("{upstream:?} {downstream:?} {linger} {interest} {pace}: {told:?}");
                    assert_eq!(told, ["Listener l@uses-b", "Cluster -a"], "{case}");
                }
            }
        }
    }
}

/// An origin that says first what is gone: go-control-plane does, and so does whoever has no order.
#[test]
fn rule_122_a_cluster_goes_after_a_listener_that_comes_a_moment_later() {
    for (upstream, downstream) in VARIANTS {
        for linger in LINGERS {
            for interest in ["a", "*"] {
                for later in [0, 1, 50, 900] {
                    let (mut world, client) = world(upstream, downstream, linger, interest);
                    world.remove(0, CLUSTERS, "a");
                    world.advance(Duration::from_millis(later));
                    world.put(0, LISTENERS, "l", "uses-b");
                    world.advance(2 * SECOND);
                    let told = world.told(client);
                    let case = format!("{upstream:?} {downstream:?} {linger} {interest} {later}: {told:?}");
                    assert_eq!(told, ["Listener l@uses-b", "Cluster -a"], "{case}");
                }
            }
        }
    }
}

/// gRPC asks for a cluster when it hears of the listener that uses it, and leaves the old one when it has the new one:
/// that is never told as gone meanwhile, back and forth.
#[test]
fn rule_122_who_goes_from_one_cluster_to_another_is_never_told_that_it_has_none() {
    for (upstream, downstream) in VARIANTS {
        for linger in LINGERS {
            for after in [0, 20, 1500] {
                let (mut world, client) = world(upstream, downstream, linger, "a");
                for (old, new) in [("a", "b"), ("b", "a"), ("a", "b")] {
                    let now = world.now;
                    world.origins[0].put(now, CLUSTERS, new, "1");
                    world.remove(0, CLUSTERS, old);
                    world.put(0, LISTENERS, "l", &format!("uses-{new}"));
                    assert_eq!(world.told(client), [format!("Listener l@uses-{new}")]);
                    world.advance(Duration::from_millis(20));
                    world.subscribe(client, CLUSTERS, &[new]);
                    assert_eq!(
                        world.told(client),
                        [format!("Cluster {new}@1")],
                        "{upstream:?} {downstream:?} {linger} {after}"
                    );
                    assert!(world.clients[client].held(CLUSTERS).contains(&format!("{old}@1")));
                    world.unsubscribe(client, CLUSTERS, &[old]);
                    world.advance(Duration::from_millis(after));
                }
                world.advance(60 * SECOND);
                assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?} {linger} {after}");
            }
        }
    }
}

/// Where nobody asks for listeners or routes there is nothing to wait for, and what never was is told at once.
#[test]
fn rule_108_nothing_waits_for_listeners_that_nobody_asks_for_and_no_miss_does() {
    for upstream in [DELTA, SOTW] {
        let (mut world, client) = world(upstream, DELTA, "30s", "a");
        let other = world.client(DELTA, "n");
        world.subscribe(other, CLUSTERS, &["a"]);
        world.told(other);
        world.remove(0, CLUSTERS, "a");
        assert_eq!(world.told(other), ["Cluster -a"], "{upstream:?}");
        assert_eq!(world.told(client), [""; 0], "{upstream:?}");
        if upstream == DELTA {
            world.subscribe(client, CLUSTERS, &["never-was"]);
            assert_eq!(world.told(client), ["Cluster -never-was"]);
        }
        world.advance(SECOND);
        assert_eq!(world.told(client), ["Cluster -a"], "{upstream:?}");
    }
}

/// One that is heard of while another waits, too.
#[test]
fn rule_122_a_cluster_that_goes_while_another_waits_goes_after_its_listener_too() {
    for (upstream, downstream) in VARIANTS {
        for interest in ["a", "*"] {
            let (mut world, client) = world(upstream, downstream, "30s", interest);
            world.put(0, CLUSTERS, "c", "1");
            world.subscribe(client, CLUSTERS, &["c"]);
            world.told(client);
            world.remove(0, CLUSTERS, "c");
            world.advance(Duration::from_millis(900));
            world.remove(0, CLUSTERS, "a");
            world.advance(Duration::from_millis(500));
            world.put(0, LISTENERS, "l", "uses-b");
            world.advance(2 * SECOND);
            let told = world.told(client);
            assert_eq!(
                told.first().map(String::as_str),
                Some("Listener l@uses-b"),
                "{upstream:?} {downstream:?}: {told:?}"
            );
        }
    }
}

/// What is gone has had its turn, but could not be said.
#[test]
fn rule_122_a_cluster_that_goes_while_nothing_can_be_said_goes_after_its_listener_too() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::of(&[upstream, DELTA], &[&[], &["y"]], "");
        let listener = "xdstp://y/envoy.config.listener.v3.Listener/l";
        world.put(1, LISTENERS, listener, "uses-a");
        world.put(0, CLUSTERS, "a", "1");
        let client = world.client(SOTW, "n");
        world.subscribe(client, LISTENERS, &[listener]);
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(2 * SECOND);
        world.set_up(1, false);
        world.subscribe(client, CLUSTERS, &["xdstp://y/envoy.config.cluster.v3.Cluster/d/*"]);
        world.advance(2 * SECOND);
        world.remove(0, CLUSTERS, "a");
        world.advance(3 * SECOND);
        world.told(client);
        let now = world.now;
        world.origins[1].put(now, LISTENERS, listener, "uses-b");
        world.set_up(1, true);
        world.advance(60 * SECOND);
        let told = world.told(client);
        assert_eq!(told, ["Cluster ok", &format!("Listener {listener}@uses-b"), "Cluster -a"], "{upstream:?}");
    }
}

/// A cluster is left as a name before its last response was answered, and a listener changes. What is said before that
/// answer, and after it: the wildcard may have the cluster, too.
fn said_when_a_name_is_left(wild: bool) -> [Vec<String>; 2] {
    const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
    let mut world = World::new(DELTA);
    world.origins[0].wildcard_sends_xdstp_to("n");
    let now = world.now;
    world.put(0, CLUSTERS, NAME, "named");
    if wild {
        world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild", frame(CLUSTERS, NAME, "wild"));
    }
    world.origins[0].put_frame(now, "n", LISTENERS, "l", "1", frame(LISTENERS, "l", "1"));
    let core = world.relays[0].core.clone();
    let mut routes = core.open_stream(SOTW, Waker::noop().clone(), None);
    let mut stream = Stream::new(SOTW, core.settings());
    let request = |of: &str, names: &[&str], nonce: &str| DiscoveryRequest {
        node: Node { id: "n".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: of.into(),
        resource_names: names.iter().map(|name| (*name).into()).collect(),
        response_nonce: nonce.into(),
        ..DiscoveryRequest::default()
    };
    // What the stream says within a third of a second, to a request if there is one: the last word of each type, and the
    // nonce.
    let mut say = |world: &mut World, request: Option<DiscoveryRequest>| {
        if let Some(request) = request {
            stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes).unwrap();
        }
        let mut said = Vec::new();
        for _ in 0..3 {
            world.advance(Duration::from_millis(100));
            while let Some(transmit) = stream.poll_transmit(world.now, &mut routes).unwrap() {
                let response = DiscoveryResponse::decode(transmit.into_bytes()).unwrap();
                said.push((response.type_url.rsplit('.').next().unwrap().to_owned(), response.nonce));
            }
        }
        said
    };
    let said = say(&mut world, Some(request(LISTENERS, &["*"], "")));
    say(&mut world, Some(request(LISTENERS, &["*"], &said[0].1)));
    let said = say(&mut world, Some(request(CLUSTERS, &["*", NAME], "")));
    let [(_, unanswered)] = &said[..] else { panic!("{said:?}") };
    // It crosses that response.
    assert_eq!(say(&mut world, Some(request(CLUSTERS, &["*"], ""))), []);
    let now = world.now;
    world.origins[0].put_frame(now, "n", LISTENERS, "l", "2", frame(LISTENERS, "l", "2"));
    let before = say(&mut world, None);
    let after = say(&mut world, Some(request(CLUSTERS, &["*"], unanswered)));
    [before, after].map(|said| said.into_iter().map(|(of, _)| of).collect())
}

/// That is news, although no scope has any: the listener may use it.
#[test]
fn rule_122_a_listener_waits_for_what_the_wildcard_has_of_a_cluster_that_is_left() {
    assert_eq!(said_when_a_name_is_left(true), [vec![], vec!["Cluster", "Listener"]]);
}

#[test]
fn rule_122_a_listener_does_not_wait_for_a_cluster_to_go() {
    assert_eq!(said_when_a_name_is_left(false)[0], ["Listener"]);
}
