//! `xds watch`: resources as they arrive, change and go.

use std::error::Error;
use std::process::ExitCode;

use crate::target::{Printed, Target, report_connection};

/// Print each resource as it arrives, changes or is removed, until ^C
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut session = args.target.open()?;
    tokio::spawn(report_connection(session.client.clone(), args.target.server().to_owned()));
    let mut printed = Printed::default();
    loop {
        tokio::select! {
            Some((_, event)) = session.events.recv() => {
                if printed.print(event).is_err() {
                    break; // nobody reads any more
                }
            }
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}
