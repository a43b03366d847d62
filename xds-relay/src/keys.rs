//! `xds-relay keys`: requests in, keys out, a line for each.

use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use xds_relay::aggregation::{Reading, RequestJson, Rules, RulesError};

/// Reads requests from standard input, one a line, as JSON: `{"node": {…}, "type_url": "…", "resource_names": […]}`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The aggregation rules, a YAML file
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,

    /// Read the rules as envoyproxy/xds-relay does, not as its documents say: every rule that matches counts
    #[arg(long)]
    legacy_all_matches: bool,

    /// Answer each line with a line of JSON: {"key": "…"}, or {"error": "…", "stage": "…"}
    #[arg(long)]
    json: bool,
}

/// Why there are no keys at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The rules are bad, and standard output says so.
    #[error("the rules are bad")]
    Told,
    #[error("cannot read the requests")]
    Requests(#[source] io::Error),
}

/// How long a line may be, in bytes: there is more to a request than any relay takes.
const MAX_LINE: u64 = 16 << 20;

/// Answers until the input ends, or nobody reads the answers.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reading = if arguments.legacy_all_matches { Reading::LegacyAllMatches } else { Reading::Documented };
    let mut out = io::stdout().lock();
    let rules = match Rules::load(&arguments.rules, reading) {
        Ok(rules) => rules,
        Err(error) if arguments.json => {
            let _ = writeln!(out, "{}", json!({ "error": error.in_original_words(), "stage": "config" }));
            return Err(Failure::Told);
        }
        Err(error) => return Err(error.into()),
    };
    for warning in rules.warnings() {
        eprintln!("xds-relay: warning: {warning}");
    }
    let mut requests = io::stdin().lock();
    for number in 1_u64.. {
        let Some(line) = next_line(&mut requests).map_err(Failure::Requests)? else { break };
        let answer = answer(&rules, arguments.json, number, &line);
        // Whoever closed it does not want to know. The other end of a pipe may wait for this before it asks again.
        if out.write_all(answer.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

/// With its end; what is beyond the limit is left out, so that it is no JSON.
fn next_line(requests: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if requests.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
        line.clear();
        requests.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

fn answer(rules: &Rules, as_json: bool, number: u64, line: &[u8]) -> String {
    let request: RequestJson = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let reason = error.to_string();
            // It counts lines of its own, of which there is one.
            let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
            let reason = format!("line {number}, column {}: no request: {reason}", error.column().max(1));
            return if as_json { told(&reason, "request") } else { format!("{reason}\n") };
        }
    };
    if !as_json {
        return format!("line {number}: {}", rules.explain(&request.as_request()));
    }
    match rules.key(&request.as_request()) {
        Ok(key) => format!("{}\n", json!({ "key": key.label() })),
        Err(error) => told(&error.to_string(), "key"),
    }
}

fn told(error: &str, stage: &str) -> String {
    format!("{}\n", json!({ "error": error, "stage": stage }))
}
