//! A list of several servers (gRFC A71).

use super::*;
use crate::ResourceStatus;

pub(super) const SERVERS: [&str; 3] = ["first:1", "second:1", "third:1"];
/// Longer than any wait between two attempts.
pub(super) const LONG: Duration = Duration::from_secs(200);

/// A client of so many servers, of which each has these features; the authority `a` has the same, and `b` has them the other
/// way round.
pub(super) fn several(protocol: Protocol, features: &[Features]) -> World {
    let servers: Vec<_> = features.iter().zip(SERVERS).map(|(of, uri)| insecure(uri).with_features(*of)).collect();
    let (first, others) = servers.split_first().unwrap();
    let bootstrap = others.iter().cloned().fold(Bootstrap::new(first.clone()), Bootstrap::with_server);
    let turned = servers.iter().rev().cloned().fold(Authority::default(), Authority::with_server);
    let bootstrap = bootstrap.with_authority("a", Authority::default()).with_authority("b", turned);
    let network = Network::speaking(protocol, now());
    let client = Client::builder(bootstrap).protocol(protocol).transport(network.clone()).build().unwrap();
    World { network, client }
}

pub(super) fn insecure(uri: &str) -> Server {
    Server::new(uri, ChannelCreds::Insecure)
}

/// The same over either protocol, of two servers.
fn of_two(scenario: impl Fn(&World, Protocol)) {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        scenario(&several(protocol, &[KEEPS; 2]), protocol);
    }
}

impl World {
    pub(super) fn at(&self, server: usize) -> crate::test::Server {
        self.network.server(SERVERS[server])
    }

    /// A server has it, under a version of its own.
    pub(super) fn put_at(&self, server: usize, name: &str, content: &str) {
        self.at(server).put(CDS, name, &format!("{content} of {server}"), &message(name, content));
        self.network.settle();
    }

    /// Every server has it.
    pub(super) fn put_everywhere(&self, name: &str, content: &str) {
        (0..SERVERS.len()).for_each(|server| self.put_at(server, name, content));
    }

    pub(super) fn streams(&self) -> [usize; 3] {
        [0, 1, 2].map(|server| self.at(server).streams())
    }

    pub(super) fn seconds(&self, seconds: u64) {
        self.network.pass(Duration::from_secs(seconds));
    }
}

/// What a watch hears, and what it makes of resources, whatever their versions.
pub(super) fn told(watch: &mut Watch<Cluster>) -> Vec<String> {
    let of = |event: Event<std::sync::Arc<Cluster>>| match event {
        Event::Put { name, resource, .. } => format!("put {name} {}", resource.0),
        event => words(&event),
    };
    std::iter::from_fn(|| watch.try_next()).map(of).collect()
}

#[test]
fn r066_what_nothing_is_known_of_has_the_next_server_asked_where_the_first_is_away() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        world.at(0).go_down("away");
        let mut watch = world.watch("x");
        assert_eq!(told(&mut watch), ["put x 1"], "{protocol:?}");
        assert_eq!(world.streams(), [0, 1, 0]);
    });
}

#[test]
fn r066_where_all_is_known_nobody_else_is_asked_and_who_watches_hears_that_it_may_be_old() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        let mut watch = world.watch("x");
        world.at(0).go_down("away");
        world.network.pass(LONG);
        assert_eq!(told(&mut watch), ["put x 1", "ambient all: unreachable (away)"], "{protocol:?}");
        assert_eq!((world.streams(), watch.status()), ([0; 3], Some(ResourceStatus::Acked)));
        world.at(0).come_up();
        world.put_at(0, "x", "2");
        world.network.pass(LONG);
        let heard = told(&mut watch);
        assert!(heard.contains(&"put x 2".to_owned()) && heard.contains(&"cleared all".to_owned()), "{heard:?}");
        assert_eq!((world.streams(), world.at(1).opened()), ([1, 0, 0], 0));
    });
}

/// What the README warns of: until all were told again, what is used together is of two servers.
#[test]
fn r072_what_one_server_has_stands_beside_what_the_next_has_until_that_has_all() {
    of_two(|world, protocol| {
        for type_url in [CDS, EDS] {
            world.at(0).put(type_url, "x", "1 of 0", &message("x", "1"));
        }
        let (mut cluster, mut endpoints) = (world.watch_raw(CDS, "x"), world.watch_raw(EDS, "x"));
        assert_eq!(
            (heard(&mut cluster), heard(&mut endpoints)),
            (vec!["put x 1 of 0".into()], vec!["put x 1 of 0".into()])
        );
        world.at(0).go_down("away");
        world.network.pass(LONG);
        let put = |type_url| world.at(1).put(type_url, "x", "2 of 1", &message("x", "2"));
        put(CDS);
        let _new = world.watch("y");
        assert_eq!(heard(&mut cluster).last().unwrap(), "put x 2 of 1", "{protocol:?}");
        assert!(!heard(&mut endpoints).iter().any(|told| told.starts_with("failed") || told.starts_with("removed")));
        put(EDS);
        world.network.settle();
        assert_eq!(heard(&mut endpoints).last().unwrap(), "put x 2 of 1", "{protocol:?}");
    });
}

#[test]
fn r067_the_next_one_is_asked_for_all_that_is_watched_and_those_before_it_are_tried_on() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        world.put_everywhere("y", "1");
        let mut known = world.watch("x");
        world.at(0).go_down("away");
        world.network.pass(LONG);
        assert_eq!(told(&mut known), ["put x 1", "ambient all: unreachable (away)"]);
        // Now, and not when the first fails the next time.
        let mut new = world.watch("y");
        assert_eq!(told(&mut new), ["put y 1"], "{protocol:?}");
        assert_eq!(told(&mut known), ["cleared all"], "{protocol:?}");
        let mut asked: Vec<_> = world
            .at(1)
            .take_asked()
            .iter()
            .flat_map(|names| names.split(' '))
            .map(|name| name.trim_start_matches('+').to_owned())
            .collect();
        asked.sort();
        asked.dedup();
        asked.retain(|name| !name.is_empty());
        assert_eq!(asked, ["x", "y"], "{protocol:?}");
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(world.streams(), [1, 0, 0], "{protocol:?}: it was tried on");
    });
}

#[test]
fn r068_nobody_hears_of_servers_that_are_away_before_all_are() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = several(protocol, &[KEEPS; 3]);
        world.at(0).go_down("first away");
        world.at(1).go_down("second away");
        world.at(2).be_silent(true);
        let mut watch = world.watch("x");
        world.seconds(10);
        assert!(told(&mut watch).is_empty(), "{protocol:?}: the third may answer");
        world.at(2).go_down("third away");
        world.seconds(100);
        assert_eq!(told(&mut watch), ["failed all: unreachable (third away)"], "{protocol:?}: once, as the last says");
        let mut late = world.watch("y");
        assert_eq!(told(&mut late), ["failed all: unreachable (third away)"]);
        world.at(1).come_up();
        world.put_at(1, "x", "1");
        world.network.pass(LONG);
        assert_eq!(world.streams(), [0, 1, 0]);
        let heard = told(&mut watch);
        assert!(
            heard.contains(&"put x 1".to_owned()) && heard.iter().all(|words| !words.starts_with("failed")),
            "{heard:?}"
        );
    }
}

#[test]
fn r068_who_asks_for_something_new_while_all_that_was_known_is_old_does_not_hear_of_the_first_alone() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        let mut known = world.watch("x");
        world.at(0).go_down("away");
        world.network.pass(LONG);
        assert_eq!(told(&mut known).last().unwrap(), "ambient all: unreachable (away)");
        world.at(1).be_silent(true);
        let mut new = world.client.watch_as::<Cluster>("y");
        assert!(told(&mut new).is_empty(), "{protocol:?}: another server is about to be asked");
        world.network.settle();
        assert!(told(&mut new).is_empty(), "{protocol:?}");
        world.at(1).go_down("away, too");
        world.seconds(100);
        assert_eq!(told(&mut new), ["failed all: unreachable (away, too)"], "{protocol:?}");
    });
}

#[test]
fn r069_any_response_of_a_higher_one_ends_the_streams_to_those_below_it() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = several(protocol, &[KEEPS; 3]);
        world.put_everywhere("x", "1");
        world.at(0).go_down("away");
        world.at(1).go_down("away");
        let mut watch = world.watch("x");
        assert_eq!((world.streams(), told(&mut watch)), ([0, 0, 1], vec!["put x 1".to_owned()]), "{protocol:?}");
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(world.streams(), [1, 0, 0], "{protocol:?}");
        assert!(told(&mut watch).is_empty(), "{protocol:?}: what is equal is no news, whatever its version");
        world.put_at(2, "x", "late");
        world.put_at(0, "x", "2");
        world.seconds(1);
        assert_eq!(told(&mut watch), ["put x 2"], "{protocol:?}");
    }
}

#[test]
fn r070_neither_silence_nor_what_is_of_no_use_has_another_server_asked() {
    of_two(|world, protocol| {
        world.put_everywhere("bad", "1");
        world.put_at(0, "bad", "bad");
        world.put_at(1, "silent", "1");
        let (mut bad, mut silent) = (world.watch("bad"), world.watch("silent"));
        world.at(0).be_silent(true);
        world.seconds(20);
        assert_eq!(told(&mut bad), [r#"failed bad: invalid at "bad of 0" (bad is bad)"#], "{protocol:?}");
        let heard = told(&mut silent);
        assert!(heard == ["failed silent: timeout, an absence"] || heard == ["failed silent: absent"], "{heard:?}");
        // Of both something was said, if not what one would have liked.
        world.at(0).go_down("away");
        world.network.pass(LONG);
        assert_eq!(
            (world.at(1).opened(), told(&mut bad)),
            (0, vec!["failed all: unreachable (away)".to_owned()]),
            "{protocol:?}"
        );
    });
}

#[test]
fn r070_of_one_that_is_asked_in_place_of_another_silence_is_told_in_time() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        let mut known = world.watch("x");
        world.at(0).go_down("away");
        world.at(1).be_silent(true);
        world.seconds(10);
        let mut watch = world.watch("y");
        world.seconds(14);
        assert!(told(&mut watch).is_empty(), "{protocol:?}");
        world.seconds(2);
        assert_eq!(told(&mut watch), ["failed y: timeout, an absence"], "{protocol:?}");
        let heard = told(&mut known);
        assert!(heard.iter().all(|words| !words.starts_with("failed")), "{protocol:?} {heard:?}");
        assert_eq!(known.status(), Some(ResourceStatus::Acked));
    });
}

#[test]
fn r071_what_is_held_survives_every_switch() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        world.put_everywhere("y", "1");
        let (mut x, mut y) = (world.watch("x"), world.watch("y"));
        assert_eq!((told(&mut x), told(&mut y)), (vec!["put x 1".to_owned()], vec!["put y 1".to_owned()]));
        world.at(0).go_down("away");
        world.put_at(1, "y", "2");
        world.put_everywhere("z", "1");
        let mut z = world.watch("z");
        world.seconds(10);
        assert_eq!((told(&mut z), world.streams()), (vec!["put z 1".to_owned()], [0, 1, 0]), "{protocol:?}");
        assert!(told(&mut x).is_empty(), "{protocol:?}: nothing of it changed");
        assert_eq!(told(&mut y), ["put y 2"], "{protocol:?}");
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(told(&mut y), ["put y 1"], "{protocol:?}: as the first has it");
        assert!(told(&mut x).is_empty() && told(&mut z).is_empty(), "{protocol:?}");
    });
}

#[test]
fn r071_what_the_next_server_does_not_have_stays_in_use() {
    of_two(|world, protocol| {
        world.put_at(0, "x", "1");
        let mut x = world.watch("x");
        world.at(0).go_down("away");
        world.put_at(1, "z", "1");
        let mut z = world.watch("z");
        world.network.pass(LONG);
        assert_eq!(told(&mut z), ["put z 1"], "{protocol:?}");
        let heard = told(&mut x);
        assert_eq!(heard[0], "put x 1");
        assert!(heard.iter().all(|words| !words.starts_with("failed")), "{protocol:?} {heard:?}");
        assert!(
            world.client.watch_as::<Cluster>("x").try_next().is_some_and(|event| matches!(event, Event::Put { .. }))
        );
        world.at(0).come_up();
        world.network.pass(LONG);
        world.put_at(0, "x", "2");
        world.seconds(1);
        assert_eq!(told(&mut x).last().unwrap(), "put x 2", "{protocol:?}");
    });
}

#[test]
fn r071_of_a_collection_too() {
    let glob = xdstp("a", CDS, "g/*");
    let member = |id: &str| xdstp("a", CDS, &format!("g/{id}"));
    let world = several(Protocol::Delta, &[KEEPS; 2]);
    world.put_everywhere(&member("1"), "1");
    let mut watch = world.watch(&glob);
    world.seconds(1);
    let put = format!("put {} 1", member("1"));
    assert_eq!(told(&mut watch), [put, "answered".to_owned()]);
    world.at(0).go_down("away");
    world.put_everywhere(&member("2"), "1");
    let mut other = world.watch(&xdstp("a", CDS, "new"));
    world.network.pass(LONG);
    assert_eq!(world.streams(), [0, 1, 0]);
    let heard = told(&mut watch);
    assert!(heard.contains(&format!("put {} 1", member("2"))), "{heard:?}");
    assert!(heard.iter().all(|words| !words.starts_with("removed") && !words.starts_with("failed")), "{heard:?}");
    told(&mut other);
}

#[test]
fn r070_each_authority_has_a_choice_of_its_own() {
    of_two(|world, protocol| {
        let (a, b) = (xdstp("a", CDS, "x"), xdstp("b", CDS, "x"));
        world.put_everywhere("x", "1");
        world.put_everywhere(&a, "1");
        world.put_everywhere(&b, "1");
        let (_x, _b) = (world.watch("x"), world.watch(&b));
        assert_eq!(world.streams(), [1, 1, 0], "{protocol:?}: the list of one begins with the second");
        world.at(0).go_down("away");
        world.seconds(10);
        assert_eq!(world.at(1).streams(), 1, "{protocol:?}: all is known at the top");
        let mut watch = world.watch(&a);
        assert_eq!((told(&mut watch), world.at(1).streams()), (vec![format!("put {a} 1")], 1), "{protocol:?}");
    });
}

#[test]
fn r057_what_becomes_of_it_goes_by_the_features_of_the_server_that_says_so() {
    let world = several(Protocol::Delta, &[KEEPS, DROPS]);
    world.put_everywhere("x", "1");
    world.put_everywhere("y", "1");
    let (mut x, mut y) = (world.watch("x"), world.watch("y"));
    world.put_at(0, "x", "bad");
    assert_eq!(told(&mut x), ["put x 1".to_owned(), r#"ambient x: invalid at "bad of 0" (bad is bad)"#.to_owned()]);
    world.at(0).go_down("away");
    let _new = world.watch("z");
    world.network.pass(LONG);
    assert_eq!(world.streams(), [0, 1, 0]);
    world.put_at(1, "y", "bad");
    assert_eq!(told(&mut y).last().unwrap(), r#"failed y: invalid at "bad of 1" (bad is bad)"#);
}

#[test]
fn r060_how_long_silence_may_last_goes_by_the_server_that_is_silent() {
    let world = several(Protocol::Delta, &[KEEPS, WAITS]);
    world.at(0).go_down("away");
    world.at(1).be_silent(true);
    let mut watch = world.watch("x");
    world.seconds(20);
    assert!(told(&mut watch).is_empty());
    world.seconds(11);
    assert_eq!(
        (told(&mut watch), watch.status()),
        (vec!["failed x: timeout".to_owned()], Some(ResourceStatus::Timeout))
    );
}

#[test]
fn what_was_let_go_begins_with_the_first_again() {
    of_two(|world, protocol| {
        world.put_everywhere("x", "1");
        world.at(0).go_down("away");
        drop(world.watch("x"));
        world.network.settle();
        world.client.sweep(world.network.now());
        world.network.settle();
        assert_eq!(world.streams(), [0; 3], "{protocol:?}");
        world.at(0).come_up();
        assert_eq!(told(&mut world.watch("x")), ["put x 1"]);
        assert_eq!(world.streams(), [1, 0, 0], "{protocol:?}");
    });
}
