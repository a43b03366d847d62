//! `xds relay`: a running relay, by what its admin pages tell.

mod admin;
mod audit;
mod clients;
mod drift;
mod explain;
mod order;
mod release_diff;
mod releases;
mod resources;
mod rollout;
mod status;
mod text;
mod time;
mod user;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use self::admin::{Address, Admin, Failure, Token};
use crate::ask::{Secure, Verdict, seconds};
use crate::exit;
use crate::show::{complain, unless_closed, visible};

/// Look at a running xds-relay: how it is, who its clients are, and why one of them has what it has
///
/// Exits with 0 if all is well, with 1 if something is not there or not as it should be, and with 3 if that is not known: the
/// relay cannot be reached, or does not want to be asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds relay status
  xds relay --admin unix:/run/xds-relay/admin clients --state REJECTED
  xds relay --admin https://relay.example.com:18001 --ca ca.pem --token token status
  xds relay explain envoy-1 cluster web
  xds relay resources cluster --name web
  xds relay drift mesh --type cluster
  xds relay releases --scope old-style
  xds relay freeze --why 'a quiet weekend'
  xds relay rollout wait")]
pub(crate) struct Args {
    /// Its admin pages: host:port, https://host:port, or unix:/path
    #[arg(long, global = true, value_name = "ADDRESS", default_value = "127.0.0.1:18001")]
    admin: Address,
    /// A file whose first line is a bearer token that they want (admin.token of the relay)
    #[arg(long, global = true, value_name = "FILE")]
    token: Option<Token>,
    #[command(flatten)]
    secure: Secure,
    /// What is printed
    #[arg(short, long, global = true, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// How long to wait for answers
    #[arg(long, global = true, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    timeout: Duration,
    #[command(subcommand)]
    command: Command,
}

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// An object a line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Args),
    Clients(clients::Args),
    Explain(explain::Args),
    Resources(resources::Args),
    Drift(drift::Args),
    Releases(releases::Args),
    Diff(release_diff::Args),
    Audit(audit::Args),
    Freeze(order::Freeze),
    Unfreeze(order::Unfreeze),
    Rollback(order::Rollback),
    Rollout(rollout::Args),
}

/// What comes of a command.
type Done = Result<Verdict, Failure>;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let admin = Admin { address: &args.admin, secure: &args.secure, timeout: args.timeout, token: args.token.as_ref() };
    let mut out = io::stdout().lock();
    let done = match &args.command {
        Command::Status(command) => status::run(command, admin, args.output, &mut out),
        Command::Clients(command) => clients::run(command, admin, args.output, &mut out),
        Command::Drift(command) => drift::run(command, admin, args.output, &mut out),
        Command::Explain(command) => explain::run(command, admin, args.output, &mut out),
        Command::Releases(command) => releases::run(command, admin, args.output, &mut out),
        Command::Resources(command) => resources::run(command, admin, args.output, &mut out),
        Command::Diff(command) => command.run(admin, args.output, &mut out),
        Command::Audit(command) => command.run(admin, args.output, &mut out),
        Command::Freeze(command) => command.run(admin, args.output, &mut out),
        Command::Unfreeze(command) => command.run(admin, args.output, &mut out),
        Command::Rollback(command) => command.run(admin, args.output, &mut out),
        // It has codes of its own.
        Command::Rollout(command) => return ended(command.run(admin, args.output, &mut out)),
    };
    ended(done.map(|verdict| exit::code(Some(verdict))))
}

fn ended(done: Result<ExitCode, Failure>) -> Result<ExitCode, Box<dyn Error>> {
    match done {
        Ok(code) => Ok(code),
        Err(Failure::Print(error)) => unless_closed(Err(error)),
        Err(failure) => {
            if let Failure::Usage(words) = failure {
                return Ok(exit::usage(&*Box::<dyn Error>::from(words)));
            }
            complain(visible(&failure.to_string()));
            let verdict = if matches!(failure, Failure::Absent(_) | Failure::NotDone(_)) {
                Verdict::Wrong
            } else {
                Verdict::Unknown
            };
            Ok(exit::code(Some(verdict)))
        }
    }
}

/// Writes an object on a line of its own.
fn json(out: &mut impl Write, object: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    out.write_all(&line)
}
