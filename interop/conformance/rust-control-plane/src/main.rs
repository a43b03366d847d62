//! A control plane of rust-control-plane, and an adapter for `xds conformance`: `PROGRAM SERVER-ADDRESS ADAPTER-ADDRESS NODE`.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use data_plane_api::envoy::service::cluster::v3::cluster_discovery_service_server::ClusterDiscoveryServiceServer;
use data_plane_api::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryServiceServer;
use data_plane_api::envoy::service::endpoint::v3::endpoint_discovery_service_server::EndpointDiscoveryServiceServer;
use data_plane_api::envoy::service::listener::v3::listener_discovery_service_server::ListenerDiscoveryServiceServer;
use data_plane_api::envoy::service::route::v3::route_discovery_service_server::RouteDiscoveryServiceServer;
use data_plane_api::envoy::service::secret::v3::secret_discovery_service_server::SecretDiscoveryServiceServer;
use prost::Message;
use rust_control_plane::cache::Cache;
use rust_control_plane::service::common::Service;
use rust_control_plane::snapshot::{type_url, Resource, Resources, Snapshot};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::Server;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let [server, adapter, node]: [String; 3] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "SERVER ADAPTER NODE")?;
    // Its check of consistency is for Envoy alone: names that are not there would have no answer.
    let cache = Arc::new(Cache::new(false));
    let listener = TcpListener::bind(adapter).await?;
    tokio::spawn(adapt(listener, cache.clone(), node));
    let service = || Service::new(cache.clone());
    Server::builder()
        .add_service(AggregatedDiscoveryServiceServer::new(service()))
        .add_service(ClusterDiscoveryServiceServer::new(service()))
        .add_service(EndpointDiscoveryServiceServer::new(service()))
        .add_service(ListenerDiscoveryServiceServer::new(service()))
        .add_service(RouteDiscoveryServiceServer::new(service()))
        .add_service(SecretDiscoveryServiceServer::new(service()))
        .serve(server.parse()?)
        .await?;
    Ok(())
}

async fn adapt(listener: TcpListener, cache: Arc<Cache>, node: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = converse(stream, &cache, &node).await;
    }
}

/// All that there is, and how often each type changed.
#[derive(Default)]
struct State {
    there: BTreeMap<(String, String), Resource>,
    changes: HashMap<String, u64>,
}

async fn converse(mut stream: TcpStream, cache: &Arc<Cache>, node: &str) -> Result<(), Failure> {
    let mut state = State::default();
    let (from, mut to) = stream.split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = match state.change(&serde_json::from_str(&line)?) {
            Err(why) => json!({"unsupported": why.to_string()}),
            Ok(()) => {
                // It panics, or waits for ever, over streams that have gone.
                let (cache, node, snapshot) = (cache.clone(), node.to_owned(), state.snapshot());
                match tokio::spawn(async move { cache.set_snapshot(&node, snapshot).await }).await {
                    Ok(()) => json!({"ok": true}),
                    Err(error) => json!({"error": error.to_string()}),
                }
            }
        };
        to.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

impl State {
    fn change(&mut self, change: &Value) -> Result<(), Failure> {
        let list = |field: &str| change[field].as_array().cloned().unwrap_or_default();
        let named = |one: &Value| (one["type"].as_str().unwrap_or("").to_owned(), one["name"].as_str().unwrap_or("").to_owned());
        let mut put = Vec::new();
        for one in list("put") {
            for field in ["ttl", "constraints"] {
                if !one[field].is_null() {
                    return Err(field.into());
                }
            }
            let (type_url, name) = named(&one);
            let resource = resource(&type_url, &STANDARD.decode(one["value"].as_str().unwrap_or(""))?)?;
            put.push(((type_url, name), resource));
        }
        for gone in list("remove").iter().map(named) {
            *self.changes.entry(gone.0.clone()).or_default() += 1;
            self.there.remove(&gone);
        }
        for (key, resource) in put {
            *self.changes.entry(key.0.clone()).or_default() += 1;
            self.there.insert(key, resource);
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        for (type_url, changes) in &self.changes {
            let mut resources = Resources::new(changes.to_string());
            let of_type = self.there.iter().filter(|((of, _), _)| of == type_url);
            resources.items = of_type.map(|((_, name), resource)| (name.clone(), resource.clone())).collect();
            snapshot.insert(type_url.clone(), resources);
        }
        snapshot
    }
}

fn resource(of: &str, bytes: &[u8]) -> Result<Resource, Failure> {
    Ok(match of {
        type_url::CLUSTER => Resource::Cluster(Message::decode(bytes)?),
        type_url::ENDPOINT => Resource::Endpoint(Message::decode(bytes)?),
        type_url::ROUTE => Resource::Route(Message::decode(bytes)?),
        type_url::LISTENER => Resource::Listener(Message::decode(bytes)?),
        type_url::SECRET => Resource::Secret(Message::decode(bytes)?),
        _ => return Err(format!("resources of {of}").into()),
    })
}
