//! What was known of an origin before its address changed: it is the origin's, by its name, and served until the server there has said
//! what counts. Versions of one server mean nothing to another.

use crate::last_known_good::{restarted, stale, text, world};
use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

fn elsewhere(protocol: Protocol) -> String {
    let moved = text(protocol).replace("127.0.0.1:1", "127.0.0.1:2");
    assert_ne!(moved, text(protocol));
    moved
}

fn protocols() -> impl Iterator<Item = (Protocol, Protocol)> {
    [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)].into_iter()
}

/// What the other server has: one alike under another version, one otherwise under the same, and not all.
fn other_server(world: &mut World) {
    let now = world.now;
    world.origins[0] = Origin::new();
    world.origins[0].up = false;
    for (of, name, version, body) in [
        (CLUSTERS, "a", "other", "1"),
        (CLUSTERS, "b", "1", "new"),
        (CLUSTERS, &*member("b"), "1", "1"),
        (ENDPOINTS, "e", "1", "1"),
    ] {
        world.origins[0].put_frame(now, "", of, name, version, frame(of, name, body));
    }
}

fn ask(world: &mut World, client: usize) {
    world.subscribe(client, CLUSTERS, &["*", GLOB]);
    world.subscribe(client, ENDPOINTS, &["e"]);
}

/// No version of the server before is named to the one that is asked.
fn is_told_no_version(world: &mut World, case: &str) {
    let asked = world.asked(0).join(" ");
    let versions = asked.split(' ').filter(|word| word.starts_with('=') && !word.ends_with('@'));
    assert_eq!(versions.count(), 0, "{case}: {asked}");
}

#[test]
fn what_was_known_is_served_at_another_address_until_the_server_there_says_what_counts() {
    for (upstream, downstream) in protocols() {
        let case = format!("{upstream:?} {downstream:?}");
        let (mut world, store) = restarted(upstream);
        other_server(&mut world);
        world.restart(0, &elsewhere(upstream), store.clone());
        assert!(world.relays[0].core.state().unwrap().has_read(0), "{case}");
        let new = world.client(downstream, "n2");
        ask(&mut world, new);
        world.advance(SECOND);
        let all = ["a@1", "b@1", &format!("{}@1", member("a")), &format!("{}@1", member("b"))];
        assert_eq!((world.clients[new].held(CLUSTERS), stale(&world)), (all.map(str::to_owned).to_vec(), 5), "{case}");
        world.advance(60 * SECOND);
        world.told(new);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        let (bodies, told) = (world.clients[new].bodies(CLUSTERS).join(" "), world.told(new).join(" "));
        assert_eq!(bodies, "1 new 1", "{case}: {told}");
        assert_eq!(stale(&world), 0, "{case}");
        is_told_no_version(&mut world, &case);
        if downstream == DELTA {
            for alike in ["a@", &format!("{}@", member("b")), "e@"] {
                let is_told = told.split(' ').any(|word| word.starts_with(alike));
                assert!(!is_told, "{case}: {alike} is as it was: {told}");
            }
        }
        // And it is so after the next start, of which nobody is sent anything again.
        world.set_up(0, false);
        world.restart(0, &elsewhere(upstream), store);
        world.connect(new, 0);
        world.advance(60 * SECOND);
        world.told(new);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[new].bodies(CLUSTERS).join(" "), "1 new 1", "{case}");
        let told = world.told(new);
        assert!(downstream == SOTW || !told.join(" ").contains('@'), "{case}: {told:?}");
        assert_eq!(stale(&world), 0, "{case}");
    }
}

/// A client holds what the first server called by the same version.
#[test]
fn who_comes_back_with_a_version_of_the_first_server_is_sent_what_the_other_calls_by_it() {
    for upstream in [DELTA, SOTW] {
        let (mut world, store) = restarted(upstream);
        world.connect(0, 0);
        world.advance(SECOND);
        other_server(&mut world);
        world.restart(0, &elsewhere(upstream), store);
        world.connect(0, 0);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[0].bodies(CLUSTERS).join(" "), "1 new 1", "{upstream:?}");
    }
}

#[test]
fn rule_150_nothing_is_gone_because_the_server_at_the_other_address_is_silent() {
    for (upstream, downstream) in protocols() {
        let (mut world, store) = restarted(upstream);
        other_server(&mut world);
        world.origins[0].silent = true;
        world.set_up(0, true);
        world.restart(0, &elsewhere(upstream), store);
        let new = world.client(downstream, "n2");
        ask(&mut world, new);
        world.advance(300 * SECOND);
        assert_eq!(world.clients[new].held(CLUSTERS).len(), 4, "{upstream:?} {downstream:?}");
        let told = world.told(new).join(" ");
        assert!(!told.contains('-'), "{upstream:?} {downstream:?}: {told}");
    }
}

/// What is kept is of both from then on: neither is told versions that may be the other's.
#[test]
fn who_goes_back_to_the_first_address_tells_no_version_there() {
    let (mut world, store) = restarted(DELTA);
    other_server(&mut world);
    world.restart(0, &elsewhere(DELTA), store.clone());
    let new = world.client(DELTA, "n2");
    ask(&mut world, new);
    world.set_up(0, true);
    world.advance(SECOND);
    world.asked(0);
    for back in [text(DELTA), text(DELTA), elsewhere(DELTA), elsewhere(DELTA)] {
        world.set_up(0, false);
        world.restart(0, &back, store.clone());
        world.connect(new, 0);
        world.advance(5 * SECOND);
        assert!(stale(&world) > 0, "{back}: what is kept is served");
        world.set_up(0, true);
        world.advance(20 * SECOND);
        is_told_no_version(&mut world, &back);
    }
}

/// As a reload has it.
#[test]
fn what_another_server_said_while_the_relay_ran_is_asked_for_without_versions_after_a_restart() {
    for protocol in [DELTA, SOTW] {
        let (mut world, store) = world(protocol);
        world.origins.push(Origin::new());
        for (at, name, version, body) in
            [(0, "a", "1", "1"), (0, "b", "1", "1"), (1, "a", "1", "2"), (1, "b", "2", "1")]
        {
            let now = world.now;
            world.origins[at].put_frame(now, "", CLUSTERS, name, version, frame(CLUSTERS, name, body));
        }
        let client = world.client(DELTA, "n1");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(40 * SECOND);
        world.relays[0].core.state().unwrap().lead_elsewhere(0);
        world.lead_elsewhere(0, 0, Feeder::Origin(1));
        world.advance(40 * SECOND);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["2", "1"], "{protocol:?}");
        // Whichever of both it is now, the version "1" is of different contents.
        world.lead_elsewhere(0, 0, Feeder::Origin(0));
        for text in [text(protocol), elsewhere(protocol)] {
            world.set_up(0, false);
            world.restart(0, &text, store.clone());
            world.asked(0);
            world.connect(client, 0);
            world.advance(5 * SECOND);
            assert!(stale(&world) > 0, "{protocol:?} {text}: what is kept is served");
            world.set_up(0, true);
            world.advance(60 * SECOND);
            assert_eq!(world.clients[client].bodies(CLUSTERS), ["1", "1"], "{protocol:?} {text}");
            is_told_no_version(&mut world, &text);
        }
    }
}
