//! What resources of files refer to.

use std::sync::LazyLock;

use xds_transport::{Frame, Reference, Step, TypeRules};
use xdstp_cache::TypeUrl;

use super::resource::FileResource;

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const VIRTUAL_HOST: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
const CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TCP_PROXY: &str = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

/// What the protocol goes by; and the clusters that routes, and proxies of TCP, lead to, by which it does not go.
static RULES: LazyLock<TypeRules> = LazyLock::new(|| {
    let mut rules = TypeRules::envoy();
    let mut insert = |of: &str, steps: Vec<Step>, name: u32| {
        rules.insert_reference(&of.into(), Reference::new(CLUSTER.into(), steps, [vec![name]]));
    };
    routed(&[]).into_iter().for_each(|steps| insert(ROUTES, steps, 1));
    hosted(&[]).into_iter().for_each(|steps| insert(VIRTUAL_HOST, steps, 1));
    let mut managers = vec![vec![Step::Field(19), Step::Any(1, CONNECTION_MANAGER.into())]];
    for chain in [Step::Field(3), Step::Field(25)] {
        let filter = |of: &str| vec![chain.clone(), Step::Field(3), Step::Any(4, of.into())];
        managers.push(filter(CONNECTION_MANAGER));
        // TcpProxy.cluster, and TcpProxy.weighted_clusters.clusters
        insert(LISTENER, filter(TCP_PROXY), 2);
        insert(LISTENER, [filter(TCP_PROXY), [10, 1].map(Step::Field).into()].concat(), 1);
    }
    for manager in managers {
        // HttpConnectionManager.route_config
        let inline = [manager, vec![Step::Field(4)]].concat();
        routed(&inline).into_iter().for_each(|steps| insert(LISTENER, steps, 1));
    }
    rules
});

/// From what is a RouteConfiguration to what has a cluster's name: its request_mirror_policies, and what its hosts have.
fn routed(within: &[Step]) -> Vec<Vec<Step>> {
    let mirrors = [within, &[Step::Field(13)]].concat();
    let hosts = [within, &[Step::Field(2)]].concat();
    [vec![mirrors], hosted(&hosts)].concat()
}

/// From what is a VirtualHost: its request_mirror_policies, the actions of its routes, and the weighted clusters and the
/// request_mirror_policies of these.
fn hosted(within: &[Step]) -> Vec<Vec<Step>> {
    let of = |fields: &[u32]| within.iter().cloned().chain(fields.iter().copied().map(Step::Field)).collect();
    [&[22][..], &[3, 2], &[3, 2, 3, 1], &[3, 2, 30]].map(of).into()
}

/// Visits what a resource refers to: types and names, as it has them.
pub(super) fn references(resource: &FileResource, found: &mut dyn FnMut(&str, &str)) {
    let type_url = TypeUrl::from(resource.type_url.as_str());
    let frame = Frame::of_message(&type_url, &resource.value);
    for reference in RULES.references_of(&type_url) {
        reference.visit(frame.any(), &mut |name| found(reference.type_url.as_str(), name));
    }
}
