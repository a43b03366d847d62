//! `xds push`: files to etcd.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use xds_relay::etcd_origin::encode;
use xds_relay::file_origin::{Descriptors, load_embedded, resource_files};
use xds_transport::TypeRules;

use super::changes::{How, Wanted, run_on};
use super::cluster;
use crate::input::read_file;

/// Put resources of files into etcd, for relays that have it as an origin: 0 if they are there, 1 if not, 2 if a file is not good,
/// 3 if nobody answers
///
/// The files are read as a relay reads them, and nothing is put unless all are good. What is there already is not put again; what
/// is put is one transaction, so that relays take it as one change. What is in etcd and not in the files stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds push --etcd 10.0.0.1:2379,10.0.0.2:2379 --prefix mesh/ ./resources
  xds push --etcd https://etcd:2379 --user ci --password-file ./password --prefix mesh/ --dry-run clusters.yaml")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: cluster::Args,
    /// Say what would be put, and put nothing
    #[arg(long)]
    dry_run: bool,
    /// In several transactions, if it is more than one takes: clusters before what leads to them
    #[arg(long)]
    in_pieces: bool,
    /// A descriptor set with types of your own in place of Envoy's
    #[arg(long, value_name = "FILE")]
    descriptors: Option<PathBuf>,
    /// Also what Envoy would refuse for its values, for relays that take it: their origin has `validate: false`
    #[arg(long)]
    no_validate: bool,
    /// Files of resources, or directories of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let how = How { prefix: &args.cluster.prefix, dry_run: args.dry_run, in_pieces: args.in_pieces };
    run_on(&args.cluster, args.read(), how)
}

impl Args {
    /// What the files have, in the order in which it may be put piece by piece.
    ///
    /// # Errors
    /// A file is not good.
    fn read(&self) -> Result<Wanted, Box<dyn Error>> {
        let types = self.descriptors.as_deref().map_or_else(Descriptors::built_in, Descriptors::load)?;
        let types = if self.no_validate { types } else { types.with_validation() };
        let mut files = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                true => files.extend(resource_files(path)?),
                false => files.push(path.clone()),
            }
        }
        let read = |path: &PathBuf| Ok((path.display().to_string(), read_file(path)?));
        let texts = files.iter().map(read).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        let named: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut values = encode(&load_embedded(&named, &types)?, &types)?;
        let rules = TypeRules::envoy();
        values.sort_by_key(|(key, _)| rules.of(&key.type_url().into()).rank);
        Ok(values.into_iter().map(|(key, value)| (key, Some(value))).collect())
    }
}
