//! What SECURITY.md says is tested has tests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;

/// All sources below a directory.
fn sources(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// In what was packed for the registry there is no such file.
#[test]
fn each_line_of_the_threat_model_names_tests_that_there_are() {
    let Ok(text) = fs::read_to_string("../SECURITY.md") else { return };
    let mut code = String::new();
    let directories = ["src", "tests", "../xds-transport/src", "../xds-transport/tests"];
    directories.iter().for_each(|directory| sources(Path::new(directory), &mut code));
    let rows = text.lines().skip_while(|line| *line != "| what somebody tries | what becomes of it | test |").skip(2);
    let mut count = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in tests.split(", ") {
            let name = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
            assert!(name.is_some_and(|name| code.contains(&format!("fn {name}("))), "{row}: no test {test}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// By what a limit is told that has no count of its own in `xds_relay_downstream_refused_total`, as it refuses no client.
const COUNTED_OTHERWISE: &[(&str, &str)] = &[("max_response_bytes", "xds_relay_upstream_too_long_total")];

/// What refuses nobody, and ends nothing: there is nothing to count.
const REFUSES_NOBODY: &[&str] = &["lingering_names", "names_per_turn"];

/// In which test it is met, for each limit of the README.
const MET_IN: &[(&str, &str)] = &[
    ("max_request_bytes", "rule_132_requests_have_so_many_bytes"),
    ("max_response_bytes", "a_response_of_an_origin_that_is_too_long_is_counted"),
    ("max_upstream_request_bytes", "rule_132_of_what_reaches_an_origin"),
    ("connections", "connections_are_so_many"),
    ("names_per_stream", "rule_132_of_what_one_stream_asks_for"),
    ("types_per_stream", "rule_132_of_what_one_stream_asks_for"),
    ("parameter_sets_per_stream", "a_stream_has_so_many_names_and_types_and_sends_so_many_requests_a_second"),
    ("authorities_per_stream", "rule_132_of_what_one_stream_asks_for"),
    ("requests_per_second", "rule_132_of_what_one_stream_asks_for"),
    ("unfinished_request_bytes", "rule_132_requests_have_so_many_bytes"),
    ("preface", "connections_have_so_much_time"),
    ("first_request", "streams_have_so_much_time"),
    ("stream_age", "streams_have_so_much_time"),
    ("admin_idle", "admin_connections_have_so_much_time_between_answers"),
    ("streams_per_connection", "connections_have_so_many_streams"),
    ("streams", "rule_132_of_what_all_streams_ask_for"),
    ("new_streams_per_second", "rule_136_streams_come_so_many_a_second"),
    ("load_report_streams", "rule_132_of_streams_of_load_reports_there_are_so_many_and_they_are_counted"),
    ("groups", "rule_132_of_what_reaches_an_origin"),
    ("authorities", "rule_132_of_what_all_streams_ask_for"),
    ("names", "rule_132_of_what_all_streams_ask_for"),
    ("one_client", "where_no_rule_says_how_much_one_client_does_not_take_all_that_there_may_be"),
    ("lingering_names", "of_more_names_that_nobody_wants_than_may_linger_the_first_go_and_no_stream_ends"),
    ("names_per_turn", "of_streams_that_have_much_to_do_few_are_looked_at_before_others_have_their_turn"),
    ("name_bytes", "rule_109_a_name_that_is_too_long_is_one_of_nothing"),
    ("node_bytes", "rule_132_of_how_long_a_node_and_a_type_may_be"),
];

/// What a relay of the defaults tells before anything was met.
fn told() -> String {
    let config = xds_relay::Config::parse("relay.yaml", "origins: [{ name: up, server: 'a:1' }]").unwrap();
    let metrics = std::sync::Arc::new(xds_relay::metrics::Metrics::new([]));
    let dial = Box::new(Nobody);
    let core =
        xds_relay::relay_core::RelayCore::new(&config, Box::new(xds_relay::relay_core::EveryNode), dial, metrics);
    core.metrics().render(&core.gauges())
}

/// Is asked to connect to nobody.
struct Nobody;

impl xds_relay::relay_core::Dial for Nobody {
    fn dial(
        &self,
        _: xds_relay::relay_core::Position,
        _: bytes::Bytes,
        _: Box<dyn xdstp_client::upstream::Consumer>,
    ) -> Box<dyn xds_relay::relay_core::Dialed> {
        unreachable!("nobody asks for anything")
    }
}

#[test]
fn each_limit_is_counted_and_has_a_test_in_which_it_is_met() {
    let readme = include_str!("../README.md");
    let limits: Vec<_> = readme.lines().filter_map(|line| line.strip_prefix("| `limits.")?.split('`').next()).collect();
    // The row of what becomes of some of them on a reload begins so as well.
    let limits: std::collections::BTreeSet<_> = limits.into_iter().collect();
    let (text, mut code) = (told(), String::new());
    ["src", "tests", "../xds-transport/src"]
        .iter()
        .filter(|of| Path::new(of).is_dir())
        .for_each(|of| sources(Path::new(of), &mut code));
    for limit in &limits {
        let otherwise = COUNTED_OTHERWISE.iter().find(|(of, _)| of == limit);
        let start = match otherwise {
            Some((_, counter)) => format!("{counter}{{"),
            None => format!("xds_relay_downstream_refused_total{{limit=\"{limit}\"}} "),
        };
        let is_counted = text.lines().any(|line| line.starts_with(&start));
        assert_ne!(is_counted, REFUSES_NOBODY.contains(limit), "{limit}: {start}");
        let test = MET_IN.iter().find(|(of, _)| of == limit);
        let (_, test) = test.unwrap_or_else(|| panic!("no test is named in which limits.{limit} is met"));
        let is_elsewhere = *limit == "names_per_turn" && !Path::new("../xds-transport/src").is_dir();
        assert!(is_elsewhere || code.contains(&format!("fn {test}(")), "{limit}: no test {test}");
    }
    assert_eq!(MET_IN.iter().map(|(limit, _)| *limit).collect::<std::collections::BTreeSet<_>>(), limits);
}
