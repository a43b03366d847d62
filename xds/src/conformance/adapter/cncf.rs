//! An adapter of CNCF's xds-test-harness: it is told all that a node has, over gRPC.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use xds_transport::wire::Any;

use super::{Change, Failure, answer};
use crate::conformance::link::Raw;
use crate::conformance::resources::{Item, Of};

const SET_STATE: PathAndQuery = PathAndQuery::from_static("/adapter.Adapter/SetState");

pub(crate) struct Cncf {
    channel: Channel,
    node: String,
    all: BTreeMap<(Of, String), Item>,
}

#[derive(Clone, PartialEq, Message)]
struct SetStateRequest {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(message, repeated, tag = "3")]
    resources: Vec<Any>,
}

impl Cncf {
    /// # Errors
    /// Nobody listens.
    pub(crate) async fn connect(address: &str, node: &str) -> Result<Self, String> {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| error.to_string())?;
        let channel = endpoint.connect().await.map_err(|error| format!("{address}: {error}"))?;
        Ok(Self { channel, node: node.to_owned(), all: BTreeMap::new() })
    }

    pub(crate) async fn change(&mut self, change: &Change, timeout: Duration) -> Result<(), Failure> {
        for item in &change.put {
            let what = match item {
                Item { ttl: Some(_), .. } => "a TTL",
                Item { constraints: Some(_), .. } | Item { parameters: Some(_), .. } => "variants",
                // It is told no name but the one inside.
                Item { of: Of::VirtualHost, .. } => "virtual hosts",
                _ => continue,
            };
            return Err(Failure::Unsupported(format!("its API has no room for {what}")));
        }
        change.remove.iter().for_each(|gone| _ = self.all.remove(gone));
        self.all.extend(change.put.iter().map(|item| ((item.of, item.name.clone()), item.clone())));
        match tokio::time::timeout(timeout, self.set_state()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Failure::Broken("SetState: no success".into())),
            Ok(Err(status)) => Err(Failure::Broken(format!("SetState: {:?} {}", status.code(), status.message()))),
            Err(_) => Err(Failure::Broken(format!("SetState: no answer for {timeout:?}"))),
        }
    }

    async fn set_state(&self) -> Result<bool, Status> {
        let any = |item: &Item| Any { type_url: item.of.type_url().into(), value: item.encode().into() };
        let resources: Vec<_> = self.all.values().map(any).collect();
        // Of equal content, so that what stays as it was has no other version.
        let mut hasher = DefaultHasher::new();
        resources.iter().for_each(|any| any.encode_to_vec().hash(&mut hasher));
        let version = format!("{:016x}", hasher.finish());
        let request = SetStateRequest { node: self.node.clone(), version, resources };
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let request = Request::new(Bytes::from(request.encode_to_vec()));
        let response = grpc.unary(request, SET_STATE, Raw).await?.into_inner();
        answer::of_set_state(response).map_err(|error| Status::internal(error.to_string()))
    }
}
