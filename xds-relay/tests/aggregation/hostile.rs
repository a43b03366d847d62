//! Files and requests that are made to cost much.

use xds_relay::aggregation::{KeyError, Reading, Request, Rules};
use xds_transport::wire::Node;

fn refusal(text: &str) -> String {
    match Rules::parse("rules.yaml", text, Reading::Documented) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

fn rules(text: &str) -> Rules {
    Rules::parse("rules.yaml", text, Reading::LegacyAllMatches).unwrap()
}

fn node(id: &str) -> Node {
    Node { id: id.to_owned(), ..Node::default() }
}

fn request(node: &Node) -> Request<'_> {
    Request { node, type_url: "t", resource_names: &[] }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let (open, close) = ("{not_match: ".repeat(depth), "}".repeat(depth));
        format!("fragments: [rules: [{{match: {open}{{any_match: true}}{close}, result: {{string_fragment: a}}}}]]")
    };
    let key = rules(&nested(40)).key(&request(&node("")));
    assert_eq!(key.unwrap().label(), "a");
    assert!(refusal(&nested(100)).contains("values nest deeper than 80 levels"));
    assert!(refusal(&"[".repeat(100_000)).contains("recursion"));
}

#[test]
fn aliases_that_multiply_are_bounded() {
    let mut text =
        String::from("fragments:\n- rules: &r0 [{match: {any_match: true}, result: {string_fragment: a}}]\n");
    for level in 1..30 {
        let below = level - 1;
        text.push_str(&format!("- rules: [{{match: {{and_match: {{rules: &r{level} [*r{below}, *r{below}]}}}}}}]\n"));
    }
    assert!(refusal(&text).contains("aliases stand for more than"), "{}", refusal(&text));
}

#[test]
fn merges_that_multiply_are_bounded() {
    let mut text = String::from("a0: &a0 {x: 1}\n");
    for level in 1..30 {
        let below = level - 1;
        text.push_str(&format!("a{level}: &a{level} {{<<: [*a{below}, *a{below}, *a{below}]}}\n"));
    }
    assert!(refusal(&text).contains("aliases stand for more than"), "{}", refusal(&text));
}

#[test]
fn different_patterns_are_counted_and_equal_ones_are_one() {
    let rule = |pattern: &str| {
        format!(
            "  - {{match: {{request_node_match: {{id_match: {{regex_match: '{pattern}'}}}}}}, result: {{string_fragment: a}}}}\n"
        )
    };
    let file = |patterns: &mut dyn Iterator<Item = String>| {
        format!("fragments:\n- rules:\n{}", patterns.map(|pattern| rule(&pattern)).collect::<String>())
    };
    rules(&file(&mut (0..1000).map(|number| format!("a{number}"))));
    rules(&file(&mut (0..5000).map(|_| "a".to_owned())));
    let error = refusal(&file(&mut (0..1001).map(|number| format!("a{number}"))));
    let place = "rules.yaml:1003:59: fragments[0].rules[1000].match.request_node_match.id_match.regex_match: ";
    assert_eq!(error, format!("{place}more than 1000 different patterns"));
}

#[test]
fn a_large_file_is_read_in_full() {
    let types: String =
        (0..200_000).map(|number| format!("    - type.example/{number}.{}\n", "x".repeat(30))).collect();
    let text = format!(
        "fragments:\n- rules:\n  - result: {{string_fragment: a}}\n    match:\n     request_type_match:\n      types:\n{types}      - t\n"
    );
    let text = text.replace("\n    - type", "\n      - type");
    assert!(text.len() > 10 << 20);
    assert_eq!(rules(&text).key(&request(&node(""))).unwrap().label(), "a");
}

/// Each is looked up once, in as many as there are.
#[test]
fn a_list_of_many_types_of_v2_is_no_square() {
    let types = "x/envoy.api.v2.Cluster,".repeat(300_000);
    let text = format!(
        "fragments: [rules: [{{match: {{request_type_match: {{types: [{types}]}}}}, result: {{string_fragment: a}}}}]]"
    );
    let rules = Rules::parse("rules.yaml", &text, Reading::Documented).unwrap();
    let node = node("");
    let key = rules.key(&Request { type_url: "x/envoy.config.cluster.v3.Cluster", ..request(&node) });
    assert_eq!(key.unwrap().label(), "a");
}

#[test]
fn a_key_has_a_bound_whatever_makes_it_long() {
    let all = |result: &str, times: usize| {
        let rule = format!("{{match: {{any_match: true}}, result: {result}}}");
        format!("fragments: [rules: [{}]]", vec![rule; times].join(","))
    };
    let too_long = Err(KeyError::TooLong { max: 1 << 20 });
    let id = node(&"i".repeat(60_000));
    let exact = "{request_node_fragment: {id_action: {exact: true}}}";
    assert_eq!(rules(&all(exact, 100)).key(&request(&id)), too_long);
    let members = vec![exact; 100].join(",");
    let several = format!("{{and_result: {{result_predicates: [{members}]}}}}");
    assert_eq!(rules(&all(&several, 1)).key(&request(&id)), too_long);
    let replaced = "{request_node_fragment: {id_action: {regex_action: {pattern: 'i', replace: '$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0'}}}}";
    assert_eq!(rules(&all(replaced, 1)).key(&request(&id)), too_long);
}

/// Backtracking would never end.
#[test]
fn no_pattern_takes_exponential_time() {
    let text = "fragments: [rules: [{match: {request_node_match: {id_match: {regex_match: '^(a*)*(a*)*(a*)*$'}}}, result: {string_fragment: x}}]]";
    let id = node(&format!("{}b", "a".repeat(20_000)));
    assert_eq!(rules(text).key(&request(&id)), Err(KeyError::NoRule));
}
