//! A control plane: `cargo run --example control_plane --features grpc-server`, and an address if it is to be another.

use std::error::Error;

use tonic::transport::Server;
use xds_transport::grpc::server::ControlPlane;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = ControlPlane::new();
    plane.put("cart", &envoy::Cluster { name: "cart".into(), ..Default::default() })?;

    let service = plane.service();
    let until = service.streams().drain_on(async { _ = tokio::signal::ctrl_c().await });
    let address = std::env::args().nth(1).unwrap_or("[::1]:18000".into()).parse()?;
    Server::builder().add_routes(service.into_routes()).serve_with_shutdown(address, until).await?;
    Ok(())
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
