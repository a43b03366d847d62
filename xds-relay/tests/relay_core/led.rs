//! Origins that come and go, and authorities that become another's, while they are asked for: clients keep what they hold, are sent what
//! differs, and nothing is asked twice or left behind.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::*;

const DEFAULT: (&str, &[&str]) = ("o0", &["a"]);
const OTHER: (&str, &[&str]) = ("o1", &["b"]);

/// A relay before a default origin, which has an authority, too, and one of another. A third is there for who leads the relay to it.
fn world() -> World {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "share_by: [cluster]\nlinger: 1s");
    world.origins.push(Origin::new());
    world
}

fn name(authority: &str, id: &str) -> String {
    format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/{id}")
}

fn put(world: &mut World, at: usize, name: &str, version: &str, body: &str) {
    let now = world.now;
    world.origins[at].put_frame(now, "", CLUSTERS, name, version, frame(CLUSTERS, name, body));
    world.settle();
}

fn remove(world: &mut World, at: usize, name: &str) {
    let now = world.now;
    world.origins[at].remove(now, CLUSTERS, name);
    world.settle();
}

/// A client of each protocol that asks for these, and was told.
fn clients(world: &mut World, names: &[&str]) -> [usize; 2] {
    let clients = [DELTA, SOTW].map(|protocol| world.client(protocol, "n"));
    clients.iter().for_each(|client| world.subscribe(*client, CLUSTERS, names));
    world.advance(20 * SECOND);
    clients.iter().for_each(|client| _ = world.told(*client));
    (0..world.origins.len()).for_each(|at| _ = world.asked(at));
    clients
}

#[test]
fn an_origin_that_is_new_is_asked_at_once_for_what_is_asked_for_and_nothing_that_it_has_alike_is_sent_again() {
    let mut world = world();
    let [same, other, none, of_a, glob] =
        [name("c", "same"), name("c", "x"), name("c", "none"), name("a", "x"), name("c", "g/*")];
    let member = name("c", "g/m");
    for name in [&same, &other, &of_a, &member] {
        put(&mut world, 0, name, "1", "first");
    }
    // The same version, of what differs.
    put(&mut world, 2, &same, "7", "first");
    put(&mut world, 2, &other, "1", "second");
    put(&mut world, 2, &none, "1", "second");
    put(&mut world, 2, &member, "1", "first");
    let [delta, sotw] = clients(&mut world, &[&same, &other, &none, &of_a, &glob, "old"]);
    world.lead(&[DEFAULT, OTHER, ("o2", &["c"])]);
    let asked = world.asked(2).join(" ");
    for name in [&same, &other, &none, &glob] {
        assert!(asked.contains(&format!("+{name}")), "{asked}");
    }
    assert!(!asked.contains("//a/") && !asked.contains("old"), "{asked}");
    let left = world.asked(0).join(" ");
    assert!([&same, &other, &none, &glob].iter().all(|name| left.contains(&format!("-{name}"))), "{left}");
    assert!(!left.contains("//a/") && !left.contains("old"), "{left}");
    world.advance(60 * SECOND);
    let told = world.told(delta).join(" ");
    assert_eq!((told.contains("same"), told.contains("g/m"), told.contains("//a/")), (false, false, false), "{told}");
    assert_eq!(
        (told.matches(&*other).count(), told.matches(&*none).count(), told.contains('-')),
        (1, 1, false),
        "{told}"
    );
    for client in [delta, sotw] {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["first", "first", "second", "first", "second"]);
    }
    world.told(sotw);
    // What the one before says of it now, says nothing.
    put(&mut world, 0, &other, "9", "of the first");
    remove(&mut world, 0, &same);
    world.advance(20 * SECOND);
    assert!([delta, sotw].into_iter().all(|client| world.told(client).is_empty()));
    put(&mut world, 2, &other, "2", "newer");
    remove(&mut world, 2, &member);
    world.advance(20 * SECOND);
    for client in [delta, sotw] {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["first", "second", "first", "newer"]);
    }
    assert_eq!(world.counted(0, "upstream_refused_total{origin=\"o0\"}"), 0, "nothing of it is wrong");
}

#[test]
fn what_is_held_of_an_origin_that_is_gone_stays_and_is_the_default_origins_once_that_has_it() {
    let mut world = world();
    let (x, y, glob, member) = (name("b", "x"), name("b", "y"), name("b", "g/*"), name("b", "g/m"));
    for name in [&x, &y, &member] {
        put(&mut world, 1, name, "1", "first");
    }
    let both = clients(&mut world, &[&x, &y, &glob]);
    world.lead(&[DEFAULT]);
    let asked = world.asked(0).join(" ");
    assert!([&x, &y, &glob].iter().all(|name| asked.contains(&format!("+{name}"))), "{asked}");
    world.advance(300 * SECOND);
    assert_eq!((world.origins[0].streams, world.origins[1].streams), (1, 0));
    for client in both {
        assert_eq!(world.told(client), [""; 0], "nothing is taken from it");
    }
    let late = world.client(DELTA, "n");
    world.subscribe(late, CLUSTERS, &[&x, &name("b", "none")]);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[late].held(CLUSTERS), [format!("{x}@first")]);
    // It comes to have it, of whatever version, and its word counts from then on.
    put(&mut world, 0, &x, "1", "second");
    world.advance(SECOND);
    remove(&mut world, 0, &x);
    put(&mut world, 0, &member, "1", "first");
    world.advance(20 * SECOND);
    for client in both {
        let told = world.told(client).join(" ");
        assert!(told.contains("second"), "{told}");
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{member}@first"), format!("{y}@first")], "{told}");
    }
    assert!(!world.metrics_of(0).contains("upstream_connected{origin=\"o1\"}"));
    let origins: Vec<_> = world.relays[0].core.config_dump(world.now).origins.into_iter().map(|of| of.name).collect();
    assert_eq!(origins, ["o0"]);
}

#[test]
fn nothing_is_gone_because_the_other_is_silent_or_away() {
    for is_away in [false, true] {
        let mut world = world();
        let (x, glob, member) = (name("c", "x"), name("c", "g/*"), name("c", "g/m"));
        put(&mut world, 0, &x, "1", "first");
        put(&mut world, 0, &member, "1", "first");
        let both = clients(&mut world, &[&x, &glob]);
        world.origins[2].silent = !is_away;
        world.relays[0].fed_by.push(Feeder::Origin(2));
        world.set_up(2, !is_away);
        world.lead(&[DEFAULT, OTHER, ("o2", &["c"])]);
        world.advance(300 * SECOND);
        for client in both {
            assert_eq!(world.told(client), [""; 0]);
        }
        let late = world.client(DELTA, "n");
        world.subscribe(late, CLUSTERS, &[&x]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[late].bodies(CLUSTERS), ["first"], "it is served on");
        put(&mut world, 2, &x, "1", "second");
        world.origins[2].silent = false;
        world.set_up(2, true);
        world.advance(60 * SECOND);
        for client in both {
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{x}@second")], "what it says at last counts");
        }
    }
}

/// A version that both gave, of what is not the same: also where nobody was there in between.
#[test]
fn who_comes_back_with_a_version_of_the_one_before_is_sent_what_differs() {
    for somebody_stays in [true, false] {
        for protocol in [DELTA, SOTW] {
            let mut world = world();
            let x = name("c", "x");
            for (at, body) in [(0, "first"), (2, "second")] {
                put(&mut world, at, &x, "1", body);
                world.origins[at].set_version(CLUSTERS, "v1");
            }
            let client = world.client(protocol, "n");
            world.subscribe(client, CLUSTERS, &[&x]);
            let stays = somebody_stays.then(|| world.client(DELTA, "n"));
            stays.into_iter().for_each(|client| world.subscribe(client, CLUSTERS, &[&x]));
            world.advance(SECOND);
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["first"]);
            world.disconnect(client);
            world.advance(10 * SECOND);
            world.lead(&[DEFAULT, OTHER, ("o2", &["c"])]);
            world.advance(SECOND);
            world.connect(client, 0);
            world.advance(SECOND);
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["second"], "{protocol:?} {somebody_stays}");
        }
    }
}

#[test]
fn authorities_move_there_and_back_and_nothing_is_left_of_any() {
    let mut world = world();
    let x = name("b", "x");
    (0..3).for_each(|at| put(&mut world, at, &x, &format!("{at}"), "same"));
    let both = clients(&mut world, &[&x, &name("b", "*")]);
    for origins in [
        &[DEFAULT, ("o1", &[]), ("o2", &["b"])][..],
        &[DEFAULT, OTHER, ("o2", &[])],
        &[("o0", &["a", "b"]), ("o2", &[])],
        &[DEFAULT],
        &[("o0", &["b", "a"])],
    ] {
        world.lead(origins);
        world.advance(60 * SECOND);
        for client in both {
            assert_eq!(world.told(client), [""; 0], "{origins:?}");
        }
    }
    assert_eq!([0, 1, 2].map(|at| world.origins[at].streams), [1, 0, 0]);
    put(&mut world, 0, &x, "3", "new");
    world.advance(SECOND);
    for client in both {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["new"]);
        world.disconnect(client);
    }
    world.advance(10 * SECOND);
    assert_eq!((world.scopes_of(0), world.streams_of(0)), (vec![], 0));
}

/// Where it is asked for before the one before was told that it is not any more.
#[test]
fn who_is_led_twice_at_once_is_where_it_was_led_last() {
    let mut world = world();
    let x = name("c", "x");
    for (at, body) in ["first", "", "third"].into_iter().enumerate() {
        put(&mut world, at, &x, "1", body);
    }
    let both = clients(&mut world, &[&x]);
    for _ in 0..3 {
        world.lead(&[DEFAULT, OTHER, ("o2", &["c"])]);
        world.lead(&[("o0", &["a", "c"]), OTHER, ("o2", &[])]);
    }
    world.advance(60 * SECOND);
    for client in both {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["first"]);
    }
    put(&mut world, 0, &x, "2", "newer");
    put(&mut world, 2, &x, "2", "of another");
    world.advance(SECOND);
    for client in both {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["newer"]);
    }
}

/// What is fetched for each client is fetched from there, too.
#[test]
fn what_must_not_be_shared_comes_from_the_other_origin_for_each_client() {
    let mut world = world();
    let x = name("c", "x");
    for (at, body) in [(0, "same"), (2, "same")] {
        let now = world.now;
        let wrapper = Resource::default().encode_to_vec();
        let frame = frame(CLUSTERS, &x, body).with_wrapper(wrapper.into(), None, false).private();
        world.origins[at].put_frame(now, "", CLUSTERS, &x, "1", frame);
    }
    let both = clients(&mut world, &[&x]);
    assert_eq!((world.origins[0].streams, world.origins[2].streams), (3, 0));
    world.lead(&[DEFAULT, OTHER, ("o2", &["c"])]);
    world.advance(60 * SECOND);
    assert_eq!((world.origins[0].streams, world.origins[2].streams), (0, 3));
    for client in both {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["same"]);
        assert!(!world.told(client).join(" ").contains('-'), "nothing is gone");
    }
}
