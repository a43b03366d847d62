//! Any rules and any requests: keys are those of the schema's text, and requests share where it says so and nowhere else.

use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value, json};
use xds_relay::aggregation::{Key, Reading, RequestJson, Rules};
use xds_relay::config::Unmatched;
use xds_relay::relay_core::{ByRules, ClientNode, Covers, EveryNode, NodeGroup, NodeGrouping, Rest};

use crate::naive;

const TYPES: [&str; 3] =
    ["t", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "type.googleapis.com/envoy.api.v2.Foo"];

/// Few and alike, so that they are often the same.
fn a_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "a_b", "b_c", "a|b", "-"]).prop_map(str::to_owned)
}

fn an_action() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"exact": true})),
        prop::sample::select(naive::PATTERNS.to_vec())
            .prop_map(|pattern| json!({"regex_action": {"pattern": pattern, "replace": "<$1>"}})),
    ]
}

fn a_string_match() -> impl Strategy<Value = Value> {
    prop_oneof![
        a_text().prop_map(|text| json!({"exact_match": text})),
        prop::sample::select(naive::PATTERNS.to_vec()).prop_map(|pattern| json!({"regex_match": pattern})),
    ]
}

fn a_path() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop::sample::select(vec!["k", "l"]), 1..3)
        .prop_map(|keys| keys.into_iter().map(|key| json!({"key": key})).collect())
}

/// An object with some of these fields.
fn some_of(names: [&'static str; 3], of: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::array::uniform3(prop::option::of(of)).prop_map(move |values| {
        names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
    })
}

fn a_match() -> impl Strategy<Value = Value> {
    let node = prop_oneof![
        a_string_match().prop_map(|of| json!({"id_match": of})),
        a_string_match().prop_map(|of| json!({"cluster_match": of})),
        some_of(["region", "zone", "sub_zone"], a_string_match()).prop_map(|of| json!({"locality_match": of})),
        (a_path(), a_string_match())
            .prop_map(|(path, of)| json!({"node_metadata_match": {"path": path, "match": {"string_match": of}}})),
        (a_path(), any::<bool>()).prop_map(
            |(path, of)| json!({"node_metadata_match": {"path": path, "match": {"bool_match": {"value_match": of}}}})
        ),
    ];
    let leaf = prop_oneof![
        Just(json!({"any_match": true})),
        prop::sample::subsequence(TYPES.to_vec(), 1..=3)
            .prop_map(|types| json!({"request_type_match": {"types": types}})),
        node.prop_map(|of| json!({"request_node_match": of})),
    ];
    leaf.prop_recursive(3, 12, 3, |member| {
        prop_oneof![
            prop::collection::vec(member.clone(), 2..4).prop_map(|members| json!({"and_match": {"rules": members}})),
            prop::collection::vec(member.clone(), 2..4).prop_map(|members| json!({"or_match": {"rules": members}})),
            member.prop_map(|member| json!({"not_match": member})),
        ]
    })
}

fn a_result() -> impl Strategy<Value = Value> {
    let node = prop_oneof![
        an_action().prop_map(|of| json!({"id_action": of})),
        an_action().prop_map(|of| json!({"cluster_action": of})),
        some_of(["region_action", "zone_action", "subzone_action"], an_action())
            .prop_map(|of| json!({"locality_action": of})),
        (a_path(), an_action()).prop_map(|(path, of)| json!({"node_metadata_action": {"path": path, "action": of}})),
    ];
    let leaf = prop_oneof![
        a_text().prop_map(|text| json!({"string_fragment": text})),
        node.prop_map(|of| json!({"request_node_fragment": of})),
        (0..3, an_action())
            .prop_map(|(element, of)| json!({"resource_names_fragment": {"element": element, "action": of}})),
    ];
    leaf.prop_recursive(2, 6, 3, |member| {
        prop::collection::vec(member, 2..4).prop_map(|members| json!({"and_result": {"result_predicates": members}}))
    })
}

fn some_rules() -> impl Strategy<Value = Value> {
    let rule = (a_match(), a_result()).prop_map(|(of, result)| json!({"match": of, "result": result}));
    let fragment = prop::collection::vec(rule, 1..4).prop_map(|rules| json!({"rules": rules}));
    prop::collection::vec(fragment, 1..4).prop_map(|fragments| json!({"fragments": fragments}))
}

fn a_request() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        4 => a_text().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([{"k": "a"}])),
    ];
    let metadata = prop_oneof![
        value.clone(),
        prop::collection::btree_map(prop::sample::select(vec!["k".to_owned(), "l".to_owned()]), value, 0..3)
            .prop_map(|fields| json!(fields)),
    ];
    let metadata =
        prop::collection::btree_map(prop::sample::select(vec!["k".to_owned(), "l".to_owned()]), metadata, 0..3);
    let locality = some_of(["region", "zone", "sub_zone"], a_text().prop_map(Value::from));
    let names = prop::collection::vec(a_text(), 0..3);
    (prop::sample::select(TYPES.to_vec()), a_text(), a_text(), locality, prop::option::of(metadata), names).prop_map(
        |(type_url, id, cluster, locality, metadata, names)| {
            let mut node = json!({"id": id, "cluster": cluster, "locality": locality});
            if let Some(metadata) = metadata {
                node["metadata"] = json!(metadata);
            }
            json!({"type_url": type_url, "node": node, "resource_names": names})
        },
    )
}

fn parsed(rules: &Value, reading: Reading) -> Rules {
    Rules::parse("rules.yaml", &rules.to_string(), reading).unwrap_or_else(|error| panic!("{error}: {rules}"))
}

fn key(rules: &Rules, request: &Value) -> Option<Key> {
    let request: RequestJson = serde_json::from_value(request.clone()).unwrap();
    let explanation = rules.explain(&request.as_request());
    let key = rules.key(&request.as_request());
    assert_eq!(explanation.key, key);
    key.ok()
}

const READINGS: [(Reading, bool); 2] = [(Reading::Documented, false), (Reading::LegacyAllMatches, true)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_are_what_the_schema_says(rules in some_rules(), requests in prop::collection::vec(a_request(), 1..6)) {
        for (reading, all_matches) in READINGS {
            let parsed = parsed(&rules, reading);
            for request in &requests {
                let expected = naive::key(&rules, request, all_matches).ok();
                let label = expected.map(|key| key.concat().join("_"));
                prop_assert_eq!(key(&parsed, request).map(|key| key.label()), label, "{}", request);
            }
        }
    }

    /// Where keys are equal, every fragment came to the same; where all that rules look at is equal, so are the keys.
    #[test]
    fn requests_share_only_where_the_rules_say_so(rules in some_rules(), requests in prop::collection::vec(a_request(), 2..6)) {
        for (reading, all_matches) in READINGS {
            let parsed = parsed(&rules, reading);
            for one in &requests {
                for other in &requests {
                    let (Some(key), Some(others)) = (key(&parsed, one), key(&parsed, other)) else { continue };
                    let pieces = |request| naive::key(&rules, request, all_matches).unwrap();
                    if key == others {
                        prop_assert_eq!(pieces(one), pieces(other));
                    }
                    prop_assert_eq!(key == others, key.to_bytes() == others.to_bytes());
                    prop_assert_eq!(key == others, key.to_string() == others.to_string());
                    if one == other {
                        prop_assert_eq!(&key, &others);
                    }
                }
            }
        }
    }

    /// Whoever is in one group has one key for each name that has any; and a group has a name where that has a key.
    #[test]
    fn a_group_has_one_key_for_each_name(rules in some_rules(), requests in prop::collection::vec(a_request(), 2..6), type_url in 0..3_usize) {
        for (reading, _) in READINGS {
            let parsed = parsed(&rules, reading);
            let of = |request: &Value, name: Option<&str>| {
                let mut request = request.clone();
                (request["type_url"], request["resource_names"]) = (TYPES[type_url].into(), json!(name.as_slice()));
                let written: RequestJson = serde_json::from_value(request.clone()).unwrap();
                let group = parsed.group(written.as_request().node, TYPES[type_url]).ok();
                (group, key(&parsed, &request))
            };
            for name in [None, Some(""), Some("a"), Some("b_c"), Some("a|b")] {
                for one in &requests {
                    let (group, own) = of(one, name);
                    prop_assert_eq!(group.as_ref().is_some_and(|group| group.has(name).is_ok()), own.is_some());
                    if let Some(group) = &group {
                        let is_name = name.is_some_and(|name| !name.is_empty());
                        prop_assert!(own.is_some() || !group.has_all());
                        prop_assert!(own.is_some() || !is_name || group.has_all_names().is_err());
                    }
                    let group = group.map(|group| group.key().clone());
                    for other in &requests {
                        let (others, theirs) = of(other, name);
                        let others = others.map(|group| group.key().clone());
                        if group.is_some() && group == others {
                            prop_assert_eq!(&own, &theirs);
                        }
                        let bytes = |key: &Option<Key>| key.as_ref().map(Key::to_bytes);
                        prop_assert_eq!(group == others, bytes(&group) == bytes(&others));
                        let shown = |key: &Option<Key>| key.as_ref().map(Key::to_string);
                        prop_assert_eq!(group == others, shown(&group) == shown(&others));
                        let called = |key: &Option<Key>| key.as_ref().map(Key::unique_label);
                        prop_assert_eq!(group == others, called(&group) == called(&others));
                    }
                }
            }
        }
    }

    /// In the relay, whatever a stream asks for first: who has no key shares with the same node alone, and is refused if that is asked for;
    /// who has one shares with those who have the same, and with nobody else.
    #[test]
    fn who_has_no_key_shares_with_no_other_node(rules in some_rules(), requests in prop::collection::vec(a_request(), 2..6), type_url in 0..3_usize) {
        let type_url = TYPES[type_url];
        for (reading, _) in READINGS {
            for unmatched in [Unmatched::OwnGroup, Unmatched::Pass, Unmatched::Reject] {
                let grouping = ByRules::new(parsed(&rules, reading), unmatched, Box::new(EveryNode));
                let parsed = parsed(&rules, reading);
                for name in ["*", "a", "b_c"] {
                    let of = |request: &Value| {
                        let mut request = request.clone();
                        let names = Some(name).filter(|name| *name != "*");
                        (request["type_url"], request["resource_names"]) = (type_url.into(), json!(names.as_slice()));
                        let written: RequestJson = serde_json::from_value(request.clone()).unwrap();
                        let node = written.as_request().node.encode_to_vec();
                        let served = served(&grouping, &ClientNode::decode(node.clone().into()).unwrap(), type_url, name);
                        (key(&parsed, &request), served, node)
                    };
                    for one in &requests {
                        let (own, served, node) = of(one);
                        let is_refused = unmatched == Unmatched::Reject && own.is_none();
                        prop_assert_eq!(served == Served::Refused, is_refused);
                        for other in &requests {
                            let (theirs, others, other_node) = of(other);
                            if served.is_shared_with(&others) && node != other_node {
                                prop_assert!(own.is_some() && own == theirs, "{:?} {:?}", one, other);
                            }
                        }
                    }
                }
            }
        }
    }

    /// The spelling of fields says nothing.
    #[test]
    fn lower_camel_case_is_the_same(rules in some_rules(), request in a_request()) {
        for (reading, _) in READINGS {
            prop_assert_eq!(key(&parsed(&rules, reading), &request), key(&parsed(&camel(&rules), reading), &request));
        }
    }
}

/// What becomes of what a stream asks for first.
#[derive(PartialEq)]
enum Served {
    Refused,
    Of(NodeGroup),
    /// Of no other stream.
    Alone,
}

impl Served {
    fn is_shared_with(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Of(one), Self::Of(other)) if one == other)
    }
}

fn served(grouping: &ByRules, node: &ClientNode, type_url: &str, name: &str) -> Served {
    let type_url = type_url.into();
    let group = match grouping.covers(node, &type_url) {
        Covers::Nothing(_) => return Served::Refused,
        Covers::Some { has, rest } if has(name).is_err() => match rest {
            Rest::Refused => return Served::Refused,
            Rest::Group(group) => group,
        },
        _ => grouping.group_for(node, &type_url).unwrap(),
    };
    group.map_or(Served::Alone, Served::Of)
}

fn camel(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(camel).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let mut words = name.split('_');
                let first = words.next().unwrap().to_owned();
                let name = words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..]);
                (name, camel(value))
            })
            .collect(),
        other => other.clone(),
    }
}
