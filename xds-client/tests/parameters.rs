//! A client and a server that speaks either form of TP2, over loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Instant;

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::Server as GrpcServer;
use xds_matcher::draft::Subscription;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service};
use xds_transport::server::Settings;
use xds_transport::{Dialect, Frame, Protocol};
use xdstp_cache::{Cache, Options, Selector, Variant};
use xdstp_client::bootstrap::Bootstrap;
use xdstp_client::{Client, Error, Event};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// It has the cluster `web`, in variants for the shards 1 to 3.
struct Origin(Dialect);

impl Accept for Origin {
    type Source = Cache<Frame>;

    async fn accept(&self, _: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let mut cache = Cache::new(Options::default());
        let mut edit = cache.edit(Instant::now());
        for shard in ["1", "2", "3"] {
            let variant = match self.0 {
                Dialect::Draft => Variant::Parameters([("shard", shard)].into_iter().collect()),
                _ => Variant::Constraints(format!("shard={shard}").parse().unwrap()),
            };
            let frame = Frame::of_message(&CDS.into(), &[b"\x0a\x03web\x12\x01", shard.as_bytes()].concat());
            edit.put_variant(&CDS.into(), &"web".parse().unwrap(), &variant, frame.into_resource(Some(shard.into())));
        }
        _ = edit.finish();
        Ok(cache.into())
    }
}

async fn serve(dialect: Dialect) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = Settings::default();
    settings.dialect = dialect;
    let routes = Service::new(Origin(dialect)).settings(settings).into_routes();
    tokio::spawn(GrpcServer::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

async fn version(client: &Client) -> String {
    match client.watch(CDS, "web").changed().await {
        Event::Put { version, .. } => version.to_string(),
        event => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn r085_each_server_is_asked_in_the_form_that_the_bootstrap_says_of_it() {
    for (dialect, features) in [(Dialect::Final, "[]"), (Dialect::Draft, "[\"draft_dynamic_parameters\"]")] {
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let address = serve(dialect).await;
            let bootstrap = Bootstrap::from_json(&format!(
                r#"{{
                    "xds_servers": [{{
                        "server_uri": "{address}",
                        "channel_creds": [{{ "type": "insecure" }}],
                        "server_features": {features}
                    }}],
                    "dynamic_parameters": {{ "shard": "1" }}
                }}"#
            ));
            let client = Client::builder(bootstrap.unwrap()).protocol(protocol).build().unwrap();
            assert_eq!(version(&client).await, "1", "{dialect:?}, {protocol:?}");
            assert_eq!(version(&client.selecting([("shard", "3")])).await, "3", "{dialect:?}, {protocol:?}");
            let ranged: Selector = Subscription::where_present(&"shard in 0..2".parse().unwrap()).unwrap().into();
            let ranged = client.selecting(ranged);
            if dialect == Dialect::Draft {
                assert_eq!(version(&ranged).await, "2", "{protocol:?}");
            } else {
                let event = ranged.watch(CDS, "web").changed().await;
                assert!(matches!(event, Event::Failed { error: Error::Unusable { .. }, .. }), "{event:?}");
            }
        }
    }
}
