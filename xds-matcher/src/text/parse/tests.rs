use super::*;
use std::format;
use std::string::ToString;

#[test]
fn text_reads_back_to_the_same_tree() {
    for text in [
        "env=prod and (version=v1 or not exists(version)) and shard in 4..6,11..15",
        "(a=1 and b=2) or c=3",
        "not not a=1",
        "not (a=1 or b=1)",
        "all()",
        "all(any(not all(a in 0..,5)))",
        "false or true",
        "use_proxy=true",
        "\"in\" in 1 and \"exists\"=\"\" and \"a b\"=\"\\\"\\\\\\u0001\u{e9}\"",
        "\"\"=and",
    ] {
        let constraint: Constraint = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(constraint.to_string(), text);
    }
}

#[test]
fn space_and_redundant_parentheses_do_not_matter() {
    let parse = |text: &str| text.parse::<Constraint>().unwrap();
    assert_eq!(
        parse(" ( env = prod )and(n in 4 .. 6 , 7)".replace("4 .. 6", "4..6").as_str()),
        parse("env=prod and n in 4..6,7")
    );
    assert_eq!(parse("a=1 and b=1 or c=1"), parse("(a=1 and b=1) or c=1"));
    assert_eq!(parse("n in ..6"), parse("n in 0..6"));
    assert_eq!(parse(r#"a="\u00e9\ud83d\ude00\/""#), parse("a=\"\u{e9}\u{1f600}/\""));
}

#[test]
fn an_error_points_at_what_is_wrong() {
    for (text, offset, expected) in [
        ("", 0, "a condition"),
        ("env", 3, "`=` or `in`"),
        ("env=", 4, "a value"),
        ("env=prod version=v1", 9, "`and`, `or` or the end"),
        ("env=prod and", 12, "a condition"),
        ("(a=1", 4, "`)`"),
        ("exists a", 7, "`(`"),
        ("exists(not)", 7, "a key"),
        ("in=1", 0, "a condition"),
        ("n in", 4, "an integer"),
        ("n in ..", 7, "an integer"),
        ("n in 5x", 6, "decimal digits"),
        ("n in 4..6,99999999999999999999", 10, "below 2^64"),
        ("a=\"x", 2, "a closing quote"),
        ("a=\"\\x\"", 3, "a JSON escape"),
        ("a=\"\\ud800\"", 3, "a JSON escape"),
    ] {
        let error = text.parse::<Constraint>().unwrap_err();
        assert_eq!(error.offset(), offset, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    for hostile in ["(".repeat(100_000), "not ".repeat(100_000), "all(".repeat(100_000), "a=1 or ".repeat(200_000)] {
        let error = hostile.parse::<Constraint>().unwrap_err();
        assert!(error.offset() < 7 * MAX_NODES + 8, "{error}");
    }
    let hundred = format!("{}a=1", "not ".repeat(MAX_DEPTH));
    assert_eq!(hundred.parse::<Constraint>().unwrap().to_string(), hundred);
    assert!(format!("not {hundred}").parse::<Constraint>().unwrap_err().to_string().contains("more than 100"));
}
