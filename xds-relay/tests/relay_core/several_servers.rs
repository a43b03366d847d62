//! Origins of several servers: which is asked and believed (client.md 66 to 72, gRFC A71), and what clients notice of it.

use xds_relay::admin::ServerDump;

use crate::streams::watched;
use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn protocols() -> impl Iterator<Item = (Protocol, Protocol)> {
    [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)].into_iter()
}

/// Every server has this.
fn put_all(world: &mut World, of: &str, name: &str, body: &str) {
    for at in 0..world.origins.len() {
        world.put(at, of, name, body);
    }
}

/// What a server has under versions of its own.
fn put_as(world: &mut World, at: usize, of: &str, name: &str, version: &str, body: &str) {
    let now = world.now;
    world.origins[at].put_frame(now, "", of, name, version, frame(of, name, body));
    world.settle();
}

/// The names of what a client was told, without versions.
fn names(told: &[String]) -> Vec<String> {
    let words = told.iter().flat_map(|line| line.split(' ').skip(1)).filter(|word| *word != "ok");
    words.map(|word| word.split('@').next().unwrap().to_owned()).collect()
}

fn streams(world: &World) -> Vec<usize> {
    world.origins.iter().map(|origin| origin.streams).collect()
}

fn servers(world: &World) -> Vec<ServerDump> {
    world.relays[0].core.config_dump(world.now).origins[0].streams[0].servers.clone()
}

fn states(world: &World) -> Vec<(&'static str, usize)> {
    let state =
        |of: &ServerDump| ["not asked", "asked", "answers", "fails"].into_iter().find(|state| *state == of.state);
    servers(world).iter().map(|server| (state(server).unwrap(), server.feeds)).collect()
}

#[test]
fn client_rule_066_scenario_66_on_startup_the_second_serves_and_the_first_takes_over_once_it_is_back() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        world.set_up(0, false);
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        assert_eq!(names(&world.told(client)), ["a"], "{upstream:?} {downstream:?}");
        assert_eq!(streams(&world), [0, 1]);
        assert_eq!(states(&world), [("fails", 0), ("answers", 1)]);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
        assert_eq!(streams(&world), [1, 0], "the second is closed");
        assert_eq!(states(&world), [("answers", 1), ("not asked", 0)]);
        // What is news now, comes from the first.
        world.put(1, CLUSTERS, "a", "of the second");
        world.put(0, CLUSTERS, "a", "2");
        world.advance(60 * SECOND);
        assert_eq!(names(&world.told(client)), ["a"]);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["2"]);
    }
}

#[test]
fn client_rule_066_scenario_66_nobody_else_is_asked_while_all_that_is_wanted_is_known() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        world.set_up(0, false);
        world.advance(300 * SECOND);
        let late = world.client(downstream, "n");
        world.subscribe(late, CLUSTERS, &["a"]);
        world.advance(60 * SECOND);
        assert_eq!((names(&world.told(late)), world.asked(1)), (vec!["a".to_owned()], vec![]));
        world.told(client);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
        if upstream == DELTA {
            assert_eq!(world.asked(0).last().unwrap(), "n Cluster +a =a@1", "the versions it gave");
        }
    }
}

#[test]
fn client_rule_067_what_is_wanted_new_while_the_first_fails_has_the_second_asked_at_once_for_everything() {
    let mut world = World::with_servers(DELTA, 2);
    for name in ["a", "b"] {
        put_all(&mut world, CLUSTERS, name, "1");
    }
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    world.advance(SECOND);
    world.told(client);
    world.set_up(0, false);
    world.advance(60 * SECOND);
    assert_eq!(world.asked(1), [""; 0]);
    world.subscribe(client, CLUSTERS, &["b"]);
    // Without any time that passes.
    assert_eq!(world.asked(1), ["n Cluster +a +b =a@"], "and no version that the first gave");
    assert_eq!(names(&world.told(client)), ["b"]);
    assert_eq!(states(&world), [("fails", 0), ("answers", 1)]);
}

#[test]
fn client_rule_068_clients_are_sent_away_only_when_every_server_fails() {
    for (upstream, _) in protocols() {
        let mut world = World::with_servers(upstream, 3);
        put_all(&mut world, CLUSTERS, "a", "1");
        (0..2).for_each(|at| world.set_up(at, false));
        let (reason, told) = watched(&mut world, &["a"], 60);
        assert_eq!((reason, told), (None, true), "the last answers");
        world.advance(2 * LINGER);
        world.set_up(2, false);
        let (reason, told) = watched(&mut world, &["a"], 60);
        assert!(reason.is_some_and(|reason| reason.contains("refused")) && !told, "all of them fail");
        assert_eq!(states(&world), [("fails", 0); 3]);
        world.set_up(1, true);
        assert_eq!(watched(&mut world, &["a"], 60), (None, true));
    }
}

#[test]
fn client_rule_069_scenario_70_of_three_it_falls_to_the_last_and_climbs_back() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 3);
        put_all(&mut world, CLUSTERS, "a", "1");
        (0..2).for_each(|at| world.set_up(at, false));
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        assert_eq!((names(&world.told(client)), streams(&world)), (vec!["a".to_owned()], vec![0, 0, 1]));
        for (at, expected) in [(1, [0, 1, 0]), (0, [1, 0, 0])] {
            world.set_up(at, true);
            world.advance(60 * SECOND);
            assert_eq!(streams(&world), expected, "{upstream:?} {downstream:?}");
            assert_eq!(states(&world)[at], ("answers", 1));
            assert_eq!(world.told(client), [""; 0], "{upstream:?} {downstream:?}");
        }
        assert_eq!(world.counted(0, "origin_switches_total{origin=\"up\",server=\"s1:1\"}"), 1);
        assert_eq!(world.counted(0, "origin_switches_total{origin=\"up\",server=\"s0:1\"}"), 1);
        assert_eq!(world.counted(0, "origin_in_use{origin=\"up\",server=\"s0:1\"}"), 1);
        assert_eq!(world.counted(0, "origin_in_use{origin=\"up\",server=\"s2:1\"}"), 0);
    }
}

#[test]
fn client_rule_066_scenario_67_what_the_first_did_not_say_before_it_died_the_second_does() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        put_all(&mut world, ENDPOINTS, "e", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        world.put(0, CLUSTERS, "a", "2");
        world.put(1, CLUSTERS, "a", "2");
        world.told(client);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(SECOND);
        let told = world.told(client);
        assert_eq!(names(&told), ["e"], "{upstream:?} {downstream:?}: {told:?}");
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["2"]);
    }
}

#[test]
fn client_rule_070_neither_silence_nor_a_refused_response_nor_what_is_not_there_asks_another() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        world.origins[0].silent = true;
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(300 * SECOND);
        assert_eq!(states(&world), [("asked", 0), ("not asked", 0)], "{upstream:?} {downstream:?}");
        world.origins[0].silent = false;
        world.settle();
        // Of an authority that another origin would be configured for, had it one: the relay refuses it.
        world.subscribe(client, CLUSTERS, &["missing"]);
        world.subscribe(client, ENDPOINTS, &["missing"]);
        world.advance(300 * SECOND);
        assert_eq!(states(&world), [("answers", 1), ("not asked", 0)]);
        assert_eq!(world.asked(1), [""; 0]);
        // A stream that ends after a response is no failure, and the next one may answer.
        world.set_up(0, false);
        world.set_up(0, true);
        world.advance(SECOND);
        assert_eq!(world.asked(1), [""; 0]);
    }
}

#[test]
fn client_rule_070_who_takes_connections_and_ends_them_unanswered_fails() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::with_servers(DELTA, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        world.origins[0].hangs_up = true;
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        assert_eq!(names(&world.told(client)), ["a"]);
        assert_eq!(states(&world)[1], ("answers", 1));
    }
}

#[test]
fn client_rule_071_what_is_held_stays_and_what_is_equal_is_not_sent_again_whatever_its_version() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        for (name, first, second) in [("a", ("1", "same"), ("x", "same")), ("b", ("1", "old"), ("1", "new"))] {
            put_as(&mut world, 0, CLUSTERS, name, first.0, first.1);
            put_as(&mut world, 1, CLUSTERS, name, second.0, second.1);
        }
        put_all(&mut world, ENDPOINTS, "e", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        world.told(client);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(20 * SECOND);
        let mut told = names(&world.told(client));
        told.sort_unstable();
        // Over SotW a change has all of them told.
        told.retain(|name| downstream == DELTA || name != "a");
        assert_eq!(told, ["b", "e"], "{upstream:?} {downstream:?}");
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["same", "new"]);
        // Who holds the same version as before holds something else.
        world.disconnect(client);
        world.connect(client, 0);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["same", "old"], "{upstream:?} {downstream:?}");
        let told = world.told(client).join(" ");
        assert!(!told.contains('-'), "nothing was gone: {told}");
    }
}

/// An origin that is told a version that it gave may have nothing to say (SotW).
#[test]
fn client_rule_069_who_is_back_is_told_no_version_of_what_another_changed_meanwhile() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        for at in 0..2 {
            let body = ["first", "second"][at];
            put_as(&mut world, at, CLUSTERS, "x", "1", body);
            put_as(&mut world, at, ENDPOINTS, "a", "1", body);
            put_as(&mut world, at, ENDPOINTS, "b", "1", "same");
            put_as(&mut world, at, ENDPOINTS, "c", "1", "same");
            world.origins[at].set_version(ENDPOINTS, "v1");
        }
        let client = world.client(downstream, "n");
        world.subscribe(client, ENDPOINTS, &["a", "b"]);
        // By two interests, of which one holds it while the other is asked for anew.
        world.subscribe(client, CLUSTERS, &["*", "x"]);
        world.advance(SECOND);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["c"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["second"], "{upstream:?} {downstream:?}");
        assert_eq!(world.clients[client].bodies(ENDPOINTS), ["second", "same", "same"], "{upstream:?} {downstream:?}");
        world.asked(0);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        let asked = world.asked(0).join(" ");
        assert!(!asked.contains("vv1") && !asked.contains("@1"), "{upstream:?} {downstream:?}: {asked}");
        assert_eq!(world.clients[client].bodies(ENDPOINTS), ["first", "same", "same"], "{upstream:?} {downstream:?}");
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["first"], "{upstream:?} {downstream:?}");
        assert_eq!(states(&world), [("answers", 1), ("not asked", 0)]);
    }
}

#[test]
fn client_rule_071_what_the_next_server_does_not_have_goes_when_that_says_so() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        let member = |name: &str| GLOB.replace('*', name);
        put_all(&mut world, CLUSTERS, "a", "1");
        put_all(&mut world, CLUSTERS, &member("a"), "1");
        for (of, name) in [(CLUSTERS, "b"), (CLUSTERS, &*member("b")), (ENDPOINTS, "e")] {
            world.put(0, of, name, "1");
        }
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(30 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 4);
        world.told(client);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["f"]);
        world.subscribe(client, CLUSTERS, &["xdstp://a/envoy.config.cluster.v3.Cluster/x"]);
        world.advance(60 * SECOND);
        let told = world.told(client).join(" ");
        let held: Vec<_> =
            names(&world.clients[client].held(CLUSTERS).iter().map(|name| format!("- {name}")).collect::<Vec<_>>());
        assert_eq!(held, ["a".to_owned(), member("a")], "{upstream:?} {downstream:?}: {told}");
        // Over SotW an assignment that is not in a response is not gone for that.
        let stays = upstream == SOTW || downstream == SOTW;
        assert_eq!(
            world.clients[client].held(ENDPOINTS).len(),
            usize::from(stays),
            "{upstream:?} {downstream:?}: {told}"
        );
        // And it is there again with the first.
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 4, "{upstream:?} {downstream:?}");
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1, "{upstream:?} {downstream:?}");
    }
}

#[test]
fn what_a_server_had_only_while_it_was_used_goes_when_the_first_is_back_without_it() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        put_all(&mut world, ENDPOINTS, "e", "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        world.set_up(0, false);
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(SECOND);
        world.put(1, CLUSTERS, "b", "1");
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 2);
        world.told(client);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        let held = world.clients[client].held(CLUSTERS);
        assert_eq!(held.len(), 1, "{upstream:?} {downstream:?}: {held:?}");
        assert!(held[0].starts_with("a@"));
    }
}

#[test]
fn an_authority_falls_back_apart_from_others_over_streams_that_they_share() {
    let mut world = World::with_servers(DELTA, 2);
    let name = |authority: &str, name: &str| format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/{name}");
    for authority in ["a", "b"] {
        for of in ["1", "2"] {
            put_all(&mut world, CLUSTERS, &name(authority, of), "1");
        }
    }
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &[&name("a", "1"), &name("b", "1")]);
    world.advance(SECOND);
    world.set_up(0, false);
    world.advance(SECOND);
    world.asked(1);
    world.subscribe(client, CLUSTERS, &[&name("b", "2")]);
    world.advance(SECOND);
    let asked = world.asked(1).join(" ");
    assert!(asked.contains("xdstp://b/") && !asked.contains("xdstp://a/"), "{asked}");
    world.subscribe(client, CLUSTERS, &[&name("a", "2")]);
    world.advance(SECOND);
    assert_eq!((world.clients[client].held(CLUSTERS).len(), streams(&world)), (4, vec![0, 1]));
    world.told(client);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!((world.told(client), streams(&world)), (vec![], vec![1, 0]));
}

/// A first request says what is held; on a stream that others had opened it was too late for that.
#[test]
fn what_the_next_server_does_not_have_goes_on_a_stream_that_was_open_already_too() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        let name = |authority: &str, id: &str| format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/{id}");
        for name in [name("a", "1"), name("a", "2"), name("b", "x"), name("b", "g/1")] {
            put_all(&mut world, CLUSTERS, &name, "1");
        }
        world.put(0, CLUSTERS, &name("b", "g/2"), "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &[&name("a", "1"), &name("b", "g/*")]);
        world.advance(30 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS).len(), 3);
        world.set_up(0, false);
        world.subscribe(client, CLUSTERS, &[&name("a", "2")]);
        world.advance(SECOND);
        world.subscribe(client, CLUSTERS, &[&name("b", "x")]);
        world.advance(SECOND);
        let held = world.clients[client].held(CLUSTERS).len();
        assert!(held == 5 || upstream == SOTW, "{upstream:?} {downstream:?}: not before the answer is complete");
        world.advance(60 * SECOND);
        let held = world.clients[client].held(CLUSTERS);
        let expected = [name("a", "1"), name("a", "2"), name("b", "g/1"), name("b", "x")].map(|name| name + "@1");
        assert_eq!(held, expected, "{upstream:?} {downstream:?}");
    }
}

#[test]
fn after_everybody_left_nothing_is_left_of_any_server() {
    for (upstream, downstream) in protocols() {
        let mut world = World::with_servers(upstream, 2);
        put_all(&mut world, CLUSTERS, "a", "1");
        for up in [false, true] {
            world.set_up(0, up);
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["a", GLOB]);
            world.advance(SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 1);
            world.disconnect(client);
            world.advance(2 * LINGER);
            assert_eq!((world.scopes_of(0), world.streams_of(0), streams(&world)), (vec![], 0, vec![0, 0]));
        }
    }
}
