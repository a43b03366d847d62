//! `xds names`: resource names, without a server.

mod answer;
mod bootstrap;
mod listener;
mod matching;
mod parse;

use std::error::Error;
use std::process::ExitCode;

use crate::show::unless_closed;
use crate::vectors;

/// Parse resource names, match them, find the names of gRPC listeners
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Parse(parse::Args),
    /// Answer test vectors: one {op, input} a line on standard input, one answer a line
    #[command(after_help = "\
Example:
  echo '{\"op\": \"equivalent\", \"input\": [\"xdstp://a/T/x\", \"xdstp://a/T/%78\"]}' | xds names run --json")]
    Run(vectors::Args),
    Match(matching::Args),
    Listener(listener::Args),
}

pub(crate) fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Parse(args) => unless_closed(parse::run(args)),
        Command::Run(_) => unless_closed(vectors::run(answer::answer)),
        Command::Match(args) => unless_closed(matching::run(&args)),
        Command::Listener(args) => listener::run(&args),
    }
}
