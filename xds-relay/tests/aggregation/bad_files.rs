//! What is refused, and how that is said; and what looks odd and is not refused.

use xds_relay::aggregation::{Reading, Rules};

fn refusal(text: &str) -> String {
    refusal_of(text, Reading::Documented)
}

fn refusal_of(text: &str, reading: Reading) -> String {
    match Rules::parse("rules.yaml", text, reading) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// A rule with this match, at 2:12, or with this result, at 3:13.
fn with_match(condition: &str) -> String {
    format!("fragments: [rules: [\n  {{match: {condition},\n   result: {{string_fragment: a}}}}]]\n")
}

fn with_result(result: &str) -> String {
    format!("fragments: [rules: [\n  {{match: {{any_match: true}},\n   result: {result}}}]]\n")
}

const MATCH: &str = "fragments[0].rules[0].match";
const RESULT: &str = "fragments[0].rules[0].result";

#[test]
fn a_file_without_rules_is_refused() {
    for (text, expected) in [
        ("", "1:1: fragments: value must contain at least 1 item(s)"),
        ("# nothing\n", "1:1: fragments: value must contain at least 1 item(s)"),
        ("null\n", "1:1: expected fields"),
        ("text\n", "1:1: expected fields"),
        ("[]\n", "1:1: expected fields"),
        ("{}\n", "1:1: fragments: value must contain at least 1 item(s)"),
        ("fragments:\n", "1:1: fragments: value must contain at least 1 item(s)"),
        ("fragments: []\n", "1:12: fragments: value must contain at least 1 item(s)"),
        ("fragments: {}\n", "1:12: fragments: expected a list"),
        ("fragments: [~]\n", "1:13: fragments[0]: expected fields"),
        ("fragments:\n- rules: []\n", "2:10: fragments[0].rules: value must contain at least 1 item(s)"),
        ("fragments:\n- {}\n", "2:3: fragments[0].rules: value must contain at least 1 item(s)"),
        (
            "fragments:\n- rules: [{match: {any_match: true}}]\n",
            "2:11: fragments[0].rules[0].result: value is required",
        ),
        (
            "fragments:\n- rules: [{match: ~, result: {string_fragment: a}}]\n",
            "2:11: fragments[0].rules[0].match: value is required",
        ),
        ("fragments: [\n", "1:12: fragments: `[` is never closed"),
        ("Fragments: []\n", "1:1: Fragments: unknown field \"Fragments\", expected one of fragments"),
        ("fragments: []\nfragments: []\n", "2:1: key `fragments` occurs twice"),
        ("<<: {fragments: []}\n", "1:17: fragments: value must contain at least 1 item(s)"),
        ("<<: 1\n", "1:5: <<: expected a mapping, or a list of mappings, to merge"),
    ] {
        assert_eq!(refusal(text), format!("rules.yaml:{expected}"), "{text}");
    }
}

#[test]
fn a_bad_match_is_refused_with_its_place() {
    const KINDS: &str = "and_match, or_match, not_match, any_match, request_type_match, request_node_match";
    let same: &[(&str, usize, &str, String)] = &[
        ("{}", 11, "", format!("value is required: one of {KINDS}")),
        ("{any_match: ~}", 11, "", format!("value is required: one of {KINDS}")),
        ("{any_match: false}", 23, ".any_match", "value must equal true".into()),
        ("{any_match: no}", 23, ".any_match", "value must equal true".into()),
        ("{any_match: \"true\"}", 23, ".any_match", "invalid type: string \"true\", expected a boolean".into()),
        ("{any_match: 1}", 23, ".any_match", "invalid type: integer `1`, expected a boolean".into()),
        (
            "{and_match: {rules: []}, any_match: true}",
            36,
            ".any_match",
            format!("only one of {KINDS}: and_match is there already"),
        ),
        (
            "{anyMatch: true, any_match: true}",
            28,
            ".any_match",
            "duplicate field \"any_match\": it is there in another spelling".into(),
        ),
        ("{any: true}", 12, ".any", format!("unknown field \"any\", expected one of {KINDS}")),
        (
            "{and_match: {rules: [any_match: true]}}",
            31,
            ".and_match.rules",
            "value must contain at least 2 item(s)".into(),
        ),
        ("{or_match: {rules: ~}}", 22, ".or_match.rules", "value must contain at least 2 item(s)".into()),
        ("{or_match: {}}", 22, ".or_match.rules", "value must contain at least 2 item(s)".into()),
        ("{not_match: {}}", 23, ".not_match", format!("value is required: one of {KINDS}")),
        ("{not_match: ~}", 11, "", format!("value is required: one of {KINDS}")),
        (
            "{request_type_match: {types: []}}",
            40,
            ".request_type_match.types",
            "value must contain at least 1 item(s)".into(),
        ),
        (
            "{request_type_match: {types: [~]}}",
            41,
            ".request_type_match.types[0]",
            "invalid type: unit value, expected a string".into(),
        ),
        ("{request_type_match: {types: a}}", 40, ".request_type_match.types", "expected a list".into()),
        (
            "{request_type_match: {types: [1]}}",
            41,
            ".request_type_match.types[0]",
            "invalid type: integer `1`, expected a string".into(),
        ),
    ];
    for (text, column, field, reason) in same {
        assert_eq!(refusal(&with_match(text)), format!("rules.yaml:2:{column}: {MATCH}{field}: {reason}"), "{text}");
    }
}

#[test]
fn a_bad_match_of_the_node_is_refused_with_its_place() {
    const KINDS: &str = "id_match, cluster_match, locality_match, node_metadata_match";
    const STRING: &str = "value is required: one of exact_match, regex_match";
    const RUNES: &str = "value length must be at least 1 runes";
    const ENUM: &str = "value must be one of the defined enum values: 0 (NODE_ID), 1 (NODE_CLUSTER), \
                        2 (NODE_LOCALITY_REGION), 3 (NODE_LOCALITY_ZONE), 4 (NODE_LOCALITY_SUBZONE)";
    let cases: &[(&str, &str, String)] = &[
        ("{}", "", format!("value is required: one of {KINDS}")),
        ("{id_match: {}}", ".id_match", STRING.into()),
        ("{id_match: a}", ".id_match", "expected fields".into()),
        (
            "{id_match: {exact_match: 1.0}}",
            ".id_match.exact_match",
            "invalid type: floating point `1.0`, expected a string".into(),
        ),
        (
            "{id_match: {exact_match: 0x10}}",
            ".id_match.exact_match",
            "invalid type: integer `16`, expected a string".into(),
        ),
        (
            "{id_match: {exact_match: true}}",
            ".id_match.exact_match",
            "invalid type: boolean `true`, expected a string".into(),
        ),
        (
            "{id_match: {exact_match: yes}}",
            ".id_match.exact_match",
            "unquoted `yes` is a boolean in YAML 1.1 and a string in YAML 1.2: write \"yes\", or true or false".into(),
        ),
        (
            "{id_match: {exact_match: a, regex_match: b}}",
            ".id_match.regex_match",
            "only one of exact_match, regex_match: exact_match is there already".into(),
        ),
        (
            "{locality_match: {subzone: {exact_match: a}}}",
            ".locality_match.subzone",
            "unknown field \"subzone\", expected one of region, zone, sub_zone".into(),
        ),
        ("{locality_match: {region: {}}}", ".locality_match.region", STRING.into()),
        (
            "{node_metadata_match: {match: {bool_match: {}}}}",
            ".node_metadata_match.path",
            "value must contain at least 1 item(s)".into(),
        ),
        (
            "{node_metadata_match: {path: [{key: \"\"}], match: {bool_match: {}}}}",
            ".node_metadata_match.path[0].key",
            RUNES.into(),
        ),
        (
            "{node_metadata_match: {path: [{}], match: {bool_match: {}}}}",
            ".node_metadata_match.path[0].key",
            RUNES.into(),
        ),
        (
            "{node_metadata_match: {path: [a], match: {bool_match: {}}}}",
            ".node_metadata_match.path[0]",
            "expected fields".into(),
        ),
        (
            "{node_metadata_match: {path: [{key: 1}], match: {bool_match: {}}}}",
            ".node_metadata_match.path[0].key",
            "invalid type: integer `1`, expected a string".into(),
        ),
        ("{node_metadata_match: {path: [{key: a}]}}", ".node_metadata_match.match", "value is required".into()),
        (
            "{node_metadata_match: {path: [{key: a}], match: {}}}",
            ".node_metadata_match.match",
            "value is required: one of string_match, bool_match".into(),
        ),
        (
            "{node_metadata_match: {path: [{key: a}], match: {bool_match: {value_match: 0}}}}",
            ".node_metadata_match.match.bool_match.value_match",
            "invalid type: integer `0`, expected a boolean".into(),
        ),
        ("{field: 0}", "", STRING.into()),
        ("{field: 5, exact_match: a}", ".field", ENUM.into()),
        ("{field: -1, exact_match: a}", ".field", ENUM.into()),
        ("{field: \"0\", exact_match: a}", ".field", ENUM.into()),
        ("{field: node_id, exact_match: a}", ".field", ENUM.into()),
        ("{field: 0.5, exact_match: a}", ".field", "invalid value: floating point `0.5`, expected an int32".into()),
        (
            "{field: 0, id_match: {exact_match: a}}",
            "",
            format!("two forms in one: expected one of {KINDS}, or else field, exact_match, regex_match"),
        ),
    ];
    for (text, field, reason) in cases {
        let error = refusal(&with_match(&format!("{{request_node_match: {text}}}")));
        let (place, rest) = error.split_once(": ").unwrap();
        assert!(place.starts_with("rules.yaml:2:"), "{error}");
        assert_eq!(rest, format!("{MATCH}.request_node_match{field}: {reason}"), "{text}");
    }
}

#[test]
fn a_bad_result_is_refused_with_its_place() {
    const KINDS: &str = "and_result, request_node_fragment, resource_names_fragment, string_fragment";
    const NODE: &str = "id_action, cluster_action, locality_action, node_metadata_action";
    const EXACT: &str = "{exact: true}";
    let name = |element: &str| format!("{{resource_names_fragment: {{element: {element}, action: {EXACT}}}}}");
    let id = |action: &str| format!("{{request_node_fragment: {{id_action: {action}}}}}");
    const ID: &str = ".request_node_fragment.id_action";
    const ELEMENT: &str = ".resource_names_fragment.element";
    let cases = [
        ("{}".into(), "", format!("value is required: one of {KINDS}")),
        ("{string_fragment: ~}".into(), "", format!("value is required: one of {KINDS}")),
        (
            "{string_fragment: 2020}".into(),
            ".string_fragment",
            "invalid type: integer `2020`, expected a string".into(),
        ),
        (
            "{and_result: {result_predicates: [{string_fragment: a}]}}".into(),
            ".and_result.result_predicates",
            "value must contain at least 2 item(s)".into(),
        ),
        (
            "{and_result: {result_predicates: [{string_fragment: a}, {}]}}".into(),
            ".and_result.result_predicates[1]",
            format!("value is required: one of {KINDS}"),
        ),
        ("{request_node_fragment: {}}".into(), ".request_node_fragment", format!("value is required: one of {NODE}")),
        (id("{}"), ID, "value is required: one of exact, regex_action".into()),
        (id("{exact: false}"), ".request_node_fragment.id_action.exact", "value must equal true".into()),
        (
            id("{exact: \"true\"}"),
            ".request_node_fragment.id_action.exact",
            "invalid type: string \"true\", expected a boolean".into(),
        ),
        (
            id("{regex_action: {replace: a}}"),
            ".request_node_fragment.id_action.regex_action.pattern",
            "value length must be at least 1 runes".into(),
        ),
        (
            id("{regex_action: {pattern: \"\"}}"),
            ".request_node_fragment.id_action.regex_action.pattern",
            "value length must be at least 1 runes".into(),
        ),
        ("{request_node_fragment: {field: 0}}".into(), ".request_node_fragment.action", "value is required".into()),
        (
            "{request_node_fragment: {action: {exact: true}, id_action: {exact: true}}}".into(),
            ".request_node_fragment",
            format!("two forms in one: expected one of {NODE}, or else field, action"),
        ),
        (
            "{request_node_fragment: {locality_action: {sub_zone_action: {exact: true}}}}".into(),
            ".request_node_fragment.locality_action.sub_zone_action",
            "unknown field \"sub_zone_action\", expected one of region_action, zone_action, subzone_action".into(),
        ),
        (
            "{request_node_fragment: {node_metadata_action: {path: [{key: a}]}}}".into(),
            ".request_node_fragment.node_metadata_action.action",
            "value is required".into(),
        ),
        (
            "{resource_names_fragment: {element: 0}}".into(),
            ".resource_names_fragment.action",
            "value is required".into(),
        ),
        (name("-1"), ELEMENT, "value must be greater than or equal to 0".into()),
        (name("1.5"), ELEMENT, "invalid value: floating point `1.5`, expected an int32".into()),
        (name("2147483648"), ELEMENT, "invalid value: integer `2147483648`, expected an int32".into()),
        (name("\"\""), ELEMENT, "invalid value: string \"\", expected an int32".into()),
        (name("\" 1\""), ELEMENT, "invalid value: string \" 1\", expected an int32".into()),
        (name("\"0x1\""), ELEMENT, "invalid value: string \"0x1\", expected an int32".into()),
        (name("\"01\""), ELEMENT, "invalid value: string \"01\", expected an int32".into()),
        (name("first"), ELEMENT, "invalid value: string \"first\", expected an int32".into()),
        (name("true"), ELEMENT, "invalid type: boolean `true`, expected an int32".into()),
        (name("[0]"), ELEMENT, "invalid type: sequence, expected an int32".into()),
    ];
    for (text, field, reason) in cases {
        let error = refusal(&with_result(&text));
        let (place, rest) = error.split_once(": ").unwrap();
        assert!(place.starts_with("rules.yaml:3:"), "{error}");
        assert_eq!(rest, format!("{RESULT}{field}: {reason}"), "{text}");
    }
}

#[test]
fn a_pattern_that_takes_too_much_is_refused_and_says_which() {
    let id = |pattern: &str| with_match(&format!("{{request_node_match: {{id_match: {{regex_match: '{pattern}'}}}}}}"));
    let place = format!("rules.yaml:2:57: {MATCH}.request_node_match.id_match.regex_match: ");
    assert_eq!(
        refusal(&id(r"\pL{1000}")),
        format!(r"{place}`\pL{{1000}}`: not supported, although RE2 has it: compiled it takes more than 1024 KiB")
    );
    let nested = format!("{}a{}", "(".repeat(300), ")".repeat(300));
    let error = refusal(&id(&nested));
    assert!(
        error.starts_with(&format!("{place}`(((")) && error.ends_with("it nests deeper than 250 levels"),
        "{error}"
    );
    let error = refusal(&id(&"a".repeat(20_000)));
    assert_eq!(error, format!("{place}a pattern of 20000 bytes: expected at most 16384"));
}

#[test]
fn what_is_hardly_meant_is_a_warning() {
    let warnings = |text: &str, reading| -> Vec<String> {
        Rules::parse("rules.yaml", text, reading).unwrap().warnings().iter().map(ToString::to_string).collect()
    };
    let types = |types: &str| with_match(&format!("{{request_type_match: {{types: [{types}]}}}}"));
    let (old, new) =
        ("type.googleapis.com/envoy.api.v2.Cluster", "type.googleapis.com/envoy.config.cluster.v3.Cluster");
    assert_eq!(
        warnings(&types(old), Reading::Documented),
        [format!("rules.yaml:2:41: `{old}` is xDS v2: `{new}` matches as well")]
    );
    assert_eq!(
        warnings(&types(old), Reading::LegacyAllMatches),
        [format!("rules.yaml:2:41: `{old}` is xDS v2: no client asks for it any more, but for `{new}`")]
    );
    assert!(warnings(&types(&format!("{old}, {new}")), Reading::Documented).is_empty());
    let unknown = "type.googleapis.com/envoy.api.v2.Route";
    assert_eq!(
        warnings(&types(unknown), Reading::Documented),
        [format!("rules.yaml:2:41: `{unknown}` is no type that clients of xDS v2 ask for")]
    );
    let node = |of: &str| with_match(&format!("{{request_node_match: {{id_match: {of}}}}}"));
    assert_eq!(
        warnings(&node("{exact_match: ''}"), Reading::Documented),
        ["rules.yaml:2:57: it is empty and matches nothing, not even an empty text"]
    );
    assert_eq!(
        warnings(&node("{regex_match: '('}"), Reading::Documented),
        ["rules.yaml:2:57: error parsing regexp: missing closing ): `(`: a request that gets here has no key"]
    );
}

#[test]
fn the_older_form_is_none_of_the_original() {
    let text = with_match("{request_node_match: {field: 0, exact_match: a}}");
    let error = refusal_of(&text, Reading::LegacyAllMatches);
    assert!(error.contains("unknown field \"field\", expected one of id_match,"), "{error}");
}
