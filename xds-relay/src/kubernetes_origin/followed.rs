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
        let reader = Reader::new(descriptors_of(config, origin, descriptors)?, Served::by(config, &origin.name))
            .of(&origin.name);
        let collections = Collection::all(kubernetes, &access.namespaces);
        let Access { server, tls, token, .. } = access;
        let (at, host) = (server.to_string(), server.authority().map(ToString::to_string).unwrap_or_default());
        let api = Api::new(Arc::new(Network { server, tls }), host, token);
        let keeper =
            core.state.clone().map(|state| Keeper::new(state, position, &origin.name, identity(&origin.name, &at)));
        let metrics = core.metrics().kubernetes(&origin.name);
        let relayed = Relayed::new(core.clone(), (position, origin), KEEPER, metrics);
        all.push(
            Following::start(api, collections, reader, keeper, relayed).map_err(|error| failed(error.to_string()))?,
        );
    }
    Ok(all)
}

/// What tells the objects of an origin from all others, beside the [part](Collection::part) that they are of and its selector.
fn identity(origin: &str, server: &str) -> [String; 3] {
    ["kubernetes".to_owned(), origin.to_owned(), server.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each part by itself.
    fn of(name: &str, server: &str, kubernetes: &str, namespaces: &[&str]) -> Vec<Vec<String>> {
        let text = format!("origins: [{{ name: {name}, kubernetes: {{ {kubernetes} }} }}]");
        let config = Config::parse("relay.yaml", &text).unwrap();
        let namespaces: Vec<_> = namespaces.iter().map(|name| (*name).to_owned()).collect();
        let all = Collection::all(config.origins[0].kind.kubernetes().unwrap().0, &namespaces);
        let whole = |part: &Collection| {
            let of_part = [part.part(), part.selector().to_owned()];
            identity(&config.origins[0].name, server).into_iter().chain(of_part).collect()
        };
        all.iter().map(whole).collect()
    }

    #[test]
    fn objects_are_of_another_origin_by_its_name_and_server_and_of_another_part_by_kind_namespace_and_selector() {
        let is = of("kube", "https://a", "kinds: [config_maps]", &["n"]);
        assert_eq!(is, of("kube", "https://a", "kinds: [config_maps], namespaces: [n]", &["n"]));
        let beside = of("kube", "https://a", "kinds: [config_maps, xds_resources]", &["n", "o"]);
        assert_eq!((beside.len(), beside.contains(&is[0])), (4, true));
        let distinct: std::collections::BTreeSet<_> = beside.iter().collect();
        assert_eq!(distinct.len(), 4);
        for other in [
            of("other", "https://a", "kinds: [config_maps]", &["n"]),
            of("kube", "https://b", "kinds: [config_maps]", &["n"]),
            of("kube", "https://a", "kinds: [config_maps], label_selector: x=y", &["n"]),
            of("kube", "https://a", "kinds: [config_maps]", &[]),
            of("kube", "https://a", "kinds: [config_maps]", &["o"]),
            of("kube", "https://a", "kinds: [xds_resources]", &["n"]),
        ] {
            assert_ne!(is, other);
        }
    }
}
