//! `xds watch`: resources as they arrive, change and go.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use crate::answers;
use crate::ask::{Until, Wanted, Where, seconds};
use crate::output;

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
    let printer = args.output.printer(args.wanted.type_url());
    answers::print(&args.servers, &args.wanted, Until::Over(args.timeout), printer).await
}
