//! `xds variants lint`: what a control plane checks before it publishes a set of variants.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use xds_matcher::{LintOptions, LintReport, Overlap};

use super::file::Variants;
use super::invalid;
use crate::show::{unless_closed, visible};

/// Find variants that overlap, differ in their keys or leave values out; exit 0 if there is nothing to report, 1 if there is, 2 if
/// the file is wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  xds variants lint variants.yaml --values env=prod,test --sent env,version")]
pub(crate) struct Args {
    /// YAML: form (final or draft) and variants (each a name with constraints or parameters)
    file: PathBuf,
    /// The keys that subscribers send already: nothing should depend on others yet
    #[arg(long, value_name = "KEY,…", value_delimiter = ',')]
    sent: Option<Vec<String>>,
    /// The values that subscribers use, all of which should be covered: env=prod,env=test,version=v1 or env=prod,test
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    values: Vec<String>,
}

/// Of how many overlaps an example is shown: finding one may take some milliseconds.
const EXAMPLES: usize = 32;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let (variants, values) = match (Variants::read(&args.file), values_by_key(&args.values)) {
        (Err(problem), _) => return Ok(invalid(problem)),
        (_, Err(problem)) => return Ok(invalid(problem)),
        (Ok(variants), Ok(values)) => (variants, values),
    };
    let values: Vec<(&str, &[&str])> = values.iter().map(|(key, values)| (*key, &**values)).collect();
    let sent: Option<Vec<&str>> = args.sent.as_ref().map(|keys| keys.iter().map(String::as_str).collect());
    let options = LintOptions::new().values(&values);
    let options = sent.as_deref().map_or(options, |sent| options.sent(sent));
    let report = match &variants {
        Variants::Final(variants) => variants.lint(&options),
        Variants::Draft(variants) => variants.lint(&options),
    };
    let code = if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    unless_closed(print(&variants, &report).map(|()| code))
}

/// The values of each key, from pieces of which one without `=` is a further value of the key before it.
fn values_by_key(pieces: &[String]) -> Result<BTreeMap<&str, Vec<&str>>, String> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut last = None;
    for piece in pieces {
        let (key, value) = match (piece.split_once('='), last) {
            (Some(pair), _) => pair,
            (None, Some(key)) => (key, piece.as_str()),
            (None, None) => return Err(format!("--values: expected key=value, found {piece:?}")),
        };
        last = Some(key);
        let of_key = values.entry(key).or_default();
        if !of_key.contains(&value) {
            of_key.push(value);
        }
    }
    Ok(values)
}

fn print(variants: &Variants, report: &LintReport<'_, String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (index, (a, b)) in report.overlaps.iter().enumerate() {
        let example = if index < EXAMPLES { example(variants, a, b) } else { String::new() };
        writeln!(out, "overlap: {} and {} both match one subscriber{example}", quoted(a), quoted(b))?;
    }
    for (a, b) in &report.undecided {
        writeln!(out, "undecided: {} and {} may overlap; finding out is too much work", quoted(a), quoted(b))?;
    }
    if !report.is_complete() {
        writeln!(out, "undecided: not all pairs of variants were looked at")?;
    }
    if !report.same_keys {
        writeln!(out, "keys: {}", different_keys(variants))?;
    }
    let uncovered = report.uncovered.iter().map(|uncovered| (uncovered, "no variant is for"));
    let undecided =
        report.uncovered_undecided.iter().map(|undecided| (undecided, "undecided: maybe no variant is for"));
    for ((key, values), what) in uncovered.chain(undecided) {
        for value in values {
            writeln!(out, "uncovered: {what} {}={}", visible(key), visible(value))?;
        }
    }
    for (key, names) in &report.unsent {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        writeln!(out, "unsent: {} depend on {}, which nobody sends yet", names.join(", "), visible(key))?;
    }
    Ok(())
}

/// Parameters that both variants match.
fn example(variants: &Variants, a: &String, b: &String) -> String {
    let Variants::Final(variants) = variants else { return String::new() };
    let constraint = |wanted| variants.iter().find(|(name, _)| *name == wanted).map(|(_, constraint)| constraint);
    match constraint(a).zip(constraint(b)).map(|(a, b)| a.overlap(b)) {
        Some(Overlap::Overlapping(parameters)) => format!(", such as {}", visible(&parameters.to_string())),
        _ => String::new(),
    }
}

/// The first two variants that mention different keys.
fn different_keys(variants: &Variants) -> String {
    let mut keys: Vec<(&String, BTreeSet<&str>)> = match variants {
        Variants::Final(variants) => {
            variants.iter().map(|(name, constraint)| (name, constraint.keys().collect())).collect()
        }
        Variants::Draft(variants) => {
            variants.iter().map(|(name, parameters)| (name, parameters.iter().map(|(key, _)| key).collect())).collect()
        }
    };
    keys.sort();
    let Some(((first, of_first), others)) = keys.split_first() else { return String::new() };
    let list = |keys: &BTreeSet<&str>| {
        let keys: Vec<_> = keys.iter().map(|key| visible(key)).collect();
        if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
    };
    let mut text = String::from("variants mention different keys");
    if let Some((other, of_other)) = others.iter().find(|(_, keys)| keys != of_first) {
        // Writing to a string does not fail.
        let _ = write!(text, ": {} {}; {} {}", quoted(first), list(of_first), quoted(other), list(of_other));
    }
    text
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", visible(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_a_key_belongs_to_the_key_before() {
        let pieces: Vec<_> = ["env=prod", "test", "version=v1", "env=prod", "n="].map(String::from).into();
        let expected = BTreeMap::from([("env", vec!["prod", "test"]), ("version", vec!["v1"]), ("n", vec![""])]);
        assert_eq!(values_by_key(&pieces), Ok(expected));
        assert!(values_by_key(&["prod".to_owned()]).is_err());
    }
}
