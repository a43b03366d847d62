//! Which fields are told, and which are not.

use serde_json::json;

use super::*;

fn told(before: &Value, after: &Value) -> Vec<String> {
    let mut found = FieldDifference::default();
    found.compare("", Some(before), Some(after), 0);
    found.fields.iter().map(ToString::to_string).collect()
}

#[test]
fn each_field_that_is_otherwise_is_told_by_its_path() {
    let before = json!({ "name": "a", "same": { "x": [1] }, "gone": 1, "in": { "list": [1, 2, 3], "kind": 1 },
        "filters": [{ "name": "first", "x": 1 }, { "name": "second" }] });
    let after = json!({ "name": "b", "same": { "x": [1] }, "new": null, "in": { "list": [1, 4], "kind": { "y": 1 } },
        "filters": [{ "name": "third" }, { "name": "first", "x": 2 }] });
    assert_eq!(
        told(&before, &after),
        [
            "filters[first].x: 1 → 2",
            r#"filters[second]: {"name":"second"} → nothing"#,
            r#"filters[third]: nothing → {"name":"third"}"#,
            "gone: 1 → nothing",
            r#"in.kind: 1 → {"y":1}"#,
            "in.list[1]: 2 → 4",
            "in.list[2]: 3 → nothing",
            r#"name: "a" → "b""#,
            "new: nothing → null",
        ]
    );
    assert_eq!(told(&before, &before), [""; 0]);
}

#[test]
fn another_order_of_named_items_is_told_and_items_without_names_are_told_by_place() {
    let items = |names: &[&str]| json!({ "of": names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>() });
    assert_eq!(
        told(&items(&["a", "b", "c"]), &items(&["b", "a", "c"])),
        [r#"of (order): ["a","b","c"] → ["b","a","c"]"#]
    );
    assert_eq!(told(&items(&["a", "b"]), &items(&["b"])), [r#"of[a]: {"name":"a"} → nothing"#]);
    assert_eq!(told(&items(&["a", "a"]), &items(&["a", "b"])), [r#"of[1].name: "a" → "b""#]);
}

#[test]
fn what_is_much_or_deep_is_told_in_part_or_as_a_whole() {
    let many = |value: usize| json!((0..600).map(|at| at + value).collect::<Vec<_>>());
    let mut found = FieldDifference::default();
    found.compare("", Some(&many(0)), Some(&many(1)), 0);
    assert_eq!((found.fields.len(), found.more), (500, 100));
    let deep = |value: usize| (0..200).fold(json!(value), |inner, _| Value::Array(vec![inner]));
    found = FieldDifference::default();
    found.compare("", Some(&deep(1)), Some(&deep(2)), 0);
    assert_eq!(found.fields.len(), 1);
    assert_eq!(found.fields[0].path, "[0]".repeat(100));
}

#[cfg(feature = "file-origin")]
#[test]
fn what_is_secret_is_not_told() {
    use xds_transport::Frame;

    use crate::file_origin::{Descriptors, load_embedded};

    let types = Descriptors::built_in().unwrap();
    let any = |text: &str| {
        let resources = load_embedded(&[("a.yaml", text)], &types).unwrap();
        let resource = &resources[0];
        Frame::of_message(&resource.type_url.as_str().into(), &resource.value).any().clone()
    };
    let cluster = |password: &str, timeout: &str| {
        any(&format!(
            r#"{{ resources: [{{ "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, connect_timeout: {timeout},
            transport_socket: {{ name: tls, typed_config: {{
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
            common_tls_context: {{ tls_certificates: [{{ password: {{ inline_string: {password} }} }}] }} }} }} }}] }}"#
        ))
    };
    let fields = Fields::default();
    let difference = fields.between(&cluster("s3cret", "1s"), &cluster("s3cr3t", "2s")).unwrap();
    let told: Vec<_> = difference.fields.iter().map(ToString::to_string).collect();
    assert_eq!(told, [r#"connect_timeout: "1s" → "2s""#]);
    let hidden = fields.between(&cluster("s3cret", "1s"), &cluster("s3cr3t", "1s")).unwrap();
    assert_eq!((hidden.fields.len(), hidden.is_hidden), (0, true));
    assert!(!fields.between(&cluster("s3cret", "1s"), &cluster("s3cret", "1s")).unwrap().is_hidden);
    let secret = any(
        r#"{ resources: [{ "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: a }] }"#,
    );
    assert_eq!(
        fields.between(&secret, &secret).unwrap_err().to_string(),
        "it is secret, or of a type that is not known"
    );
}
