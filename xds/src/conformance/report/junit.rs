//! One document, as continuous integration reads it: a check and method is a test case.

use std::io::{self, Write};

use crate::conformance::check::{Outcome, Verdict};
use crate::conformance::suite::Counts;

pub(super) fn document(out: &mut impl Write, outcomes: &[Outcome], counts: &Counts, server: &str) -> io::Result<()> {
    let Counts { fail, inconclusive, .. } = counts;
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<testsuite name="xds conformance" hostname="{}" tests="{}" failures="{fail}" errors="0" skipped="{inconclusive}" time="{seconds:.3}">"#,
        escaped(server),
        outcomes.len(),
    )?;
    outcomes.iter().try_for_each(|outcome| case(out, outcome))?;
    writeln!(out, "</testsuite>")
}

fn case(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let Outcome { check, method, verdict, expected, seen, transcript, took } = outcome;
    write!(
        out,
        r#"  <testcase classname="rule {:03}" name="{} ({})" time="{:.3}""#,
        check.rule,
        escaped(check.title),
        method.as_str(),
        took.as_secs_f64(),
    )?;
    match verdict {
        Verdict::Pass => writeln!(out, "/>"),
        Verdict::Inconclusive => {
            writeln!(out, ">\n    <skipped message=\"{}\"/>\n  </testcase>", escaped(expected))
        }
        Verdict::Fail => {
            let message = format!("expected {expected}; seen {seen}");
            let text = format!("{}\nclients: {}", transcript.join("\n"), check.consequence);
            writeln!(
                out,
                ">\n    <failure message=\"{}\">{}</failure>\n  </testcase>",
                escaped(&message),
                escaped(&text)
            )
        }
    }
}

/// As text and attributes have it; what XML has no way to say is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(char),
            '\u{fffe}' | '\u{ffff}' => {}
            char if char.is_control() => {}
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_markup_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\u{1}\n"), "a&lt;b&gt; &amp; &quot;c&quot;\n");
    }
}
