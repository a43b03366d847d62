//! What another client of xDS, `xds-client` 0.1.0-alpha.4, was seen to do wrong when it was run, D1 to D10: none of it is done here.

use super::wire::{Request, body, requests, response, wrapper};
use super::*;

const BOTH: [Protocol; 2] = [Protocol::Delta, Protocol::Sotw];

/// A watch of clusters that reads them in a way of its own.
#[derive(Debug)]
struct Length(usize);

impl Resource for Length {
    fn type_url() -> String {
        CDS.into()
    }

    fn decode(message: Bytes) -> Result<Self, Reason> {
        Ok(Self(message.len()))
    }
}

fn of(type_url: &str, requests: Vec<Request>) -> Vec<Request> {
    requests.into_iter().filter(|request| request.type_url == type_url).collect()
}

#[test]
fn d01_an_unreachable_server_is_told_of_and_its_first_word_is_no_absence() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.top().go_down("refused");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["failed all: unreachable (refused)"], "{protocol:?}");
        world.network.pass(PATIENCE * 4);
        assert_eq!(heard(&mut watch), [""; 0], "{protocol:?}: no name times out meanwhile");
        world.top().put(CDS, "x", "1", &message("x", "1"));
        world.top().be_silent(true);
        world.top().come_up();
        // Time goes on to when it is tried again, and it has said nothing yet.
        for _ in 0..300 {
            world.network.pass(Duration::from_millis(100));
            if world.top().streams() == 1 {
                break;
            }
        }
        assert_eq!((world.top().streams(), heard(&mut watch)), (1, vec![]), "{protocol:?}");
        world.top().be_silent(false);
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut watch), ["cleared all", "put x 2"], "{protocol:?}");
    }
}

#[test]
fn d02_streams_that_fail_are_told_of_and_so_is_their_end() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.top().be_silent(true);
        for _ in 0..4 {
            world.top().end_streams();
            world.network.pass(Duration::from_secs(10));
        }
        assert_eq!(heard(&mut watch), ["ambient all: unreachable (nobody is there)"], "{protocol:?}");
        world.top().be_silent(false);
        world.top().end_streams();
        world.network.pass(Duration::from_secs(60));
        world.put(CDS, "x", "2");
        let told = heard(&mut watch);
        assert!(told.contains(&"cleared all".into()) && told.contains(&"put x 2".into()), "{protocol:?}: {told:?}");
    }
}

#[test]
fn d03_neither_a_bad_version_nor_a_removal_takes_away_what_is_in_use() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.put(CDS, "x", "bad");
        assert_eq!(heard(&mut watch), ["ambient x: invalid at \"bad\" (bad is bad)"], "{protocol:?}");
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut watch), ["put x 2"], "{protocol:?}");
        world.top().remove(CDS, "x");
        world.network.settle();
        assert_eq!(heard(&mut watch), ["ambient x: absent"], "{protocol:?}");
        assert_eq!(heard(&mut world.watch("x")), ["put x 2", "ambient x: absent"], "{protocol:?}: it is still there");
    }
}

#[test]
fn d04_where_the_first_server_is_dead_the_second_is_asked() {
    for protocol in BOTH {
        let server = |uri| Server::new(uri, ChannelCreds::Insecure);
        let world = World::with(protocol, Bootstrap::new(server(TOP)).with_server(server(OTHER)));
        world.top().go_down("dead");
        world.network.server(OTHER).put(CDS, "x", "second's", &message("x", "1"));
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x second's"], "{protocol:?}");
    }
}

#[test]
fn d05_a_client_without_handles_and_watches_has_no_stream() {
    for protocol in BOTH {
        let World { network, client } = World::of(protocol, KEEPS);
        let watches = [client.watch(CDS, "x"), client.watch(EDS, "x")];
        network.settle();
        assert_eq!(network.server(TOP).streams(), 1);
        drop((client, watches));
        network.settle();
        assert_eq!(network.server(TOP).streams(), 0, "{protocol:?}");
        network.pass(Duration::from_secs(600));
        assert_eq!((network.dialed(), network.server(TOP).opened()), (1, 1), "{protocol:?}");
    }
}

#[test]
fn d06_the_last_watch_of_a_type_is_left_and_the_next_one_goes_on_with_its_nonce() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(EDS, "x", "1");
        world.put(CDS, "y", "1");
        let (watch, _other) = (world.watch_raw(EDS, "x"), world.watch("y"));
        let nonce = of(EDS, requests(&world.top(), protocol)).pop().unwrap().nonce;
        assert!(!nonce.is_empty());
        world.top().take_asked();
        drop(watch);
        world.network.settle();
        let left = if protocol == Protocol::Delta { "-x" } else { "" };
        assert_eq!(world.top().take_asked(), [left], "{protocol:?}");
        requests(&world.top(), protocol);
        let again = world.watch_raw(EDS, "x");
        let asked = of(EDS, requests(&world.top(), protocol)).remove(0);
        assert_eq!(asked.names, ["x"], "{protocol:?}");
        assert_eq!(asked.nonce, if protocol == Protocol::Delta { "" } else { &nonce }, "{protocol:?}");
        drop(again);
    }
}

#[test]
fn d07_a_wildcard_after_names_asks_for_everything_and_a_second_one_has_it_too() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        ["x", "y"].iter().for_each(|name| world.put(CDS, name, "1"));
        let _named = world.watch("x");
        world.top().take_asked();
        let mut first = world.watch_raw(CDS, "*");
        let asked = world.top().take_asked();
        let sotw_is_named = asked.iter().all(|names| !names.is_empty());
        assert!(asked.iter().any(|names| names.contains('*')), "{protocol:?}: {asked:?}");
        assert!(protocol == Protocol::Delta || sotw_is_named, "{asked:?}: that would leave all");
        let mut second = world.client.watch_as::<Length>("*");
        for told in [heard(&mut first), heard(&mut second)] {
            let told: Vec<_> = told.iter().filter(|told| told.starts_with("put")).collect();
            assert_eq!(told, ["put x 1", "put y 1"], "{protocol:?}");
        }
    }
}

#[test]
fn d07_two_readers_of_one_type_each_have_what_they_make_of_it() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let (mut cluster, mut length) = (world.watch("x"), world.client.watch_as::<Length>("x"));
        world.network.settle();
        let Some(Event::Put { resource, .. }) = cluster.try_next() else { panic!("{protocol:?}") };
        assert_eq!(*resource, Cluster("1".into()));
        let Some(Event::Put { resource, .. }) = length.try_next() else { panic!("{protocol:?}") };
        assert_eq!(resource.0, message("x", "1").len());
    }
}

#[test]
fn d08_what_is_not_watched_is_not_kept_and_never_served() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let (mut watch, _other) = (world.watch("x"), world.watch("y"));
        assert_eq!(heard(&mut watch), ["put x 1"]);
        drop(watch);
        world.network.settle();
        world.top().be_silent(true);
        // Something that nobody asked for, either.
        let resources = ["y", "z"].map(|name| wrapper(name, "1", body(CDS, name, "1")));
        world.top().send(&response(protocol, CDS, ("1", "n"), &resources));
        for name in ["x", "z"] {
            let mut watch = world.watch(name);
            assert_eq!(heard(&mut watch), [""; 0], "{protocol:?}: {name}");
        }
    }
}

#[test]
fn d09_watches_are_opened_without_a_server_and_one_that_is_not_looked_at_holds_up_nobody() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.top().go_down("away");
        let names: Vec<_> = (0..1000).map(|number| format!("{number:04}")).collect();
        let mut watches: Vec<_> = names.iter().map(|name| world.client.watch_as::<Cluster>(name)).collect();
        world.network.settle();
        names.iter().for_each(|name| world.top().put(CDS, name, "1", &message(name, "1")));
        world.top().come_up();
        world.network.pass(Duration::from_secs(60));
        for version in ["2", "3"] {
            world.put(CDS, "0999", version);
            let told = heard(watches.last_mut().unwrap());
            assert_eq!(told.last().unwrap(), &format!("put 0999 {version}"), "{protocol:?}");
        }
        let told = heard(&mut watches[0]);
        assert_eq!(told.last().unwrap(), "put 0000 1", "{protocol:?}");
    }
}

#[test]
fn d10_what_is_as_it_was_is_no_news_the_node_is_said_once_and_a_stream_that_ends_is_followed_soon() {
    for protocol in BOTH {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        for nonce in ["again", "and again"] {
            world.top().send(&response(protocol, CDS, ("1", nonce), &[wrapper("x", "1", body(CDS, "x", "1"))]));
            world.network.settle();
            assert_eq!(heard(&mut watch), [""; 0], "{protocol:?}");
        }
        let sent = requests(&world.top(), protocol);
        assert_eq!(sent.iter().filter(|request| request.node.is_some()).count(), 1, "{protocol:?}: {sent:?}");
        world.top().end_streams();
        // The longest that the first wait may be.
        world.network.pass(Duration::from_millis(1200));
        assert_eq!((world.top().opened(), heard(&mut watch)), (2, vec![]), "{protocol:?}");
    }
}
