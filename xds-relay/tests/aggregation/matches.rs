//! Which requests a match is for.

use xds_relay::aggregation::KeyError;

use crate::support::{key, matches, with_match};

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

/// Members are looked at in their order until the answer is clear; the parts of a locality all are.
#[test]
fn a_bad_pattern_is_an_error_where_it_is_looked_at() {
    let json = r#"{"type_url": "t", "node": {"id": "i"}}"#;
    let bad = "{request_node_match: {id_match: {regex_match: '['}}}";
    let error = Err(KeyError::Pattern("error parsing regexp: missing closing ]: `[`".to_owned()));
    let (any, none) = ("{any_match: true}", "{not_match: {any_match: true}}");
    let members = |kind: &str, one: &str, other: &str| format!("{{{kind}: {{rules: [{one}, {other}]}}}}");
    for (condition, expected) in [
        (bad.to_owned(), error.clone()),
        (format!("{{not_match: {bad}}}"), error.clone()),
        (members("and_match", any, bad), error.clone()),
        (members("and_match", none, bad), Ok(false)),
        (members("or_match", any, bad), Ok(true)),
        (members("or_match", none, bad), error.clone()),
        (
            "{request_node_match: {locality_match: {region: {exact_match: other}, sub_zone: {regex_match: '['}}}}"
                .to_owned(),
            error,
        ),
    ] {
        assert_eq!(matches(&condition, json), expected, "{condition}");
    }
}
