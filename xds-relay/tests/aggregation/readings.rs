//! What rules come to as a whole: where the two readings differ, when keys do, and why.

use xds_relay::aggregation::{KeyError, Reading, Verdict};

use crate::support::{key, key_by, request, rules, with_match, with_result};

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

#[test]
fn the_form_of_the_readme_says_the_same() {
    let json = r#"{"type_url": "t", "node": {"id": "i", "cluster": "c", "locality": {"region": "r", "zone": "z", "subZone": "s"}}}"#;
    let fields = [
        ("0", "NODE_ID", "i"),
        ("1", "NODE_CLUSTER", "c"),
        ("2", "NODE_LOCALITY_REGION", "r"),
        ("3", "NODE_LOCALITY_ZONE", "z"),
        ("4.0", "\"NODE_LOCALITY_SUBZONE\"", "s"),
        ("~", "NODE_ID", "i"),
    ];
    let documented = |text: &str| key_by(text, Reading::Documented, json).map(|key| key.label());
    for (number, name, value) in fields {
        for field in [number, name] {
            let of = format!("{{request_node_match: {{field: {field}, exact_match: {value}}}}}");
            assert!(documented(&with_match(&of)).is_ok(), "{of}");
            let of = format!("{{requestNodeMatch: {{field: {field}, regexMatch: '^{value}$'}}}}");
            assert!(documented(&with_match(&of)).is_ok(), "{of}");
            let taken = format!("{{request_node_fragment: {{field: {field}, action: {{exact: true}}}}}}");
            assert_eq!(documented(&with_result(&taken)).as_deref(), Ok(value), "{taken}");
        }
    }
    assert_eq!(documented(&with_result("{request_node_fragment: {action: {exact: true}}}")).as_deref(), Ok("i"));
    assert_eq!(documented(&with_match("{request_node_match: {exact_match: c}}")), Err(KeyError::NoRule));
}

#[test]
fn entries_are_merged_as_yaml_1_1_has_it() {
    let json = r#"{"type_url": "t", "node": {"id": "i"}}"#;
    let text = "
fragments:
- rules:
  - &base
    match: { any_match: true }
    result: { string_fragment: base }
- rules:
  - <<: *base
    result: { string_fragment: own }
- rules:
  - <<: [{ result: { string_fragment: first } }, *base]
";
    assert_eq!(key(text, json).unwrap().label(), "base_own_first");
}

/// Of a fragment the first rule that matches counts, says the README; each that matches, says the program.
#[test]
fn the_first_rule_that_matches_counts_or_each() {
    let text = "
fragments:
- rules:
  - { match: { not_match: { any_match: true } }, result: { string_fragment: a } }
  - { match: { any_match: true }, result: { string_fragment: b } }
  - { match: { any_match: true }, result: { resource_names_fragment: { action: { exact: true } } } }
";
    let one = r#"{"type_url": "t", "resource_names": ["n"]}"#;
    assert_eq!(key_by(text, Reading::Documented, one).unwrap().label(), "b");
    assert_eq!(key_by(text, Reading::LegacyAllMatches, one).unwrap().label(), "b_n");
    // What comes after the first is not looked at, so that nothing is wrong with it.
    let none = r#"{"type_url": "t"}"#;
    assert_eq!(key_by(text, Reading::Documented, none).unwrap().label(), "b");
    assert_eq!(key_by(text, Reading::LegacyAllMatches, none), Err(KeyError::NoSuchName));
}

#[test]
fn a_type_of_v2_stands_for_that_of_v3_by_the_documents_only() {
    let text = with_match("{request_type_match: {types: [type.googleapis.com/envoy.api.v2.Listener]}}");
    let new = format!(r#"{{"type_url": "{LISTENER}"}}"#);
    let old = r#"{"type_url": "type.googleapis.com/envoy.api.v2.Listener"}"#;
    assert!(key(&text, old).is_ok());
    assert!(key_by(&text, Reading::Documented, &new).is_ok());
    assert_eq!(key_by(&text, Reading::LegacyAllMatches, &new), Err(KeyError::NoRule));
    // Not the other way about: a request for v2 is for what v2 means.
    let text = with_match(&format!("{{request_type_match: {{types: [{LISTENER}]}}}}"));
    assert_eq!(key(&text, old), Err(KeyError::NoRule));
    let text = with_match("{not_match: {request_type_match: {types: [type.googleapis.com/envoy.api.v2.Listener]}}}");
    assert_eq!(key_by(&text, Reading::Documented, &new), Err(KeyError::NoRule));
}

/// Labels run into each other, keys do not.
#[test]
fn keys_differ_where_any_part_does() {
    let exact = |field: &str| format!("{{request_node_fragment: {{{field}_action: {{exact: true}}}}}}");
    let node =
        |id: &str, cluster: &str| format!(r#"{{"type_url": "t", "node": {{"id": "{id}", "cluster": "{cluster}"}}}}"#);
    let two = format!(
        "fragments: [rules: [{{match: {{any_match: true}}, result: {}}}], rules: [{{match: {{any_match: true}}, result: {}}}]]",
        exact("id"),
        exact("cluster")
    );
    let two = two
        .replace("], rules:", "]}, {rules:")
        .replace("fragments: [rules:", "fragments: [{rules:")
        .replace("]]", "]}]");
    let and = with_result(&format!("{{and_result: {{result_predicates: [{}, {}]}}}}", exact("id"), exact("cluster")));
    let locality = with_result(
        "{request_node_fragment: {locality_action: {region_action: {exact: true}, zone_action: {exact: true}}}}",
    );
    let place = |region: &str, zone: &str| {
        format!(r#"{{"type_url": "t", "node": {{"locality": {{"region": "{region}", "zone": "{zone}"}}}}}}"#)
    };
    for (text, one, other) in [
        (&two, node("a_b", "c"), node("a", "b_c")),
        (&and, node("ab", "c"), node("a", "bc")),
        (&locality, place("a|b", "c"), place("a", "b|c")),
    ] {
        let (one, other) = (key(text, &one).unwrap(), key(text, &other).unwrap());
        assert_eq!(one.label(), other.label());
        assert_ne!(one, other);
        assert_ne!(one.to_bytes(), other.to_bytes());
        assert_ne!(one.to_string(), other.to_string());
    }
    // A value of one fragment is none of another.
    let either = "
fragments:
- rules: [{ match: { request_node_match: { id_match: { exact_match: a } } }, result: { string_fragment: x } }]
- rules: [{ match: { request_node_match: { id_match: { exact_match: b } } }, result: { string_fragment: x } }]
";
    let (one, other) = (key(either, &node("a", "")).unwrap(), key(either, &node("b", "")).unwrap());
    assert_eq!((one.label(), one.to_string()), ("x".to_owned(), r#""x" -"#.to_owned()));
    assert_eq!((other.label(), other.to_string()), ("x".to_owned(), r#"- "x""#.to_owned()));
    assert_ne!(one, other);
    assert_ne!(one.to_bytes(), other.to_bytes());
}

#[test]
fn an_explanation_has_a_reason_for_every_rule() {
    let text = r#"
fragments:
- rules:
  - match: { request_node_match: { id_match: { exact_match: canary } } }
    result: { string_fragment: canary }
  - match: { and_match: { rules: [{ any_match: true }, { request_node_match: { locality_match: { zone: { regex_match: "^eu" } } } }] } }
    result: { string_fragment: eu }
  - match: { or_match: { rules: [{ request_type_match: { types: [a, b] } }, { request_node_match: { node_metadata_match: { path: [{ key: m }, { key: o }], match: { bool_match: { value_match: true } } } } }] } }
    result: { string_fragment: typed }
  - match: { not_match: { request_type_match: { types: [t] } } }
    result: { string_fragment: other }
  - match: { any_match: true }
    result: { request_node_fragment: { id_action: { exact: true } } }
  - match: { any_match: true }
    result: { string_fragment: last }
- rules:
  - match: { any_match: true }
    result: { resource_names_fragment: { element: 1, action: { exact: true } } }
"#;
    let rules = rules(text, Reading::Documented);
    let mut json = request(r#"{"type_url": "t", "resource_names": ["n"], "node": {"id": "web", "metadata": {}}}"#);
    let explanation = rules.explain(&json.as_request());
    assert_eq!(explanation.key, Err(KeyError::NoSuchName));
    assert_eq!(explanation.fragments[0][5].verdict, Verdict::NotReached);
    assert_eq!(
        explanation.to_string(),
        r#"no key: ResourceNamesFragment.Element cannot be negative or larger than length
  fragment 1, rule 1 (line 4) did not match: id is "web", not "canary"
  fragment 1, rule 2 (line 6) did not match: zone is "", without "^eu"
  fragment 1, rule 3 (line 8) did not match: none of (the type "t" is none of 2; there is no metadata.m.o)
  fragment 1, rule 4 (line 10) did not match: what it negates matches
  fragment 1, rule 5 (line 12) matched: "web"
  fragment 1, rule 6 (line 14) was not looked at
  fragment 2, rule 1 (line 17) failed: ResourceNamesFragment.Element cannot be negative or larger than length
"#
    );
    json = request(r#"{"type_url": "t", "resource_names": ["n", "m"], "node": {"id": "web", "metadata": {}}}"#);
    let explanation = rules.explain(&json.as_request());
    assert_eq!(explanation.key, rules.key(&json.as_request()));
    assert!(explanation.to_string().starts_with("key web_m: \"web\" \"m\"\n"));
    json = request(r#"{"type_url": "t", "resource_names": ["n", "m"], "node": {"id": "a\n\u001bb", "metadata": {}}}"#);
    let shown = rules.explain(&json.as_request()).to_string();
    assert!(shown.starts_with("key a\\n\\u{1b}b_m: \"a\\n\\u{1b}b\" \"m\"\n"), "{shown}");
}
