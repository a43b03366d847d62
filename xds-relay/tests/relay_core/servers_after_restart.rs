//! What was known before a restart, of an origin of several servers.

use xds_relay::state::Memory;

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn text(protocol: Protocol) -> String {
    World::several_servers(protocol, 2) + "share_by: [cluster]\n"
}

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

/// A client has been here, and the relay is killed and restarted while both servers are away.
fn restarted(protocol: Protocol) -> World {
    let mut world = World::with_servers(protocol, 2);
    let store = Memory::default();
    world.restart(0, &text(protocol), store.clone());
    for at in 0..2 {
        for name in ["a", "b", &member("a"), &member("b")] {
            world.put(at, CLUSTERS, name, "1");
        }
    }
    let first = world.client(DELTA, "n1");
    world.subscribe(first, CLUSTERS, &["*", GLOB]);
    world.advance(40 * SECOND);
    (0..2).for_each(|at| world.set_up(at, false));
    world.restart(0, &text(protocol), store);
    (0..2).for_each(|at| drop(world.asked(at)));
    world
}

fn stale(world: &World) -> u64 {
    world.counted(0, "stale_resources{origin=\"up\"}")
}

fn protocols() -> impl Iterator<Item = (Protocol, Protocol)> {
    [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)].into_iter()
}

#[test]
fn what_was_known_is_served_while_all_servers_are_away_and_the_first_that_answers_counts() {
    for (upstream, downstream) in protocols() {
        for back in 0..2 {
            let mut world = restarted(upstream);
            let new = world.client(downstream, "n2");
            world.subscribe(new, CLUSTERS, &["*", GLOB]);
            world.advance(SECOND);
            let case = format!("{upstream:?} {downstream:?} server {back}");
            assert_eq!((world.clients[new].held(CLUSTERS).len(), stale(&world)), (4, 4), "{case}");
            world.told(new);
            world.remove(back, CLUSTERS, "a");
            world.remove(back, CLUSTERS, &member("a"));
            world.put(back, CLUSTERS, "b", "2");
            world.set_up(back, true);
            world.advance(60 * SECOND);
            let held = ["b@2", &format!("{}@1", member("b"))];
            assert_eq!(world.clients[new].held(CLUSTERS), held, "{case}");
            assert_eq!(stale(&world), 0, "{case}");
            let told = world.told(new).join(" ");
            assert_eq!(
                told.matches(&format!("{}@", member("b"))).count(),
                0,
                "{case}: what is equal is not sent again: {told}"
            );
            let asked = world.asked(back).join(" ");
            let versions = asked.split(' ').filter(|word| word.starts_with('=') && !word.ends_with('@'));
            assert_eq!(versions.count(), 0, "{case}: a version that nobody knows who gave: {asked}");
        }
    }
}

#[test]
fn what_was_known_is_no_reason_not_to_ask_the_next_server() {
    for (upstream, downstream) in protocols() {
        let mut world = restarted(upstream);
        world.put(1, CLUSTERS, "b", "2");
        world.set_up(1, true);
        let new = world.client(downstream, "n2");
        world.subscribe(new, CLUSTERS, &["*", GLOB]);
        world.advance(60 * SECOND);
        let held = ["a@1", "b@2", &format!("{}@1", member("a")), &format!("{}@1", member("b"))];
        assert_eq!(world.clients[new].held(CLUSTERS), held, "{upstream:?} {downstream:?}");
        assert_eq!(stale(&world), 0, "{upstream:?} {downstream:?}");
        let told = world.told(new).join(" ");
        assert!(!told.contains('-'), "{upstream:?} {downstream:?}: nothing was gone: {told}");
    }
}
