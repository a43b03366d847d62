//! One check after the other: what a server has of one must not be there for the next.

use std::io;
use std::time::Instant;

use super::check::{Check, Outcome, Stop, Verdict};
use super::lab::Lab;
use super::method::Method;
use super::report::Report;

/// How many ended how, each method by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) pass: usize,
    pub(crate) fail: usize,
    pub(crate) inconclusive: usize,
}

/// How many times longer than a wait a check may take.
const WAITS: u32 = 12;

/// # Errors
/// What is reported cannot be printed.
pub(crate) async fn run(
    lab: &mut Lab,
    checks: &[&'static Check],
    methods: &[Method],
    report: &mut Report,
) -> io::Result<Counts> {
    let mut counts = Counts::default();
    for (done, check) in checks.iter().copied().enumerate() {
        let mut outcomes = Vec::new();
        for method in check.methods.iter().copied().filter(|method| methods.contains(method)) {
            report.progress(done, checks.len(), check, method);
            let outcome = one(lab, check, method).await;
            match outcome.verdict {
                Verdict::Pass => counts.pass += 1,
                Verdict::Fail => counts.fail += 1,
                Verdict::Inconclusive => counts.inconclusive += 1,
            }
            outcomes.push(outcome);
        }
        report.check(outcomes)?;
    }
    Ok(counts)
}

async fn one(lab: &mut Lab, check: &'static Check, method: Method) -> Outcome {
    let start = Instant::now();
    lab.begin(check.rule, method);
    let longest = lab.timeout.saturating_mul(WAITS);
    let done = match tokio::time::timeout(longest, (check.run)(lab)).await {
        Ok(done) => done,
        Err(_) => Err(Stop::fail("that the check comes to an end", format!("none for {longest:?}"))),
    };
    let (verdict, expected, seen) = match done {
        Ok(()) => (Verdict::Pass, String::new(), String::new()),
        Err(Stop::Fail { expected, seen }) => (Verdict::Fail, expected, seen),
        Err(Stop::Inconclusive(why)) => (Verdict::Inconclusive, why, String::new()),
    };
    let transcript = lab.transcript.take();
    lab.clear().await;
    let transcript = if verdict == Verdict::Fail { transcript } else { Vec::new() };
    Outcome { check, method, verdict, expected, seen, transcript, took: start.elapsed() }
}
