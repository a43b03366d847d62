//! The origins of a configuration that are keys of etcd.

use std::collections::BTreeSet;
use std::sync::Arc;

use xdstp_client::state::Etcd;

use super::following::{Following, KEEPER};
use super::value::Reader;
use crate::config::{Config, Etcd as EtcdConfig};
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
        let reader = reader.of(&origin.name, &etcd.prefix);
        let store = Etcd::open(options).map_err(|error| failed(error.to_string()))?;
        let keeper =
            core.state.clone().map(|state| Keeper::new(state, position, &origin.name, identity(&origin.name, etcd)));
        let metrics = core.metrics().etcd(&origin.name);
        let relayed = Relayed::new(core.clone(), (position, origin), KEEPER, metrics);
        all.push(
            Following::start(Arc::new(store), reader, keeper, relayed).map_err(|error| failed(error.to_string()))?,
        );
    }
    Ok(all)
}

/// What tells the keys of an origin from all others.
fn identity(origin: &str, etcd: &EtcdConfig) -> [String; 4] {
    let members: BTreeSet<_> = etcd.endpoints.iter().map(ToString::to_string).collect();
    let members = members.into_iter().collect::<Vec<_>>().join(" ");
    ["etcd".to_owned(), origin.to_owned(), members, etcd.prefix.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, etcd: &str) -> EtcdConfig {
        let text = format!("origins: [{{ name: {name}, etcd: {{ {etcd} }} }}]");
        let config = Config::parse("relay.yaml", &text).unwrap();
        config.origins[0].kind.etcd().unwrap().0.clone()
    }

    fn of(name: &str, etcd: &str) -> [String; 4] {
        identity(name, &written(name, etcd))
    }

    #[test]
    fn keys_are_of_another_origin_by_its_name_its_members_and_its_prefix_and_by_nothing_else() {
        let is = of("kv", "endpoints: ['a:1', 'b:1'], prefix: p/");
        assert_eq!(is, of("kv", "endpoints: ['b:1', 'a:1'], prefix: p/"));
        let asks = written("kv", "endpoints: ['a:1', 'b:1'], prefix: p/").with_user("u", "f");
        assert_eq!(is, identity("kv", &asks));
        for other in [
            of("other", "endpoints: ['a:1', 'b:1'], prefix: p/"),
            of("kv", "endpoints: ['a:1'], prefix: p/"),
            of("kv", "endpoints: ['a:1', 'c:1'], prefix: p/"),
            of("kv", "endpoints: ['a:1', 'b:1'], prefix: q/"),
        ] {
            assert_ne!(is, other);
        }
    }
}
