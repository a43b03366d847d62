mod built_in;
mod set;

use self::set::{refused, refused_by, types_of};

/// A field of this type and with this rule; values that are good, and one that is not with what is said of it.
fn table(cases: &[(&str, &[&str], &str, &str)]) {
    for (field, good, bad, told) in cases {
        let (kind, rule) = field.split_once(": ").unwrap();
        let types = types_of(&format!("message T {{ {kind} v = 1 [(validate.rules).{rule}]; }}"));
        for value in *good {
            assert_eq!(refused_by(&types, &format!("{{\"v\": {value}}}")), [""; 0], "{field}: {value}");
        }
        assert_eq!(refused_by(&types, &format!("{{\"v\": {bad}}}")), [format!("v: {told}")], "{field}: {bad}");
    }
}

#[test]
fn every_rule_of_a_number_is_applied_to_every_kind_of_number() {
    for kind in [
        "float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
        "sfixed64",
    ] {
        let of = |rules: &str| format!("{kind}: {kind} = {{{rules}}}");
        let [one_of, none_of, constant] = ["in: [1, 2]", "not_in: [0, 2]", "const: 3"].map(of);
        let [range, open, outside, zero] =
            ["gte: 2, lte: 4", "gt: 2, lt: 4", "lt: 2, gt: 4", "gte: 2, ignore_empty: true"].map(of);
        table(&[
            (&one_of, &["1", "2"], "0", "one of 1, 2, found 0"),
            (&none_of, &["1"], "2", "none of 0, 2, found 2"),
            (&constant, &["3"], "2", "3, found 2"),
            (&range, &["2", "4"], "5", "at least 2 and at most 4, found 5"),
            (&open, &["3"], "4", "more than 2 and less than 4, found 4"),
            (&outside, &["1", "5"], "3", "more than 4 or less than 2, found 3"),
            (&zero, &["0", "2"], "1", "at least 2, found 1"),
        ]);
    }
    table(&[("float: float.lt = 0.5", &["0.25"], "0.7", "less than 0.5, found 0.7")]);
}

#[test]
fn every_rule_of_a_string_is_applied() {
    table(&[
        ("string: string.const = \"a\"", &["\"a\""], "\"b\"", "\"a\", found \"b\""),
        ("string: string.len = 2", &["\"ää\""], "\"a\"", "exactly 2 characters, found 1"),
        ("string: string.min_len = 1", &["\"a\""], "\"\"", "at least 1 character, found none"),
        ("string: string.max_len = 2", &["\"ää\""], "\"abc\"", "at most 2 characters, found 3"),
        ("string: string.len_bytes = 2", &["\"ä\""], "\"ää\"", "exactly 2 bytes, found 4"),
        ("string: string.min_bytes = 2", &["\"ä\""], "\"a\"", "at least 2 bytes, found 1"),
        ("string: string.max_bytes = 2", &["\"ä\""], "\"äa\"", "at most 2 bytes, found 3"),
        ("string: string.pattern = \"a|b+\"", &["\"a\"", "\"bb\""], "\"ab\"", "what matches `a|b+`, found \"ab\""),
        ("string: string.prefix = \"a\"", &["\"ab\""], "\"ba\"", "what begins with \"a\", found \"ba\""),
        ("string: string.suffix = \"a\"", &["\"ba\""], "\"ab\"", "what ends with \"a\", found \"ab\""),
        ("string: string.contains = \"a\"", &["\"bab\""], "\"b\"", "what has \"a\" in it, found \"b\""),
        ("string: string.not_contains = \"a\"", &["\"b\""], "\"ba\"", "what does not have \"a\" in it, found \"ba\""),
        ("string: string = {in: [\"a\", \"b\"]}", &["\"b\""], "\"\"", "one of \"a\", \"b\", found \"\""),
        ("string: string = {not_in: [\"a\", \"\"]}", &["\"b\""], "\"\"", "none of \"a\", \"\", found \"\""),
        ("string: string.email = true", &["\"a@b\""], "\"a\"", "an e-mail address, found \"a\""),
        ("string: string.hostname = true", &["\"a.b\""], "\"a_b\"", "a host name, found \"a_b\""),
        ("string: string.ip = true", &["\"::1\""], "\"a\"", "an IP address, found \"a\""),
        ("string: string.ipv4 = true", &["\"1.2.3.4\""], "\"::1\"", "an IPv4 address, found \"::1\""),
        ("string: string.ipv6 = true", &["\"::1\""], "\"1.2.3.4\"", "an IPv6 address, found \"1.2.3.4\""),
        ("string: string.uri = true", &["\"a:b\""], "\"b\"", "a URI with a scheme, found \"b\""),
        (
            "string: string.uri_ref = true",
            &["\"/b\""],
            "\"%\"",
            "a URI, or a reference that is relative to one, found \"%\"",
        ),
        ("string: string.address = true", &["\"a\"", "\"::1\""], "\"\"", "a host name or an IP address, found \"\""),
        ("string: string.uuid = true", &["\"01234567-89ab-cdef-0123-456789abcdef\""], "\"a\"", "a UUID, found \"a\""),
        ("string: string.well_known_regex = 1", &["\":a\""], "\"a b\"", "the name of an HTTP header, found \"a b\""),
        (
            "string: string.well_known_regex = 2",
            &["\"\"", "\"a b\""],
            "\"\\u0001\"",
            "the value of an HTTP header, without control characters",
        ),
        (
            "string: string = {well_known_regex: 1, strict: false}",
            &["\"\"", "\"\\u0001\""],
            "\"\\n\"",
            "no NUL and no end of a line",
        ),
        (
            "string: string = {min_len: 2, ignore_empty: true}",
            &["\"\"", "\"ab\""],
            "\"a\"",
            "at least 2 characters, found 1",
        ),
    ]);
    assert_eq!(refused("string v = 1 [(validate.rules).string.ip = false];", "{}"), [""; 0]);
    let both = "string v = 1 [(validate.rules).string = {min_len: 3, prefix: \"x\"}];";
    assert_eq!(refused(both, "{\"v\": \"a\"}").len(), 2, "all that is wrong with a value is told");
}

#[test]
fn every_rule_of_bytes_is_applied_and_they_are_not_shown() {
    table(&[
        ("bytes: bytes.const = \"a\"", &["\"YQ==\""], "\"Yg==\"", "the bytes 61"),
        ("bytes: bytes.len = 1", &["\"YQ==\""], "\"\"", "exactly 1 byte, found none"),
        ("bytes: bytes.min_len = 2", &["\"YWE=\""], "\"YQ==\"", "at least 2 bytes, found 1"),
        ("bytes: bytes.max_len = 1", &["\"YQ==\""], "\"YWE=\"", "at most 1 byte, found 2"),
        ("bytes: bytes.pattern = \"a+\"", &["\"YWE=\""], "\"YWI=\"", "bytes that match `a+`"),
        ("bytes: bytes.prefix = \"a\"", &["\"YWI=\""], "\"Yg==\"", "bytes that begin with 61"),
        ("bytes: bytes.suffix = \"a\"", &["\"YQ==\""], "\"YWI=\"", "bytes that end with 61"),
        ("bytes: bytes.contains = \"b\"", &["\"YWI=\""], "\"YQ==\"", "bytes that have 62 in them"),
        ("bytes: bytes = {in: [\"a\", \"b\"]}", &["\"YQ==\""], "\"\"", "one of the bytes 61, 62"),
        ("bytes: bytes = {not_in: [\"a\"]}", &["\"\""], "\"YQ==\"", "none of the bytes 61"),
        ("bytes: bytes.ip = true", &["\"AQIDBA==\""], "\"YQ==\"", "an IP address: 4 or 16 bytes, found 1 byte"),
        ("bytes: bytes.ipv4 = true", &["\"AQIDBA==\""], "\"\"", "an IPv4 address: 4 bytes, found 0 bytes"),
        (
            "bytes: bytes.ipv6 = true",
            &["\"AAAAAAAAAAAAAAAAAAAAAA==\""],
            "\"AQIDBA==\"",
            "an IPv6 address: 16 bytes, found 4 bytes",
        ),
        ("bytes: bytes = {min_len: 2, ignore_empty: true}", &["\"\""], "\"YQ==\"", "at least 2 bytes, found 1"),
    ]);
}

#[test]
fn rules_of_booleans_and_enums_are_applied() {
    table(&[
        ("bool: bool.const = true", &["true"], "false", "true, found false"),
        ("E: enum.const = 1", &["1", "\"ONE\""], "\"TWO\"", "ONE, found TWO"),
        ("E: enum.defined_only = true", &["0", "2"], "3", "a value of E, found 3"),
        ("E: enum = {in: [0, 2]}", &["0", "2"], "1", "one of ZERO, TWO, found ONE"),
        ("E: enum = {not_in: [0, 2]}", &["1", "7"], "2", "none of ZERO, TWO, found TWO"),
    ]);
}

#[test]
fn rules_of_times_are_applied() {
    let duration = |rules: &str| format!("google.protobuf.Duration: duration = {{{rules}}}");
    let [constant, positive, range, outside, one_of, none_of] = [
        "const: {seconds: 1}",
        "gt: {}",
        "gte: {nanos: 500000000}, lt: {seconds: 2}",
        "lt: {seconds: 1}, gt: {seconds: 2}",
        "in: [{seconds: 1}, {nanos: 1}]",
        "not_in: [{seconds: 1}]",
    ]
    .map(duration);
    table(&[
        (&constant, &["\"1s\"", "null"], "\"2s\"", "1s, found 2s"),
        (&positive, &["\"0.000000001s\""], "\"0s\"", "more than 0s, found 0s"),
        (&positive, &[], "\"-1.5s\"", "more than 0s, found -1.5s"),
        (&range, &["\"0.5s\"", "\"1.999s\""], "\"2s\"", "at least 0.5s and less than 2s, found 2s"),
        (&outside, &["\"0.5s\"", "\"3s\""], "\"1.5s\"", "more than 2s or less than 1s, found 1.5s"),
        (&one_of, &["\"1s\"", "\"0.000000001s\""], "\"2s\"", "one of 1s, 0.000000001s, found 2s"),
        (&none_of, &["\"2s\""], "\"1s\"", "none of 1s, found 1s"),
        ("google.protobuf.Duration: duration.required = true", &["\"0s\""], "null", "a value, found none"),
        (
            "google.protobuf.Timestamp: timestamp.gte = {seconds: 10}",
            &["\"1970-01-01T00:00:10Z\"", "null"],
            "\"1970-01-01T00:00:09.5Z\"",
            "at least 10s, found 9.5s",
        ),
        (
            "google.protobuf.Timestamp: timestamp = {const: {seconds: 1}}",
            &["\"1970-01-01T00:00:01Z\""],
            "\"1970-01-01T00:00:02Z\"",
            "1s, found 2s",
        ),
        (
            "google.protobuf.Timestamp: timestamp.required = true",
            &["\"1970-01-01T00:00:00Z\""],
            "null",
            "a value, found none",
        ),
    ]);
    let now = "google.protobuf.Timestamp v = 1 [(validate.rules).timestamp = {lt_now: true, within: {seconds: 1}}];";
    assert_eq!(refused(now, "{\"v\": \"9999-01-01T00:00:00Z\"}"), [""; 0], "what depends on the time is not asked");
}

#[test]
fn rules_of_an_any_are_applied() {
    let (one, other) = ("{\"@type\": \"x/t.A\"}", "{\"@type\": \"x/t.B\"}");
    for (rule, good, bad, told) in [
        ("required = true", one, "null", "v: a value, found none"),
        ("in = \"x/t.A\"", one, other, "v: one of x/t.A, found x/t.B"),
        ("not_in = \"x/t.B\"", one, other, "v: none of x/t.B, found x/t.B"),
    ] {
        let any = format!("google.protobuf.Any v = 1 [(validate.rules).any.{rule}];");
        let types = types_of(&format!("message T {{ {any} }} message A {{}} message B {{}}"));
        assert_eq!(refused_by(&types, &format!("{{\"v\": {good}}}")), [""; 0], "{rule}");
        assert_eq!(refused_by(&types, &format!("{{\"v\": {bad}}}")), [told], "{rule}");
    }
}

#[test]
fn rules_of_lists_are_applied() {
    table(&[
        ("repeated string: repeated.min_items = 1", &["[\"\"]"], "[]", "at least 1 item, found none"),
        ("repeated string: repeated.max_items = 1", &["[]"], "[\"\", \"\"]", "at most 1 item, found 2"),
        (
            "repeated string: repeated = {min_items: 2, ignore_empty: true}",
            &["[]", "[\"a\", \"b\"]"],
            "[\"a\"]",
            "at least 2 items, found 1",
        ),
    ]);
    let field = "repeated string v = 1 [(validate.rules).repeated = {unique: true, items: {string: {min_len: 1}}}];";
    assert_eq!(
        refused(field, r#"{"v": ["a", "", "b", "a"]}"#),
        ["v[1]: at least 1 character, found none", "v[3]: items that differ, found the same as [0]"]
    );
    let field = "repeated E v = 1 [(validate.rules).repeated.items.enum.defined_only = true];";
    assert_eq!(refused(field, r#"{"v": ["ONE", 9]}"#), ["v[1]: a value of E, found 9"]);
    let field = "repeated google.protobuf.UInt32Value v = 1 [(validate.rules).repeated.items.uint32.gt = 1];";
    assert_eq!(refused(field, r#"{"v": [2, 0]}"#), ["v[1]: more than 1, found 0"]);
    let field = "repeated google.protobuf.Duration v = 1 [(validate.rules).repeated = {unique: true, items: {duration: {gt: {}}}}];";
    assert_eq!(
        refused(field, r#"{"v": ["1s", "0s", "1s"]}"#),
        ["v[1]: more than 0s, found 0s", "v[2]: items that differ, found the same as [0]"]
    );
    let field = "repeated double v = 1 [(validate.rules).repeated = {unique: true}];";
    assert_eq!(refused(field, r#"{"v": [1, 2, 1]}"#).len(), 1);
}

#[test]
fn rules_of_maps_are_applied_in_the_order_of_keys() {
    table(&[
        ("map<string, string>: map.min_pairs = 1", &["{\"a\": \"\"}"], "{}", "at least 1 entry, found none"),
        (
            "map<string, string>: map.max_pairs = 2",
            &["{}"],
            "{\"a\": \"\", \"b\": \"\", \"c\": \"\"}",
            "at most 2 entries, found 3",
        ),
        (
            "map<string, string>: map = {min_pairs: 2, ignore_empty: true}",
            &["{}"],
            "{\"a\": \"\"}",
            "at least 2 entries, found 1",
        ),
    ]);
    let field = "map<string, E> v = 1 [(validate.rules).map = {keys: {string: {min_len: 2}}, values: {enum: {defined_only: true}}, no_sparse: true}];";
    let told = [
        "v[\"a\"]: at least 2 characters, found 1",
        "v[\"a\"]: a value of E, found 9",
        "v[\"bb\"]: a value of E, found 8",
        "v[\"c\"]: at least 2 characters, found 1",
    ];
    for _ in 0..8 {
        assert_eq!(refused(field, r#"{"v": {"c": "ONE", "a": 9, "bb": 8}}"#), told, "a hash map has its own order");
    }
    let field = "map<uint32, string> v = 1 [(validate.rules).map.keys.uint32.lt = 2];";
    assert_eq!(refused(field, r#"{"v": {"1": "", "2": ""}}"#), ["v[\"2\"]: less than 2, found 2"]);
}

#[test]
fn what_is_not_set_is_asked_only_whether_it_must_be() {
    for (field, json, told) in [
        ("uint32 v = 1 [(validate.rules).uint32.gt = 1];", "{}", &["v: more than 1, found 0"][..]),
        ("optional uint32 v = 1 [(validate.rules).uint32.gt = 1];", "{}", &[]),
        ("optional uint32 v = 1 [(validate.rules).uint32.gt = 1];", r#"{"v": 0}"#, &["v: more than 1, found 0"]),
        ("google.protobuf.UInt32Value v = 1 [(validate.rules).uint32.gt = 1];", "{}", &[]),
        (
            "google.protobuf.UInt32Value v = 1 [(validate.rules).uint32.gt = 1];",
            r#"{"v": 0}"#,
            &["v: more than 1, found 0"],
        ),
        (
            "google.protobuf.StringValue v = 1 [(validate.rules).string.min_len = 1];",
            r#"{"v": ""}"#,
            &["v: at least 1 character, found none"],
        ),
        (
            "google.protobuf.BoolValue v = 1 [(validate.rules).bool.const = true];",
            r#"{"v": false}"#,
            &["v: true, found false"],
        ),
        (
            "google.protobuf.UInt32Value v = 1 [(validate.rules) = {uint32: {gt: 1}, message: {required: true}}];",
            "{}",
            &["v: a value, found none"],
        ),
        ("oneof o { string v = 1 [(validate.rules).string.min_len = 1]; string w = 2; }", r#"{"w": ""}"#, &[]),
        (
            "oneof o { string v = 1 [(validate.rules).string.min_len = 1]; string w = 2; }",
            r#"{"v": ""}"#,
            &["v: at least 1 character, found none"],
        ),
        (
            "oneof o { option (validate.required) = true; string v = 1; string w = 2; } oneof p { string x = 3; }",
            "{}",
            &["o: one of v, w, found none"],
        ),
        ("oneof o { option (validate.required) = true; string v = 1; string w = 2; }", r#"{"w": ""}"#, &[]),
        ("google.protobuf.Struct v = 1 [(validate.rules).message.required = true];", "{}", &["v: a value, found none"]),
        (
            "oneof o { google.protobuf.Struct v = 1 [(validate.rules).message.required = true]; string w = 2; }",
            "{}",
            &[],
        ),
        ("google.protobuf.Struct v = 1 [(validate.rules).message.required = true];", r#"{"v": {}}"#, &[]),
    ] {
        assert_eq!(refused(field, json), told, "{field} {json}");
    }
}

/// `I` is within a `T` in every way.
const NESTED: &str = "
    message I { string s = 1 [(validate.rules).string.min_len = 1]; }
    message T {
      I one = 1; repeated I many = 2; map<string, I> by_name = 3; oneof o { I either = 4; } google.protobuf.Any any = 5;
      I skipped = 6 [(validate.rules).message.skip = true]; T inner = 7; Off off = 8; Ignored ignored = 9;
      repeated I skipped_items = 10 [(validate.rules).repeated.items.message.skip = true];
    }
    message Off { option (validate.disabled) = true; I i = 1; string s = 2 [(validate.rules).string.min_len = 1]; }
    message Ignored { option (validate.ignored) = true; string s = 2 [(validate.rules).string.min_len = 1]; }";

#[test]
fn messages_are_looked_into_unless_their_rules_say_otherwise() {
    let types = types_of(NESTED);
    let empty = "s: at least 1 character, found none";
    for (json, place) in [
        (r#"{"one": {}}"#, "one."),
        (r#"{"many": [{"s": "x"}, {}]}"#, "many[1]."),
        (r#"{"byName": {"a": {"s": "x"}, "b": {}}}"#, "by_name[\"b\"]."),
        (r#"{"either": {}}"#, "either."),
        (r#"{"any": {"@type": "x/t.I"}}"#, "any."),
        (r#"{"any": {"@type": "x/google.protobuf.Any", "value": {"@type": "x/t.T", "one": {}}}}"#, "any.one."),
        (r#"{"inner": {"inner": {"one": {}}}}"#, "inner.inner.one."),
    ] {
        assert_eq!(refused_by(&types, json), [format!("{place}{empty}")], "{json}");
    }
    for json in [r#"{"skipped": {}}"#, r#"{"skippedItems": [{}]}"#, r#"{"off": {"i": {}}}"#, r#"{"ignored": {}}"#] {
        assert_eq!(refused_by(&types, json), [""; 0], "{json}");
    }
}

#[test]
fn how_deep_and_how_many_is_bounded() {
    let types = types_of(NESTED);
    let many = format!("{{\"many\": [{}{{}}]}}", "{},".repeat(100_000));
    assert_eq!(refused_by(&types, &many).len(), 100);

    let deep = |depth: usize| {
        (0..depth)
            .fold(r#"{"@type": "x/t.I"}"#.to_owned(), |inner, _| format!("{{\"@type\": \"x/t.T\", \"any\": {inner}}}"))
    };
    let told = |depth| refused_by(&types, &format!("{{\"any\": {}}}", deep(depth)));
    // Each is two messages: an `Any`, and what is in it.
    assert_eq!(told(49), [format!("{}s: at least 1 character, found none", "any.".repeat(50))]);
    assert_eq!(told(50), [format!("{}: no more than 100 messages within each other", ["any"; 51].join("."))]);
}

#[test]
fn a_rule_that_cannot_be_used_is_told_and_not_passed_over() {
    for (rule, reason) in [
        ("string.pattern = \"(\"", "its pattern is none that can be read"),
        ("string.pattern = \"(a{1000}){1000}\"", "its pattern takes more than 1048576 bytes"),
        ("string.well_known_regex = 7", "there is no well-known regex 7"),
        ("uint32.gt = 1", "it is for fields of another type"),
        ("repeated.min_items = 1", "it is for fields of another type"),
    ] {
        let told = refused(&format!("string v = 1 [(validate.rules).{rule}];"), "{}");
        assert_eq!(told, [format!("v: nothing that is known: the rule of the field cannot be used, {reason}")]);
    }
    let nested = "(".repeat(200) + &")".repeat(200);
    assert_eq!(refused(&format!("string v = 1 [(validate.rules).string.pattern = \"{nested}\"];"), "{}").len(), 1);
}

#[test]
fn a_long_value_is_told_in_part() {
    let told = refused(
        "string v = 1 [(validate.rules).string.prefix = \"x\"];",
        &format!("{{\"v\": \"{}\"}}", "ä".repeat(1000)),
    );
    assert!(told[0].ends_with('…') && told[0].chars().count() < 300, "{told:?}");
}
