//! An adapter of CNCF's harness.

use std::collections::BTreeSet;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::Message;
use serde_json::json;
use tokio::net::TcpListener;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;
use xds_transport::grpc::server::Shared;
use xds_transport::wire::{Any, walk};

use super::adapter::change;
use super::link::Raw;
use super::plane::{Plane, incoming};
use super::runs::Results;

#[derive(Clone, PartialEq, Message)]
struct SetState {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(message, repeated, tag = "3")]
    resources: Vec<Any>,
}

/// What a control plane has by `SetState`.
#[derive(Clone)]
struct Adapter {
    shared: Shared,
    there: Arc<Mutex<BTreeSet<(String, String)>>>,
}

/// Serves it.
pub(crate) async fn serve(shared: Shared) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let adapter = Adapter { shared, there: Arc::default() };
    let routes = Routes::from(axum::Router::new().fallback(move |request: Request| {
        assert_eq!(request.uri().path(), "/adapter.Adapter/SetState");
        let mut grpc = tonic::server::Grpc::new(Raw).max_decoding_message_size(64 << 20);
        let adapter = adapter.clone();
        async move { grpc.unary(adapter, request).await }
    }));
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming(listener)));
    address
}

impl tonic::server::UnaryService<Bytes> for Adapter {
    type Response = Bytes;
    type Future = Ready<Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let state = SetState::decode(request.into_inner()).unwrap();
        let mut there = self.there.lock().unwrap();
        let name = |any: &Any| walk::text_at(&any.value, &[1]).unwrap().to_owned();
        let now: BTreeSet<_> = state.resources.iter().map(|any| (any.type_url.clone(), name(any))).collect();
        let put = |any: &Any| json!({"type": any.type_url, "name": name(any), "value": STANDARD.encode(&any.value)});
        let put: Vec<_> = state.resources.iter().map(put).collect();
        let gone = there.difference(&now).map(|(type_url, name)| json!({"type": type_url, "name": name}));
        let gone: Vec<_> = gone.collect();
        let done = change(&self.shared, &json!({"put": put, "remove": gone}).to_string());
        *there = now;
        // Field 1 is whether it is so.
        let answer = if done.is_ok() { Bytes::from_static(b"\x08\x01") } else { Bytes::new() };
        ready(Ok(tonic::Response::new(answer)))
    }
}

#[test]
fn an_adapter_of_cncf_is_told_all_there_is() {
    let Plane { server, cncf, .. } = Plane::start();
    let (server, adapter) = (server.to_string(), format!("cncf:{cncf}"));
    let results = Results::of(&[&server, "--adapter", &adapter, "--timeout", "60", "--skip", "size"]);
    assert!(results.rules("fail").is_empty(), "{}", results.trouble());
    let unknown: Vec<_> = results.rules("inconclusive").into_iter().collect();
    assert_eq!(unknown, [107, 110, 111, 112, 113, 119, 120], "{}", results.trouble());
}
