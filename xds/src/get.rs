//! `xds get`: resources as they are now.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use xdstp_client::Event;

use crate::show::complain;
use crate::target::{Printed, Session, Target, report_connection};

/// A collection may be answered in several responses: this much silence ends it.
const QUIET: Duration = Duration::from_millis(250);

/// Print the resources as they are now, and exit: with 1 if a name does not exist, or was not answered in time
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
    // Of those asked for by name. A collection may be empty, which is an answer.
    let mut missing: BTreeSet<usize> = BTreeSet::new();
    let mut printed = Printed::default();
    let collections = interests.iter().any(xdstp_cache::Interest::is_collection);
    loop {
        let until = match (waiting.is_empty(), collections) {
            (false, _) => end,
            (true, true) => end.min(Instant::now() + QUIET),
            (true, false) => break,
        };
        let Ok(Some((index, event))) = timeout_at(until, events.recv()).await else { break };
        let is_name = interests.get(index).is_some_and(|interest| !interest.is_collection());
        if is_name || matches!(event, Event::Answered) {
            waiting.remove(&index);
        }
        if is_name && matches!(event, Event::Removed { .. }) {
            missing.insert(index);
            continue;
        }
        missing.remove(&index);
        if printed.print(event).is_err() {
            break; // nobody reads any more
        }
    }
    for interest in missing.iter().filter_map(|index| interests.get(*index)) {
        complain(format_args!("there is no {interest}"));
    }
    for interest in waiting.iter().filter_map(|index| interests.get(*index)) {
        complain(format_args!("no answer for {interest} within {} s", args.timeout));
    }
    Ok(if waiting.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
