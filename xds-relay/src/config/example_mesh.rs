use std::{fs, io, path::Path};

use tempfile::TempDir;

use super::{Config, ConfigError};
use crate::file_origin::EXAMPLE;

/// The example that a relay without a configuration serves: one HTTP listener, route, cluster and endpoints, under plain
/// names and under `xdstp:` names.
///
/// The files are unpacked into a directory of their own, because a built-in file could not be edited to see the change
/// arrive. Only this user can read the directory, and it is removed when this is dropped.
#[derive(Debug)]
pub struct ExampleMesh {
    directory: TempDir,
}

const RELAY: &str = include_str!("../../example/relay.yaml");

impl ExampleMesh {
    /// Writes the files into a new temporary directory.
    ///
    /// # Errors
    /// The directory or a file cannot be written.
    pub fn unpack() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("xds-relay-example-").tempdir()?;
        fs::write(directory.path().join("relay.yaml"), RELAY)?;
        let mesh = directory.path().join("mesh");
        fs::create_dir(&mesh)?;
        for (name, text) in EXAMPLE {
            fs::write(mesh.join(name), text)?;
        }
        Ok(Self { directory })
    }

    /// Where the files are: `relay.yaml`, and the resources in `mesh/`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The configuration that serves them.
    ///
    /// # Errors
    /// The unpacked file was changed or removed in the meantime.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::load(self.directory().join("relay.yaml"))
    }
}
