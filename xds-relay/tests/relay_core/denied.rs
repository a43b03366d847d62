//! What a client may not ask for: it is told so, and nobody else hears of it, however it asks.

use prost::Message;
use xds_matcher::DynamicParameters;
use xds_transport::wire::{DeltaDiscoveryRequest, Node, Resource};
use xdstp_cache::Selector;

use crate::support::*;

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
const SHOP: &str = "names: ['shop/**', 'xdstp://a/*/shop/**']";

fn world() -> World {
    World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s")
}

fn put_aliased(world: &mut World, of: &str, name: &str, version: &str, aliases: &[&str]) {
    let wrapper = Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
    let frame = frame(of, name, version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", of, name, version, frame);
    world.settle();
}

fn denied(world: &World, reason: &str) -> u64 {
    world.counted(0, &format!("downstream_denied_total{{reason=\"{reason}\"}}"))
}

#[test]
fn a_name_is_denied_once_and_all_else_is_served() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        for name in ["shop/web", "bank/web"] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let client = world.client_under(SHOP, protocol, "n");
        world.subscribe(client, ENDPOINTS, &["shop/web", "bank/web"]);
        world.advance(SECOND);
        let told = world.told(client).join(" ");
        assert!(told.contains("shop/web@1") && told.contains("-!bank/web:7"), "{told}");
        assert_eq!(world.clients[client].held(ENDPOINTS), ["shop/web@1"]);
        assert_eq!(world.asked(0), ["n ClusterLoadAssignment +shop/web"], "nobody asked for the other");
        // An ACK over SotW has the name again, and so has whoever asks for more.
        world.put(0, ENDPOINTS, "shop/web", "2");
        world.put(0, ENDPOINTS, "bank/web", "2");
        world.subscribe(client, ENDPOINTS, &["shop/app"]);
        world.advance(20 * SECOND);
        let told = world.told(client).join(" ");
        assert!(told.contains("shop/web@2") && !told.contains("bank"), "{told}");
        assert_eq!(denied(&world, "name"), 1);
    }
}

#[test]
fn a_client_that_may_ask_is_served_beside_one_that_may_not_and_is_told_of_no_removal() {
    let mut world = world();
    world.put(0, ENDPOINTS, "bank/web", "1");
    let other = world.client(DELTA, "other");
    world.subscribe(other, ENDPOINTS, &["bank/web"]);
    assert_eq!(world.told(other), ["ClusterLoadAssignment bank/web@1"]);
    let client = world.client_under(SHOP, DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["bank/web"]);
    assert_eq!(world.told(client), ["ClusterLoadAssignment -!bank/web:7 -bank/web"]);
    world.unsubscribe(client, ENDPOINTS, &["bank/web"]);
    world.disconnect(client);
    world.put(0, ENDPOINTS, "bank/web", "2");
    world.advance(20 * SECOND);
    assert_eq!(world.told(other), ["ClusterLoadAssignment bank/web@2"]);
    assert_eq!(world.asked(0), ["other ClusterLoadAssignment +bank/web"]);
}

/// Neither a stream nor a group: who may not ask costs nothing.
#[test]
fn who_may_ask_for_nothing_opens_no_scope() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        let client = world.client_under("types: [Listener], names: []", protocol, "n");
        let of_b = endpoints("b", "x");
        world.subscribe(client, ENDPOINTS, &["x", &of_b, "xdstp://b/envoy.config.endpoint.v3.ClusterLoadAssignment/*"]);
        world.subscribe(client, LISTENERS, &["x"]);
        world.advance(5 * SECOND);
        let told = world.told(client).join(" ");
        assert_eq!(told.matches(":7").count(), 4, "{told}");
        assert_eq!((world.asked(0), world.streams_of(0), world.scopes_of(0)), (vec![], 0, vec![]));
        assert_eq!((denied(&world, "type"), denied(&world, "name")), (3, 1));
    }
}

#[test]
fn a_wildcard_must_be_allowed_and_so_must_an_empty_list_that_is_one() {
    for protocol in [DELTA, SOTW] {
        for rule in ["wildcard: false", "names: ['**']"] {
            let mut world = world();
            world.put(0, CLUSTERS, "a", "1");
            let client = world.client_under(rule, protocol, "n");
            // The machine asks for it by an empty list, where it is the first.
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(5 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), [""; 0]);
            assert_eq!((world.asked(0), denied(&world, "wildcard")), (vec![], 1));
            world.subscribe(client, CLUSTERS, &["a"]);
            world.advance(5 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "{rule}");
            world.unsubscribe(client, CLUSTERS, &["*"]);
            world.put(0, CLUSTERS, "b", "1");
            world.advance(5 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "{rule}");
        }
        let mut world = world();
        world.put(0, CLUSTERS, "a", "1");
        let client = world.client_under("names: [x], wildcard: true", protocol, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(5 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "all there is");
    }
}

#[test]
fn a_glob_is_denied_unless_all_that_it_may_have_is_allowed() {
    let glob = |of: &str, parent: &str| endpoints(of, &format!("{parent}*"));
    let mut world = world();
    for (of, name) in [("a", "shop/x"), ("a", "bank/x"), ("b", "shop/x"), ("a", "x")] {
        world.put(0, ENDPOINTS, &endpoints(of, name), "1");
    }
    let client = world.client_under(SHOP, DELTA, "n");
    for denied in [glob("a", "bank/"), glob("b", "shop/"), endpoints("a", "%2A"), endpoints("a", "shop%2f..%2F../*")] {
        world.subscribe(client, ENDPOINTS, &[&denied]);
        let told = world.told(client).join(" ");
        assert!(told.contains(":7") || denied.contains(".."), "{denied}: {told}");
        assert!(!told.contains('@'), "{denied}: {told}");
    }
    world.subscribe(client, ENDPOINTS, &[&glob("a", "shop/")]);
    assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{}@1", endpoints("a", "shop/x"))]);
}

#[test]
fn no_spelling_of_a_name_evades() {
    let mut world = world();
    let bank = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/bank/web?env=prod&shop=1";
    world.put(0, ENDPOINTS, bank, "1");
    let client = world.client_under(SHOP, DELTA, "n");
    for (at, spelling) in [
        "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/%62ank/web?shop=1&env=prod",
        "xdstp://%61/envoy.config.endpoint.v3.ClusterLoadAssignment/bank%2fweb?env=pro%64&shop=1",
        "xdstp://a/envoy.config.endpoint.v3.Cluster%4CoadAssignment/bank/web?&&env=prod&shop=1&",
        "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/bank/web?env=shop/&env=prod&shop=1",
    ]
    .into_iter()
    .enumerate()
    {
        let now = world.now;
        world.clients[client].ask_again(now, ENDPOINTS, &[spelling]);
        world.settle();
        assert_eq!(denied(&world, "name"), at as u64 + 1, "{spelling}");
    }
    assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0]);
    assert_eq!(world.asked(0), [""; 0]);
}

#[test]
fn whoever_asks_again_is_told_again_and_costs_nobody_anything() {
    let mut world = world();
    world.put(0, ENDPOINTS, "bank/web", "1");
    let client = world.client_under(SHOP, DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["bank/web"]);
    world.told(client);
    for _ in 0..3 {
        let now = world.now;
        world.clients[client].ask_again(now, ENDPOINTS, &["bank/web", "bank/web"]);
        world.settle();
    }
    assert_eq!(world.asked(0), [""; 0]);
    assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0]);
    assert_eq!(denied(&world, "name"), 7);
}

/// Rule 105: the origin says what a name stands for, which is another one.
#[test]
fn an_alias_that_is_allowed_does_not_bring_what_is_not() {
    for private in [false, true] {
        let mut world = world();
        let put = |world: &mut World, version: &str| {
            let aliases = Resource { aliases: vec!["shop/alias".into(), "shop/other".into()], ..Resource::default() };
            let frame = frame(HOSTS, "bank/web", version);
            let frame = frame.with_wrapper(aliases.encode_to_vec().into(), None, false);
            let frame = if private { frame.private() } else { frame };
            let now = world.now;
            world.origins[0].put_frame(now, "", HOSTS, "bank/web", version, frame);
            world.settle();
        };
        put(&mut world, "1");
        let other = world.client(DELTA, "other");
        let client = world.client_under(SHOP, DELTA, "n");
        for client in [other, client] {
            world.subscribe(client, HOSTS, &["shop/alias"]);
        }
        world.advance(5 * SECOND);
        assert_eq!(world.clients[other].held(HOSTS), ["bank/web@1"]);
        assert_eq!(world.clients[client].held(HOSTS), [""; 0]);
        let told = world.told(client).join(" ");
        assert!(told.contains("shop/alias") && !told.contains("bank"), "{told}");
        for asked in world.asked(0) {
            assert!(!asked.starts_with("n ") || !asked.contains("bank"), "{asked}");
        }
        put(&mut world, "2");
        world.advance(5 * SECOND);
        assert_eq!(world.told(client), [""; 0], "it was told");
        assert_eq!(world.clients[other].held(HOSTS), ["bank/web@2"]);
        assert_eq!(denied(&world, "alias"), 1);
        // It is what it is asked for again.
        let now = world.now;
        world.clients[client].ask_again(now, HOSTS, &["shop/alias"]);
        world.settle();
        assert_eq!((denied(&world, "alias"), world.clients[client].held(HOSTS)), (2, vec![]));
        let now = world.now;
        world.origins[0].remove(now, HOSTS, "bank/web");
        world.advance(20 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains("bank"), "{told}");
    }
}

/// By an authority that it may ask of, in the scope of that, and beside other parts of its stream.
#[test]
fn an_alias_of_another_authority_brings_nothing_either() {
    let (alias, bank) = (endpoints("a", "shop/x"), endpoints("b", "bank/x"));
    let mut world = world();
    put_aliased(&mut world, ENDPOINTS, &bank, "1", &[&alias]);
    world.put(0, ENDPOINTS, "shop/web", "1");
    for protocol in [DELTA, SOTW] {
        let other = world.client(DELTA, "other");
        world.subscribe(other, ENDPOINTS, &[&alias]);
        let client = world.client_under(SHOP, protocol, "n");
        world.subscribe(client, ENDPOINTS, &[&alias, "shop/web", &bank]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[other].held(ENDPOINTS), [format!("{bank}@1")]);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["shop/web@1"]);
        world.disconnect(other);
        world.disconnect(client);
    }
}

/// All of its node group is what a wildcard is for, and no authority is in that.
#[test]
fn a_wildcard_that_is_allowed_brings_no_aliases_of_authorities() {
    let (alias, bank) = (endpoints("a", "shop/x"), endpoints("b", "bank/x"));
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        put_aliased(&mut world, ENDPOINTS, &bank, "1", &[&alias]);
        put_aliased(&mut world, ENDPOINTS, "bank/y", "1", &["shop/y"]);
        let client = world.client_under(&format!("{SHOP}, wildcard: true"), protocol, "n");
        world.subscribe(client, ENDPOINTS, &["*", &alias]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["bank/y@1"]);
    }
}

/// `initial_resource_versions` is a question, too: whether it is there, and of which version.
#[test]
fn what_a_client_brings_along_is_not_answered_unless_it_may_ask_for_it() {
    let mut world = world();
    world.put(0, ENDPOINTS, "bank/web", "1");
    world.put(0, ENDPOINTS, "shop/web", "1");
    let other = world.client(DELTA, "other");
    world.subscribe(other, ENDPOINTS, &["bank/web"]);
    world.asked(0);
    let client = world.client_under(SHOP, DELTA, "n");
    let bank = endpoints("b", "bank/x");
    let held_at_1 = |name: &&str| {
        let field = |key: u8, text: &str| [&[key, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [field(0x0a, name), field(0x12, "1")].concat().into()
    };
    let request = DeltaDiscoveryRequest {
        node: Node { id: "n".into(), cluster: "c".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: ENDPOINTS.into(),
        resource_names_subscribe: vec!["shop/web".into()],
        initial_resource_versions: ["bank/web", &bank].iter().map(held_at_1).collect(),
        ..DeltaDiscoveryRequest::default()
    };
    let now = world.now;
    world.clients[client].say(now, request);
    world.advance(20 * SECOND);
    let told = world.told(client).join(" ");
    assert!(!told.contains("bank"), "{told}");
    assert_eq!(world.asked(0), ["other ClusterLoadAssignment +shop/web"]);
}

#[test]
fn with_dynamic_parameters_it_is_the_same() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        for name in ["shop/web", "bank/web"] {
            world.put(0, ENDPOINTS, name, "1");
        }
        let rule = format!("{SHOP}, types: [ClusterLoadAssignment]");
        let selector = Selector::Parameters(DynamicParameters::from_iter([("env", "prod")]));
        let client = world.client_under_selecting(&rule, protocol, "n", Some(selector));
        world.subscribe(client, ENDPOINTS, &["shop/web", "bank/web", "*"]);
        world.subscribe(client, CLUSTERS, &["shop/web"]);
        world.advance(5 * SECOND);
        let told = world.told(client).join(" ");
        assert!(told.contains("-!bank/web:7"), "{told}");
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1, "{told}");
        assert!(world.asked(0).iter().all(|asked| !asked.contains("bank") && !asked.contains('*')));
        assert!(denied(&world, "name") == 1 && denied(&world, "wildcard") == 1 && denied(&world, "type") > 0);
    }
}

#[test]
fn a_node_that_a_client_may_not_be_ends_its_stream() {
    for protocol in [DELTA, SOTW] {
        let mut world = world();
        let client = world.client_under("nodes: ['shop-*'], clusters: [c]", protocol, "bank-1");
        world.subscribe(client, CLUSTERS, &["x"]);
        assert_eq!(
            world.told(client),
            ["ended 7: a node that is refused: this client may not be a node of the id \"bank-1\""]
        );
        assert_eq!((world.asked(0), world.streams_of(0), denied(&world, "node")), (vec![], 0, 1));
        let client = world.client_under("nodes: ['shop-*'], clusters: [c]", protocol, "shop-1");
        world.put(0, CLUSTERS, "x", "1");
        world.subscribe(client, CLUSTERS, &["x"]);
        world.advance(SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["x@1"]);
    }
}

/// Rules 4 and 6: the first node counts, and so nothing that is said later makes it another.
#[test]
fn a_node_that_is_said_later_changes_nothing() {
    let mut world = world();
    let client = world.client_under("nodes: ['shop-*']", DELTA, "shop-1");
    world.put(0, CLUSTERS, "x", "1");
    world.subscribe(client, CLUSTERS, &["x"]);
    let request = DeltaDiscoveryRequest {
        node: Node { id: "bank-1".into(), cluster: "c".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: vec!["y".into()],
        ..DeltaDiscoveryRequest::default()
    };
    let now = world.now;
    world.clients[client].say(now, request);
    world.advance(SECOND);
    assert!(world.asked(0).iter().all(|asked| !asked.contains("bank")));
    assert_eq!(world.clients[client].held(CLUSTERS), ["x@1"]);
}

#[test]
fn what_is_denied_counts_as_names_do_and_is_given_back() {
    let mut world = World::of(&[DELTA], &[&[]], "limits: { names_per_stream: 10, names: 12 }");
    let client = world.client_under("names: [x]", DELTA, "n");
    let names: Vec<String> = (0..10).map(|at| format!("bank/{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for _ in 0..3 {
        world.subscribe(client, ENDPOINTS, &names);
        world.unsubscribe(client, ENDPOINTS, &names);
    }
    world.subscribe(client, ENDPOINTS, &names);
    assert!(!world.told(client).join(" ").contains("ended"));
    world.subscribe(client, ENDPOINTS, &["one-more"]);
    assert!(world.told(client).join(" ").contains("ended 8"));
    // What it had is free again.
    let other = world.client(DELTA, "other");
    world.subscribe(other, ENDPOINTS, &names);
    assert!(!world.told(other).join(" ").contains("ended"));
}
