//! The origins of a configuration that are keys of etcd.

use std::collections::BTreeSet;
use std::sync::Arc;

use xdstp_client::state::Etcd;

use super::following::{Following, KEEPER};
use super::value::Reader;
use crate::config::Config;
use crate::error::Error;
use crate::etcd::etcd_options;
use crate::file_origin::{Served, descriptors_of};
use crate::keyed_origin::{Keeper, Relayed};
use crate::relay_core::RelayCore;

/// Begins to follow all of them; nobody waits for what etcd says.
///
/// # Errors
/// A file that one names is not good.
pub(crate) fn follow_all(config: &Config, core: &Arc<RelayCore>) -> Result<Vec<Following>, Error> {
    let mut all = Vec::new();
    for (position, origin) in config.origins.iter().enumerate() {
        let Some((etcd, descriptors)) = origin.kind.etcd() else { continue };
        let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
        let options = etcd_options(etcd, &config.field_of(origin, "etcd"))?;
        let reader = Reader::new(descriptors_of(config, origin, descriptors)?, Served::by(config, &origin.name));
        let store = Etcd::open(options).map_err(|error| failed(error.to_string()))?;
        let keeper = core.state.clone().map(|state| {
            let members: BTreeSet<_> = etcd.endpoints.iter().map(ToString::to_string).collect();
            let members = members.into_iter().collect::<Vec<_>>().join(" ");
            let of = ["etcd".to_owned(), origin.name.clone(), members, etcd.prefix.clone()];
            Keeper::new(state, position, &origin.name, of)
        });
        let metrics = core.metrics().etcd(&origin.name);
        let relayed = Relayed::new(core.clone(), (position, origin), KEEPER, metrics);
        all.push(
            Following::start(Arc::new(store), reader, keeper, relayed).map_err(|error| failed(error.to_string()))?,
        );
    }
    Ok(all)
}
