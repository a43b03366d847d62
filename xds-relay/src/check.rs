//! Reading what a configuration refers to, without serving it.

use crate::config::{Config, OriginKind};
use crate::error::Error;
use crate::file_content::FileContent;
use crate::state::Keys;
use crate::{origins, tls};

/// Reads the resource files of a configuration's origins, and what TLS is made with, as [`Relay::bind`](crate::Relay::bind) does; nothing is
/// listened on, dialed or watched.
///
/// ```
/// let mesh = xds_relay::ExampleMesh::unpack()?;
/// let files = xds_relay::check(&mesh.config()?)?;
/// assert_eq!(files[0].to_string(), "4 Cluster, 4 ClusterLoadAssignment, 4 Listener, 4 RouteConfiguration");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Origin`]: a file is bad; with file, line, column and field. [`Error::Tls`]: a certificate or a key is. [`Error::State`]: a key of
/// what is kept is. [`Error::Aggregation`]: the
/// aggregation rules are.
#[cfg(feature = "file-origin")]
pub fn check(config: &Config) -> Result<Vec<FileContent>, Error> {
    check_tls(config)?;
    Keys::of(config).map_err(Error::State)?;
    check_aggregation(config)?;
    let mut contents = Vec::new();
    for origin in &config.origins {
        if let OriginKind::Files { directory, descriptors } = &origin.kind {
            let name = &origin.name;
            let (_, resources) = crate::file_origin::load_origin(config, name, directory, descriptors.as_deref())?;
            contents.push(FileContent::new(name, resources.iter().map(|resource| resource.type_url.as_str())));
        }
    }
    Ok(contents)
}

/// There are no resource files to read: this program was built without the feature `file-origin`.
///
/// # Errors
/// [`Error::Origin`]: an origin of files.
#[cfg(not(feature = "file-origin"))]
pub fn check(config: &Config) -> Result<Vec<FileContent>, Error> {
    check_tls(config)?;
    Keys::of(config).map_err(Error::State)?;
    check_aggregation(config)?;
    match config.origins.iter().find(|origin| matches!(origin.kind, OriginKind::Files { .. })) {
        None => Ok(Vec::new()),
        Some(origin) => {
            let reason = "this program was built without the feature `file-origin`".to_owned();
            Err(Error::Origin { origin: origin.name.clone(), reason })
        }
    }
}

fn check_aggregation(config: &Config) -> Result<(), Error> {
    match &config.aggregation {
        Some(aggregation) => aggregation.load().map(drop).map_err(Error::Aggregation),
        None => Ok(()),
    }
}

/// Whether all files of certificates and keys are good.
fn check_tls(config: &Config) -> Result<(), Error> {
    if let Some(files) = &config.tls {
        tls::Downstream::load(files).map_err(Error::Tls)?;
    }
    config.origins.iter().try_for_each(|origin| origins::endpoint(config, origin).map(drop))?;
    tls::check_dates(config).map_err(Error::Tls)
}
