//! Another server in the place of the one that an origin was reached at, as a reload has it: clients keep what they hold, are sent
//! what differs, and lose what the other says is gone, and nothing for its silence.

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn protocols() -> impl Iterator<Item = (Protocol, Protocol)> {
    [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)].into_iter()
}

/// A relay before the first of two origins.
fn world(protocol: Protocol) -> World {
    let mut world = World::new(protocol);
    world.origins.push(Origin::new());
    world
}

fn put_as(world: &mut World, at: usize, of: &str, name: &str, version: &str, body: &str) {
    let now = world.now;
    world.origins[at].put_frame(now, "", of, name, version, frame(of, name, body));
    world.settle();
}

fn put_all(world: &mut World, of: &str, name: &str, body: &str) {
    (0..world.origins.len()).for_each(|at| put_as(world, at, of, name, body, body));
}

fn moves(world: &mut World) {
    world.lead_elsewhere(0, 0, Feeder::Origin(1));
}

/// The names of what a client was told.
fn names(told: &[String]) -> Vec<String> {
    let words = told.iter().flat_map(|line| line.split(' ').skip(1)).filter(|word| *word != "ok");
    words.map(|word| word.split('@').next().unwrap().to_owned()).collect()
}

#[test]
fn what_both_have_alike_is_not_sent_again_and_what_differs_is_whatever_it_is_called() {
    for (upstream, downstream) in protocols() {
        for asked in [&["*"][..], &["a", "b", "c"], &["*", "a", "b"]] {
            let mut world = world(upstream);
            for (name, first, second) in
                [("a", ("1", "same"), ("x", "same")), ("b", ("1", "old"), ("1", "new")), ("c", ("1", "c"), ("1", "c"))]
            {
                put_as(&mut world, 0, CLUSTERS, name, first.0, first.1);
                put_as(&mut world, 1, CLUSTERS, name, second.0, second.1);
            }
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, asked);
            world.advance(20 * SECOND);
            world.told(client);
            moves(&mut world);
            let case = format!("{upstream:?} {downstream:?} {asked:?}");
            let said = world.asked(1).join(" ");
            assert!(!said.contains("@1") && !said.contains("vv1"), "{case}: no version of the other: {said}");
            world.advance(60 * SECOND);
            let told = world.told(client).join(" ");
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["same", "new", "c"], "{case}: {told}");
            assert!(!told.contains('-'), "{case}: nothing is gone: {told}");
            // Over SotW a change has all of them told.
            assert!(downstream == SOTW || names(std::slice::from_ref(&told)) == ["b"], "{case}: {told}");
            assert_eq!((world.origins[0].streams, world.origins[1].streams), (0, 1));
            // And it is the one that is heard.
            world.put(0, CLUSTERS, "a", "of the first");
            world.put(1, CLUSTERS, "b", "newer");
            world.advance(SECOND);
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["same", "newer", "c"], "{case}");
        }
    }
}

#[test]
fn where_nothing_differs_clients_notice_nothing() {
    for (upstream, downstream) in protocols() {
        let mut world = world(upstream);
        for name in ["a", "b"] {
            put_as(&mut world, 0, CLUSTERS, name, "1", name);
            put_as(&mut world, 1, CLUSTERS, name, "other", name);
        }
        put_all(&mut world, ENDPOINTS, "e", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(20 * SECOND);
        world.told(client);
        for to in [1, 0, 1] {
            world.lead_elsewhere(0, 0, Feeder::Origin(to));
            world.advance(60 * SECOND);
            assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
        }
        // Nor does who comes back, or asks only now.
        world.disconnect(client);
        world.connect(client, 0);
        let told = world.told(client);
        assert!(downstream == SOTW || names(&told).is_empty(), "{upstream:?} {downstream:?}: {told:?}");
        let late = world.client(downstream, "n");
        world.subscribe(late, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[late].bodies(CLUSTERS), ["a", "b"]);
    }
}

#[test]
fn rule_150_nothing_is_gone_because_the_other_is_silent_or_away() {
    for (upstream, downstream) in protocols() {
        for is_away in [false, true] {
            let mut world = world(upstream);
            put_as(&mut world, 0, CLUSTERS, "a", "1", "1");
            put_as(&mut world, 0, ENDPOINTS, "e", "1", "1");
            if is_away {
                world.set_up(1, false);
            } else {
                world.origins[1].silent = true;
            }
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.subscribe(client, ENDPOINTS, &["e"]);
            world.advance(20 * SECOND);
            world.told(client);
            moves(&mut world);
            world.advance(300 * SECOND);
            assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
            let late = world.client(downstream, "n");
            world.subscribe(late, CLUSTERS, &["a"]);
            world.advance(20 * SECOND);
            assert_eq!(world.clients[late].bodies(CLUSTERS), ["1"], "{upstream:?} {downstream:?}: it is served on");
            // What it says at last counts.
            put_as(&mut world, 1, CLUSTERS, "a", "1", "2");
            world.origins[1].silent = false;
            world.set_up(1, true);
            world.advance(60 * SECOND);
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["2"], "{upstream:?} {downstream:?}");
        }
    }
}

#[test]
fn what_the_other_does_not_have_goes_when_it_says_so() {
    for (upstream, downstream) in protocols() {
        let mut world = world(upstream);
        let member = |name: &str| GLOB.replace('*', name);
        put_all(&mut world, CLUSTERS, "a", "1");
        put_all(&mut world, CLUSTERS, &member("a"), "1");
        for (of, name) in [(CLUSTERS, "b"), (CLUSTERS, &*member("b")), (ENDPOINTS, "e")] {
            put_as(&mut world, 0, of, name, "1", "1");
        }
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(30 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 4);
        world.told(client);
        moves(&mut world);
        world.advance(60 * SECOND);
        let told = world.told(client).join(" ");
        let held: Vec<_> = world.clients[client].held(CLUSTERS);
        let held: Vec<_> = held.iter().map(|held| held.split('@').next().unwrap().to_owned()).collect();
        assert_eq!(held, ["a".to_owned(), member("a")], "{upstream:?} {downstream:?}: {told}");
        // Over SotW an assignment that is not in a response is not gone for that.
        let stays = upstream == SOTW || downstream == SOTW;
        let endpoints = world.clients[client].held(ENDPOINTS).len();
        assert_eq!(endpoints, usize::from(stays), "{upstream:?} {downstream:?}: {told}");
        world.lead_elsewhere(0, 0, Feeder::Origin(0));
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 4, "{upstream:?} {downstream:?}");
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1, "{upstream:?} {downstream:?}");
    }
}

/// A version that both gave, of what is not the same: of a name, and of a type.
#[test]
fn who_comes_back_with_a_version_of_the_one_before_is_sent_what_differs() {
    for (upstream, downstream) in protocols() {
        for of in [CLUSTERS, ENDPOINTS] {
            let mut world = world(upstream);
            for (at, body) in ["first", "second"].into_iter().enumerate() {
                put_as(&mut world, at, of, "a", "1", body);
                world.origins[at].set_version(of, "v1");
            }
            let [client, other] = [0, 1].map(|_| world.client(downstream, "n"));
            for client in [client, other] {
                world.subscribe(client, of, &["a"]);
            }
            world.advance(SECOND);
            assert_eq!(world.clients[client].bodies(of), ["first"]);
            world.disconnect(client);
            moves(&mut world);
            world.advance(SECOND);
            assert_eq!(world.clients[other].bodies(of), ["second"]);
            world.connect(client, 0);
            world.advance(SECOND);
            assert_eq!(world.clients[client].bodies(of), ["second"], "{upstream:?} {downstream:?} {of}");
        }
    }
}

#[test]
fn each_node_group_is_asked_for_anew_and_no_name_of_another_authority_is_forgotten() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "share_by: [id]");
    world.origins.push(Origin::new());
    let name = |authority: &str, id: &str| format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/{id}");
    for at in [0, 2] {
        for (of, version) in [("old", "1"), (&*name("a", "x"), "1")] {
            put_as(&mut world, at, CLUSTERS, of, version, ["first", "", "second"][at]);
        }
    }
    put_as(&mut world, 1, CLUSTERS, &name("b", "x"), "1", "other");
    let clients = ["n", "m"].map(|node| world.client(DELTA, node));
    for client in clients {
        world.subscribe(client, CLUSTERS, &["old", &name("a", "x"), &name("b", "x")]);
    }
    world.advance(SECOND);
    clients.iter().for_each(|client| _ = world.told(*client));
    world.asked(1);
    world.lead_elsewhere(0, 0, Feeder::Origin(2));
    world.advance(60 * SECOND);
    assert_eq!(world.asked(1), [""; 0], "another origin's is none of this");
    assert_eq!((world.origins[0].streams, world.origins[1].streams, world.origins[2].streams), (0, 1, 3));
    for client in clients {
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["second", "second", "other"]);
    }
}

#[test]
fn after_everybody_left_nothing_is_left_of_either() {
    for (upstream, downstream) in protocols() {
        let mut world = world(upstream);
        put_all(&mut world, CLUSTERS, "a", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a", GLOB]);
        world.advance(SECOND);
        moves(&mut world);
        world.disconnect(client);
        world.advance(2 * LINGER);
        assert_eq!((world.scopes_of(0), world.streams_of(0)), (vec![], 0), "{upstream:?} {downstream:?}");
        assert_eq!((world.origins[0].streams, world.origins[1].streams), (0, 0));
        // Who comes later finds the other.
        put_as(&mut world, 1, CLUSTERS, "a", "1", "2");
        world.connect(client, 0);
        world.advance(SECOND);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["2"]);
    }
}

#[test]
fn a_relay_may_take_the_place_of_the_origin_that_it_is_before() {
    for (upstream, downstream) in protocols() {
        let mut world = world(upstream);
        put_as(&mut world, 0, CLUSTERS, "a", "1", "same");
        put_as(&mut world, 0, CLUSTERS, "b", "1", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        world.told(client);
        let between = world.add_relay_before(Feeder::Origin(1), upstream);
        put_as(&mut world, 1, CLUSTERS, "a", "7", "same");
        world.lead_elsewhere(0, 0, Feeder::Relay(between));
        world.advance(120 * SECOND);
        let told = world.told(client).join(" ");
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["same"], "{upstream:?} {downstream:?}: {told}");
    }
}
