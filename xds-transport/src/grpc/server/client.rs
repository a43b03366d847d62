//! A client, as its control plane sees it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use prost::Message;
use slab::Slab;
use xdstp_cache::{Interest, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::grpc::server::accept::Opened;
use crate::grpc::server::client_config::{config_of_missing, config_of_resource};
use crate::grpc::server::handle::{StreamHandle, Wake};
use crate::grpc::server::served::{self, Served};
use crate::server::{Reception, SessionView};
use crate::wire::Node;
use crate::wire::client_status::{ClientConfig, GenericXdsConfig};

/// Whose a stream is: a client that comes by several is there as often. Cheap to clone, and there for longer than its stream.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    caller: Caller,
    node: OnceLock<Bytes>,
    served: Weak<Mutex<Served>>,
}

/// What is known of a stream when it is opened, and has it pull.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) wake: Wake,
    peer: Option<SocketAddr>,
    protocol: Protocol,
    handle: StreamHandle,
}

/// A resource that a client asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: ResourceName,
    /// The version there is.
    pub version: Version,
    /// What the client said of that; `None` if it was not sent it yet. Until it has accepted this version it may have
    /// one from before.
    pub reception: Option<Reception>,
}

impl From<Opened> for Caller {
    fn from(opened: Opened) -> Self {
        let peer = opened.peer();
        let Opened { protocol, wake, handle, .. } = opened;
        Self { wake, peer, protocol, handle }
    }
}

impl Client {
    pub(crate) fn new(caller: Caller, served: Weak<Mutex<Served>>) -> Self {
        Self(Arc::new(Inner { caller, node: OnceLock::new(), served }))
    }

    pub(crate) fn identify(&self, node: &Bytes) {
        let _ = self.0.node.set(node.clone());
    }

    pub(crate) fn is_identified(&self) -> bool {
        self.0.node.get().is_some()
    }

    /// What it says of itself, once it has said it.
    pub fn node(&self) -> Option<Node> {
        Node::decode(self.0.node.get()?.clone()).ok()
    }

    /// Where it is, if it came over TCP and the connection says so.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.caller.peer
    }

    /// Which protocol it speaks.
    pub fn protocol(&self) -> Protocol {
        self.0.caller.protocol
    }

    /// Its stream.
    pub fn handle(&self) -> &StreamHandle {
        &self.0.caller.handle
    }

    /// What it asked for and there is, in the order of types: as CSDS tells it. `None` if it has left, or is busy with a long
    /// request.
    pub fn held(&self) -> Option<Vec<Held>> {
        let served = self.0.served.upgrade()?;
        let mut held = None;
        self.handle().inspect(&mut |stream| {
            let held = held.get_or_insert_with(Vec::new);
            for session in stream.sessions() {
                visit(&served, &session, held);
            }
        });
        held
    }

    /// The same in the words of CSDS, with what it asked for and there is nothing of; `contents` says whether resources
    /// themselves are told. `None` as [`held`](Self::held).
    pub fn config(&self, contents: bool) -> Option<ClientConfig> {
        let served = self.0.served.upgrade()?;
        let mut config = None;
        self.handle().inspect(&mut |stream| {
            let node = self.0.node.get().cloned().unwrap_or_default();
            let config = config.get_or_insert_with(|| ClientConfig { node, ..ClientConfig::default() });
            for session in stream.sessions() {
                visit_configs(&served, &session, contents, &mut config.generic_xds_configs);
            }
        });
        config
    }
}

/// The clients there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(Arc<Mutex<Slab<Client>>>);

impl Clients {
    pub(crate) fn all(&self) -> Vec<Client> {
        self.lock().iter().map(|(_, client)| client.clone()).collect()
    }

    /// One more, until it is removed by its key.
    pub(crate) fn insert(&self, client: Client) -> usize {
        self.lock().insert(client)
    }

    pub(crate) fn remove(&self, key: usize) {
        self.lock().try_remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Client>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One hold of the lock for each type.
fn visit(served: &Mutex<Served>, session: &SessionView<'_>, held: &mut Vec<Held>) {
    let served = served::lock(served);
    let id = session.subscriber;
    served.cache.visit(id, &mut |name, resource| {
        let reception = served.cache.is_sent(id, name).then(|| session.reception(name));
        let (type_url, name, version) = (session.type_url.clone(), name.clone(), resource.version.clone());
        held.push(Held { type_url, name, version, reception });
    });
}

/// One hold of the lock for each type.
fn visit_configs(
    served: &Mutex<Served>,
    session: &SessionView<'_>,
    contents: bool,
    configs: &mut Vec<GenericXdsConfig>,
) {
    let served = served::lock(served);
    let (id, cache) = (session.subscriber, &served.cache);
    cache.visit(id, &mut |name, resource| {
        let reception = cache.is_sent(id, name).then(|| session.reception(name));
        configs.push(config_of_resource(session, name.as_str(), resource, reception, contents));
    });
    for interest in cache.interests(id) {
        if let Interest::Name(name) = &interest
            && !name.is_glob()
            && cache.resource(session.type_url, name).is_none()
        {
            let is_known = cache.is_known(session.type_url, &interest);
            configs.push(config_of_missing(session.type_url, name.as_str(), is_known));
        }
    }
}

#[cfg(all(test, feature = "testing"))]
impl Caller {
    /// Without a stream.
    pub(crate) fn nobody() -> Self {
        use crate::frame::Frame;
        use crate::grpc::server::state::StreamState;

        let nobody: Weak<StreamState<xdstp_cache::Cache<Frame>>> = Weak::new();
        Self { wake: Wake::default(), peer: None, protocol: Protocol::Delta, handle: StreamHandle(nobody) }
    }
}
