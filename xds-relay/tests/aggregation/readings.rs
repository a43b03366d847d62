//! What each match and each result makes of a request, and where the two readings differ.

use xds_relay::aggregation::{Key, KeyError, Reading, RequestJson, Rules, Verdict};

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

fn rules(text: &str, reading: Reading) -> Rules {
    Rules::parse("rules.yaml", text, reading).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn request(json: &str) -> RequestJson {
    serde_json::from_str(json).unwrap()
}

fn key_by(text: &str, reading: Reading, json: &str) -> Result<Key, KeyError> {
    rules(text, reading).key(&request(json).as_request())
}

/// By both readings, which must say the same.
fn key(text: &str, json: &str) -> Result<Key, KeyError> {
    let documented = key_by(text, Reading::Documented, json);
    assert_eq!(documented, key_by(text, Reading::LegacyAllMatches, json), "{text}");
    documented
}

fn with_match(condition: &str) -> String {
    format!("fragments: [rules: [{{match: {condition}, result: {{string_fragment: yes it does}}}}]]")
}

fn with_result(result: &str) -> String {
    format!("fragments: [rules: [{{match: {{any_match: true}}, result: {result}}}]]")
}

fn matches(condition: &str, json: &str) -> Result<bool, KeyError> {
    match key(&with_match(condition), json) {
        Ok(_) => Ok(true),
        Err(KeyError::NoRule) => Ok(false),
        Err(error) => Err(error),
    }
}

fn comes_to(result: &str, json: &str) -> Result<String, KeyError> {
    key(&with_result(result), json).map(|key| key.label())
}

#[test]
fn texts_of_the_node_are_matched() {
    let node = r#"{"type_url": "t", "node": {"id": "i-1", "cluster": "c", "locality": {"region": "r", "zone": "z"}}}"#;
    for (condition, expected) in [
        ("{id_match: {exact_match: i-1}}", true),
        ("{id_match: {exact_match: i}}", false),
        ("{id_match: {regex_match: '-'}}", true),
        ("{id_match: {regex_match: '^-'}}", false),
        ("{idMatch: {regexMatch: '\\d$'}}", true),
        ("{cluster_match: {exact_match: c}}", true),
        ("{cluster_match: {exact_match: ''}}", false),
        ("{cluster_match: {regex_match: ''}}", false),
        ("{locality_match: {}}", true),
        ("{locality_match: {region: {exact_match: r}}}", true),
        ("{locality_match: {region: {exact_match: r}, zone: {exact_match: a}}}", false),
        ("{locality_match: {region: ~, zone: {regex_match: z}}}", true),
        // The node has no sub-zone: that is an empty one, which no exact match matches.
        ("{locality_match: {sub_zone: {exact_match: ''}}}", false),
        ("{localityMatch: {subZone: {regexMatch: '^$'}}}", true),
    ] {
        assert_eq!(matches(&format!("{{request_node_match: {condition}}}"), node), Ok(expected), "{condition}");
    }
    let nobody = r#"{"type_url": "t"}"#;
    assert_eq!(matches("{request_node_match: {locality_match: {}}}", nobody), Ok(true));
    assert_eq!(matches("{request_node_match: {locality_match: {region: {exact_match: r}}}}", nobody), Ok(false));
    assert_eq!(matches("{request_node_match: {id_match: {regex_match: '^$'}}}", nobody), Ok(true));
}

#[test]
fn metadata_is_matched_at_the_end_of_a_path_through_structs() {
    let node = r#"{"type_url": "t", "node": {"metadata": {
        "s": "v", "e": "", "t": true, "f": false, "n": 1, "null": null, "l": [{"s": "v"}, "v"], "m": {"s": "v", "m": {}}}}}"#;
    let path = |keys: &str, of: &str| {
        let path: Vec<String> = keys.split('/').map(|key| format!("{{key: '{key}'}}")).collect();
        format!("{{request_node_match: {{node_metadata_match: {{path: [{}], match: {of}}}}}}}", path.join(", "))
    };
    let text = |of: &str| format!("{{string_match: {{{of}}}}}");
    for (keys, of, expected) in [
        ("s", text("exact_match: v"), true),
        ("m/s", text("exact_match: v"), true),
        ("m/m/s", text("exact_match: v"), false),
        ("m/s/s", text("exact_match: v"), false),
        ("l/s", text("exact_match: v"), false),
        ("l/0", text("regex_match: '^$'"), false),
        ("none", text("regex_match: '^$'"), false),
        // What is no string reads as an empty one.
        ("e", text("regex_match: '^$'"), true),
        ("t", text("regex_match: '^$'"), true),
        ("n", text("regex_match: '^$'"), true),
        ("null", text("regex_match: '^$'"), true),
        ("l", text("regex_match: '^$'"), true),
        ("m", text("regex_match: '^$'"), true),
        ("n", text("exact_match: '1'"), false),
        // What is no boolean reads as false.
        ("t", "{bool_match: {value_match: true}}".to_owned(), true),
        ("f", "{bool_match: {value_match: true}}".to_owned(), false),
        ("f", "{bool_match: {value_match: false}}".to_owned(), true),
        ("f", "{bool_match: {}}".to_owned(), true),
        ("t", "{bool_match: {value_match: ~}}".to_owned(), false),
        ("s", "{boolMatch: {valueMatch: off}}".to_owned(), true),
        ("null", "{bool_match: {value_match: false}}".to_owned(), true),
        ("none", "{bool_match: {value_match: false}}".to_owned(), false),
    ] {
        assert_eq!(matches(&path(keys, &of), node), Ok(expected), "{keys} {of}");
    }
    let any = path("s", &text("exact_match: v"));
    for nothing in [r#"{"type_url": "t"}"#, r#"{"type_url": "t", "node": {"metadata": null}}"#] {
        assert_eq!(matches(&any, nothing), Err(KeyError::NoMetadata));
        assert_eq!(matches(&format!("{{not_match: {any}}}"), nothing), Err(KeyError::NoMetadata));
        assert_eq!(
            matches(&format!("{{or_match: {{rules: [{any}, {{any_match: true}}]}}}}"), nothing),
            Err(KeyError::NoMetadata)
        );
        assert_eq!(matches(&format!("{{or_match: {{rules: [{{any_match: true}}, {any}]}}}}"), nothing), Ok(true));
        let never = "{not_match: {any_match: true}}";
        assert_eq!(matches(&format!("{{and_match: {{rules: [{never}, {any}]}}}}"), nothing), Ok(false));
    }
    assert_eq!(matches(&any, r#"{"type_url": "t", "node": {"metadata": {}}}"#), Ok(false));
}

#[test]
fn results_are_taken_from_the_request() {
    let full = r#"{"type_url": "t", "resource_names": ["a", "b", ""], "node": {"id": "i-1", "cluster": "c",
        "locality": {"region": "r", "zone": "z"}, "metadata": {"s": "v", "n": 1, "m": {"s": "w"}, "l": [{"s": "x"}]}}}"#;
    let metadata = |keys: &str| {
        let path: Vec<String> = keys.split('/').map(|key| format!("{{key: '{key}'}}")).collect();
        format!(
            "{{request_node_fragment: {{node_metadata_action: {{path: [{}], action: {{exact: true}}}}}}}}",
            path.join(", ")
        )
    };
    let replaced = |pattern: &str, replace: &str| {
        format!(
            "{{request_node_fragment: {{id_action: {{regex_action: {{pattern: '{pattern}', replace: '{replace}'}}}}}}}}"
        )
    };
    let name = |element: &str| format!("{{resource_names_fragment: {{element: {element}, action: {{exact: true}}}}}}");
    for (result, expected) in [
        ("{string_fragment: ''}".to_owned(), Ok("")),
        ("{stringFragment: a_b|c}".to_owned(), Ok("a_b|c")),
        ("{request_node_fragment: {id_action: {exact: true}}}".to_owned(), Ok("i-1")),
        ("{request_node_fragment: {id_action: {exact: yes}}}".to_owned(), Ok("i-1")),
        ("{requestNodeFragment: {clusterAction: {exact: true}}}".to_owned(), Ok("c")),
        ("{request_node_fragment: {locality_action: {region_action: {exact: true}, zone_action: {exact: true}}}}".to_owned(), Ok("r|z")),
        ("{requestNodeFragment: {localityAction: {zoneAction: {exact: true}}}}".to_owned(), Ok("z")),
        ("{request_node_fragment: {locality_action: {subzone_action: {exact: true}}}}".to_owned(), Err(KeyError::EmptyExact)),
        ("{request_node_fragment: {locality_action: {subzoneAction: ~}}}".to_owned(), Err(KeyError::EmptyLocality)),
        (metadata("s"), Ok("v")),
        (metadata("m/s"), Ok("w")),
        (metadata("n"), Err(KeyError::EmptyExact)),
        (metadata("m"), Err(KeyError::EmptyExact)),
        (metadata("none"), Err(KeyError::NoSuchMetadata)),
        (metadata("s/s"), Err(KeyError::NoSuchMetadata)),
        (metadata("l/s"), Err(KeyError::NoSuchMetadata)),
        (name("0"), Ok("a")),
        (name("1"), Ok("b")),
        (name("\"1\""), Ok("b")),
        (name("1.0"), Ok("b")),
        (name("0x1"), Ok("b")),
        (name("1e0"), Ok("b")),
        (name("~"), Ok("a")),
        (name("2"), Err(KeyError::EmptyExact)),
        (name("3"), Err(KeyError::NoSuchName)),
        (name("2147483647"), Err(KeyError::NoSuchName)),
        (replaced("-", ""), Ok("i1")),
        (replaced("[0-9]", "<$0>"), Ok("i-<1>")),
        (replaced("(.)-(.)", "$2-$1"), Ok("1-i")),
        (replaced("(.)-(.)", "$2x$1"), Ok("i")),
        (replaced("(?P<first>.).*", "${first}$$"), Ok("i$")),
        (replaced("none", "x"), Ok("i-1")),
        (replaced(".*", ""), Err(KeyError::EmptyRegex)),
        (replaced("x*", "_"), Ok("_i_-_1_")),
        (replaced("-*", "_"), Ok("_i_1_")),
        ("{request_node_fragment: {locality_action: {subzone_action: {regex_action: {pattern: '^$', replace: none}}}}}".to_owned(), Ok("none")),
        ("{request_node_fragment: {id_action: {regex_action: {pattern: '(', replace: x}}}}".to_owned(),
            Err(KeyError::Pattern("error parsing regexp: missing closing ): `(`".to_owned()))),
        (format!("{{and_result: {{result_predicates: [{{string_fragment: ''}}, {}, {{string_fragment: x}}]}}}}", name("0")), Ok("ax")),
        (format!("{{and_result: {{result_predicates: [{}, {}]}}}}", name("0"), name("7")), Err(KeyError::NoSuchName)),
    ] {
        assert_eq!(comes_to(&result, full), expected.map(str::to_owned), "{result}");
    }
    assert_eq!(comes_to(&metadata("s"), r#"{"type_url": "t"}"#), Err(KeyError::NoSuchMetadata));
}

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

#[test]
fn endpoints_are_asked_for_by_name() {
    let any = with_match("{any_match: true}");
    for type_url in ["envoy.api.v2.ClusterLoadAssignment", "envoy.config.endpoint.v3.ClusterLoadAssignment"] {
        let none = format!(r#"{{"type_url": "type.googleapis.com/{type_url}"}}"#);
        assert_eq!(key(&any, &none), Err(KeyError::NoNames));
        let some = format!(r#"{{"type_url": "type.googleapis.com/{type_url}", "resource_names": [""]}}"#);
        assert!(key(&any, &some).is_ok());
    }
    assert_eq!(key(&any, "{}"), Err(KeyError::NoType));
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
}

#[test]
fn requests_are_read_in_either_spelling_and_null_is_nothing() {
    let both = [
        r#"{"type_url": "t", "resource_names": ["n"], "node": {"locality": {"sub_zone": "s"}, "user_agent_name": "envoy"}}"#,
        r#"{"typeUrl": "t", "resourceNames": ["n"], "node": {"id": null, "locality": {"subZone": "s"}, "metadata": null}, "versionInfo": "1"}"#,
    ];
    let taken = "{and_result: {result_predicates: [{resource_names_fragment: {action: {exact: true}}}, \
                 {request_node_fragment: {locality_action: {subzone_action: {exact: true}}}}]}}";
    for json in both {
        assert_eq!(comes_to(taken, json).as_deref(), Ok("ns"));
    }
    for bad in [
        r#"{"type_url": "t", "typeUrl": "t"}"#,
        r#"{"type_url": 1}"#,
        r#"{"node": []}"#,
        r#"{"node": {"id": 1}}"#,
        r#"{"resource_names": "n"}"#,
        r#"{"node": {"metadata": []}}"#,
        "[]",
    ] {
        assert!(serde_json::from_str::<RequestJson>(bad).is_err(), "{bad}");
    }
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
  fragment 1, rule 4 (line 10) did not match: what it negates matches the type
  fragment 1, rule 5 (line 12) matched: "web"
  fragment 1, rule 6 (line 14) was not looked at
  fragment 2, rule 1 (line 17) failed: ResourceNamesFragment.Element cannot be negative or larger than length
"#
    );
    json = request(r#"{"type_url": "t", "resource_names": ["n", "m"], "node": {"id": "web", "metadata": {}}}"#);
    let explanation = rules.explain(&json.as_request());
    assert_eq!(explanation.key, rules.key(&json.as_request()));
    assert!(explanation.to_string().starts_with("key web_m: \"web\" \"m\"\n"));
}
