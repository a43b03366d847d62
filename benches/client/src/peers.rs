//! The clients, as a program has them: a connection, a task that drives it, and a watch for every name.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tonic_xds_client::message::ResourceAny;
use tonic_xds_client::resource::TypeUrl;
use tonic_xds_client::{
    ClientConfig, DiscoveryRequest, DiscoveryResponse, Error, Node, Resource, ResourceEvent, ResourceWatcher,
    TokioRuntime, TonicTransportBuilder, XdsClient, XdsCodec,
};
use xds_transport::wire::walk::text_at;
use xds_transport::{Protocol, wire};
use xdstp_client::{Client, Endpoint, Watch};

use crate::content::{TYPE_URL, name, response};
use crate::origin::Origin;

/// A client that watches some names.
pub trait Peer: Sized {
    /// The protocol it speaks.
    const PROTOCOL: Protocol;
    /// A client of the origin.
    fn connect(address: String) -> impl Future<Output = Self>;
    /// Watches one more name.
    fn watch(&mut self, name: String) -> impl Future<Output = ()>;
    /// Waits until the watch that is `index`-th of all sees a resource.
    fn see(&mut self, index: usize) -> impl Future<Output = ()>;
    /// Drops all watches.
    fn leave(&mut self);
}

/// Resources of one response: more would be longer than a client takes.
const AT_ONCE: usize = 10_000;

/// A client and its origin, on one thread.
pub struct Pair<P> {
    tasks: LocalSet,
    runtime: Runtime,
    origin: Origin,
    peer: P,
    round: u64,
    /// How many bytes of requests it took until every name was asked for.
    pub subscribed_bytes: usize,
    /// How many bytes of requests it took until every name was there.
    pub settled_bytes: usize,
    /// How long it took to open the watches.
    pub opened: Duration,
    /// The same until each had seen its resource.
    pub there: Duration,
}

impl<P: Peer> Pair<P> {
    /// A client that watches `names`, and has all of them.
    pub fn new(names: usize) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = LocalSet::new();
        let (origin, peer, subscribed_bytes, [opened, there]) = tasks.block_on(&runtime, async {
            let origin = Origin::start().await;
            let mut peer = P::connect(format!("http://{}", origin.address)).await;
            let start = Instant::now();
            for index in 0..names {
                peer.watch(name(index)).await;
            }
            let opened = start.elapsed();
            origin.until_names(names).await;
            let subscribed_bytes = origin.bytes();
            let heard = origin.requests();
            for first in (0..names).step_by(AT_ONCE) {
                origin.say(&response(P::PROTOCOL, first..names.min(first + AT_ONCE), 1));
            }
            for index in 0..names {
                peer.see(index).await;
            }
            let there = start.elapsed();
            origin.until_requests(heard + names.div_ceil(AT_ONCE)).await;
            (origin, peer, subscribed_bytes, [opened, there])
        });
        let settled_bytes = origin.bytes();
        Self { tasks, runtime, origin, peer, round: 1, subscribed_bytes, settled_bytes, opened, there }
    }

    /// Watches a name that it does not watch yet; returns when the origin is asked for it.
    pub fn watch_one_more(&mut self) {
        let Self { tasks, runtime, origin, peer, round, .. } = self;
        *round += 1;
        let another = format!("{}-more-{round}", name(0));
        tasks.block_on(runtime, async {
            let heard = origin.requests();
            peer.watch(another).await;
            origin.until_requests(heard + 1).await;
        });
    }

    /// Drops all watches: how long that takes.
    pub fn leave(&mut self) -> Duration {
        let start = Instant::now();
        self.tasks.block_on(&self.runtime, async { self.peer.leave() });
        start.elapsed()
    }

    /// Changes the first resource; returns when its watch has seen it and the origin has the ACK.
    pub fn update(&mut self) {
        let Self { tasks, runtime, origin, peer, round, .. } = self;
        *round += 1;
        let said = response(P::PROTOCOL, [0], *round);
        tasks.block_on(runtime, async {
            let heard = origin.requests();
            origin.say(&said);
            peer.see(0).await;
            origin.until_requests(heard + 1).await;
        });
    }
}

/// This project's, in either protocol.
pub struct Ours<const DELTA: bool> {
    client: Client,
    watches: Vec<Watch>,
}

pub type OursDelta = Ours<true>;
pub type OursSotw = Ours<false>;

impl<const DELTA: bool> Peer for Ours<DELTA> {
    const PROTOCOL: Protocol = if DELTA { Protocol::Delta } else { Protocol::Sotw };

    async fn connect(address: String) -> Self {
        let endpoint = Endpoint::new(&address).unwrap().with_protocol(Self::PROTOCOL);
        Self { client: Client::connect(endpoint), watches: Vec::new() }
    }

    async fn watch(&mut self, name: String) {
        self.watches.push(self.client.watch(TYPE_URL, &name));
    }

    async fn see(&mut self, index: usize) {
        self.watches[index].changed().await;
    }

    fn leave(&mut self) {
        self.watches.clear();
    }
}

/// tonic's `xds-client`, which speaks SotW.
pub struct Tonic {
    client: XdsClient,
    watches: Vec<ResourceWatcher<Encoded>>,
}

/// A resource of which nothing is read but its name.
pub struct Encoded;

impl Resource for Encoded {
    type Message = (String, Bytes);

    const TYPE_URL: TypeUrl = TypeUrl::new(TYPE_URL);
    const ALL_RESOURCES_REQUIRED_IN_SOTW: bool = false;

    fn deserialize(bytes: Bytes) -> Result<Self::Message, Error> {
        Ok((text_at(&bytes, &[1]).unwrap_or_default().to_owned(), bytes))
    }

    fn name(message: &Self::Message) -> &str {
        &message.0
    }

    fn validate(_: Self::Message) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// What its own codec does, with this project's generated messages: its own come with all of Envoy's.
struct Codec;

impl XdsCodec for Codec {
    fn encode_request(&self, request: &DiscoveryRequest<'_>) -> Result<Bytes, Error> {
        let request = wire::DiscoveryRequest {
            version_info: request.version_info.to_owned(),
            resource_names: request.resource_names.to_vec(),
            type_url: request.type_url.to_owned(),
            response_nonce: request.response_nonce.to_owned(),
            ..wire::DiscoveryRequest::default()
        };
        Ok(request.encode_to_vec().into())
    }

    fn decode_response(&self, bytes: Bytes) -> Result<DiscoveryResponse, Error> {
        let response = wire::DiscoveryResponse::decode(bytes).map_err(|error| Error::Validation(error.to_string()))?;
        let any = |any: wire::Any| ResourceAny { type_url: any.type_url, value: any.value };
        Ok(DiscoveryResponse {
            version_info: response.version_info,
            resources: response.resources.into_iter().map(any).collect(),
            type_url: response.type_url,
            nonce: response.nonce,
        })
    }
}

impl Peer for Tonic {
    const PROTOCOL: Protocol = Protocol::Sotw;

    async fn connect(address: String) -> Self {
        // Under valgrind everything is late.
        let config = ClientConfig::new(Node::new("bench", "1"), address).with_resource_initial_timeout(None);
        let client = XdsClient::builder(config, TonicTransportBuilder::new(), Codec, TokioRuntime).build();
        Self { client, watches: Vec::new() }
    }

    async fn watch(&mut self, name: String) {
        self.watches.push(self.client.watch(name).await);
    }

    async fn see(&mut self, index: usize) {
        let Some(ResourceEvent::ResourceChanged { result: Ok(_), .. }) = self.watches[index].next().await else {
            panic!("the watch of {index} sees no resource")
        };
    }

    fn leave(&mut self) {
        self.watches.clear();
    }
}
