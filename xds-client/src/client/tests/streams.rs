use super::*;

#[test]
fn s041_and_s042_what_is_good_is_acknowledged_and_what_is_bad_is_not() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let mut watch = world.watch("x");
        for (version, refused) in
            [("bad", &["x: bad is bad"][..]), ("1", &[]), ("bad again", &["x: bad again is bad"]), ("2", &[])]
        {
            world.put(CDS, "x", version);
            assert_eq!(world.top().take_refused(), refused, "{protocol:?}");
        }
        assert_eq!(heard(&mut watch).last().unwrap(), "put x 2");
    }
}

#[test]
fn s043_what_nobody_watches_any_more_is_left_and_forgotten() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let (watch, _other) = (world.watch("x"), world.watch("y"));
        world.top().take_asked();
        drop(watch);
        world.network.settle();
        let left = if protocol == Protocol::Delta { "-x" } else { "y" };
        assert_eq!(world.top().take_asked(), [left]);
        let mut again = world.client.watch_as::<Cluster>("x");
        assert!(heard(&mut again).is_empty(), "nothing stale is served");
        world.network.settle();
        let asked = world.top().take_asked();
        assert_eq!(asked[0], if protocol == Protocol::Delta { "+x" } else { "x y" });
        assert_eq!(heard(&mut again), ["put x 1"]);
    }
}

#[test]
fn s043_after_the_last_watch_its_stream_is_closed_and_the_next_one_tells_of_no_version() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        drop(watch);
        world.network.settle();
        world.client.sweep(world.network.now());
        world.network.settle();
        assert_eq!(world.top().streams(), 0, "{protocol:?}");
        wire::requests(&world.top(), protocol);
        let mut again = world.watch("x");
        assert_eq!(heard(&mut again), ["put x 1"]);
        let first = wire::requests(&world.top(), protocol).remove(0);
        assert_eq!((first.version.as_str(), first.nonce.as_str()), ("", ""), "{protocol:?}");
        assert_eq!((first.names, first.versions), (vec!["x".to_owned()], vec![]), "{protocol:?}");
        assert!(first.node.is_some());
    }
}

/// Nor is a server tried on that nobody wants anything of, for it is away.
#[test]
fn s043_what_nobody_watches_any_more_is_forgotten_while_its_server_is_away_too() {
    let world = World::new();
    world.put(CDS, "x", "1");
    let mut watch = world.watch("x");
    assert_eq!(heard(&mut watch), ["put x 1"]);
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    drop(watch);
    world.network.settle();
    assert_eq!(heard(&mut world.watch("x")), ["failed all: unreachable (away)"], "nothing stale is served");
    // The first look sees that nobody is left, and the second that nobody came.
    for _ in 0..2 {
        world.client.sweep(world.network.now());
        world.network.pass(Duration::from_secs(200));
    }
    world.top().come_up();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.top().opened(), 1, "nobody is asked for nothing");
}

#[test]
fn s047_and_s049_after_a_stream_the_next_one_asks_for_all_of_it_and_what_is_there_is_no_news() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        world.put(EDS, "x", "1");
        let (mut cluster, mut endpoints) = (world.watch_raw(CDS, "x"), world.watch_raw(EDS, "x"));
        assert_eq!((heard(&mut cluster), heard(&mut endpoints)), (vec!["put x 1".into()], vec!["put x 1".into()]));
        world.top().take_asked();
        world.top().end_streams();
        let mut late = world.watch_raw(LDS, "x");
        world.put(CDS, "x", "2");
        world.network.pass(Duration::from_secs(10));
        let mut asked = world.top().take_asked();
        asked.retain(|name| !name.is_empty());
        asked.sort();
        asked.dedup();
        assert_eq!(asked, [if protocol == Protocol::Delta { "+x" } else { "x" }]);
        assert_eq!((world.top().opened(), world.top().streams()), (2, 1));
        assert_eq!((heard(&mut cluster), heard(&mut endpoints)), (vec!["put x 2".into()], vec![]));
        heard(&mut late);
    }
}

#[test]
fn s047_the_next_stream_is_told_the_version_that_is_in_use_and_of_what_was_refused_none() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let send = |version: &str, nonce: &str| {
            let resources = [wire::wrapper("x", version, wire::body(CDS, "x", version))];
            world.top().send(&wire::response(protocol, CDS, (version, nonce), &resources));
            world.network.settle();
        };
        world.top().be_silent(true);
        let mut watch = world.watch("x");
        send("1", "n1");
        send("bad", "n2");
        assert_eq!(heard(&mut watch), ["put x 1", "ambient x: invalid at \"bad\" (bad is bad)"]);
        wire::requests(&world.top(), protocol);
        world.top().end_streams();
        world.network.pass(Duration::from_secs(10));
        let first = wire::request(&world.top(), protocol);
        assert_eq!((first.names, first.nonce.as_str()), (vec!["x".to_owned()], ""), "{protocol:?}");
        match protocol {
            Protocol::Delta => assert_eq!(first.versions, [("x".to_owned(), "1".to_owned())]),
            Protocol::Sotw => assert_eq!(first.version, "1"),
        }
        assert_eq!(first.error, None);
    }
}

#[test]
fn s048_what_is_watched_before_there_is_a_stream_is_asked_for_once_there_is() {
    let world = World::new();
    world.top().go_down("not yet");
    let mut watch = world.watch("x");
    assert!(world.top().take_asked().is_empty());
    world.top().come_up();
    world.put(CDS, "x", "1");
    world.network.pass(Duration::from_secs(10));
    assert_eq!(world.top().take_asked(), ["+x"]);
    assert_eq!(heard(&mut watch).last().unwrap(), "put x 1");
}

#[test]
fn s051_and_s052_a_stream_that_breaks_stops_the_clock_of_what_was_not_answered() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let mut watch = world.watch("x");
        world.network.pass(PATIENCE - Duration::from_secs(1));
        world.top().end_streams();
        assert_eq!(watch.status(), Some(crate::ResourceStatus::Requested));
        world.network.pass(Duration::from_secs(5));
        // Of no stream was anything answered, which is what is told.
        assert_eq!(heard(&mut watch), ["failed all: unreachable (nobody is there)"]);
        world.network.pass(PATIENCE);
        assert_eq!(heard(&mut watch), ["failed x: timeout, an absence"]);
    }
}

#[test]
fn s057_equal_servers_are_one_stream_and_what_nobody_watches_is_not_dialed() {
    let world = World::new();
    assert_eq!(world.network.dialed(), 0);
    let names = ["x".to_owned(), xdstp("", CDS, "x"), xdstp("a", CDS, "x"), xdstp("b", CDS, "x")];
    let watches: Vec<_> = names.iter().map(|name| world.watch(name)).collect();
    assert_eq!((world.network.dialed(), world.top().streams()), (1, 1));
    let other = world.watch(&xdstp("other", CDS, "x"));
    assert_eq!((world.network.dialed(), world.network.server(OTHER).streams()), (2, 1));
    // S58
    drop(watches);
    world.network.settle();
    world.client.sweep(world.network.now());
    world.network.settle();
    assert_eq!((world.top().streams(), world.network.server(OTHER).streams()), (0, 1));
    drop((other, world.client));
    world.network.settle();
    assert_eq!(world.network.server(OTHER).streams(), 0);
}

#[test]
fn s058_a_stream_that_was_let_go_is_dialed_again() {
    let world = World::new();
    drop(world.watch("x"));
    world.network.settle();
    world.client.sweep(world.network.now());
    world.network.settle();
    world.put(CDS, "x", "1");
    assert_eq!(heard(&mut world.watch("x")), ["put x 1"]);
    assert_eq!((world.network.dialed(), world.top().streams()), (2, 1));
}
