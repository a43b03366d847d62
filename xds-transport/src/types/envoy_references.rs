//! Where Envoy's own types name each other.

use crate::types::reference::{Reference, Step};

const CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const UPSTREAM_TLS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const DOWNSTREAM_TLS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";

/// A Cluster's endpoints, by `eds_cluster_config`.
pub(crate) fn endpoints(endpoints: &str) -> Reference {
    Reference::new(endpoints.into(), [], [vec![3, 2], vec![1]]).from_source(vec![3, 1])
}

/// A Cluster's secrets: of its transport socket, and of those that it matches.
pub(crate) fn cluster_secrets(secrets: &str) -> Vec<Reference> {
    let sockets = [vec![Step::Field(24)], vec![Step::Field(43), Step::Field(3)]];
    let contexts = sockets.map(|socket| [socket, vec![Step::Any(3, UPSTREAM_TLS.into())]].concat());
    contexts.iter().flat_map(|context| common_secrets(secrets, context)).collect()
}

/// A Listener's routes: of the connection managers of its filter chains, and of its `api_listener`.
pub(crate) fn listener_routes(routes: &str) -> Vec<Reference> {
    let mut managers: Vec<_> =
        chains().map(|chain| vec![chain, Step::Field(3), Step::Any(4, CONNECTION_MANAGER.into())]).into();
    managers.push(vec![Step::Field(19), Step::Any(1, CONNECTION_MANAGER.into())]);
    let rds = |manager: Vec<Step>| [manager, vec![Step::Field(3)]].concat();
    let named = |steps| Reference::new(routes.into(), steps, [vec![2]]).from_source(vec![1]);
    managers.into_iter().map(rds).map(named).collect()
}

/// A Listener's secrets: of the transport sockets of its filter chains.
pub(crate) fn listener_secrets(secrets: &str) -> Vec<Reference> {
    let contexts = chains().map(|chain| vec![chain, Step::Field(6), Step::Any(3, DOWNSTREAM_TLS.into())]);
    let of_context = |context: &Vec<Step>| {
        let ticket_keys = [context.clone(), vec![Step::Field(5)]].concat();
        let mut all = common_secrets(secrets, context);
        all.push(secret(secrets, ticket_keys));
        all
    };
    contexts.iter().flat_map(of_context).collect()
}

/// A ScopedRouteConfiguration's routes.
pub(crate) fn scope_routes(routes: &str) -> Reference {
    Reference::new(routes.into(), [], [vec![2]])
}

/// `filter_chains` and `default_filter_chain`.
fn chains() -> [Step; 2] {
    [Step::Field(3), Step::Field(25)]
}

/// Those of a `common_tls_context`: certificates, what validates, and that in a combined context.
fn common_secrets(secrets: &str, context: &[Step]) -> Vec<Reference> {
    let paths = [&[6][..], &[7], &[8, 2]];
    let steps = |path: &[u32]| {
        let fields = std::iter::once(1).chain(path.iter().copied()).map(Step::Field);
        context.iter().cloned().chain(fields).collect()
    };
    paths.map(|path| secret(secrets, steps(path))).into()
}

/// By an `SdsSecretConfig`; one without a source is in the client's bootstrap.
fn secret(secrets: &str, steps: Vec<Step>) -> Reference {
    Reference::new(secrets.into(), steps, [vec![1]]).from_source(vec![2])
}

#[cfg(test)]
mod tests {
    use xdstp_cache::TypeUrl;

    use super::*;
    use crate::types::TypeRules;
    use crate::wire::walk;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

    /// A message of these fields, nested from the right: `[3, 2]` is field 3 with field 2 in it.
    fn message(fields: &[(&[u32], &[u8])]) -> Vec<u8> {
        fields.iter().flat_map(|(path, content)| nested(path, content)).collect()
    }

    fn nested(path: &[u32], content: &[u8]) -> Vec<u8> {
        path.iter().rev().fold(content.to_vec(), |content, number| {
            let mut field = Vec::new();
            walk::put_delimited(&mut field, *number, content.len());
            field.extend(content);
            field
        })
    }

    fn any(type_url: &str, content: &[u8]) -> Vec<u8> {
        message(&[(&[1], type_url.as_bytes()), (&[2], content)])
    }

    /// What a resource names: of each, the last part of its type, and the name.
    fn named(type_url: &str, resource: &[u8]) -> Vec<String> {
        let (rules, any) = (TypeRules::envoy(), any(type_url, resource));
        let mut found = Vec::new();
        for reference in rules.references_of(&TypeUrl::from(type_url)) {
            let of = reference.type_url.as_str().rsplit('.').next().unwrap();
            reference.visit(&any, &mut |name| found.push(format!("{of} {name}")));
        }
        found.sort();
        found
    }

    /// `ConfigSource.ads`, and one that is a path.
    const ADS: &[u8] = b"\x1a\x00";
    const PATH: &[u8] = b"\x42\x00";

    #[test]
    fn a_cluster_names_its_endpoints_by_the_service_or_by_itself() {
        let by_service = message(&[(&[1], b"cart"), (&[3, 1], ADS), (&[3, 2], b"service")]);
        assert_eq!(named(CLUSTER, &by_service), ["ClusterLoadAssignment service"]);
        assert_eq!(named(CLUSTER, &message(&[(&[1], b"cart"), (&[3, 1], ADS)])), ["ClusterLoadAssignment cart"]);
        assert_eq!(named(CLUSTER, &message(&[(&[1], b"cart"), (&[3, 1], PATH)])), [""; 0], "those are in a file");
        assert_eq!(named(CLUSTER, &message(&[(&[1], b"cart")])), [""; 0], "it needs none");
    }

    #[test]
    fn a_listener_names_the_routes_of_all_its_connection_managers() {
        let manager = |source, name: &str| {
            any(CONNECTION_MANAGER, &message(&[(&[3], &message(&[(&[1], source), (&[2], name.as_bytes())]))]))
        };
        let other = any("type.example.com/Other", &message(&[(&[3, 2], b"none")]));
        let listener = message(&[
            (&[3, 3, 4], &manager(ADS, "one")),
            (&[3, 3, 4], &manager(ADS, "two")),
            (&[3, 3, 4], &manager(PATH, "file")),
            (&[3, 3, 4], &other),
            (&[25, 3, 4], &manager(ADS, "default")),
            (&[19, 1], &manager(ADS, "api")),
        ]);
        let expected = ["api", "default", "one", "two"].map(|name| format!("RouteConfiguration {name}"));
        assert_eq!(named(LISTENER, &listener), expected);
    }

    #[test]
    fn what_has_a_transport_socket_names_its_secrets() {
        let secret = |name: &str| message(&[(&[1], name.as_bytes()), (&[2], ADS)]);
        let context = message(&[
            (&[1, 6], &secret("certificate")),
            (&[1, 6], &secret("another")),
            (&[1, 7], &secret("ca")),
            (&[1, 8, 2], &secret("combined")),
            (&[1, 6, 1], b"static"),
        ]);
        let expected = ["another", "ca", "certificate", "combined"].map(|name| format!("Secret {name}"));
        let socket = any(UPSTREAM_TLS, &context);
        assert_eq!(named(CLUSTER, &message(&[(&[24, 3], &socket)])), expected);
        assert_eq!(named(CLUSTER, &message(&[(&[43, 3, 3], &socket)])), expected);
        let keys = [context, message(&[(&[5], &secret("keys"))])].concat();
        let listener = message(&[(&[3, 6, 3], &any(DOWNSTREAM_TLS, &keys))]);
        assert_eq!(named(LISTENER, &listener), [&expected[..], &["Secret keys".to_owned()]].concat());
    }

    #[test]
    fn what_makes_no_sense_names_nothing() {
        let listener = message(&[(&[3, 3, 4], &any(CONNECTION_MANAGER, b"\x1a\xff"))]);
        assert_eq!(named(LISTENER, &listener), [""; 0]);
        assert_eq!(named(LISTENER, b"\xff\xff"), [""; 0]);
    }
}
