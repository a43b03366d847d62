//! An object a line.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::conformance::check::{Outcome, Verdict};
use crate::conformance::suite::Counts;

pub(super) fn outcome(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let Outcome { check, method, verdict, expected, seen, transcript, took } = outcome;
    let mut object = json!({
        "rule": check.rule, "group": check.group, "title": check.title, "method": method.as_str(),
        "verdict": verdict.as_str(), "seconds": took.as_secs_f64(),
    });
    let more: &[(&str, Value)] = match verdict {
        Verdict::Pass => &[],
        Verdict::Inconclusive => &[("because", expected.as_str().into())],
        Verdict::Fail => &[
            ("expected", expected.as_str().into()),
            ("seen", seen.as_str().into()),
            ("clients", check.consequence.into()),
            ("transcript", transcript.as_slice().into()),
        ],
    };
    if let Some(fields) = object.as_object_mut() {
        fields.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    writeln!(out, "{object}")
}

pub(super) fn sum(out: &mut impl Write, counts: &Counts, seed: u64, server: &str) -> io::Result<()> {
    let Counts { pass, fail, inconclusive } = counts;
    let sum = json!({"server": server, "seed": seed, "pass": pass, "fail": fail, "inconclusive": inconclusive});
    writeln!(out, "{sum}")
}
