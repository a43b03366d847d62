//! Reading what a configuration refers to, without serving it.

use crate::admin_access::LetIn;
use crate::client_rules::Rules;
use crate::config::Config;
use crate::error::Error;
use crate::etcd::etcd_options;
use crate::file_content::FileContent;
#[cfg(feature = "file-origin")]
use crate::kubernetes::Access;
use crate::orders::order_tokens;
use crate::{origins, state, tls, traces};

/// Reads the resource files of a configuration's origins, and what TLS is made with, as [`Relay::bind`](crate::Relay::bind)
/// does, and tries whether the directory of its state can be written; nothing is listened on, dialed or watched.
///
/// ```
/// let mesh = xds_relay::ExampleMesh::unpack()?;
/// let files = xds_relay::check(&mesh.config()?)?;
/// assert_eq!(files[0].to_string(), "4 Cluster, 4 ClusterLoadAssignment, 4 Listener, 4 RouteConfiguration");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Origin`]: a resource file is bad; with file, line, column and field. [`Error::Field`]: something else is that the
/// configuration names, such as a certificate, or a key of what is kept. [`Error::Aggregation`]: the aggregation rules are.
#[cfg(feature = "file-origin")]
pub fn check(config: &Config) -> Result<Vec<FileContent>, Error> {
    check_named(config)?;
    let mut contents = Vec::new();
    for origin in &config.origins {
        if let Some((directory, descriptors)) = origin.kind.files() {
            let loaded = crate::file_origin::load_origin(config, origin, directory, descriptors)?;
            let types = loaded.resources.iter().map(|resource| resource.type_url.as_str());
            let mut content = FileContent::new(&origin.name, types);
            content.dangling = loaded.dangling.iter().map(ToString::to_string).collect();
            content.other_keys = loaded.other_keys.iter().map(ToString::to_string).collect();
            contents.push(content);
        }
        let followed =
            (origin.kind.etcd().map(|(_, types)| types)).or(origin.kind.kubernetes().map(|(_, types)| types));
        if let Some(descriptors) = followed {
            crate::file_origin::descriptors_of(config, origin, descriptors)?;
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
    check_named(config)?;
    origins::refuse_files(config).map(|()| Vec::new())
}

/// Reads all that a configuration refers to but for resource files, which count anew by themselves.
pub(crate) fn check_named(config: &Config) -> Result<(), Error> {
    check_tls(config)?;
    check_tokens(config)?;
    check_aggregation(config)?;
    check_state(config)?;
    traces::check(config)
}

/// Whether there are tokens where clients, and who looks at the admin pages or changes something, must carry one.
fn check_tokens(config: &Config) -> Result<(), Error> {
    Rules::load(config)?;
    Rules::warn(config);
    LetIn::to_admin(config)?;
    order_tokens(config).map(drop)
}

fn check_aggregation(config: &Config) -> Result<(), Error> {
    match &config.aggregation {
        Some(aggregation) => aggregation.load().map(drop).map_err(Error::Aggregation),
        None => Ok(()),
    }
}

/// Whether the keys of what is kept are good, and whether something can be kept where it is to be: a relay that runs says so and goes on.
fn check_state(config: &Config) -> Result<(), Error> {
    let Some(state) = &config.state else { return Ok(()) };
    state::keys(config)?;
    state::only_releases(config)?;
    if let Some(etcd) = &state.etcd {
        etcd_options(etcd, "state.etcd")?;
    }
    state::check(&state.path).map_err(|error| Error::Field {
        field: "state.path".to_owned(),
        reason: format!("nothing can be kept in {}: {error}", state.path.display()),
    })
}

/// Whether all files of certificates and keys are good.
fn check_tls(config: &Config) -> Result<(), Error> {
    if let Some(files) = &config.tls {
        tls::Downstream::load(files, tls::With::Clients)?;
    }
    if let Some(files) = &config.admin_tls {
        tls::Downstream::load(files, tls::With::Admin)?;
    }
    if let Some(files) = config.orders.as_ref().and_then(|orders| orders.tls.as_ref()) {
        tls::Downstream::load(files, tls::With::Orders)?;
    }
    config.origins.iter().try_for_each(|origin| origins::endpoints(config, origin).map(drop))?;
    for origin in &config.origins {
        if let Some((etcd, _)) = origin.kind.etcd() {
            etcd_options(etcd, &config.field_of(origin, "etcd"))?;
        }
        #[cfg(feature = "file-origin")]
        if let Some((kubernetes, _)) = origin.kind.kubernetes() {
            Access::check(kubernetes, &config.field_of(origin, "kubernetes"))?;
        }
    }
    tls::check_dates(config)
}
