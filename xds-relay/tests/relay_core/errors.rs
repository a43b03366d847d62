//! What an origin says about resources it does not send reaches who asked for them: TP3, rules 117 and 118.

use crate::support::*;

const NOT_FOUND: i32 = 5;
const UNAVAILABLE: i32 = 14;

#[test]
fn rule_117_an_error_passes_a_relay_whatever_is_spoken_on_either_side() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::new(upstream);
            let (name, missing) = (endpoints("a", "there"), endpoints("a", "missing"));
            world.put(0, ENDPOINTS, &name, "1");
            world.fail(0, ENDPOINTS, &missing, NOT_FOUND, "why");
            let client = world.client(downstream, "n");
            world.subscribe(client, ENDPOINTS, &[&name, &missing]);
            let told = world.told(client).join(" ");
            assert!(told.contains(&format!("-!{missing}:5")), "{upstream:?} {downstream:?}: {told}");
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
            // What the origin has trouble with stays in use.
            world.fail(0, ENDPOINTS, &name, UNAVAILABLE, "why");
            assert!(world.told(client).join(" ").contains(&format!("-!{name}:14")));
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
            // Who comes later is told from the cache.
            world.asked(0);
            let later = world.client(downstream, "n");
            world.subscribe(later, ENDPOINTS, &[&name, &missing]);
            let told = world.told(later).join(" ");
            assert!(told.contains(&format!("-!{name}:14")) && told.contains(&format!("-!{missing}:5")), "{told}");
            assert_eq!(world.asked(0), [""; 0]);
            world.put(0, ENDPOINTS, &missing, "2");
            for client in [client, later] {
                assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{missing}@2"), format!("{name}@1")]);
            }
        }
    }
}

#[test]
fn rule_117_an_error_is_over_for_a_relay_when_nobody_asks_any_more() {
    let mut world = World::new(DELTA);
    world.fail(0, CLUSTERS, "a", UNAVAILABLE, "why");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    assert!(world.told(client).join(" ").contains("-!a:14"));
    world.unsubscribe(client, CLUSTERS, &["a"]);
    world.advance(LINGER + SECOND);
    world.asked(0);
    world.subscribe(client, CLUSTERS, &["a"]);
    assert_eq!(world.asked(0).len(), 1);
    assert!(world.told(client).join(" ").contains("-!a:14"));
}

#[test]
fn an_origin_s_words_about_a_resource_are_bounded() {
    let mut world = World::new(DELTA);
    world.fail(0, CLUSTERS, "a", UNAVAILABLE, &"x".repeat(100_000));
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a"]);
    let bytes: usize = world.clients[client].chunks.iter().flatten().map(bytes::Bytes::len).sum();
    assert!((1024..4096).contains(&bytes), "{bytes}");
}
