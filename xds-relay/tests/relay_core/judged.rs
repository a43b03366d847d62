//! Rules that change while a stream is open: what is decided otherwise is told on it, and it goes on.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::*;

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

fn world() -> World {
    let mut world = World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s");
    for name in ["shop/web", "shop/app", "bank/web"] {
        world.put(0, ENDPOINTS, name, "1");
    }
    world.relays[0].core.metrics().declare_denials();
    world
}

fn denied(world: &World, reason: &str) -> u64 {
    world.counted(0, &format!("downstream_denied_total{{reason=\"{reason}\"}}"))
}

/// What a client is told when another rule counts for it, but that its stream ends, which it does not.
fn told_by(world: &mut World, client: usize, rule: &str) -> String {
    world.told(client);
    assert_eq!(world.rule_changes(client, rule), None, "it goes on");
    world.advance(5 * SECOND);
    world.told(client).join(" ")
}

#[test]
fn what_is_decided_otherwise_is_told_once_and_all_else_goes_on() {
    let glob = endpoints("a", "shop/*");
    let no_glob = format!("-!{glob}:7");
    for (asks, before, after, told, counted) in [
        (&["shop/web"][..], "names: ['shop/**', 'bank/**']", "names: ['shop/**']", "", 0),
        (&["shop/web", "bank/web"], "names: ['shop/**', 'bank/**']", "names: ['shop/**']", "-!bank/web:7 -bank/web", 1),
        (&["shop/web"], "names: ['shop/**']", "names: ['**'], types: [ClusterLoadAssignment]", "", 0),
        (&["shop/web"], "names: ['shop/**']", "types: [Cluster]", "-!shop/web:7 -shop/web", 1),
        // It was denied one that it may ask for now.
        (&["shop/web", "bank/web"], "names: ['shop/**']", "names: ['**']", "bank/web@1", 1),
        // It was denied one, and that is as it was.
        (&["shop/web", "bank/web"], "names: ['shop/**']", "names: ['shop/*']", "", 1),
        // Nothing that it holds is gone.
        (&["*"], "wildcard: true", "wildcard: false", "-!*:7", 1),
        (&["*"], "names: ['shop/**'], wildcard: true", "names: ['bank/**'], wildcard: true", "", 0),
        (&[&glob], "names: ['xdstp://a/*/**']", "names: ['xdstp://a/*/shop/*']", "", 0),
        (&[&glob], "names: ['xdstp://a/*/**']", "names: ['xdstp://a/*/shop/web']", &no_glob, 1),
    ] {
        for protocol in [DELTA, SOTW] {
            let mut world = world();
            let client = world.client_under(before, protocol, "n");
            world.subscribe(client, ENDPOINTS, asks);
            world.subscribe(client, CLUSTERS, &["shop/web"]);
            world.advance(SECOND);
            let said = told_by(&mut world, client, after).replace("ClusterLoadAssignment ", "");
            let said = said.replace("Cluster -!shop/web:7 -shop/web", "").replace("Cluster -!shop/web:7", "");
            let case = format!("{protocol:?} {asks:?} {before} {after}");
            assert_eq!(said.trim(), told, "{case}");
            assert_eq!(told_by(&mut world, client, after), "", "{case}: nothing is new");
            let reasons = ["name", "type", "wildcard"].map(|reason| denied(&world, reason)).iter().sum::<u64>();
            assert!(reasons >= counted && reasons <= counted + 1, "{case}: {reasons}");
            // What it may not ask for any more it is told nothing more of.
            for name in ["shop/web", "bank/web"] {
                world.put(0, ENDPOINTS, name, "2");
            }
            world.advance(SECOND);
            let news = world.told(client).join(" ");
            for name in ["shop/web", "bank/web"] {
                let was_denied =
                    (told.is_empty() || asks == ["*"]) && counted > 0 && (name == "bank/web" || asks == ["*"]);
                let is_denied = was_denied || told.contains(&format!("-!{name}"));
                let is_served = (asks == ["*"] || asks.contains(&name)) && !is_denied;
                assert_eq!(news.contains(&format!("{name}@2")), is_served, "{case}: {news}");
            }
        }
    }
}

#[test]
fn by_a_wildcard_a_client_goes_on_to_have_what_it_may_not_ask_for_by_name() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        let client = world.client_under("wildcard: true", protocol, "n");
        world.subscribe(client, ENDPOINTS, &["*", "bank/web"]);
        world.advance(SECOND);
        let held = ["bank/web@1", "shop/app@1", "shop/web@1"];
        assert_eq!(world.clients[client].held(ENDPOINTS), held);
        let told = told_by(&mut world, client, "names: ['shop/**'], wildcard: true");
        assert!(told.contains("-!bank/web:7") && !told.contains("shop"), "{told}");
        world.put(0, ENDPOINTS, "bank/web", "2");
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), [&["bank/web@2"], &held[1..]].concat(), "{protocol:?}");
        assert_eq!(denied(&world, "name"), 1);
    }
}

/// Over SotW a state that is full has it no more, as it has it not for who asks for it now.
#[test]
fn what_may_not_be_had_any_more_is_gone_and_comes_back_where_it_may_again() {
    for (upstream, protocol) in [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)] {
        let mut world = World::of(&[upstream], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s");
        world.relays[0].core.metrics().declare_denials();
        for name in ["shop/a", "bank/a"] {
            world.put(0, CLUSTERS, name, "1");
        }
        let other = world.client(DELTA, "other");
        world.subscribe(other, CLUSTERS, &["bank/a", "shop/a"]);
        let client = world.client_under("names: ['**']", protocol, "n");
        world.subscribe(client, CLUSTERS, &["shop/a", "bank/a"]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["bank/a@1", "shop/a@1"]);
        world.told(other);
        let told = told_by(&mut world, client, "names: ['shop/**']");
        assert!(told.contains("-!bank/a:7") && told.matches("bank/a").count() <= 2, "{told}");
        assert!(protocol == SOTW || !told.contains("shop"), "{told}");
        assert_eq!(world.clients[client].held(CLUSTERS), ["shop/a@1"], "{upstream:?} {protocol:?} {told}");
        let told = told_by(&mut world, client, "names: ['**']");
        assert_eq!(world.clients[client].held(CLUSTERS), ["bank/a@1", "shop/a@1"], "{upstream:?} {protocol:?} {told}");
        assert_eq!((denied(&world, "name"), world.told(other)), (1, vec![]));
        // It is asked for as before: who leaves it leaves it.
        world.unsubscribe(client, CLUSTERS, &["bank/a"]);
        world.put(0, CLUSTERS, "bank/a", "2");
        world.advance(SECOND);
        assert!(!world.told(client).join(" ").contains("bank/a@2"));
    }
}

/// What is denied and left before it may be had again is not asked for.
#[test]
fn what_is_denied_and_left_stays_left() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        let client = world.client_under("names: ['**']", protocol, "n");
        world.subscribe(client, ENDPOINTS, &["shop/web", "bank/web"]);
        world.advance(SECOND);
        told_by(&mut world, client, "names: ['shop/**']");
        world.unsubscribe(client, ENDPOINTS, &["bank/web"]);
        assert_eq!(told_by(&mut world, client, "names: ['**']"), "");
        world.put(0, ENDPOINTS, "bank/web", "2");
        world.put(0, ENDPOINTS, "shop/web", "2");
        world.advance(5 * SECOND);
        assert_eq!(world.told(client), ["ClusterLoadAssignment shop/web@2"]);
        assert!(world.asked(0).join(" ").contains("-bank/web"), "nobody wants it any more");
    }
}

/// An alias brings what it stands for.
#[test]
fn an_alias_of_what_may_not_be_asked_for_any_more_is_told_as_denied() {
    for (after, is_denied) in [("names: ['shop/**']", true), ("names: ['shop/**', bank/web]", false)] {
        let mut world = world();
        let put = |world: &mut World, version: &str| {
            let wrapper = Resource { aliases: vec!["shop/alias".into()], ..Resource::default() };
            let frame = frame(HOSTS, "bank/web", version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
            let now = world.now;
            world.origins[0].put_frame(now, "", HOSTS, "bank/web", version, frame);
            world.settle();
        };
        put(&mut world, "1");
        let client = world.client_under("names: ['**']", DELTA, "n");
        world.subscribe(client, HOSTS, &["shop/alias"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(HOSTS), ["bank/web@1"]);
        let told = told_by(&mut world, client, after);
        assert_eq!(told.contains("shop/alias"), is_denied, "{after} {told}");
        assert!(is_denied || told.is_empty(), "{after} {told}");
        assert_eq!(denied(&world, "alias"), u64::from(is_denied));
        put(&mut world, "2");
        world.advance(SECOND);
        assert_eq!(world.told(client).join(" ").contains("bank/web@2"), !is_denied);
        let told = told_by(&mut world, client, "names: ['**']");
        assert_eq!(told.contains("bank/web@2"), is_denied, "{told}");
        put(&mut world, "3");
        assert_eq!(world.clients[client].held(HOSTS), ["bank/web@3"]);
    }
}

/// What it names is denied as it asks under the rule that counts by then.
#[test]
fn what_is_asked_for_as_the_rule_changes_is_looked_at_too() {
    let mut world = world();
    let client = world.client_under("names: ['**']", DELTA, "n");
    world.clients[client].subscribe(ENDPOINTS, &["shop/web", "bank/web"]);
    world.clients[client].is_under_next(client_rule("names: ['shop/**']"));
    world.relays[0].core.judge_streams();
    world.advance(SECOND);
    let told = world.told(client).join(" ");
    assert!(told.contains("shop/web@1") && told.contains("-!bank/web:7"), "{told}");
    assert_eq!(denied(&world, "name"), 1);
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
