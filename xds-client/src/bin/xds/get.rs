//! `xds get`: resources as they are now.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::target::{Session, Target, print, report_connection};

/// A collection may be answered in several responses: this much silence ends it.
const QUIET: Duration = Duration::from_millis(250);

/// Print the resources as they are now, and exit
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// How many seconds to wait for an answer. A SotW server says that a name does not exist by 15 s of silence.
    #[arg(long, default_value_t = 20)]
    timeout: u64,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let Session { client, interests, mut events } = args.target.open()?;
    tokio::spawn(report_connection(client, args.target.server().to_owned()));
    let end = Instant::now() + Duration::from_secs(args.timeout);
    let mut waiting: BTreeSet<usize> = (0..interests.len()).collect();
    let collections = interests.iter().any(xdstp_cache::Interest::is_collection);
    loop {
        let until = match (waiting.is_empty(), collections) {
            (false, _) => end,
            (true, true) => end.min(Instant::now() + QUIET),
            (true, false) => break,
        };
        let Ok(Some((index, event))) = timeout_at(until, events.recv()).await else { break };
        if print(&event).is_err() {
            break; // nobody reads any more
        }
        let answered = matches!(event, xdstp_client::Event::Answered);
        if answered || interests.get(index).is_some_and(|interest| !interest.is_collection()) {
            waiting.remove(&index);
        }
    }
    for interest in waiting.iter().filter_map(|index| interests.get(*index)) {
        eprintln!("xds: no answer for {interest} within {} s", args.timeout);
    }
    Ok(if waiting.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
