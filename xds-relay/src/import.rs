//! `xds-relay import`: Envoy's own file in, a directory that the relay serves out.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use xds_relay::Config;
use xds_relay::file_origin::{Descriptors, DescriptorsError, FileError, import_file};

use crate::{say, summary};

/// Writes DIRECTORY/relay.yaml, and each listener, cluster and secret into a file in DIRECTORY/resources
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Envoy's own file (its bootstrap), YAML or JSON
    envoy: PathBuf,

    /// Where to write; made if it is not there. Left out: `mesh`, which must not be there
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,

    /// Write over files that are there; without it nothing is written then
    #[arg(long)]
    force: bool,
}

/// Why nothing is imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Read(#[from] FileError),
    #[error("the built-in types")]
    Types(#[from] DescriptorsError),
    #[error("{} is there: --force writes over it", .0.display())]
    There(PathBuf),
    #[error(
        "`{DIRECTORY}` is there, and nothing says to write elsewhere: expected --to DIRECTORY, or --force, which writes over it"
    )]
    DefaultIsThere,
    #[error("cannot write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

/// Where it is written if nobody says where.
const DIRECTORY: &str = "mesh";

const RELAY: &str = "\
# Serves what an Envoy had in its own file, to any that asks: xds-relay --config relay.yaml
origins:
- name: envoy
  files: resources
";

pub(crate) fn run(arguments: &Arguments) -> Result<(), crate::Failure> {
    let to = arguments.to.as_deref().unwrap_or(Path::new(DIRECTORY));
    write(arguments, to)?;
    let file = to.join("relay.yaml");
    let config = Config::load(&file)?;
    let files = xds_relay::check(&config)?;
    say(&format!("{}: {}\n", file.display(), summary(&config, &files)));
    Ok(())
}

fn write(arguments: &Arguments, to: &Path) -> Result<(), Failure> {
    // As the relay holds the files that are made of it, before there are any.
    let imported = import_file(&arguments.envoy, &Descriptors::built_in()?.with_validation())?;
    let resources = to.join("resources");
    let relay = to.join("relay.yaml");
    if arguments.to.is_none() && !arguments.force && to.symlink_metadata().is_ok() {
        return Err(Failure::DefaultIsThere);
    }
    if let Some(there) =
        [&resources, &relay].into_iter().find(|path| !arguments.force && path.symlink_metadata().is_ok())
    {
        return Err(Failure::There(there.clone()));
    }
    fs::create_dir_all(&resources).map_err(|error| Failure::Write(resources.clone(), error))?;
    for file in &imported.files {
        write_file(&resources.join(&file.name), &file.text, file.is_secret)?;
    }
    write_file(&relay, RELAY, false)?;
    for note in &imported.notes {
        eprintln!("xds-relay: note: {note}");
    }
    Ok(())
}

fn write_file(path: &Path, text: &str, is_secret: bool) -> Result<(), Failure> {
    let failed = |error| Failure::Write(path.to_owned(), error);
    // Of one that is there, permissions would stay.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(not(unix))]
    let _ = is_secret;
    #[cfg(unix)]
    if is_secret {
        // Whoever else may read the directory.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}
