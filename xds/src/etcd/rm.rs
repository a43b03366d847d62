//! `xds rm`: resources out of etcd.

use std::error::Error;
use std::process::ExitCode;

use xds_relay::etcd_origin::Key;
use xdstp_uri::ResourceName;

use super::changes::{How, Wanted, run_on};
use super::cluster;
use crate::ask::{type_help, type_url};

/// Remove resources from etcd, which relays have as an origin: 0 if they are gone, 1 if one was not there or is not gone, 3 if
/// nobody answers
///
/// They go in one transaction. Where that is more than ten, and more than a fifth of all, or all of several, relays serve them for another 30 s.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds rm --etcd 10.0.0.1:2379,10.0.0.2:2379 --prefix mesh/ cluster web-1 web-2
  xds rm --etcd 10.0.0.1:2379 --prefix mesh/ --dry-run listener 'xdstp://example.com/envoy.config.listener.v3.Listener/edge'")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: cluster::Args,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// In several transactions, if it is more than one takes
    #[arg(long)]
    in_pieces: bool,
    #[arg(value_name = "TYPE", help = type_help(), value_parser = type_url)]
    type_url: String,
    /// The names of resources
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let how = How { prefix: &args.cluster.prefix, dry_run: args.dry_run, in_pieces: args.in_pieces };
    run_on(&args.cluster, args.keys(), how)
}

impl Args {
    fn keys(&self) -> Result<Wanted, Box<dyn Error>> {
        let mut keys: Wanted = Vec::new();
        for text in &self.names {
            let name = ResourceName::parse(text).map_err(|error| format!("{text}: {error}"))?;
            let key = Key::new(&self.type_url, name)?;
            if keys.iter().all(|(other, _)| *other != key) {
                keys.push((key, None));
            }
        }
        Ok(keys)
    }
}
