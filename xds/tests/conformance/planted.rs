//! A server with a defect breaks the rules that the defect is about, and no other.

use std::collections::BTreeSet;
use std::sync::Mutex;

use xds_transport::Dialect;

use super::defects::{BORNE, DEFECTS, Defect};
use super::plane::Plane;
use super::runs::Results;

/// What takes long, or waits for a clock, and is run for the defects that are about it.
const SLOW: &[(&str, &[Defect])] = &[
    ("ttl", &[Defect::TtlForEverybody, Defect::HeartbeatIsAnotherVersion, Defect::NoHeartbeats]),
    ("size", &[Defect::SmallResponses, Defect::SmallRequests]),
    ("flow", &[Defect::ManyInFlight]),
    ("12", &[]),
];

/// The rules that are broken over some method. Machines are slow at times: what is not as it should be is waited for longer.
fn broken(defect: Option<Defect>, over: &str, expected: &BTreeSet<u64>) -> Results {
    let dialect = if over == "draft" { Dialect::Draft } else { Dialect::Final };
    let plane = Plane::with(defect, dialect);
    let (server, adapter) = (plane.server.to_string(), format!("tcp:{}", plane.adapter));
    let skip: Vec<_> =
        SLOW.iter().filter(|(_, of)| !defect.is_some_and(|it| of.contains(&it))).map(|it| it.0).collect();
    let skip = skip.join(",");
    // A defect is the same on a stream of one type.
    let methods = match (over, defect) {
        (_, None) => "sotw-ads,delta-ads,sotw,delta".to_owned(),
        ("both", _) => "sotw-ads,delta-ads".to_owned(),
        ("draft", _) => "delta-ads".to_owned(),
        (protocol, _) => format!("{protocol}-ads"),
    };
    let run = |timeout| {
        let args = [&*server, "--adapter", &adapter, "--skip", &skip, "--method", &methods, "--timeout", timeout];
        // In either form the rest is the same.
        let of_draft = ["--dialect", "draft", "--only", "parameters,ranges"];
        Results::of(&[&args[..], if over == "draft" { &of_draft } else { &[] }].concat())
    };
    let first = ["2", "10"].into_iter().map(run).find(|results| results.rules("fail") == *expected);
    first.unwrap_or_else(|| run("40"))
}

#[test]
fn the_hand_without_a_defect_breaks_no_rule() {
    let results = broken(None, "both", &BTreeSet::new());
    assert!(results.rules("fail").is_empty(), "{}", results.trouble());
    assert_eq!(results.run.code, 0);
    let unknown = results.rules("inconclusive");
    let borne: Vec<_> = BORNE.iter().flat_map(|(_, rules)| *rules).filter(|rule| unknown.contains(rule)).collect();
    assert!(borne.is_empty(), "{borne:?}");
}

#[test]
fn every_defect_is_found_and_nothing_else() {
    let (queue, wrong) = (Mutex::new(DEFECTS.iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap().next();
    let work = || {
        while let Some((defect, over, rules)) = next() {
            let expected: BTreeSet<_> = rules.iter().copied().collect();
            let results = broken(Some(*defect), over, &expected);
            let seen = results.rules("fail");
            let (unknown, borne) = (results.rules("inconclusive"), BORNE.iter().find(|(borne, _)| borne == defect));
            let is_borne = borne.is_some_and(|(_, rules)| rules.iter().all(|rule| unknown.contains(rule)));
            let is_found = if expected.is_empty() { is_borne && results.run.code == 0 } else { results.run.code == 1 };
            // Each of the draft's is about one check.
            let is_alone = *over != "draft" || results.titles("fail").len() == 1;
            if seen != expected || !is_found || !is_alone {
                wrong.lock().unwrap().push(format!("{defect:?}: {seen:?}, not {expected:?}\n{}", results.trouble()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(DEFECTS.len() >= 20);
}

/// Most of their time they wait.
const THREADS: usize = 6;
