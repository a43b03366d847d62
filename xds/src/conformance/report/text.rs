//! For people.

use std::io::{self, Write};

use crate::conformance::check::{Check, Outcome, Verdict};
use crate::conformance::method::Method;
use crate::conformance::suite::Counts;
use crate::show::visible;

/// A line for the rule, and what is behind it where it was not kept.
pub(super) fn check(out: &mut impl Write, outcomes: &[Outcome]) -> io::Result<()> {
    let Some(worst) = outcomes.iter().max_by_key(|outcome| outcome.verdict) else { return Ok(()) };
    let methods = outcomes.iter().filter(|outcome| outcome.verdict == worst.verdict).map(|outcome| outcome.method);
    let check = worst.check;
    writeln!(
        out,
        "{:<12} {:>4}  {} ({})",
        worst.verdict.as_str(),
        check.rule,
        check.title,
        words(&methods.collect::<Vec<_>>())
    )?;
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Fail) {
        writeln!(out, "    {}", outcome.method.as_str())?;
        writeln!(out, "      expected: {}", visible(&outcome.expected))?;
        writeln!(out, "      seen:     {}", visible(&outcome.seen))?;
        outcome.transcript.iter().try_for_each(|line| writeln!(out, "        {}", visible(line)))?;
    }
    match worst.verdict {
        Verdict::Fail => writeln!(out, "    clients:    {}", check.consequence),
        Verdict::Inconclusive => writeln!(out, "    because:    {}", visible(&worst.expected)),
        Verdict::Pass => Ok(()),
    }
}

pub(super) fn sum(out: &mut impl Write, counts: &Counts, seed: u64) -> io::Result<()> {
    let Counts { pass, fail, inconclusive } = counts;
    writeln!(out, "{pass} pass, {fail} fail, {inconclusive} inconclusive (seed {seed})")
}

pub(super) fn list(out: &mut impl Write, checks: &[&Check]) -> io::Result<()> {
    for check in checks {
        writeln!(out, "{:>4}  {:<14} {} ({})", check.rule, check.group, check.title, words(check.methods))?;
    }
    Ok(())
}

fn words(methods: &[Method]) -> String {
    methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ")
}
