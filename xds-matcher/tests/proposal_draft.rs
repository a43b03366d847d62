//! The examples of the 2021 draft of xRFC TP2, in the order of the text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use xds_matcher::draft::{
    Constraint as Leaf, DynamicParameterConstraints, DynamicParameterConstraintsMap, IntegerRangeList, KeyConstraints,
    Kind, Range, Subscription,
};
use xds_matcher::{DraftVariants, DynamicParameters, LintOptions};

fn value(value: &str) -> Kind {
    Kind::Value(value.into())
}

fn ranges(ranges: &[(u64, u64)]) -> Kind {
    let range = |&(min, max): &(u64, u64)| Range { min_value: Some(min), max_value: Some(max) };
    Kind::IntegerRangeList(IntegerRangeList { range: ranges.iter().map(range).collect() })
}

fn rule(kind: Kind) -> KeyConstraints {
    KeyConstraints { constraints: vec![Leaf { kind: Some(kind) }], invert: false }
}

fn inverted(kind: Kind) -> KeyConstraints {
    KeyConstraints { invert: true, ..rule(kind) }
}

fn constraints<const N: usize>(keys: [(&str, KeyConstraints); N]) -> DynamicParameterConstraints {
    DynamicParameterConstraints { key_constraints: keys.map(|(key, rule)| (key.into(), rule)).into() }
}

fn client<const N: usize>(keys: [(&str, KeyConstraints); N]) -> Subscription {
    constraints(keys).lower().unwrap()
}

fn env_version(env: &str, version: &str) -> Subscription {
    client([("env", rule(value(env))), ("version", rule(value(version)))])
}

/// Variants named by their parameters: `env=prod version=v1`.
fn variants(names: &[&'static str]) -> DraftVariants<&'static str> {
    let parameters =
        |name: &'static str| name.split(' ').filter_map(|pair| pair.split_once('=')).collect::<DynamicParameters>();
    DraftVariants::new(names.iter().map(|name| (*name, parameters(name))))
}

/// The one variant that is best.
fn selected(variants: &DraftVariants<&'static str>, client: &Subscription) -> Option<&'static str> {
    let selection = variants.select(client);
    assert!(!selection.is_ambiguous(), "{}", client.constraint());
    selection.variant().copied()
}

const ALL_FOUR: [&str; 4] =
    ["env=prod version=v1", "env=prod version=v2", "env=test version=v1", "env=test version=v2"];

#[test]
fn matching_ambiguity() {
    let by_env = variants(&["env=prod", "env=test"]);
    assert_eq!(selected(&by_env, &client([("env", rule(value("prod")))])), Some("env=prod"));
    assert_eq!(selected(&by_env, &client([("env", rule(value("test")))])), Some("env=test"));
    // The key was added on the clients first: a variant that does not have it matches.
    assert_eq!(selected(&by_env, &env_version("prod", "v1")), Some("env=prod"));

    // The key was added on the server first: a client without it may get either.
    assert!(variants(&ALL_FOUR).select(&client([("env", rule(value("prod")))])).is_ambiguous());

    // Variants with and without the key: these constraints can match either.
    let mixed = variants(&["env=prod", "env=prod version=v1"]);
    assert!(mixed.select(&env_version("prod", "v1")).is_ambiguous());
    assert!(!mixed.lint(&LintOptions::new()).same_keys);
}

#[test]
fn a_new_key_in_the_expected_order_of_changes() {
    // 1. Clients start sending version=v1.
    assert_eq!(selected(&variants(&["env=prod", "env=test"]), &env_version("prod", "v1")), Some("env=prod"));
    // 2. All existing resources get version=v1.
    let step_2 = variants(&["env=prod version=v1", "env=test version=v1"]);
    assert_eq!(selected(&step_2, &env_version("prod", "v1")), Some("env=prod version=v1"));
    assert_eq!(selected(&step_2, &env_version("prod", "v2")), None);
    // 3. New variants with version=v2 appear; nobody asks for them yet.
    let step_3 = variants(&ALL_FOUR);
    assert_eq!(selected(&step_3, &env_version("test", "v1")), Some("env=test version=v1"));
    // 4. Some clients change to version=v2.
    assert_eq!(selected(&step_3, &env_version("test", "v2")), Some("env=test version=v2"));
    assert!(step_3.lint(&LintOptions::new().sent(&["env", "version"])).is_clean());
}

#[test]
fn several_variants_of_a_parameter_that_is_not_sent_yet_are_reported() {
    let report_on = |names: &[&'static str]| {
        let variants = variants(names);
        let report = variants.lint(&LintOptions::new().sent(&["env"]));
        report.unsent.get("version").map(|names| names.iter().map(|name| **name).collect::<Vec<_>>())
    };
    assert_eq!(report_on(&ALL_FOUR), Some(ALL_FOUR.to_vec()));
    assert_eq!(report_on(&["env=prod version=v1", "env=test version=v1"]), None);
}

#[test]
fn the_largest_matching_value_is_preferred() {
    let up_to_five = client([("shard", rule(ranges(&[(0, 5)])))]);
    assert_eq!(selected(&variants(&["shard=3", "shard=5", "shard=6"]), &up_to_five), Some("shard=5"));
    // A cache with only {shard=3} must ask for {shard=5} before it falls back to what it has.
    assert!(variants(&["shard=3"]).must_ask_upstream(&up_to_five));
    assert!(!variants(&["shard=3", "shard=5"]).must_ask_upstream(&up_to_five));
    // "This is not an issue for glob collections, because in that case all matching variants of the resource will be used."
    assert_eq!(variants(&["shard=3", "shard=5", "shard=6"]).matches(&up_to_five), [&"shard=3", &"shard=5"]);
}

#[test]
fn there_must_be_a_variant_for_every_value() {
    let values = [("env", ["prod", "test", "qa"].as_slice())];
    let variants = variants(&["env=prod", "env=test"]);
    assert_eq!(variants.lint(&LintOptions::new().values(&values)).uncovered["env"], ["qa"]);
}

#[test]
fn server_specified_constraints() {
    let listener = "envoy.config.listener.v3.Listener";
    let map = |listener_type: &str| DynamicParameterConstraintsMap {
        resource_type_constraints: [(
            listener.to_owned(),
            constraints([("listener_type", rule(value(listener_type)))]),
        )]
        .into(),
    };
    let (direct, via_proxy) = (map("direct"), map("via_proxy"));
    assert_eq!(direct.check(), Ok(()));
    let listeners = variants(&["listener_type=direct", "listener_type=via_proxy"]);
    let subscription = |map: &DynamicParameterConstraintsMap| map.constraints(listener).unwrap().lower().unwrap();
    assert_eq!(selected(&listeners, &subscription(&direct)), Some("listener_type=direct"));
    // An update changes the constraints: the client unsubscribes and subscribes again.
    assert!(via_proxy.must_resubscribe(Some(&direct), listener));
    assert_eq!(selected(&listeners, &subscription(&via_proxy)), Some("listener_type=via_proxy"));
    // Other types, and a client that could not obtain the map, go without additional constraints.
    assert_eq!(direct.constraints("envoy.config.cluster.v3.Cluster"), None);
    assert!(listeners.select(&DynamicParameterConstraints::default().lower().unwrap()).is_ambiguous());
}

#[test]
fn node_metadata_is_translated_to_exact_constraints() {
    let metadata: DynamicParameters = [("env", "prod")].into_iter().collect();
    assert_eq!(metadata.to_draft_constraints(), constraints([("env", rule(value("prod")))]));
}

#[test]
fn version_negotiation() {
    let patches =
        variants(&["xds.version.patch=5", "xds.version.patch=4", "xds.version.patch=3", "xds.version.patch=0"]);
    let up_to = |patch| client([("xds.version.patch", rule(ranges(&[(0, patch)])))]);
    assert_eq!(selected(&patches, &up_to(5)), Some("xds.version.patch=5"));
    assert_eq!(selected(&patches, &up_to(9)), Some("xds.version.patch=5"));
    assert_eq!(selected(&patches, &up_to(4)), Some("xds.version.patch=4"));
    // A client of the very first patch: a range of zero alone.
    assert_eq!(selected(&patches, &up_to(0)), Some("xds.version.patch=0"));
    // The text's client constrains the minor version, which no variant has: everything matches.
    let as_printed = client([("xds.version.minor", rule(ranges(&[(0, 5)])))]);
    assert!(patches.select(&as_printed).is_ambiguous());
}

#[test]
fn sharding_clusters() {
    // SRDS, a single resource: one exact string for the whole assignment.
    let assignment = DynamicParameters::from_iter([("shards", "[4-6],[11-15],[46-90]")]);
    let scopes =
        DraftVariants::new([("mine", assignment.clone()), ("other", [("shards", "[1-3]")].into_iter().collect())]);
    let srds = client([("shards", rule(value("[4-6],[11-15],[46-90]")))]);
    assert_eq!(scopes.select(&srds).variant(), Some(&"mine"));
    // CDS, a glob collection: all clusters of these shards.
    let clusters = variants(&["shards=3", "shards=5", "shards=11", "shards=45", "shards=90"]);
    let cds = client([("shards", rule(ranges(&[(4, 6), (11, 15), (46, 90)])))]);
    let mut matching = clusters.matches(&cds);
    matching.sort();
    assert_eq!(matching, [&"shards=11", &"shards=5", &"shards=90"]);
}

#[test]
fn sharding_endpoints_and_selecting_by_acl() {
    let subsets = variants(&["subset_id=123", "subset_id=456"]);
    assert_eq!(selected(&subsets, &client([("subset_id", rule(value("123")))])), Some("subset_id=123"));
    let routes = variants(&["use_proxy=true", "use_proxy=false"]);
    assert_eq!(selected(&routes, &client([("use_proxy", rule(value("true")))])), Some("use_proxy=true"));
}

#[test]
fn dynamic_route_selection() {
    // Without DPDS, the cross-product: nine variants.
    let nine = variants(&[
        "env=prod version=v1",
        "env=prod version=v2",
        "env=prod version=v3",
        "env=canary version=v1",
        "env=canary version=v2",
        "env=canary version=v3",
        "env=test version=v1",
        "env=test version=v2",
        "env=test version=v3",
    ]);
    assert_eq!(selected(&nine, &env_version("canary", "v3")), Some("env=canary version=v3"));
    assert!(nine.lint(&LintOptions::new()).is_clean());

    // With DPDS, four variants, and constraints that name what a client is not.
    let four = variants(&[
        "env=prod version=v1",
        "env=prod version=NOT_v1",
        "env=NOT_prod version=v1",
        "env=NOT_prod version=NOT_v1",
    ]);
    let (prod, v1) = (|| value("prod"), || value("v1"));
    for (env, version, expected) in [
        (inverted(prod()), inverted(v1()), "env=NOT_prod version=NOT_v1"),
        (rule(prod()), inverted(v1()), "env=prod version=NOT_v1"),
        (inverted(prod()), rule(v1()), "env=NOT_prod version=v1"),
        (rule(prod()), rule(v1()), "env=prod version=v1"),
    ] {
        assert_eq!(selected(&four, &client([("env", env), ("version", version)])), Some(expected));
    }
}
