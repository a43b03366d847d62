//! Our own servers keep all rules, and what is printed of that.

use xds_transport::Dialect;

use super::cli::xds;
use super::plane::Plane;
use super::runs::Results;

/// Longer than any answer takes on a slow machine: nothing is waited for that does not come.
const LONG: &str = "60";

#[test]
fn our_control_plane_keeps_every_rule() {
    let Plane { server, adapter, .. } = Plane::start();
    assert!(kept(&[&server.to_string(), "--adapter", &format!("tcp:{adapter}")]) >= 60);
}

/// By what the draft of dynamic parameters says, of which the final form has no ranges and nothing inverted.
#[test]
fn our_control_plane_keeps_the_rules_of_the_draft() {
    let Plane { server, adapter, .. } = Plane::speaking(Dialect::Draft);
    let adapter = format!("tcp:{adapter}");
    let args = [&*server.to_string(), "--adapter", &adapter, "--timeout", LONG, "--dialect", "draft"];
    let results = Results::of(&[&args[..], &["--only", "parameters,ranges"]].concat());
    assert_eq!(results.run.code, 0, "{}", results.trouble());
    assert!(results.rules("fail").is_empty() && results.rules("inconclusive").is_empty(), "{}", results.trouble());
    assert_eq!(results.titles("pass").len(), 6, "{:?}", results.titles("pass"));
    // One that speaks another form is found out.
    let results = Results::of(&[&args[..3], &["--only", "parameters", "--timeout", "2"]].concat());
    assert!(results.rules("fail").contains(&119), "{}", results.trouble());
}

/// How many rules the server that these arguments lead to keeps: all that are checked.
pub(crate) fn kept(args: &[&str]) -> usize {
    let results = Results::of(&[args, &["--timeout", LONG]].concat());
    assert!(results.rules("fail").is_empty(), "{}", results.trouble());
    assert!(results.rules("inconclusive").is_empty(), "{}", results.trouble());
    assert_eq!(results.run.code, 0, "{}", results.trouble());
    results.rules("pass").len()
}

#[test]
fn a_seed_is_another_order_and_nothing_else() {
    let Plane { server, adapter, .. } = Plane::start();
    let (server, adapter) = (server.to_string(), format!("tcp:{adapter}"));
    let order = |seed| {
        let args = [&*server, "--adapter", &adapter, "--timeout", LONG, "--only", "nonces", "--seed", seed];
        let results = Results::of(&args);
        assert_eq!(results.run.code, 0, "{}", results.trouble());
        results.objects.iter().filter_map(|object| object["rule"].as_u64()).collect::<Vec<_>>()
    };
    let first = order("1");
    assert_eq!(order("1"), first, "what a run left behind is nothing to the next");
    assert_ne!(order("2"), first);
}

#[test]
fn without_an_adapter_what_needs_a_change_is_not_known() {
    let Plane { server, .. } = Plane::start();
    let results = Results::of(&[&server.to_string(), "--timeout", LONG]);
    assert!(results.rules("fail").is_empty(), "{}", results.trouble());
    assert!(results.rules("pass").contains(&3) && results.rules("inconclusive").contains(&13));
    assert_eq!(results.run.code, 0);
    let results = Results::of(&[&server.to_string(), "--timeout", LONG, "--only", "13"]);
    assert_eq!(results.run.code, 3, "of the server nothing is known");
    let why = results.objects[0]["because"].as_str().unwrap();
    assert!(why.contains("--adapter"), "{why}");
}

#[test]
fn a_server_that_is_not_there_is_3_and_a_wrong_command_line_2() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let run = xds(&["conformance", &nobody], "");
    assert_eq!((run.code, &*run.out), (3, ""));
    assert!(run.err.contains(&format!("no connection to {nobody}")), "{}", run.err);
    for args in [
        &["conformance"][..],
        &["conformance", "a b"],
        &["conformance", "ftp://a:1"],
        &["conformance", "http://a:1", "--tls"],
        &["conformance", &nobody, "--ca", "/no/such/ca.pem"],
        &["conformance", &nobody, "--cert", "me.pem"],
        &["conformance", &nobody, "--only", "nonsense"],
        &["conformance", &nobody, "--only", "13", "--skip", "13"],
        &["conformance", &nobody, "--method", "rest"],
        &["conformance", &nobody, "--dialect", "other"],
        &["conformance", &nobody, "--only", "ranges"],
        &["conformance", &nobody, "--adapter", "nonsense"],
        &["conformance", &nobody, "--adapter", "files:/no/such/directory"],
        &["conformance", &nobody, "--adapter", "command:/no/such/program"],
        &["conformance", &nobody, "--adapter", &format!("tcp:{nobody}")],
    ] {
        let run = xds(args, "");
        assert_eq!((run.code, &*run.out), (2, ""), "{args:?}");
        assert!(!run.err.is_empty());
    }
}

#[test]
fn people_are_told_a_line_for_each_rule_and_the_list_without_a_server() {
    let Plane { server, adapter, .. } = Plane::start();
    let (server, adapter) = (server.to_string(), format!("tcp:{adapter}"));
    let args = ["conformance", &server, "--adapter", &adapter, "--timeout", LONG, "--only", "13,3", "--seed", "7"];
    let run = xds(&args, "");
    assert_eq!((run.code, &*run.err), (0, ""), "{}", run.out);
    let lines: Vec<_> = run.out.lines().collect();
    let kept =
        "pass           13  nonces are not empty and do not repeat on a stream (sotw-ads, delta-ads, sotw, delta)";
    assert!(lines.contains(&kept), "{}", run.out);
    assert_eq!(lines.last(), Some(&"8 pass, 0 fail, 0 inconclusive (seed 7)"));
    let list = xds(&["conformance", "--list", "--only", "13"], "");
    assert_eq!(list.code, 0);
    assert_eq!(list.out.lines().count(), 1);
    assert!(list.out.starts_with("  13  nonces "), "{}", list.out);
}
