//! `xds names`: resource names, without a server.

mod answer;
mod bootstrap;
mod listener;
mod matching;
mod parse;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use crate::vectors;

/// Parse resource names, match them, find the names of gRPC listeners
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Parse(parse::Args),
    /// Answer test vectors: one {op, input} a line on standard input, one answer a line
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

/// That nobody reads any more is no error.
pub(crate) fn unless_closed(done: io::Result<ExitCode>) -> Result<ExitCode, Box<dyn Error>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => Ok(done?),
    }
}
