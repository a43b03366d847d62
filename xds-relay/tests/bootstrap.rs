//! Bootstrap files of envoyproxy/xds-relay.

#![allow(clippy::unwrap_used, reason = "the helpers of these tests")]

use std::fs;
use std::time::Duration;

use xds_relay::Config;
use xds_relay::config::{Bootstrap, Methods, Unmatched};

/// All that there is in one.
const ALL: &str = r#"server:
  address: { address: "0.0.0.0", port_value: 9991 }
origin_server:
  address: { address: control-plane.example.com, port_value: 18000 }
  keep_alive_time: 1m30s
  stream_timeout: 5m
  stream_timeout_jitter: 1m
  request_node_metadata: a ${b}
logging: { path: /dev/stdout, level: DEBUG }
cache: { ttl: 120s, max_entries: 100 }
metrics_sink:
  statsd:
    address: { address: 127.0.0.1, port_value: 8125 }
    root_prefix: relay
    flush_interval: 5s
admin:
  address: { address: 0.0.0.0, port_value: 6070 }
"#;

/// No more than is asked for.
const LEAST: &str = r#"{ "server": { "address": { "address": "localhost", "portValue": 9991 } },
  "originServer": { "address": { "address": "::1", "portValue": "18000" } },
  "logging": {}, "cache": { "ttl": "0s" },
  "metricsSink": { "statsd": { "address": { "address": "h", "portValue": 1 }, "rootPrefix": "r", "flushInterval": "0s" } },
  "admin": { "address": { "address": "127.0.0.1", "portValue": 6070 } } }"#;

fn read(text: &str) -> Bootstrap {
    Bootstrap::parse("b.yaml", text).unwrap()
}

#[test]
fn what_is_printed_is_read_as_the_configuration() {
    for text in [ALL, LEAST] {
        let bootstrap = read(text);
        let printed = bootstrap.to_string();
        let config = Config::parse("relay.yaml", &printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        assert_eq!(&config, bootstrap.config(), "{printed}");
        config.validate().unwrap();
    }
}

#[test]
fn each_field_has_its_equal_or_a_note() {
    let bootstrap = read(ALL);
    let printed = bootstrap.to_string();
    for line in [
        "listen: \"0.0.0.0:9991\"",
        "admin: \"127.0.0.1:6070\"",
        "  server: control-plane.example.com:18000",
        "  protocol: sotw",
        "- keepalive: \"1m 30s\"",
        "linger: 2m",
        "  lingering_names: 100",
        "log: debug",
        "  prefix: relay",
        "  node_metadata:",
        "    xdsrelay_node_metadata: \"a $${b}\"",
    ] {
        assert!(printed.lines().any(|other| other.replace("\"2m\"", "2m") == line), "{line}: {printed}");
    }
    let told: Vec<String> = bootstrap.notes().iter().map(ToString::to_string).collect();
    for (place, field) in [
        ("17:12", "admin.address"),
        ("4:3", "origin_server"),
        ("6:19", "origin_server.stream_timeout"),
        ("7:26", "origin_server.stream_timeout_jitter"),
        ("9:18", "logging.path"),
        ("10:15", "cache.ttl"),
        ("10:34", "cache.max_entries"),
        ("13:5", "metrics_sink.statsd"),
        ("1:1", "aggregation rules"),
    ] {
        let start = format!("b.yaml:{place}: {field}: ");
        assert!(told.iter().any(|note| note.starts_with(&start)), "{start}: {told:#?}");
        assert!(printed.contains(&format!("# {field}, line ")), "{field}: {printed}");
    }
}

#[test]
fn what_is_said_of_a_field_that_is_as_it_is_by_default_is_a_comment_too() {
    let bootstrap = read(&ALL.replace("DEBUG", "INFO"));
    assert_eq!(bootstrap.config().log.as_str(), "info");
    let printed = bootstrap.to_string();
    assert!(printed.contains("# logging.path, line 9: "), "{printed}");
    // The original asked each type's own service.
    assert_eq!(bootstrap.config().origins[0].methods, Methods::PerType);
    assert!(printed.contains("per_type"), "{printed}");
    for note in bootstrap.notes() {
        let comment = format!("# {}, line {}: {}\n", note.field, note.line, note.text);
        assert_eq!(printed.matches(&comment).count(), 1, "{comment}{printed}");
    }
}

#[test]
fn a_prefix_that_means_something_to_statsd_is_the_closest_that_does_not_with_a_note() {
    let long = "x".repeat(200);
    for (prefix, here) in [("'a:b|c d'", "a_b_c_d"), (long.as_str(), &long[..128])] {
        let bootstrap = read(&ALL.replace("root_prefix: relay", &format!("root_prefix: {prefix}")));
        assert_eq!(bootstrap.config().statsd.as_ref().unwrap().prefix, here);
        assert_eq!(&Config::parse("relay.yaml", &bootstrap.to_string()).unwrap(), bootstrap.config());
        let start = format!("b.yaml:14:18: metrics_sink.statsd.root_prefix: it is `{here}`: ");
        assert!(bootstrap.notes().iter().any(|note| note.to_string().starts_with(&start)), "{:?}", bootstrap.notes());
    }
}

#[test]
fn an_interval_that_there_is_not_here_is_the_closest_with_a_note() {
    for (said, here) in [("0s", "100ms"), ("0.01s", "100ms"), ("90000s", "1day")] {
        let bootstrap = read(&ALL.replace("flush_interval: 5s", &format!("flush_interval: {said}")));
        let start = format!("b.yaml:15:21: metrics_sink.statsd.flush_interval: it is {here}: ");
        assert!(bootstrap.notes().iter().any(|note| note.to_string().starts_with(&start)), "{:?}", bootstrap.notes());
        assert_eq!(&Config::parse("relay.yaml", &bootstrap.to_string()).unwrap(), bootstrap.config());
    }
    for said in ["0.1s", "86400s"] {
        let bootstrap = read(&ALL.replace("flush_interval: 5s", &format!("flush_interval: {said}")));
        assert!(!bootstrap.to_string().contains("flush_interval, line"), "{said}: {bootstrap}");
    }
}

#[test]
fn what_is_left_out_is_as_it_was_there() {
    let config = read(LEAST).into_config();
    assert_eq!(config.listen.to_string(), "127.0.0.1:9991");
    assert_eq!(config.origins[0].kind.to_string(), "[::1]:18000, sotw");
    assert_eq!(config.origins[0].keepalive, Duration::from_secs(300));
    assert_eq!(config.linger, Duration::from_secs(24 * 3600), "never, as near as there is");
    assert_eq!(config.log.as_str(), "info");
    let long = read(&ALL.replace("120s", "90000.5s").replace("1m30s", "1s").replace("100 }", "2147483647 }"));
    assert_eq!(long.config().linger, Duration::from_secs(24 * 3600));
    assert_eq!(long.config().origins[0].keepalive, Duration::from_secs(10));
    assert_eq!(&Config::parse("relay.yaml", &long.to_string()).unwrap(), long.config());
}

#[test]
fn rules_are_named_and_requests_without_one_are_refused_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("rules ${x}.yaml");
    let rule = "- { match: { any_match: true }, result: { string_fragment: a } }\n";
    fs::write(&rules, format!("fragments:\n- rules:\n  {rule}")).unwrap();
    let mut bootstrap = read(ALL);
    bootstrap.share_by_rules(&rules).unwrap();
    let config = Config::parse("elsewhere/relay.yaml", &bootstrap.to_string()).unwrap();
    assert_eq!(&config, bootstrap.config());
    let aggregation = config.aggregation.unwrap();
    assert_eq!((aggregation.rules, aggregation.unmatched), (rules.clone(), Unmatched::Reject));
    assert!(!aggregation.legacy_all_matches);
    assert!(!bootstrap.to_string().contains("legacy_all_matches`"), "both readings are one");
    assert!(!bootstrap.to_string().contains("--aggregation"));

    fs::write(&rules, format!("fragments:\n- rules:\n  {rule}  {rule}")).unwrap();
    bootstrap.share_by_rules(&rules).unwrap();
    assert!(bootstrap.to_string().contains("`legacy_all_matches: true` does so"), "{bootstrap}");

    fs::write(&rules, "fragments: []").unwrap();
    let error = bootstrap.share_by_rules(&rules).unwrap_err().to_string();
    assert!(error.contains(":1:12: fragments: value must contain at least 1 item(s)"), "{error}");
}

#[test]
fn a_bad_file_is_an_error_with_its_place_and_field() {
    for (from, to, expected) in [
        ("logging:", "x: 1\nlogging:", "9:1: x: unknown field \"x\", expected one of server, origin_server"),
        ("server:\n  address: {", "server:\n  adress: {", "2:3: server.adress: unknown field"),
        ("cache: { ttl: 120s, max", "cache: { max", "10:8: cache.ttl: value is required"),
        ("120s", "-1s", "10:15: cache.ttl: `-1s`: value must be greater than or equal to 0s"),
        ("120s", "2m", "10:15: cache.ttl: `2m`: expected seconds, such as 60s or 0.5s"),
        ("100 }", "many }", "10:34: cache.max_entries: invalid value: string \"many\", expected an int32"),
        ("DEBUG", "foo", "9:38: logging.level: expected one of INFO, DEBUG, WARN, ERROR"),
        ("DEBUG", "4", "9:38: logging.level: expected one of"),
        ("9991", "65536", "2:46: server.address.port_value: `65536`: value must be less than or equal to 65535"),
        (
            "\"0.0.0.0\"",
            "invalid_hostname.net",
            "2:23: server.address.address: `invalid_hostname.net`: value must be a valid hostname",
        ),
        (
            "\"0.0.0.0\"",
            "relay.example.com",
            "2:12: server.address.address: `relay.example.com`: the relay listens at addresses",
        ),
        ("\"0.0.0.0\", ", "1.2.3.4, address: 1.2.3.4, ", "key `address` occurs twice"),
        ("address: \"0.0.0.0\", ", "", "2:12: server.address.address: value is required"),
        ("    root_prefix: relay\n", "", "13:5: metrics_sink.statsd.root_prefix: value is required"),
        ("relay\n", "\"\"\n", "14:18: metrics_sink.statsd.root_prefix: value length must be at least 1"),
        ("    flush_interval: 5s\n", "", "metrics_sink.statsd.flush_interval: value is required"),
        ("8125", "65536", "13:48: metrics_sink.statsd.address.port_value: `65536`"),
        (
            "    address: { address: 127.0.0.1, port_value: 8125 }\n",
            "",
            "metrics_sink.statsd.address: value is required",
        ),
        ("6070", "9991", "17:12: admin.address: the same address as listen"),
        ("1m30s", "90x", "5:20: origin_server.keep_alive_time: `90x`: expected a duration"),
        (
            "control-plane.example.com, port_value: 18000",
            "localhost, port_value: 9991",
            "4:12: origin_server.address: `localhost:9991`: where the relay itself listens",
        ),
        (", port_value: 18000", "", "4:12: origin_server.address: `control-plane.example.com:0`: expected HOST:PORT"),
    ] {
        let text = ALL.replacen(from, to, 1);
        assert_ne!(text, ALL, "{from}");
        let error = Bootstrap::parse("b.yaml", &text).unwrap_err().to_string();
        let start = format!("b.yaml:{expected}");
        assert!(
            error.starts_with(&start) || !expected.starts_with(char::is_numeric) && error.contains(expected),
            "{expected}\n{error}"
        );
    }
    for field in ["server", "originServer", "logging", "cache", "metricsSink", "admin"] {
        let error = Bootstrap::parse("b.yaml", &LEAST.replace(&format!("\"{field}\": {{"), "\"<<\": {")).unwrap_err();
        assert!(
            error.to_string().contains("unknown field") || error.to_string().contains("value is required"),
            "{error}"
        );
    }
    let error = Bootstrap::parse("b.yaml", "").unwrap_err().to_string();
    assert_eq!(error, "b.yaml:1:1: server: value is required");
}

#[test]
fn a_configuration_is_told_from_a_bootstrap_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file.yaml");
    for (text, is_one) in [
        (ALL, true),
        (LEAST, true),
        ("origins: [{ name: a, server: a:1 }]", false),
        ("server: a:1", false),
        ("", false),
        ("[", false),
    ] {
        fs::write(&file, text).unwrap();
        assert_eq!(Bootstrap::load_if_one(&file).unwrap().is_some(), is_one, "{text}");
    }
    fs::write(&file, "origin_server: 1").unwrap();
    assert!(Bootstrap::load_if_one(&file).is_err());
}
