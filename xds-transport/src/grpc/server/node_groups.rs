//! A control plane for each group of nodes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use xdstp_cache::{
    Failed, Interest, Pull, Pulled, Removals, Resource, Selector, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::grpc::server::accept::{Accept, Accepted, Opened};
use crate::grpc::server::client::{Caller, Client};
use crate::grpc::server::client_status::ClientStatus;
use crate::grpc::server::control_plane::ControlPlane;
use crate::grpc::server::events::{Events, Sender};
use crate::grpc::server::service::Service;
use crate::grpc::server::shared::SharedSource;
use crate::server::{Answer, NodeError, ProtocolError, Refused, Settings, Source, Tally, forward};
use crate::wire::Node;
use crate::wire::client_status::ClientConfig;

/// A [`ControlPlane`] for each group of nodes, where resources are not for everybody. Which group a node belongs to is what a
/// key says, such as its `id` or its `cluster`. Cheap to clone: all clones are the same groups.
///
/// A client of a group that has no resources yet waits for them, and keeps what it has. A group that nobody set up is there
/// for as long as it has clients.
///
/// ```no_run
/// use xds_transport::grpc::server::NodeGroups;
/// use xds_transport::server::NodeError;
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Cluster { #[prost(string, tag = "1")] name: String }
/// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let groups = NodeGroups::new(|node| match node.cluster.as_str() {
///     "" => Err(NodeError::new("it is in no cluster")),
///     cluster => Ok(cluster.to_owned()),
/// });
/// groups.plane(&"edge".to_owned()).put("cart", &Cluster { name: "cart".into() })?;
/// groups.plane(&"mesh".to_owned()).put("shop", &Cluster { name: "shop".into() })?;
///
/// let server = tonic::transport::Server::builder().add_routes(groups.service().into_routes());
/// server.serve("[::1]:18000".parse()?).await?;
/// # Ok(())
/// # }
/// ```
pub struct NodeGroups<K>(Arc<Groups<K>>);

type KeyOf<K> = dyn Fn(&Node) -> Result<K, NodeError> + Send + Sync;

struct Groups<K> {
    key_of: Box<KeyOf<K>>,
    settings: Settings,
    events: Sender,
    /// It says nothing to streams whose node is not known yet.
    waiting: ControlPlane,
    groups: Mutex<HashMap<K, Group>>,
}

struct Group {
    plane: ControlPlane,
    streams: usize,
    /// Somebody set it up.
    kept: bool,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> NodeGroups<K> {
    /// Groups of the nodes that have a key in common. A node without one is refused.
    pub fn new(key_of: impl Fn(&Node) -> Result<K, NodeError> + Send + Sync + 'static) -> Self {
        Self::with_settings(Settings::default(), key_of)
    }

    /// The same with settings of one's own, for all of them.
    pub fn with_settings(
        settings: Settings,
        key_of: impl Fn(&Node) -> Result<K, NodeError> + Send + Sync + 'static,
    ) -> Self {
        let (events, groups) = (Sender::default(), Mutex::default());
        let waiting = ControlPlane::unfilled(settings.clone(), events.clone());
        Self(Arc::new(Groups { key_of: Box::new(key_of), settings, events, waiting, groups }))
    }

    /// The control plane of a group, which is there from now on.
    pub fn plane(&self, key: &K) -> ControlPlane {
        let mut groups = self.0.lock();
        let group = match groups.get_mut(key) {
            Some(group) => group,
            None => groups.entry(key.clone()).or_insert_with(|| self.0.group()),
        };
        group.kept = true;
        group.plane.clone()
    }

    /// Keeps no control plane for a group any more. The clients it has keep what they have, and wait for another word of it once
    /// they come again. Whether there was one.
    pub fn remove(&self, key: &K) -> bool {
        let mut groups = self.0.lock();
        let Some(group) = groups.get_mut(key) else { return false };
        let was_kept = std::mem::replace(&mut group.kept, false);
        let gone = (group.streams == 0).then(|| groups.remove(key));
        drop(groups);
        // Not under the lock: it may have much.
        drop(gone);
        was_kept
    }

    /// The groups there are: those that were set up, and those that clients wait for.
    pub fn keys(&self) -> Vec<K> {
        self.0.lock().keys().cloned().collect()
    }

    /// The clients of all of them.
    pub fn clients(&self) -> Vec<Client> {
        let planes: Vec<_> = self.0.lock().values().map(|group| group.plane.clone()).collect();
        planes.iter().flat_map(ControlPlane::clients).collect()
    }

    /// What the clients of all of them do from now on, as it happens.
    pub fn events(&self) -> Events {
        self.0.events.subscribe()
    }

    /// A service of streams that are each served from the control plane of its node's group.
    pub fn service(&self) -> Service<Self> {
        Service::new(self.clone()).settings(self.0.settings.clone())
    }

    fn join(&self, node: &Node) -> Result<(ControlPlane, Place<K>), NodeError> {
        let key = (self.0.key_of)(node)?;
        let mut groups = self.0.lock();
        let group = match groups.entry(key.clone()) {
            Entry::Occupied(group) => group.into_mut(),
            Entry::Vacant(none) => none.insert(self.0.group()),
        };
        group.streams += 1;
        let plane = group.plane.clone();
        drop(groups);
        Ok((plane, Place { groups: self.clone(), key }))
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> ClientStatus for NodeGroups<K> {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
        let _ = self.clients().iter().filter_map(|client| client.config(contents)).try_for_each(visitor);
    }
}

impl<K> Groups<K> {
    fn group(&self) -> Group {
        let plane = ControlPlane::unfilled(self.settings.clone(), self.events.clone());
        Group { plane, streams: 0, kept: false }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for NodeGroups<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for NodeGroups<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeGroups").field("groups", &self.0.lock().len()).finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Accept for NodeGroups<K> {
    type Source = GroupSource<K>;

    async fn accept(&self, opened: Opened) -> Result<Accepted<GroupSource<K>>, Status> {
        let caller = Caller::from(opened);
        let source = self.0.waiting.shared().source(caller.clone());
        Ok(GroupSource { groups: self.clone(), caller, source, place: None }.into())
    }
}

/// What one stream pulls from: the control plane of its node's group, once that is known.
#[derive(Debug)]
pub struct GroupSource<K: Eq + Hash> {
    groups: NodeGroups<K>,
    caller: Caller,
    /// Before that, of one that says nothing.
    source: SharedSource,
    place: Option<Place<K>>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Source for GroupSource<K> {
    forward!(rest self => self.source);

    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        let decoded = Node::decode(node.clone()).map_err(|error| NodeError::new(error.to_string()))?;
        let (plane, place) = self.groups.join(&decoded)?;
        self.source = plane.shared().source(self.caller.clone());
        // Left when this is dropped, or when it belongs to another.
        drop(self.place.replace(place));
        self.source.identify(node)
    }

    fn answered(&mut self, id: SubscriberId, answer: &Answer<'_>) {
        self.source.answered(id, answer);
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.source.open(type_url)
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        self.source.open_selecting(type_url, selector)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        self.source.close(id, tally);
    }
}

/// As long as a stream belongs to a group.
struct Place<K: Eq + Hash> {
    groups: NodeGroups<K>,
    key: K,
}

impl<K: Eq + Hash> fmt::Debug for Place<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut groups = self.groups.0.lock();
        let Some(group) = groups.get_mut(&self.key) else { return };
        group.streams -= 1;
        let gone = (group.streams == 0 && !group.kept).then(|| groups.remove(&self.key));
        drop(groups);
        drop(gone);
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;

    #[test]
    fn of_a_stream_that_leaves_its_group_has_no_subscriber() {
        let groups = NodeGroups::new(|node| Ok(node.id.clone()));
        let plane = groups.plane(&"edge".to_owned());
        let (caller, source) = (Caller::nobody(), groups.0.waiting.shared().source(Caller::nobody()));
        let mut source = GroupSource { groups, caller, source, place: None };
        let node = Node { id: "edge".into(), ..Node::default() }.encode_to_vec();
        source.identify(&node.into()).unwrap();
        let id = source.open(&"type.example.com/T".into());
        let subscribers = || plane.shared().look(xdstp_cache::Cache::subscriber_count);
        assert_eq!(subscribers(), 1);
        source.close(id, &Tally::default());
        assert_eq!(subscribers(), 0);
    }
}
