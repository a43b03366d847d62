//! `xds get`: resources as they are now.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use crate::answers;
use crate::ask::{Until, Wanted, Where, seconds};
use crate::output;

/// Print the resources as they are now, and exit: with 1 if a name does not exist or cannot be asked for, with 3 if nobody
/// answered, or the server does not want to be asked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds get cluster
  xds get --output json listener 'xdstp://example.com/envoy.config.listener.v3.Listener/edge/*'
  xds get --bootstrap env --output yaml cluster web")]
pub(crate) struct Args {
    #[command(flatten)]
    servers: Where,
    #[command(flatten)]
    output: output::Args,
    /// How long to wait for answers. A SotW server says that a name does not exist by 15 s of silence
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    wanted: Wanted,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let printer = args.output.table_printer(args.wanted.type_url());
    answers::print(&args.servers, &args.wanted, Until::Known(args.timeout), printer).await
}
