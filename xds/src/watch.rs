//! `xds watch`: resources as they arrive, change and go.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use crate::ask::{Progress, Until, Wanted, Where, listen, seconds};
use crate::exit;
use crate::output;
use crate::show::unless_closed;

/// Print each resource as it arrives, changes or is removed, until ^C
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds watch endpoint backend
  xds watch --server relay.example.com:18000 --ca ca.pem cluster
  xds watch --output json cluster | jq -r 'select(.event == \"put\").name'")]
pub(crate) struct Args {
    #[command(flatten)]
    servers: Where,
    #[command(flatten)]
    output: output::Args,
    /// Exit after this time, as `xds get` does
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    wanted: Wanted,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut servers = match args.servers.servers() {
        Ok(servers) => servers,
        Err(error) => return Ok(exit::usage(&*error)),
    };
    let mut printer = args.output.printer(args.wanted.type_url());
    let until = Until::Over(args.timeout);
    let listened =
        listen(&args.wanted, &mut servers, until, |servers, event| printer.print(&event, servers.all())).await;
    unless_closed(listened.map(|progress| exit::code(progress.as_ref().map(Progress::verdict))))
}
