//! `xds names run` and `xds variants run`: questions as JSON, one a line, and their answers.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::input::Records;
use crate::show::complain;

/// How long a line may be, in bytes.
const MAX_LINE: usize = 16 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Answer as JSON, which is the only form there is
    #[arg(long)]
    json: bool,
}

/// Answers every line of standard input by one line. One that is no JSON is answered by an error and makes the exit code 1.
pub(crate) fn run(answer: impl Fn(&Value) -> Value) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    for (index, record) in Records::new(io::stdin().lock(), b'\n', MAX_LINE).enumerate() {
        let record = record?;
        if record.bytes.trim_ascii().is_empty() {
            continue;
        }
        let question = if record.is_cut {
            Err(Refusal { kind: "too_long", problem: format!("expected at most {MAX_LINE} bytes") })
        } else {
            serde_json::from_slice(&record.bytes).map_err(|error| Refusal::of(&error))
        };
        let answer = question.map(|question| answer(&question)).unwrap_or_else(|refusal| {
            complain(format_args!("line {}: {}", index + 1, refusal.problem));
            code = ExitCode::FAILURE;
            json!({"error": refusal.kind})
        });
        writeln!(out, "{answer}")?;
    }
    Ok(code)
}

struct Refusal {
    kind: &'static str,
    problem: String,
}

impl Refusal {
    fn of(error: &serde_json::Error) -> Self {
        let problem = error.to_string();
        // The parser has a limit of its own, and no other way to tell that it was met.
        let kind = if problem.starts_with("recursion limit") { "too_deep" } else { "invalid_json" };
        // It counts lines, of which it has seen one.
        Self { kind, problem: problem.replace(" at line 1 column", " at column") }
    }
}
