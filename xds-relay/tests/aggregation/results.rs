//! What results take of a request.

use xds_relay::aggregation::{KeyError, RequestJson};

use crate::support::comes_to;

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
        // A group that nothing is left of keeps its number.
        (replaced("(i)(x){0}(-)", "$3$2$1"), Ok("-i1")),
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
