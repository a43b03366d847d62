//! The origins of a configuration that are objects of Kubernetes.

use std::sync::Arc;

use super::api::Api;
use super::collection::Collection;
use super::dial::Network;
use super::following::{Following, KEEPER};
use super::value::Reader;
use crate::config::Config;
use crate::error::Error;
use crate::file_origin::{Served, descriptors_of};
use crate::keyed_origin::{Keeper, Relayed};
use crate::kubernetes::{Access, Pod};
use crate::relay_core::RelayCore;

/// Begins to follow all of them; nobody waits for what the API server says.
///
/// # Errors
/// A file that one names is not good, or it is to be a cluster that the relay is not in.
pub(crate) fn follow_all(config: &Config, core: &Arc<RelayCore>) -> Result<Vec<Following>, Error> {
    let mut all = Vec::new();
    for (position, origin) in config.origins.iter().enumerate() {
        let Some((kubernetes, descriptors)) = origin.kind.kubernetes() else { continue };
        let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
        let access = Access::to(kubernetes, &config.field_of(origin, "kubernetes"), &Pod::here())?;
        let reader = Reader::new(descriptors_of(config, origin, descriptors)?, Served::by(config, &origin.name));
        let collections = Collection::all(kubernetes, &access.namespaces);
        let Access { server, tls, token, .. } = access;
        let (at, host) = (server.to_string(), server.authority().map(ToString::to_string).unwrap_or_default());
        let api = Api::new(Arc::new(Network { server, tls }), host, token);
        let keeper = core.state.clone().map(|state| {
            let of = ["kubernetes".to_owned(), origin.name.clone(), at.clone()];
            Keeper::new(state, position, &origin.name, of)
        });
        let metrics = core.metrics().kubernetes(&origin.name);
        let relayed = Relayed::new(core.clone(), (position, origin), KEEPER, metrics);
        all.push(
            Following::start(api, collections, reader, keeper, relayed).map_err(|error| failed(error.to_string()))?,
        );
    }
    Ok(all)
}
