//! A configuration for each group of nodes, as go-control-plane's snapshots have it:
//! `cargo run --example node_groups --features grpc-server`, and an address if it is to be another.

use std::error::Error;
use std::time::Duration;

use tonic::transport::Server;
use xds_transport::grpc::server::{NodeGroups, PutError};
use xds_transport::server::NodeError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let groups = NodeGroups::new(|node| match node.cluster.as_str() {
        "" => Err(NodeError::new("name your cluster")),
        cluster => Ok(cluster.to_owned()),
    });
    snapshot(&groups, "edge", &["cart", "shop"])?;
    snapshot(&groups, "mesh", &["cart", "till"])?;

    let service = groups.service().max_streams(10_000).max_stream_age(Duration::from_secs(3600));
    let until = service.streams().drain_on(async { _ = tokio::signal::ctrl_c().await });
    let address = std::env::args().nth(1).unwrap_or("[::1]:18000".into()).parse()?;
    Server::builder().add_routes(service.into_routes()).serve_with_shutdown(address, until).await?;
    Ok(())
}

/// What a group has, and nothing else: only what differs from before is sent.
fn snapshot(groups: &NodeGroups<String>, group: &str, clusters: &[&str]) -> Result<(), PutError> {
    groups.plane(&group.to_owned()).replace(|all| {
        clusters.iter().try_for_each(|name| {
            let stat = format!("{group}-{name}");
            all.put(name, &envoy::Cluster { name: (*name).into(), alt_stat_name: stat })
        })
    })
}

/// As much of Envoy's types as is used here. The crate `envoy-types` has all of them.
mod envoy {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Cluster {
        #[prost(string, tag = "1")]
        pub(crate) name: String,
        #[prost(string, tag = "28")]
        pub(crate) alt_stat_name: String,
    }

    impl prost::Name for Cluster {
        const NAME: &'static str = "Cluster";
        const PACKAGE: &'static str = "envoy.config.cluster.v3";
    }
}
