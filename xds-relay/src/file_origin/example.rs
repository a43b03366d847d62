//! Files that are part of the program.

/// A small mesh, to try things with: pairs of a file name and its text, for
/// [`load_embedded`](super::load_embedded).
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
