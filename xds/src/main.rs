//! `xds`: look at what an xDS server serves and at which rules it keeps, at resource names and at variants.

mod answers;
mod ask;
mod conformance;
mod csds;
mod diff;
mod etcd;
mod exit;
mod get;
mod input;
mod names;
mod output;
mod relay;
mod show;
mod stdout;
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
    Conformance(conformance::Args),
    Csds(csds::Args),
    Diff(diff::Args),
    Get(get::Args),
    #[command(subcommand)]
    Names(names::Command),
    Push(etcd::push::Args),
    Relay(relay::Args),
    Rm(etcd::rm::Args),
    #[command(subcommand)]
    Variants(variants::Command),
    Watch(watch::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Conformance(args) => conformance::run(args),
        Command::Csds(args) => csds::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Get(args) => get::run(args),
        Command::Names(command) => names::run(command),
        Command::Push(args) => etcd::push::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Rm(args) => etcd::rm::run(&args),
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
