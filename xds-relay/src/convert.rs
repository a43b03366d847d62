//! `xds-relay convert`: a file of envoyproxy/xds-relay in, the configuration that does the same out.

use std::path::PathBuf;

use clap::Args;
use xds_relay::aggregation::{Reading, Rules};
use xds_relay::config::Bootstrap;

use crate::{Failure, note_warnings, say};

/// Prints YAML on standard output, with a comment for what has no equal; the same is said on standard error
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The bootstrap file, YAML or JSON
    bootstrap: PathBuf,

    /// The aggregation rules, a YAML file that the configuration is to name
    #[arg(long, short, value_name = "FILE", alias = "aggregation-rules")]
    aggregation: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut bootstrap = Bootstrap::load(&arguments.bootstrap)?;
    if let Some(rules) = &arguments.aggregation {
        bootstrap.share_by_rules(rules)?;
        note_warnings(&Rules::load(rules, Reading::Documented)?);
    }
    for note in bootstrap.notes() {
        eprintln!("xds-relay: note: {note}");
    }
    say(&bootstrap.to_string());
    Ok(())
}
