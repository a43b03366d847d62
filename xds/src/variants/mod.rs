//! `xds variants`: the variants of a resource (xRFC TP2), without a server.

mod answer;
mod file;
mod lint;
mod select;

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use crate::show::{complain, unless_closed};
use crate::vectors;

/// Check the variants of a resource, and which one a subscriber gets
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Answer test vectors: one {op, …} a line on standard input, one answer a line
    #[command(after_help = "\
Example:
  jq -c 'del(.expect)' tp2.jsonl | xds variants run --json")]
    Run(vectors::Args),
    Lint(lint::Args),
    Select(select::Args),
}

/// A file or an argument is wrong, which is not the same as what was asked for not being so.
const INVALID: u8 = 2;

pub(crate) fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Run(_) => unless_closed(vectors::run(answer::answer)),
        Command::Lint(args) => lint::run(&args),
        Command::Select(args) => select::run(&args),
    }
}

/// Says on standard error what is wrong.
fn invalid(problem: impl Display) -> ExitCode {
    complain(problem);
    ExitCode::from(INVALID)
}
