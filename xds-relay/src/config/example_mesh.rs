use std::{fs, io, path::Path};

use tempfile::TempDir;

/// The example that a relay without a configuration serves: one HTTP listener, route, cluster and endpoints, under plain
/// names and under `xdstp:` names.
///
/// The files are unpacked into a directory of their own, because a built-in file could not be edited to see the change
/// arrive. Only this user can read the directory, and it is removed when this is dropped.
#[derive(Debug)]
pub struct ExampleMesh {
    directory: TempDir,
}

/// The resource files of the example: pairs of a file name and its text.
///
/// - For a proxy: listener `front` on 127.0.0.1:10000, its route, cluster and endpoint under plain names, and the same
///   on port 10001 under names of the authority `xds.example.com`, where the globs are
///   `xdstp://xds.example.com/envoy.config.listener.v3.Listener/mesh/*` and
///   `xdstp://xds.example.com/envoy.config.cluster.v3.Cluster/mesh/*`. `/` is answered by the proxy itself, `/backend`
///   by 127.0.0.1:8080.
/// - For a gRPC client: listener `greeter`, and
///   `xdstp://xds.example.com/envoy.config.listener.v3.Listener/greeter`; both lead to 127.0.0.1:50051.
pub const EXAMPLE: &[(&str, &str)] = &[
    ("front.yaml", include_str!("../../example/mesh/front.yaml")),
    ("front-xdstp.yaml", include_str!("../../example/mesh/front-xdstp.yaml")),
    ("greeter.yaml", include_str!("../../example/mesh/greeter.yaml")),
    ("greeter-xdstp.yaml", include_str!("../../example/mesh/greeter-xdstp.yaml")),
];

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
}
