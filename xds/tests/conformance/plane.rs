//! Our own control plane, and an adapter for it: lines of JSON on a socket.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_transport::grpc::server::{ControlPlane, Shared};
use xds_transport::server::Settings;
use xds_transport::{Frame, Put, TypeRules};
use xdstp_cache::{TypeUrl, Variant};
use xdstp_uri::ResourceName;

/// Where it is served, and where it is changed. It runs for as long as the tests do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) server: SocketAddr,
    pub(crate) adapter: SocketAddr,
    pub(crate) cncf: SocketAddr,
}

impl Plane {
    pub(crate) fn start() -> Self {
        let (started, start) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = serve().await;
                started.send(plane).unwrap();
                std::future::pending::<()>().await;
            });
        });
        start.recv().unwrap()
    }
}

/// A control plane, as the runtime's tasks.
pub(crate) async fn serve() -> Plane {
    let mut settings = Settings::default();
    settings.identifier = "plane".into();
    let plane = ControlPlane::with_settings(settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let routes = plane.service().into_routes();
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming(listener)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter = listener.local_addr().unwrap();
    let cncf = super::cncf::serve(plane.shared().clone()).await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(adapt(stream, plane.shared().clone()));
        }
    });
    Plane { server, adapter, cncf }
}

/// Without waiting for more to send.
pub(crate) fn incoming(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener).with_nodelay(Some(true))
}

async fn adapt(mut stream: TcpStream, shared: Shared) {
    stream.set_nodelay(true).unwrap();
    let (from, mut to) = stream.split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let answer = match change(&shared, &serde_json::from_str(&line).unwrap()) {
            Ok(()) => json!({"ok": true}),
            Err(why) => json!({"error": why}),
        };
        to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

pub(crate) fn change(shared: &Shared, change: &Value) -> Result<(), String> {
    let rules = Arc::new(TypeRules::envoy());
    let named = |one: &Value| -> Result<(TypeUrl, ResourceName), String> {
        let (type_url, name) = (one["type"].as_str().unwrap(), one["name"].as_str().unwrap());
        Ok((type_url.into(), ResourceName::parse(name).map_err(|error| error.to_string())?))
    };
    let (mut put, mut removed) = (Vec::new(), Vec::new());
    for one in change["put"].as_array().unwrap() {
        let (type_url, name) = named(one)?;
        let message = STANDARD.decode(one["value"].as_str().unwrap()).unwrap();
        let ttl = one["ttl"].as_str().map(|ttl| Duration::from_secs(ttl.trim_end_matches('s').parse().unwrap()));
        let frame = Frame::of_message(&type_url, &message).with_wrapper(Bytes::new(), ttl, false);
        let variant = one["constraints"].as_str().map(|text| Variant::Constraints(text.parse().unwrap()));
        put.push((type_url, name, variant, frame.into_resource(None)));
    }
    for one in change["remove"].as_array().unwrap() {
        removed.push(named(one)?);
    }
    shared.change(|edit| {
        removed.iter().for_each(|(type_url, name)| edit.remove(type_url, name));
        for (type_url, name, variant, resource) in put {
            match variant {
                None => _ = edit.put_checked(&rules, &type_url, &name, resource).map_err(|it| it.to_string())?,
                Some(variant) => _ = edit.put_variant(&type_url, &name, &variant, resource),
            }
        }
        Ok(())
    })
}
