//! What a stream is told when it begins, and what becomes of errors while it lasts: S37, S45, S46, S50 and S65.

use super::wire::{body, request, requests, response, wrapper};
use super::*;
use crate::bootstrap::ChannelCreds::GoogleDefault;

#[test]
fn s037_who_begins_to_watch_what_was_removed_is_told_so_at_once_and_nobody_is_asked() {
    for (features, told) in [(KEEPS, &["put x 1", "ambient x: absent"][..]), (DROPS, &["failed x: absent"])] {
        for (protocol, type_url) in [(Protocol::Delta, CDS), (Protocol::Sotw, CDS), (Protocol::Sotw, LDS)] {
            let world = World::of(protocol, features);
            world.put(type_url, "x", "1");
            let mut first = world.watch_raw(type_url, "x");
            assert_eq!(heard(&mut first), ["put x 1"]);
            world.top().remove(type_url, "x");
            world.network.settle();
            assert_eq!(heard(&mut first), told[told.len() - 1..]);
            world.top().take_requests();
            let mut late = world.client.watch(type_url, "x");
            assert_eq!(heard(&mut late), told, "{protocol:?}");
            world.network.pass(PATIENCE * 2);
            assert_eq!((heard(&mut late).len(), world.top().take_requests().len()), (0, 0), "{protocol:?}");
        }
    }
}

#[test]
fn s045_an_error_that_was_told_of_one_resource_is_told_of_another_and_not_again() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let (mut x, mut y) = (world.watch("x"), world.watch("y"));
        world.top().take_requests();
        let mut refused = |version: &str, contents: [&str; 2]| {
            let of = |(name, content): (&str, &str)| wrapper(name, content, body(CDS, name, content));
            let resources: Vec<_> = ["x", "y"].into_iter().zip(contents).map(of).collect();
            world.top().send(&response(protocol, CDS, (version, version), &resources));
            world.network.settle();
            let answer = request(&world.top(), protocol);
            assert_eq!((answer.nonce.as_str(), answer.version.as_str()), (version, ""), "{protocol:?}");
            let words = answer.error.map(|(_, words)| words).unwrap_or_default();
            assert!(contents.iter().all(|content| words.contains(&format!("{content} is bad"))), "{words}");
            (heard(&mut x), heard(&mut y))
        };
        let told =
            |name: &str, content: &str| vec![format!("failed {name}: invalid at {content:?} ({content} is bad)")];
        assert_eq!(refused("1", ["bad", "bad"]), (told("x", "bad"), told("y", "bad")), "{protocol:?}");
        assert_eq!(refused("2", ["bad", "bad too"]), (vec![], told("y", "bad too")), "{protocol:?}");
        assert_eq!(refused("3", ["bad", "bad too"]), (vec![], vec![]), "{protocol:?}: the server is told each time");
    }
}

#[test]
fn s046_after_a_stream_without_an_answer_the_next_one_waits_longer_each_time_and_asks_for_the_same() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let mut watches = [world.watch("x"), world.watch("y")];
        world.top().take_requests();
        // Waits of the network are the longest that they may be.
        for (attempt, wait) in [(1, 1200), (2, 1920), (3, 3072), (4, 4916)] {
            world.top().end_streams();
            world.network.pass(Duration::from_millis(wait - 1));
            assert_eq!(world.top().opened(), attempt, "{protocol:?} {wait}");
            world.network.pass(Duration::from_millis(1));
            assert_eq!(world.top().opened(), attempt + 1, "{protocol:?} {wait}");
            let again = request(&world.top(), protocol);
            assert_eq!(
                (again.names, again.nonce.as_str(), again.version.as_str()),
                (vec!["x".into(), "y".into()], "", "")
            );
            for watch in &mut watches {
                let told: &[&str] = if attempt == 1 { &["failed all: unreachable (nobody is there)"] } else { &[] };
                assert_eq!(heard(watch), told, "{protocol:?}: once");
            }
        }
        world.top().send(&response(protocol, CDS, ("1", "1"), &[wrapper("x", "1", body(CDS, "x", "1"))]));
        assert_eq!(heard(&mut watches[0]).last().unwrap(), "put x 1");
        // What was answered may end: the next stream does not wait for long.
        world.top().take_requests();
        world.top().end_streams();
        world.network.pass(Duration::from_millis(1200));
        assert_eq!((world.top().opened(), heard(&mut watches[0]).len()), (6, 0), "{protocol:?}");
    }
}

#[test]
fn s050_the_node_is_in_the_first_request_of_each_stream_and_in_no_other() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        for type_url in TYPES {
            world.put(type_url, "x", "1");
        }
        for stream in 1..=3 {
            let mut watches = TYPES.map(|type_url| world.watch_raw(type_url, "x"));
            world.put(CDS, "x", &stream.to_string());
            let late = world.watch_raw(EDS, &format!("of stream {stream}"));
            let sent = requests(&world.top(), protocol);
            assert!(sent.len() > TYPES.len(), "requests and acknowledgements: {sent:?}");
            let nodes: Vec<_> = sent.iter().map(|request| request.node.as_ref().map(|node| node.id.as_str())).collect();
            assert_eq!(nodes[0], Some("me"), "{protocol:?} {stream}");
            assert!(nodes[1..].iter().all(Option::is_none), "{protocol:?} {stream}: {nodes:?}");
            let told = heard(&mut watches[2]);
            assert_eq!(told.last().unwrap(), &format!("put x {stream}"), "{protocol:?}");
            world.top().end_streams();
            world.network.pass(Duration::from_secs(2));
            assert_eq!(world.top().opened(), stream + 1);
            drop(late);
        }
    }
}

#[test]
fn s065_where_no_channel_can_be_made_the_watch_is_told_so_with_the_node() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let node = xds_transport::wire::Node { id: "me".into(), ..Default::default() };
    let bootstrap = Bootstrap::new(Server::new(TOP, GoogleDefault)).with_node(node);
    let client = Client::from_bootstrap(bootstrap).unwrap();
    let mut watch = client.watch_as::<Cluster>("x");
    let Some(Event::Failed { name: None, error }) = watch.try_next() else { panic!("it cannot be watched") };
    let words = error.to_string();
    assert!(words.contains(TOP) && words.contains("as node \"me\""), "{words}");
    assert!(watch.try_next().is_none(), "once");

    let mut unknown = client.watch_as::<Cluster>(&xdstp("unknown", CDS, "x"));
    let Some(Event::Failed { name: None, error }) = unknown.try_next() else { panic!("it cannot be watched") };
    assert!(error.to_string().contains("as node \"me\""), "{error}");
}
