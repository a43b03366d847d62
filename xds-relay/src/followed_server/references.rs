//! Which routes Listeners and ScopedRouteConfigurations refer to.

use std::collections::BTreeSet;

use xds_transport::TypeRules;
use xdstp_uri::ResourceName;

use crate::config::Follow;
use crate::keyed_origin::Name;

/// What resources refer to that is released with them.
#[derive(Default)]
pub(super) struct References {
    rules: TypeRules,
    follow: Follow,
    /// The scopes that are released: authorities, and none for old-style names.
    released: Vec<Option<String>>,
}

impl References {
    /// In a control plane that is followed so, and of which these scopes are released.
    pub(super) fn new(follow: Follow, released: Vec<Option<String>>) -> Self {
        Self { rules: TypeRules::envoy(), follow, released }
    }

    /// The names that an encoded `Any` of a resource refers to: those that come from the same server as itself, and those that may come
    /// from elsewhere, by a source that is said.
    pub(super) fn of(&self, (type_url, _): &Name, any: &[u8]) -> (Vec<Name>, Vec<Name>) {
        let (mut needs, mut wishes) = (BTreeSet::new(), BTreeSet::new());
        for reference in self.rules.references_of(type_url) {
            let mut anywhere = reference.clone();
            anywhere.source = None;
            for (reference, found) in [(reference, &mut needs), (&anywhere, &mut wishes)] {
                reference.visit(any, &mut |named| {
                    let name = ResourceName::parse(named).ok().map(|named| (reference.type_url.clone(), named));
                    found.extend(name.filter(|name| self.is_released(name)));
                });
            }
        }
        wishes.retain(|name| !needs.contains(name));
        (needs.into_iter().collect(), wishes.into_iter().collect())
    }

    /// Whether it may be in a release by its name.
    pub(super) fn is_released(&self, (type_url, name): &Name) -> bool {
        let authority = name.authority();
        let is_name = !name.is_glob() && !matches!(name.as_str(), "" | "*");
        is_name
            && self.released.iter().any(|scope| scope.as_deref() == authority)
            && self.follow.types(authority).contains(type_url)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use xds_transport::wire;
    use xdstp_cache::TypeUrl;

    use super::*;

    const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const CONNECTION_MANAGER: &str =
        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

    /// Of fields that are all shorter than 16 KiB: each is its number and its content.
    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let varint = |of: usize| if of < 128 { vec![of as u8] } else { vec![of as u8 | 0x80, (of >> 7) as u8] };
        let field = |(number, content): &(u8, &[u8])| {
            [varint(usize::from(*number) << 3 | 2), varint(content.len()), content.to_vec()].concat()
        };
        fields.iter().flat_map(field).collect()
    }

    fn found(references: &References, type_url: &str, value: Vec<u8>) -> [Vec<String>; 2] {
        let any = wire::Any { type_url: type_url.into(), value: value.into() }.encode_to_vec();
        let (needs, wishes) = references.of(&(TypeUrl::from(type_url), "l".parse().unwrap()), &any);
        [needs, wishes].map(|names| names.iter().map(|(_, name)| name.to_string()).collect())
    }

    #[test]
    fn routes_of_the_same_server_are_needed_and_those_by_another_source_are_wished_for() {
        let chain = |source: &[u8], name: &str| {
            let manager = message(&[(3, &message(&[(1, source), (2, name.as_bytes())]))]);
            let any = wire::Any { type_url: CONNECTION_MANAGER.into(), value: manager.into() }.encode_to_vec();
            message(&[(3, &message(&[(4, &any)]))])
        };
        let (ads, api) = (message(&[(3, b"")]), message(&[(2, b"")]));
        let other = "xdstp://other/envoy.config.route.v3.RouteConfiguration/r";
        let chains =
            [chain(&ads, "here"), chain(&api, "api"), chain(&ads, "both"), chain(&api, "both"), chain(&ads, other)];
        let listener: Vec<_> = chains.iter().flat_map(|chain| message(&[(3, chain)])).collect();
        let references = References::new(Follow::default(), vec![None]);
        let of_listener = [vec!["both".to_owned(), "here".to_owned()], vec!["api".to_owned()]];
        assert_eq!(found(&references, LISTENER, listener), of_listener);
        let cluster = message(&[(1, b"c"), (3, &message(&[(1, &ads)]))]);
        assert_eq!(found(&references, CLUSTER, cluster), [[""; 0]; 2], "endpoints are in no release");
    }
}
