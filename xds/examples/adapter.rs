//! A control plane with an adapter, for `xds conformance 127.0.0.1:18000 --adapter tcp:127.0.0.1:18001`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::Server;
use xds_transport::grpc::server::{ControlPlane, Shared};
use xds_transport::{Frame, Put, TypeRules};
use xdstp_cache::{TypeUrl, Variant};
use xdstp_uri::ResourceName;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = ControlPlane::new();
    let listener = TcpListener::bind("127.0.0.1:18001").await?;
    let shared = plane.shared().clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(adapt(stream, shared.clone()));
        }
    });
    Server::builder().add_routes(plane.service().into_routes()).serve("127.0.0.1:18000".parse()?).await?;
    Ok(())
}

/// Reads changes, a line each, and answers each one once clients can be told of it.
pub(crate) async fn adapt(stream: TcpStream, shared: Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = match change(&shared, &line) {
            Ok(()) => json!({"ok": true}),
            Err(error) => json!({"error": error.to_string()}),
        };
        to.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Change {
    put: Vec<Item>,
    remove: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
}

#[derive(Deserialize)]
struct Item {
    #[serde(flatten)]
    named: Named,
    value: String,
    ttl: Option<String>,
    constraints: Option<String>,
    parameters: Option<BTreeMap<String, String>>,
}

/// Does what a line says, as one change.
pub(crate) fn change(shared: &Shared, line: &str) -> Result<(), Box<dyn Error>> {
    let Change { put, remove } = serde_json::from_str(line)?;
    let removed = remove.iter().map(Named::parsed).collect::<Result<Vec<_>, _>>()?;
    let put = put.iter().map(Item::resource).collect::<Result<Vec<_>, _>>()?;
    let rules = Arc::new(TypeRules::envoy());
    shared.change(|edit| {
        removed.iter().for_each(|(type_url, name)| edit.remove(type_url, name));
        for ((type_url, name), variant, frame) in put {
            let resource = frame.into_resource(None);
            match variant {
                None => _ = edit.put_checked(&rules, &type_url, &name, resource)?,
                Some(variant) => _ = edit.put_variant(&type_url, &name, &variant, resource),
            }
        }
        Ok(())
    })
}

impl Named {
    fn parsed(&self) -> Result<(TypeUrl, ResourceName), Box<dyn Error>> {
        Ok((self.type_url.as_str().into(), self.name.parse()?))
    }
}

impl Item {
    #[allow(clippy::type_complexity, reason = "it is taken apart at once")]
    fn resource(&self) -> Result<((TypeUrl, ResourceName), Option<Variant>, Frame), Box<dyn Error>> {
        let (type_url, name) = self.named.parsed()?;
        let ttl = self.ttl.as_deref().map(|ttl| ttl.trim_end_matches('s').parse().map(Duration::from_secs));
        let variant = match (&self.constraints, &self.parameters) {
            (Some(constraints), _) => Some(Variant::Constraints(constraints.parse()?)),
            (None, Some(parameters)) => Some(Variant::Parameters(parameters.clone().into_iter().collect())),
            (None, None) => None,
        };
        let frame = Frame::of_message(&type_url, &STANDARD.decode(&self.value)?);
        Ok(((type_url, name), variant, frame.with_wrapper(Bytes::new(), ttl.transpose()?, false)))
    }
}
