//! `xds`: look at what an xDS server serves, at resource names and at variants.

mod answers;
mod ask;
mod csds;
mod diff;
mod exit;
mod get;
mod input;
mod names;
mod output;
mod show;
mod variants;
mod vectors;
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
    Csds(csds::Args),
    Diff(diff::Args),
    Get(get::Args),
    #[command(subcommand)]
    Names(names::Command),
    #[command(subcommand)]
    Variants(variants::Command),
    Watch(watch::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Csds(args) => csds::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Get(args) => get::run(args),
        Command::Names(command) => names::run(command),
        Command::Variants(command) => variants::run(command),
        Command::Watch(args) => watch::run(args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            show::complain(show::with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}
