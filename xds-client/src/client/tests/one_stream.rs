//! One stream to a server, whatever lists it stands in (rule 24).

use super::fallback::{LONG, SERVERS, insecure, told};
use super::lists::{collection, elsewhere};
use super::wire::{body, requests, response, wrapper};
use super::*;

/// A client of authorities that have lists of servers, by their numbers; and one of old-style names.
pub(super) fn of_lists(protocol: Protocol, top: &[usize], authorities: &[(&str, &[usize])]) -> World {
    let server = |number: &usize| insecure(SERVERS[*number]);
    let (first, others) = top.split_first().unwrap();
    let bootstrap = others.iter().map(server).fold(Bootstrap::new(server(first)), Bootstrap::with_server);
    let bootstrap = authorities.iter().fold(bootstrap, |bootstrap, (name, list)| {
        bootstrap.with_authority(*name, list.iter().map(server).fold(Authority::default(), Authority::with_server))
    });
    let world = World::with(protocol, bootstrap);
    // What is refused of it is a bug of a test, where it is not what the test is about.
    (0..SERVERS.len()).for_each(|server| _ = world.at(server).take_refused());
    world
}

/// `[first, second]` for the authority `x`, and `[first, third]` for `y`.
fn forked(protocol: Protocol) -> World {
    of_lists(protocol, &[2], &[("x", &[0, 1]), ("y", &[0, 2])])
}

pub(super) fn of(authority: &str, id: &str) -> String {
    xdstp(authority, CDS, id)
}

/// The names that a server was asked for last, each once: over delta those that are new.
fn asked(world: &World, server: usize) -> Vec<String> {
    let asked = world.at(server).take_asked();
    let names = asked.iter().flat_map(|names| names.split(' ')).map(|name| name.trim_start_matches('+').to_owned());
    let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

pub(super) fn refused(world: &World) -> Vec<String> {
    (0..SERVERS.len()).flat_map(|server| world.at(server).take_refused()).collect()
}

pub(super) fn over_both(scenario: impl Fn(Protocol)) {
    [Protocol::Delta, Protocol::Sotw].into_iter().for_each(scenario);
}

#[test]
fn r024_a_server_of_two_lists_has_one_stream_and_each_list_its_own_next_server() {
    over_both(|protocol| {
        let world = forked(protocol);
        let names = [of("x", "1"), of("y", "1"), of("x", "2"), of("y", "2")];
        names.iter().for_each(|name| world.put_everywhere(name, "1"));
        let [mut x, mut y] = [&names[0], &names[1]].map(|name| world.watch(name));
        let put = |name: &String| vec![format!("put {name} 1")];
        assert_eq!((told(&mut x), told(&mut y)), (put(&names[0]), put(&names[1])), "{protocol:?}");
        assert_eq!((world.streams(), world.network.dialed()), ([1, 0, 0], 1), "{protocol:?}");

        world.at(0).go_down("away");
        world.seconds(10);
        let [mut of_x, mut of_y] = [&names[2], &names[3]].map(|name| world.watch(name));
        assert_eq!((told(&mut of_x), told(&mut of_y)), (put(&names[2]), put(&names[3])), "{protocol:?}");
        assert_eq!(world.streams(), [0, 1, 1], "{protocol:?}: each as its list says");
        assert_eq!(asked(&world, 1), [names[0].clone(), names[2].clone()], "{protocol:?}");
        assert_eq!(asked(&world, 2), [names[1].clone(), names[3].clone()], "{protocol:?}");

        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!((world.streams(), world.at(0).opened()), ([1, 0, 0], 2), "{protocol:?}: both are back on one");
        names.iter().for_each(|name| world.put_at(0, name, "2"));
        for (watch, name) in [&mut x, &mut y, &mut of_x, &mut of_y].into_iter().zip([0, 1, 2, 3]) {
            assert_eq!(told(watch).last(), Some(&format!("put {} 2", names[name])), "{protocol:?}");
        }
        assert!(refused(&world).is_empty(), "{protocol:?}");
    });
}

#[test]
fn r024_who_leaves_the_stream_of_others_leaves_nothing_of_its_own_there() {
    over_both(|protocol| {
        // The second server is the only one of `y`.
        let world = of_lists(protocol, &[2], &[("x", &[0, 1]), ("y", &[1])]);
        let (x, y) = (of("x", "1"), of("y", "1"));
        world.put_everywhere(&x, "1");
        world.put_everywhere(&y, "1");
        let mut of_y = world.watch(&y);
        for round in 0..2 {
            world.at(0).go_down("away");
            world.network.settle();
            let mut of_x = world.watch(&x);
            assert_eq!(told(&mut of_x), [format!("put {x} 1")], "{protocol:?}");
            assert_eq!((world.streams(), world.at(1).opened()), ([0, 1, 0], 1), "{protocol:?} {round}");
            world.at(1).take_requests();
            world.at(1).take_asked();
            world.at(0).come_up();
            world.network.pass(LONG);
            assert_eq!((world.streams(), world.at(1).opened()), ([1, 1, 0], 1), "{protocol:?} {round}");
            let left = world.at(1).take_asked();
            match protocol {
                Protocol::Delta => assert_eq!(left, [format!("-{x}")]),
                Protocol::Sotw => assert_eq!(left.last(), Some(&y)),
            }
            world.at(1).take_requests();
            world.put_at(1, &x, "nobody's");
            assert!(requests(&world.at(1), protocol).is_empty(), "{protocol:?}: what was left is not sent");
            world.put_at(1, &x, "1");
            assert!(told(&mut of_x).is_empty(), "{protocol:?}");
            world.put_at(1, &y, &format!("of {round}"));
            assert_eq!(told(&mut of_y).last(), Some(&format!("put {y} of {round}")), "{protocol:?}");
            drop(of_x);
            for _ in 0..2 {
                world.network.settle();
                world.client.sweep(world.network.now());
            }
            world.network.settle();
            assert_eq!(world.streams(), [0, 1, 0], "{protocol:?}: nobody watches anything of the first");
        }
        assert!(refused(&world).is_empty(), "{protocol:?}");
        drop(of_y);
        world.network.settle();
        world.client.sweep(world.network.now());
        world.network.settle();
        assert_eq!(world.streams(), [0; 3], "{protocol:?}: nobody watches anything of any list");
    });
}

#[test]
fn r024_what_is_left_while_its_server_is_away_is_not_asked_for_when_that_is_back() {
    over_both(|protocol| {
        let world = of_lists(protocol, &[2], &[("x", &[0, 1]), ("y", &[1])]);
        let (x, y) = (of("x", "1"), of("y", "1"));
        world.at(0).go_down("away");
        world.at(1).go_down("away, too");
        let (mut of_x, mut of_y) = (world.watch(&x), world.watch(&y));
        assert_eq!(told(&mut of_x), ["failed all: unreachable (away, too)"], "{protocol:?}");
        assert_eq!(told(&mut of_y), ["failed all: unreachable (away, too)"], "{protocol:?}");
        world.put_everywhere(&x, "1");
        world.put_everywhere(&y, "1");
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(told(&mut of_x).last(), Some(&format!("put {x} 1")), "{protocol:?}");
        assert!(told(&mut of_y).is_empty(), "{protocol:?}: its only server is away");
        world.at(1).come_up();
        world.network.pass(LONG);
        assert_eq!((asked(&world, 1), world.streams()), (vec![y.clone()], [1, 1, 0]), "{protocol:?}");
        assert_eq!(told(&mut of_y).last(), Some(&format!("put {y} 1")), "{protocol:?}");
    });
}

#[test]
fn r024_lists_that_are_turned_round_are_two_streams_in_all() {
    over_both(|protocol| {
        let world = of_lists(protocol, &[2], &[("x", &[0, 1]), ("y", &[1, 0])]);
        let names = [of("x", "1"), of("y", "1")];
        names.iter().for_each(|name| world.put_everywhere(name, "1"));
        let mut watches = [&names[0], &names[1]].map(|name| world.watch(name));
        assert_eq!(world.streams(), [1, 1, 0]);
        for away in [0, 1] {
            world.at(away).go_down("away");
            world.seconds(10);
            let _new = [of("x", "new"), of("y", "new")].map(|name| world.watch(&name));
            assert_eq!(world.streams(), if away == 0 { [0, 1, 0] } else { [1, 0, 0] }, "{protocol:?}");
            let version = format!("2{away}");
            names.iter().for_each(|name| world.put_at(1 - away, name, &version));
            for (watch, name) in watches.iter_mut().zip(&names) {
                assert_eq!(told(watch).last(), Some(&format!("put {name} {version}")), "{protocol:?}");
            }
            world.at(away).come_up();
            world.network.pass(LONG);
            assert_eq!(world.streams(), [1, 1, 0], "{protocol:?}");
        }
        assert!(refused(&world).is_empty(), "{protocol:?}");
    });
}

#[test]
fn r024_a_server_sets_no_names_of_authorities_whose_lists_are_without_it() {
    over_both(|protocol| {
        let world = of_lists(protocol, &[0, 1], &[("x", &[0, 1]), ("y", &[0, 2]), ("z", &[1])]);
        let names = [of("x", "1"), of("y", "1"), of("z", "1")];
        // They say what the test says.
        (0..2).for_each(|server| world.at(server).be_silent(true));
        let mut watches = [&names[0], &names[1], &names[2]].map(|name| world.watch(name));
        assert_eq!(world.streams(), [1, 1, 0]);
        let all = |version: &str| -> Vec<_> {
            names.iter().map(|name| wrapper(name, version, body(CDS, name, version))).collect()
        };
        world.at(0).send(&response(protocol, CDS, ("1", "1"), &all("1")));
        world.network.settle();
        let put = |name: &String, content: &str| vec![format!("put {name} {content}")];
        let heard = watches.each_mut().map(told);
        assert_eq!(heard, [put(&names[0], "1"), put(&names[1], "1"), vec![]], "{protocol:?}: that is another's");
        assert!(refused(&world).is_empty(), "{protocol:?}: it was not asked for");

        // A wildcard brings all that the server has.
        let mut every = world.watch("*");
        world.at(0).take_refused();
        world.at(0).send(&response(protocol, CDS, ("2", "2"), &all("2")));
        world.network.settle();
        let words = refused(&world);
        assert_eq!(words.len(), 1, "{protocol:?} {words:?}");
        assert!(words[0].contains(&format!("{}: its authority is another origin's", names[2])), "{words:?}");
        assert!(!words[0].contains(&names[0]) && !words[0].contains(&names[1]), "{words:?}");
        let heard = watches.each_mut().map(told);
        assert_eq!(heard, [put(&names[0], "2"), put(&names[1], "2"), vec![]], "{protocol:?}");
        // What the next server of the top would have to take away is not the wildcard's.
        assert_eq!(told(&mut every)[0], format!("put {} 2", names[0]), "{protocol:?}");
        assert!(told(&mut every).iter().all(|words| !words.contains(&names[1])), "{protocol:?}");
    });
}

#[test]
fn r024_who_selects_by_something_has_a_stream_apart_which_lists_share_too() {
    over_both(|protocol| {
        let world = forked(protocol);
        let zoned = world.client.selecting([("zone", "1")]);
        let other = world.client.selecting([("zone", "2")]);
        let _plain = [of("x", "1"), of("y", "1")].map(|name| world.watch(&name));
        let _zoned = [of("x", "1"), of("y", "1")].map(|name| zoned.watch(CDS, &name));
        world.network.settle();
        assert_eq!((world.streams(), world.network.dialed()), ([2, 0, 0], 2), "{protocol:?}");
        let _other = other.watch(CDS, &of("y", "1"));
        world.network.settle();
        assert_eq!((world.streams(), world.network.dialed()), ([3, 0, 0], 3), "{protocol:?}");
    });
}

#[test]
fn r024_the_members_of_a_list_are_of_authorities_that_share_a_stream() {
    over_both(|protocol| {
        const LISTS: &str = "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection";
        let world = forked(protocol);
        let (list, own, other) = (xdstp("x", LISTS, "all"), of("x", "1"), of("y", "1"));
        world.at(0).put(LISTS, &list, "1", &collection(&[elsewhere(&own), elsewhere(&other)]));
        world.put_everywhere(&own, "1");
        world.put_everywhere(&other, "1");
        let mut watch = world.watch(&list);
        let mut heard = Vec::new();
        for _ in 0..3 {
            heard.extend(told(&mut watch));
            world.network.settle();
        }
        assert_eq!(heard, [format!("put {own} 1"), format!("put {other} 1"), "answered".into()], "{protocol:?}");
        assert_eq!((world.streams(), world.network.dialed()), ([1, 0, 0], 1), "{protocol:?}");
        assert!(refused(&world).is_empty(), "{protocol:?}");
    });
}

#[test]
fn r024_a_server_that_is_silent_to_one_list_keeps_another_from_nothing() {
    over_both(|protocol| {
        let world = forked(protocol);
        let (x, y) = (of("x", "1"), of("y", "1"));
        world.at(0).be_silent(true);
        let (mut of_x, mut of_y) = (world.watch(&x), world.watch(&y));
        for version in ["1", "2"] {
            world.at(0).send(&response(
                protocol,
                CDS,
                (version, version),
                &[wrapper(&y, version, body(CDS, &y, version))],
            ));
            world.network.settle();
            assert_eq!(told(&mut of_y), [format!("put {y} {version}")], "{protocol:?}");
            world.seconds(14);
        }
        world.seconds(20);
        assert_eq!(told(&mut of_x), [format!("failed {x}: timeout, an absence")], "{protocol:?}");
        assert!(told(&mut of_y).is_empty(), "{protocol:?}");
        assert_eq!(world.streams(), [1, 0, 0], "{protocol:?}: silence has nobody else asked");
    });
}

#[test]
fn r024_a_full_state_takes_from_each_list_what_it_lacks_of_that() {
    let world = forked(Protocol::Sotw);
    let (x, y) = (of("x", "1"), of("y", "1"));
    let of_other = of("y", "2");
    [&x, &y, &of_other].into_iter().for_each(|name| world.put_at(0, name, "1"));
    let mut watches = [&x, &y, &of_other].map(|name| world.watch(name));
    let _ = watches.each_mut().map(told);
    world.at(0).remove(CDS, &y);
    world.network.settle();
    assert_eq!(watches.each_mut().map(told), [vec![], vec![format!("ambient {y}: absent")], vec![]]);
    world.at(0).remove(CDS, &x);
    world.network.settle();
    assert_eq!(watches.each_mut().map(told), [vec![format!("ambient {x}: absent")], vec![], vec![]]);
    world.put_at(0, &x, "2");
    assert_eq!(watches.each_mut().map(told), [vec![format!("put {x} 2")], vec![], vec![]]);
}

#[test]
fn r024_versions_are_named_to_the_server_that_gave_them_only() {
    let world = of_lists(Protocol::Sotw, &[2], &[("x", &[0, 1]), ("y", &[1])]);
    let (x, y) = (of("x", "1"), of("y", "1"));
    world.put_everywhere(&x, "1");
    world.put_everywhere(&y, "1");
    let (_x, _y) = (world.watch(&x), world.watch(&y));
    let versions = |server: usize| -> Vec<String> {
        requests(&world.at(server), Protocol::Sotw).into_iter().map(|request| request.version).collect()
    };
    let given: Vec<_> = [0, 1].map(versions).into();
    world.at(0).go_down("away");
    world.seconds(10);
    let _new = world.watch(&of("x", "new"));
    assert_eq!(world.streams(), [0, 1, 0]);
    world.seconds(10);
    world.at(0).come_up();
    world.network.pass(LONG);
    let later: Vec<_> = [0, 1].map(versions).into();
    let of_first: Vec<_> = given[0].iter().chain(&later[0]).filter(|version| !version.is_empty()).collect();
    let of_second: Vec<_> = given[1].iter().chain(&later[1]).filter(|version| !version.is_empty()).collect();
    assert!(!of_first.is_empty() && !of_second.is_empty());
    assert!(of_first.iter().all(|version| !of_second.contains(version)), "{of_first:?} {of_second:?}");
}

#[test]
fn r024_a_server_that_stands_twice_in_a_list_stands_there_once() {
    over_both(|protocol| {
        let world = of_lists(protocol, &[2], &[("x", &[0, 0]), ("y", &[0, 1, 0])]);
        world.at(0).go_down("away");
        let (mut x, mut y) = (world.watch(&of("x", "1")), world.watch(&of("y", "1")));
        world.seconds(1);
        assert_eq!(told(&mut x), ["failed all: unreachable (away)"], "{protocol:?}");
        world.at(0).come_up();
        world.put_everywhere(&of("x", "1"), "1");
        world.put_everywhere(&of("y", "1"), "1");
        world.network.pass(LONG);
        assert_eq!((world.streams(), world.network.dialed()), ([1, 0, 0], 2), "{protocol:?}");
        assert_eq!(told(&mut x).last(), Some(&format!("put {} 1", of("x", "1"))), "{protocol:?}");
        assert_eq!(told(&mut y).last(), Some(&format!("put {} 1", of("y", "1"))), "{protocol:?}");
    });
}
