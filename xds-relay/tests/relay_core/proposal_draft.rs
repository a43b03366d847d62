//! The examples of the draft of TP2 (2021), in the order of the text, through relays.
//!
//! Every example of the text is tried from clients through relays to an origin that does as it is told, over delta and over SotW.
//! What the final form can say is tried in that, too, and in chains of which either end speaks the other form.
//!
//! | the text | is tried in |
//! |---|---|
//! | "If the new key is added on the clients first", "the expected order of changes" | `a_key_that_clients_send_first`, `proposal_forms::a_key_that_clients_send_first_in_either_form` |
//! | "if the new key is added on the server side first" | `a_key_that_the_server_has_first`, `proposal_forms::in_the_final_form_a_key_that_the_server_has_first_is_for_those_who_send_it` |
//! | "These constraints can match either of the above variants" (`{env=prod}` beside `{env=prod, version=v1}`) | `two_variants_that_match_are_one_and_none_that_does_is_nothing` |
//! | "a variant of the resource for every value of a key" (`prod`, `test`, `qa`) | the same, `parameters::each_client_is_served_what_its_own_parameters_select` |
//! | "the preferred value is `{shard=5}`, not `{shard=3}`" | `parameters::by_the_draft_what_a_relay_has_hides_nothing_larger_upstream` |
//! | ranges where the final form is spoken, which has none | `parameters::what_the_origin_cannot_be_asked_ends_the_stream_and_names_the_constraint` |
//! | "DPDS Example": `listener_type`, and the update of it | `proposal_maps::server_specified_constraints` |
//! | "If the client cannot obtain the configured DPDS resource" | `proposal_forms::who_is_not_told_what_to_send_has_any_variant` |
//! | "the DPDS resource itself is always non-cacheable" | `parameters::which_constraints_to_send_is_never_shared` |
//! | "Direct translation of node metadata to exact-match constraints" | `node_parameters::a_chain_is_asked_with_the_parameters_of_the_nodes_in_either_form` |
//! | "xDS Minor/Patch Version Negotiation" | `version_negotiation`, `proposal_forms::version_negotiation_in_the_final_form` |
//! | "Sharding Clusters" | `sharding_clusters`, `proposal_forms::exact_values_select_in_either_form` |
//! | "the shard assignments [...] may change at any time" | `proposal_forms::a_shard_assignment_changes_on_its_stream` |
//! | "Sharding Endpoints": `subset_id`; "Selecting Cluster Based on ACL": `use_proxy` | `sharding_endpoints_and_selecting_by_acl`, `proposal_forms::exact_values_select_in_either_form`, and told by the server in `proposal_maps` |
//! | "9 different variants of the resource, even though there are only 4 unique contents" | `dynamic_route_selection`, `parameters::nine_combinations_share_four_contents` |
//! | "minimize the number of variants" | `dynamic_route_selection`, `proposal_forms::four_variants_for_nine_nodes_that_are_told_what_to_send` |

use xds_matcher::draft::{Constraint, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range};
use xdstp_cache::{Selector, Variant};

use crate::parameters::{BOTH, chain, parameters, vary};
use crate::support::{CLUSTERS, DELTA, ENDPOINTS, Protocol, SECOND, World, endpoints};

const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const SCOPED_ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";

/// `key_constraints`, of one constraint for each key.
fn client<const N: usize>(keys: [(&str, KeyConstraints); N]) -> Selector {
    let key_constraints = keys.into_iter().map(|(key, rule)| (key.to_owned(), rule)).collect();
    Selector::Constraints(DynamicParameterConstraints { key_constraints }.lower().unwrap())
}

fn rule(kind: Kind) -> KeyConstraints {
    KeyConstraints { constraints: vec![Constraint { kind: Some(kind) }], invert: false }
}

fn value(value: &str) -> KeyConstraints {
    rule(Kind::Value(value.to_owned()))
}

fn inverted(of: &str) -> KeyConstraints {
    KeyConstraints { invert: true, ..value(of) }
}

fn ranges(ranges: &[(u64, u64)]) -> KeyConstraints {
    let range = |(min, max): &(u64, u64)| Range { min_value: Some(*min), max_value: Some(*max) };
    rule(Kind::IntegerRangeList(IntegerRangeList { range: ranges.iter().map(range).collect() }))
}

/// A relay, in a chain of two, that speaks the draft on both sides.
fn world(protocol: Protocol) -> (World, usize) {
    chain(protocol, &["draft", "draft"])
}

fn asks(world: &mut World, relay: usize, protocol: Protocol, selector: Selector, of: &str, name: &str) -> usize {
    let client = world.client_selecting(relay, protocol, selector);
    world.subscribe(client, of, &[name]);
    world.advance(SECOND);
    client
}

fn held(world: &World, client: usize, of: &str) -> String {
    world.clients[client].bodies(of).join(" ")
}

fn variant(env: &str, version: &str) -> Variant {
    parameters(&[("env", env), ("version", version)])
}

/// "If the new key is added on the clients first", and the expected order of changes.
#[test]
fn a_key_that_clients_send_first() {
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let [prod, test] = ["prod", "test"].map(|env| parameters(&[("env", env)]));
        vary(&mut world, CLUSTERS, "cart", &[(&prod, "prod"), (&test, "test")], &[]);
        let of = |world: &mut World, selector| asks(world, last, protocol, selector, CLUSTERS, "cart");
        let before = ["prod", "test"].map(|env| of(&mut world, client([("env", value(env))])));
        // 1. Clients begin to send version=v1.
        let sending =
            ["prod", "test"].map(|env| of(&mut world, client([("env", value(env)), ("version", value("v1"))])));
        let all = |world: &World| [before, sending].map(|of| of.map(|client| held(world, client, CLUSTERS)));
        assert_eq!(all(&world), [["prod", "test"], ["prod", "test"]], "{protocol:?}");
        // 2. All resources get it.
        let [prod_1, test_1] = ["prod", "test"].map(|env| variant(env, "v1"));
        vary(&mut world, CLUSTERS, "cart", &[(&prod_1, "prod1"), (&test_1, "test1")], &[&prod, &test]);
        assert_eq!(all(&world), [["prod1", "test1"], ["prod1", "test1"]], "{protocol:?}");
        // 3. There are variants with version=v2.
        let [prod_2, test_2] = ["prod", "test"].map(|env| variant(env, "v2"));
        vary(&mut world, CLUSTERS, "cart", &[(&prod_2, "prod2"), (&test_2, "test2")], &[]);
        assert_eq!(all(&world)[1], ["prod1", "test1"], "{protocol:?}");
        // 4. Some clients send that instead.
        let moved = of(&mut world, client([("env", value("prod")), ("version", value("v2"))]));
        assert_eq!(held(&world, moved, CLUSTERS), "prod2", "{protocol:?}");
        assert_eq!(all(&world)[1], ["prod1", "test1"], "{protocol:?}");
    }
}

/// "If the new key is added on the server side first": who does not send it has one of those that are for its `env`.
#[test]
fn a_key_that_the_server_has_first() {
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let [prod, test] = ["prod", "test"].map(|env| parameters(&[("env", env)]));
        vary(&mut world, CLUSTERS, "cart", &[(&prod, "prod"), (&test, "test")], &[]);
        let of = |world: &mut World, selector| asks(world, last, protocol, selector, CLUSTERS, "cart");
        let before = ["prod", "test"].map(|env| of(&mut world, client([("env", value(env))])));
        let four =
            ["prod", "test"].map(|env| ["v1", "v2"].map(|version| (variant(env, version), format!("{env} {version}"))));
        let put: Vec<_> = four.iter().flatten().map(|(variant, body)| (variant, body.as_str())).collect();
        vary(&mut world, CLUSTERS, "cart", &put, &[&prod, &test]);
        for (client, env) in before.into_iter().zip(["prod", "test"]) {
            let held = held(&world, client, CLUSTERS);
            assert!([format!("{env} v1"), format!("{env} v2")].contains(&held), "{protocol:?} {held}");
        }
        for (env, version) in [("prod", "v1"), ("prod", "v2"), ("test", "v1"), ("test", "v2")] {
            let sending = of(&mut world, client([("env", value(env)), ("version", value(version))]));
            assert_eq!(held(&world, sending, CLUSTERS), format!("{env} {version}"), "{protocol:?}");
        }
    }
}

/// "These constraints can match either of the above variants", and "there must be a variant of the resource for every value".
#[test]
fn two_variants_that_match_are_one_and_none_that_does_is_nothing() {
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let [plain, v1] = [parameters(&[("env", "prod")]), variant("prod", "v1")];
        vary(&mut world, CLUSTERS, "cart", &[(&plain, "env"), (&v1, "both")], &[]);
        let either = client([("env", value("prod")), ("version", value("v1"))]);
        let either = asks(&mut world, last, protocol, either, CLUSTERS, "cart");
        assert!(["env", "both"].contains(&&*held(&world, either, CLUSTERS)), "{protocol:?}");
        // Whichever it was, the other is there when it goes.
        for (gone, left) in [(&plain, "both"), (&v1, "")] {
            vary(&mut world, CLUSTERS, "cart", &[], &[gone]);
            assert_eq!(held(&world, either, CLUSTERS), left, "{protocol:?}");
        }
        let qa = asks(&mut world, last, protocol, client([("env", value("qa"))]), CLUSTERS, "cart");
        vary(&mut world, CLUSTERS, "cart", &[(&plain, "env")], &[]);
        assert_eq!([qa, either].map(|client| held(&world, client, CLUSTERS)), ["", "env"], "{protocol:?}");
    }
}

/// "xDS Minor/Patch Version Negotiation". The text constrains `minor` where its variants have `patch`: then all of them match.
#[test]
fn version_negotiation() {
    const PATCH: &str = "xds.version.patch";
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let variants = ["0", "1", "2", "3", "4", "5"].map(|patch| parameters(&[(PATCH, patch)]));
        let content = ["old", "old", "old", "old", "old", "new"];
        let put: Vec<_> = variants.iter().zip(content).collect();
        vary(&mut world, CLUSTERS, "cart", &put, &[]);
        for (newest, expected) in [(5, "new"), (7, "new"), (4, "old"), (2, "old"), (0, "old")] {
            let range = client([(PATCH, ranges(&[(0, newest)]))]);
            let client = asks(&mut world, last, protocol, range, CLUSTERS, "cart");
            assert_eq!(held(&world, client, CLUSTERS), expected, "{protocol:?} 3.0.{newest}");
        }
        let text = client([("xds.version.minor", ranges(&[(0, 5)]))]);
        let text = asks(&mut world, last, protocol, text, CLUSTERS, "cart");
        assert!(["old", "new"].contains(&&*held(&world, text, CLUSTERS)), "{protocol:?}");
    }
}

/// "Sharding Clusters": shards [4-6], [11-15] and [46-90], by one value for SRDS and by ranges for a collection of clusters.
#[test]
fn sharding_clusters() {
    const SHARDS: &str = "[4-6],[11-15],[46-90]";
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        for (shards, body) in [(SHARDS, "mine"), ("[1-3]", "others")] {
            vary(&mut world, SCOPED_ROUTES, "scopes", &[(&parameters(&[("shards", shards)]), body)], &[]);
        }
        let scopes = asks(&mut world, last, protocol, client([("shards", value(SHARDS))]), SCOPED_ROUTES, "scopes");
        assert_eq!(held(&world, scopes, SCOPED_ROUTES), "mine", "{protocol:?}");

        let name = |at: u64| format!("xdstp://a/envoy.config.cluster.v3.Cluster/shards/{at:03}");
        let put = |world: &mut World, at: u64, body: &str| {
            let shard = parameters(&[("shards", &at.to_string())]);
            let name = if protocol == DELTA { name(at) } else { format!("{at:03}") };
            vary(world, CLUSTERS, &name, &[(&shard, body)], &[]);
        };
        for at in [3, 4, 6, 7, 11, 15, 16, 45, 46, 90, 91] {
            put(&mut world, at, &at.to_string());
        }
        let mine = client([("shards", ranges(&[(4, 6), (11, 15), (46, 90)]))]);
        // Over SotW there are no globs: what stands for one is all that there is.
        let all = if protocol == DELTA { "xdstp://a/envoy.config.cluster.v3.Cluster/shards/*" } else { "*" };
        let mine = asks(&mut world, last, protocol, mine, CLUSTERS, all);
        assert_eq!(held(&world, mine, CLUSTERS), "4 6 11 15 46 90", "{protocol:?}");
        for (at, body) in [(5, "5"), (8, "8"), (90, "new")] {
            put(&mut world, at, body);
        }
        assert_eq!(held(&world, mine, CLUSTERS), "4 5 6 11 15 46 new", "{protocol:?}");
        // "may change at any time": the assignment is another one.
        let moved = client([("shards", ranges(&[(1, 3), (7, 8)]))]);
        let moved = asks(&mut world, last, protocol, moved, CLUSTERS, all);
        assert_eq!(held(&world, moved, CLUSTERS), "3 7 8", "{protocol:?}");
    }
}

/// "Sharding Endpoints" and "Selecting Cluster Based on ACL": what the server says a client is to send.
#[test]
fn sharding_endpoints_and_selecting_by_acl() {
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let subset = endpoints("a", "cart");
        for (of, name, key, values) in
            [(ENDPOINTS, &*subset, "subset_id", ["123", "456"]), (ROUTES, "routes", "use_proxy", ["true", "false"])]
        {
            let variants = values.map(|value| parameters(&[(key, value)]));
            let put: Vec<_> = variants.iter().zip(values).collect();
            vary(&mut world, of, name, &put, &[]);
            let clients = values.map(|of_key| {
                let selector = client([(key, value(of_key))]);
                asks(&mut world, last, protocol, selector, of, name)
            });
            assert_eq!(clients.map(|client| held(&world, client, of)), values, "{protocol:?}");
            // What is for the one is never told to the other.
            vary(&mut world, of, name, &[(&variants[0], "new")], &[]);
            assert_eq!(clients.map(|client| held(&world, client, of)), ["new", values[1]], "{protocol:?}");
            vary(&mut world, of, name, &[], &[&variants[1]]);
            // Over SotW nothing says that one of these is gone (rule 66).
            let gone = if protocol == DELTA { "" } else { values[1] };
            assert_eq!(clients.map(|client| held(&world, client, of)), ["new", gone], "{protocol:?}");
        }
    }
}

/// "Dynamic Route Selection": nine variants with four contents, and four for clients that are told what to send.
#[test]
fn dynamic_route_selection() {
    const ENVS: [&str; 3] = ["prod", "canary", "test"];
    const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];
    let content = |env: &str, version: &str| match (env, version) {
        ("prod", "v1") => "both",
        ("prod", _) => "env=prod",
        (_, "v1") => "version=v1",
        _ => "neither",
    };
    for protocol in BOTH {
        let (mut world, last) = world(protocol);
        let pairs = || ENVS.into_iter().flat_map(|env| VERSIONS.map(|version| (env, version)));
        let nine: Vec<_> = pairs().map(|(env, version)| (variant(env, version), content(env, version))).collect();
        let put: Vec<_> = nine.iter().map(|(variant, content)| (variant, *content)).collect();
        vary(&mut world, ROUTES, "nine", &put, &[]);
        let four = [("prod", "v1"), ("prod", "NOT_v1"), ("NOT_prod", "v1"), ("NOT_prod", "NOT_v1")];
        let four = four.map(|(env, version)| (variant(env, version), content(env, version)));
        let put: Vec<_> = four.iter().map(|(variant, content)| (variant, *content)).collect();
        vary(&mut world, ROUTES, "four", &put, &[]);
        for (env, version) in pairs() {
            let exact = client([("env", value(env)), ("version", value(version))]);
            let told = client([
                ("env", if env == "prod" { value("prod") } else { inverted("prod") }),
                ("version", if version == "v1" { value("v1") } else { inverted("v1") }),
            ]);
            for (name, selector) in [("nine", exact), ("four", told)] {
                let client = asks(&mut world, last, protocol, selector, ROUTES, name);
                assert_eq!(held(&world, client, ROUTES), content(env, version), "{protocol:?} {name} {env} {version}");
            }
        }
    }
}
