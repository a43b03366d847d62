//! `xds`: look at what an xDS server serves.

mod get;
mod target;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xds", version, about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

/// One file each: its arguments, and `run`.
#[derive(Debug, Subcommand)]
enum Command {
    Get(get::Args),
    Watch(watch::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Get(args) => get::run(args),
        Command::Watch(args) => watch::run(args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xds: {error}");
            ExitCode::FAILURE
        }
    }
}
