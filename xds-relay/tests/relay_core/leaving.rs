//! What a client is told that leaves an interest, or comes back to one: nothing stays that is gone.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::*;

const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
const ALIAS: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/h/y";
const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn put_with(world: &mut World, name: &str, version: &str, aliases: &[&str]) {
    let wrapper = Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
    let frame = frame(CLUSTERS, name, version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", CLUSTERS, name, version, frame);
    world.settle();
}

/// To the client its wildcard covers what the alias stood for.
#[test]
fn rule_053_who_leaves_an_alias_under_a_wildcard_is_told_what_became_of_what_it_stood_for() {
    let mut world = World::new(DELTA);
    put_with(&mut world, NAME, "1", &[ALIAS]);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*", ALIAS]);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@1")]);
    world.unsubscribe(client, CLUSTERS, &[ALIAS]);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), [""; 0]);
}

/// Over SotW no answer to a wildcard of theirs has an end, which nobody may wait for.
#[test]
fn rule_053_who_leaves_endpoints_under_a_wildcard_is_told_that_they_are_gone() {
    let glob = endpoints("a", "g/*");
    for asks in [glob.replace('*', "x"), glob.clone()] {
        let mut world = World::new(SOTW);
        for name in ["old", &glob.replace('*', "x")] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &["*", &asks]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 2);
        world.unsubscribe(client, ENDPOINTS, &[&asks]);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["old@1"], "{asks}");
    }
}

/// It goes, and its glob is left before that was told.
#[test]
fn rule_053_who_leaves_a_glob_under_a_wildcard_is_told_what_went_a_moment_before() {
    for window in [false, true] {
        let mut world = World::new(DELTA);
        world.put(0, CLUSTERS, NAME, "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*", GLOB]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@1")]);
        if window {
            world.clients[client].unsubscribe(CLUSTERS, &[GLOB]);
            let now = world.now;
            world.origins[0].remove(now, CLUSTERS, NAME);
        } else {
            world.remove(0, CLUSTERS, NAME);
            world.clients[client].unsubscribe(CLUSTERS, &[GLOB]);
        }
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{window}");
    }
}

/// Rule 153: that origin cannot have it.
#[test]
fn rule_150_what_goes_at_its_own_origin_does_not_wait_for_the_wildcard_of_another() {
    for asks in [NAME, GLOB] {
        let mut world = World::of(&[DELTA, DELTA], &[&["mine"], &["a"]], "");
        world.put(1, CLUSTERS, NAME, "1");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*", asks]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@1")]);
        world.disconnect(client);
        world.advance(2 * LINGER);
        world.origins[0].silent = true;
        // It brings along what nothing that it asks for at first has.
        world.clients[client].unsubscribe(CLUSTERS, &[asks]);
        world.connect(client, 0);
        world.subscribe(client, CLUSTERS, &[asks]);
        world.advance(SECOND);
        world.remove(1, CLUSTERS, NAME);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{asks}");
    }
}

/// An empty glob is not asked for twice, and what came to it meanwhile is not forgotten by who is to say when it goes.
#[test]
fn rule_100_who_comes_back_to_a_glob_that_lingers_keeps_nothing_that_goes_while_the_origin_is_away() {
    for upstream in [DELTA, SOTW] {
        for by_name in [false, true] {
            let mut world = World::new(upstream);
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, &[GLOB]);
            world.advance(20 * SECOND);
            world.disconnect(client);
            world.put(0, CLUSTERS, NAME, "1");
            let other = world.client(DELTA, "n");
            if by_name {
                world.subscribe(other, CLUSTERS, &[NAME]);
            }
            world.asked(0);
            world.set_up(0, false);
            world.connect(client, 0);
            world.advance(SECOND);
            let case = format!("{upstream:?} {by_name}");
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@1")], "{case}");
            let now = world.now;
            world.origins[0].remove(now, CLUSTERS, NAME);
            world.set_up(0, true);
            world.advance(60 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{case}");
            assert!(!world.asked(0).join(" ").contains(" -"), "{case}");
        }
    }
}
