//! Variants of a name in files (TP2): whom each is for, and that it is for nobody else's.

#![cfg(feature = "file-origin")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use xds_relay::file_origin::{Descriptors, FileResource, load_embedded};

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// One line for each, behind the first: what says its name and whom it is for.
fn file(entries: &[&str]) -> String {
    let entry = |named: &&str| format!("- {{ {named}, resource: {{ \"@type\": {CLUSTER}, name: cart }} }}\n");
    format!("resources:\n{}", entries.iter().map(entry).collect::<String>())
}

fn read(files: &[(&str, &str)]) -> Result<Vec<FileResource>, String> {
    load_embedded(files, &Descriptors::built_in().unwrap()).map_err(|error| error.to_string())
}

fn of(constraints: &str) -> String {
    format!("resource_name: {{ name: cart, dynamic_parameter_constraints: {constraints} }}")
}

/// Whom the variants are for, in the order of these.
fn variants(files: &[(&str, &str)]) -> Vec<String> {
    let resources = read(files).unwrap();
    assert!(resources.iter().all(|resource| resource.name == "cart" && resource.type_url == CLUSTER));
    resources.iter().map(|of| of.variant.as_ref().map_or_else(String::new, ToString::to_string)).collect()
}

#[test]
fn whom_a_variant_is_for_is_said_as_the_protocol_has_it_or_as_text() {
    let json = "{ and_constraints: { constraints: [{ constraint: { key: env, value: prod } }, \
                { not_constraints: { constraint: { key: version, exists: {} } } }] } }";
    for (constraints, expected) in [
        ("{ constraint: { key: env, value: prod } }", "env=prod"),
        (json, "env=prod and not exists(version)"),
        ("env=prod and not exists(version)", "env=prod and not exists(version)"),
        // Without any it is for everybody, as one without variants is.
        ("{}", ""),
    ] {
        assert_eq!(variants(&[("a.yaml", &file(&[&of(constraints)]))]), [expected], "{constraints}");
    }
    // The name is that of the message inside, then.
    let unnamed = "resource_name: { dynamic_parameter_constraints: env=prod }";
    assert_eq!(variants(&[("a.yaml", &file(&[unnamed]))]), ["env=prod"]);
    assert_eq!(variants(&[("a.yaml", &file(&["resource_name: { name: cart }"]))]), [""]);
}

#[test]
fn variants_of_one_name_may_be_in_several_files_and_have_one_order() {
    let [prod, test, other] =
        ["env=prod", "env=test", "not (env=prod or env=test)"].map(|constraints| file(&[&of(constraints)]));
    let one = variants(&[("a.yaml", &prod), ("b.yaml", &test), ("c.yaml", &other)]);
    assert_eq!(one.len(), 3);
    assert_eq!(variants(&[("a.yaml", &other), ("b.yaml", &prod), ("c.yaml", &test)]), one);
}

#[test]
fn rule_119_two_that_are_for_the_same_parameters_are_an_error_that_names_both_places() {
    const PLACE: &str = "b.yaml:2:3: resources[0]: type.googleapis.com/envoy.config.cluster.v3.Cluster `cart`";
    let name = "name: cart".to_owned();
    for (first, second, reason) in [
        (
            of("env=prod"),
            of("env=prod"),
            " for `env=prod` is also for who sends {env=prod}, as that for `env=prod` in a.yaml:2:3",
        ),
        (
            of("env=prod"),
            of("{ constraint: { key: version, value: v1 } }"),
            " for `version=v1` is also for who sends {env=prod, version=v1}, as that for `env=prod` in a.yaml:2:3",
        ),
        (
            name.clone(),
            of("env=prod"),
            " is in a.yaml:2:3 already, without constraints: that is for everybody, also for who sends {env=prod}",
        ),
        (
            of("env=prod"),
            name.clone(),
            " without constraints is for everybody, and one for some is in a.yaml:2:3: both are for who sends {env=prod}",
        ),
        (name.clone(), of("{}"), " is in a.yaml:2:3 already"),
    ] {
        let error = read(&[("a.yaml", &file(&[&first])), ("b.yaml", &file(&[&second]))]).unwrap_err();
        assert_eq!(error, format!("{PLACE}{reason}"));
    }
    // Also within one file, and with one in between that is for others.
    let within = file(&[&of("env=prod"), &of("env=test"), &of("env=prod or env=qa")]);
    let error = read(&[("a.yaml", &within)]).unwrap_err();
    assert!(error.starts_with("a.yaml:4:3: resources[2]: ") && error.ends_with("in a.yaml:2:3"), "{error}");
}

#[test]
fn what_is_no_constraint_is_an_error_with_its_place() {
    const AT: &str = "resources[0].resource_name";
    for (named, expected) in [
        (
            of("{ constraint: { key: env } }"),
            format!("2:79: {AT}.dynamic_parameter_constraints.constraint: no member of the required oneof is set"),
        ),
        (
            of("{ constraint: { key: env, value: 1 } }"),
            format!("2:98: {AT}.dynamic_parameter_constraints.constraint.value: not the JSON type of this field"),
        ),
        (of("{ or: [] }"), format!("2:71: {AT}.dynamic_parameter_constraints.or: no such field")),
        (of("'env='"), format!("2:65: {AT}.dynamic_parameter_constraints: `env=`: ")),
        (of("[a]"), format!("2:65: {AT}.dynamic_parameter_constraints: not the JSON type of this field")),
        ("resource_name: cart".to_owned(), format!("2:20: {AT}: expected fields")),
        ("resource_name: { names: cart }".to_owned(), format!("2:22: {AT}.names: unknown field `names`")),
        ("resource_name: { name: other }".to_owned(), format!("2:28: {AT}.name: the resource inside is named `cart`")),
        (
            format!("name: cart, {}", of("env=prod")),
            format!("2:32: {AT}: a resource has a name or a resource_name, not both"),
        ),
    ] {
        let error = read(&[("a.yaml", &file(&[&named]))]).unwrap_err();
        assert!(error.starts_with(&format!("a.yaml:{expected}")), "{named}: {error}");
    }
}
