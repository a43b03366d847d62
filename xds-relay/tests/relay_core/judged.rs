//! Rules that change while a stream is open: it ends where something that it asks for is decided otherwise, and else goes on.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::*;

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

fn world() -> World {
    let mut world = World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s");
    for name in ["shop/web", "shop/app", "bank/web"] {
        world.put(0, ENDPOINTS, name, "1");
    }
    world
}

#[test]
fn what_is_decided_alike_goes_on_and_what_is_not_ends() {
    let glob = endpoints("a", "shop/*");
    for (asks, before, after, ends) in [
        (&["shop/web"][..], "names: ['shop/**', 'bank/**']", "names: ['shop/**']", false),
        (&["shop/web", "bank/web"], "names: ['shop/**', 'bank/**']", "names: ['shop/**']", true),
        (&["shop/web"], "names: ['shop/**']", "names: ['**'], types: [ClusterLoadAssignment]", false),
        (&["shop/web"], "names: ['shop/**']", "types: [Cluster]", true),
        // It was denied one that it may ask for now.
        (&["shop/web", "bank/web"], "names: ['shop/**']", "names: ['**']", true),
        // It was denied one, and that is as it was.
        (&["shop/web", "bank/web"], "names: ['shop/**']", "names: ['shop/*']", false),
        (&["*"], "wildcard: true", "wildcard: false", true),
        (&["*"], "names: ['shop/**'], wildcard: true", "names: ['bank/**'], wildcard: true", false),
        (&[&glob], "names: ['xdstp://a/*/**']", "names: ['xdstp://a/*/shop/*']", false),
        (&[&glob], "names: ['xdstp://a/*/**']", "names: ['xdstp://a/*/shop/web']", true),
    ] {
        for protocol in [DELTA, SOTW] {
            let mut world = world();
            let client = world.client_under(before, protocol, "n");
            world.subscribe(client, ENDPOINTS, asks);
            world.advance(SECOND);
            let ended = world.rule_changes(client, after);
            assert_eq!(ended.is_some(), ends, "{asks:?} {before} {after} {ended:?}");
            if !ends {
                assert_eq!(world.rule_changes(client, after), None, "nothing is new");
                world.put(0, ENDPOINTS, "shop/web", "2");
                world.advance(SECOND);
                let held = world.clients[client].held(ENDPOINTS).join(" ");
                assert!(asks[0].starts_with("xdstp") || held.contains("shop/web@2"), "{asks:?} {after} {held}");
            }
        }
    }
}

/// An alias brings what it stands for.
#[test]
fn an_alias_of_what_may_not_be_asked_for_any_more_ends_its_stream() {
    for (after, ends) in [("names: ['shop/**']", true), ("names: ['shop/**', bank/web]", false)] {
        let mut world = world();
        let wrapper = Resource { aliases: vec!["shop/alias".into()], ..Resource::default() };
        let frame = frame(HOSTS, "bank/web", "1").with_wrapper(wrapper.encode_to_vec().into(), None, false);
        let now = world.now;
        world.origins[0].put_frame(now, "", HOSTS, "bank/web", "1", frame);
        world.settle();
        let client = world.client_under("names: ['**']", DELTA, "n");
        world.subscribe(client, HOSTS, &["shop/alias"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(HOSTS), ["bank/web@1"]);
        assert_eq!(world.rule_changes(client, after).is_some(), ends, "{after}");
    }
}

/// What a stream was about to ask for when its rule was replaced.
#[test]
fn a_stream_is_looked_at_once_more_a_moment_later() {
    let mut world = world();
    let client = world.client_under("names: ['**']", DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["shop/web"]);
    world.advance(SECOND);
    assert_eq!(world.rule_changes(client, "names: ['shop/**']"), None);
    // As if it had been asked for under the rule before: this one is not looked at.
    world.clients[client].is_under_next(client_rule("names: ['shop/**', 'bank/**']"));
    world.clients[client].goes_by_next();
    world.subscribe(client, ENDPOINTS, &["bank/web"]);
    world.clients[client].is_under_next(client_rule("names: ['shop/**']"));
    world.clients[client].goes_by_next();
    world.advance(2 * SECOND);
    assert!(world.clients[client].ended().is_some());
}

#[test]
fn a_node_that_may_not_be_any_more_is_denied() {
    let mut world = world();
    let client = world.client_under("nodes: [n]", DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["shop/web"]);
    world.advance(SECOND);
    assert_eq!(world.rule_changes(client, "nodes: ['*'], clusters: [c]"), None);
    let ended = world.rule_changes(client, "clusters: [d]").unwrap();
    assert_eq!(ended, "denied: this client may not be a node of the cluster \"c\"");
    assert_eq!(world.counted(0, "downstream_denied_total{reason=\"node\"}"), 1);
}
