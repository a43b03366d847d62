//! The examples of xRFC TP2 as accepted (2022-02-09), in the order of the text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use xds_matcher::{Constraint, DynamicParameters, FinalVariants, LintOptions, Overlap};

fn constraint(text: &str) -> Constraint {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn variants(variants: &[(&'static str, &str)]) -> FinalVariants<&'static str> {
    FinalVariants::new(variants.iter().map(|(name, text)| (*name, constraint(text))))
}

fn client<const N: usize>(parameters: [(&str, &str); N]) -> DynamicParameters {
    parameters.into_iter().collect()
}

/// The one variant that matches.
fn selected(variants: &FinalVariants<&'static str>, client: &DynamicParameters) -> Option<&'static str> {
    let selection = variants.select(client);
    assert!(!selection.is_ambiguous(), "{client}");
    selection.variant().copied()
}

#[test]
fn basic_dynamic_parameters_usage() {
    let variants = variants(&[("prod", "env=prod"), ("test", "env=test")]);
    assert_eq!(selected(&variants, &client([("env", "prod")])), Some("prod"));
    assert_eq!(selected(&variants, &client([("env", "test")])), Some("test"));
    // The client checks that what it received is for it.
    assert!(constraint("env=prod").matches(&client([("env", "prod")])));
}

#[test]
fn unconstrained_parameters_match_every_variant() {
    // "parameters not mentioned by the constraints" do not matter, and a lone variant may have no constraints.
    let only = variants(&[("only", "true")]);
    assert_eq!(selected(&only, &client([("env", "test")])), Some("only"));
    assert_eq!(selected(&only, &client([])), Some("only"));
    let prod = variants(&[("prod", "env=prod")]);
    assert_eq!(selected(&prod, &client([("env", "prod"), ("shard", "7")])), Some("prod"));
}

#[test]
fn adding_a_new_key_on_the_clients_first() {
    let before = [("prod", "env=prod"), ("test", "env=test")];
    let clients = |env, version| client([("env", env), ("version", version)]);

    // Step 1: clients send the new key; the variants do not know it and match as before.
    let variants_now = variants(&before);
    for version in ["v1", "v2"] {
        assert_eq!(selected(&variants_now, &clients("prod", version)), Some("prod"));
        assert_eq!(selected(&variants_now, &clients("test", version)), Some("test"));
    }

    // Step 2: the variant for env=prod is replaced by two.
    let step_2 = [before[1], ("prod-v1", "env=prod and version=v1"), ("prod-v2", "env=prod and version=v2")];
    let variants_now = variants(&step_2);
    assert_eq!(selected(&variants_now, &clients("prod", "v1")), Some("prod-v1"));
    assert_eq!(selected(&variants_now, &clients("prod", "v2")), Some("prod-v2"));
    assert_eq!(selected(&variants_now, &clients("test", "v2")), Some("test"));

    // The end: the variant for env=test as well.
    let end = [step_2[1], step_2[2], ("test-v1", "env=test and version=v1"), ("test-v2", "env=test and version=v2")];
    let variants_now = variants(&end);
    for (env, version) in [("prod", "v1"), ("prod", "v2"), ("test", "v1"), ("test", "v2")] {
        assert_eq!(selected(&variants_now, &clients(env, version)), Some(format!("{env}-{version}")).as_deref());
    }
    let values = [("env", ["prod", "test"].as_slice()), ("version", &["v1", "v2"])];
    assert!(variants_now.lint(&LintOptions::new().values(&values).sent(&["env", "version"])).is_clean());
}

#[test]
fn adding_a_new_key_on_the_server_first() {
    let (old, new) = (client([("env", "prod")]), client([("env", "prod"), ("version", "v1")]));

    // Leaving the original variant in place makes both match a newer client.
    let both = variants(&[("default", "env=prod"), ("new", "env=prod and version=v1")]);
    assert_eq!(selected(&both, &old), Some("default"));
    assert!(both.select(&new).is_ambiguous());
    assert_eq!(both.lint(&LintOptions::new()).overlaps, [(&"default", &"new")]);

    // `exists` tells clients that send the key from those that do not.
    let exclusive = variants(&[("default", "env=prod and not exists(version)"), ("new", "env=prod and version=v1")]);
    assert_eq!(selected(&exclusive, &old), Some("default"));
    assert_eq!(selected(&exclusive, &new), Some("new"));
    assert!(exclusive.lint(&LintOptions::new().sent(&["env"])).is_clean());
}

#[test]
fn variants_with_overlapping_constraint_values_must_be_rejected() {
    let (a, b) = ("env=prod or env=test", "env=qa or env=test");
    let overlap = constraint(a).overlap(&constraint(b));
    assert_eq!(overlap, Overlap::Overlapping(client([("env", "test")])));
    let variants = variants(&[("a", a), ("b", b)]);
    assert!(variants.select(&client([("env", "test")])).is_ambiguous());
    assert_eq!(selected(&variants, &client([("env", "qa")])), Some("b"));
}

#[test]
fn there_must_be_a_variant_for_every_value() {
    let variants = variants(&[("prod", "env=prod"), ("test", "env=test")]);
    // Otherwise it is as if the resource did not exist.
    assert_eq!(selected(&variants, &client([("env", "qa")])), None);
    let values = [("env", ["prod", "test", "qa"].as_slice())];
    assert_eq!(variants.lint(&LintOptions::new().values(&values)).uncovered["env"], ["qa"]);
}

#[test]
fn several_variants_of_a_key_that_nobody_sends_are_reported() {
    let variants = variants(&[("v1", "env=prod and version=v1"), ("v2", "env=prod and version=v2")]);
    let report = variants.lint(&LintOptions::new().sent(&["env"]));
    assert_eq!(report.unsent["version"], [&"v1", &"v2"]);
}

#[test]
fn dynamic_route_selection() {
    // Two routes, each selected by one key: four contents, and not the nine of the cross-product.
    let variants = variants(&[
        ("neither", "not env=prod and not version=v1"),
        ("env-only", "env=prod and not version=v1"),
        ("version-only", "not env=prod and version=v1"),
        ("both", "env=prod and version=v1"),
    ]);
    for env in ["prod", "canary", "test"] {
        for version in ["v1", "v2", "v3"] {
            let expected = match (env, version) {
                ("prod", "v1") => "both",
                ("prod", _) => "env-only",
                (_, "v1") => "version-only",
                _ => "neither",
            };
            assert_eq!(selected(&variants, &client([("env", env), ("version", version)])), Some(expected));
        }
    }
    assert_eq!(selected(&variants, &client([])), Some("neither"));
    let values = [("env", ["prod", "canary", "test"].as_slice()), ("version", &["v1", "v2", "v3"])];
    assert!(variants.lint(&LintOptions::new().values(&values).sent(&["env", "version"])).is_clean());
}

#[test]
fn endpoint_subsets_and_acl_are_values_the_client_is_configured_with() {
    let subsets = variants(&[("123", "subset_id=123"), ("456", "subset_id=456")]);
    assert_eq!(selected(&subsets, &client([("subset_id", "456")])), Some("456"));
    let routes = variants(&[("direct", "use_proxy=false"), ("proxy", "use_proxy=true")]);
    assert_eq!(selected(&routes, &client([("use_proxy", "true")])), Some("proxy"));
}
