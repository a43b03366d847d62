//! The control plane: what it has for everybody, and for each node group.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Node;
use xdstp_cache::{Cache, Options};

pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// What everybody asks for.
pub(crate) const GLOB: &str = "xdstp://fleet/envoy.config.cluster.v3.Cluster/all/*";
/// How many bytes a resource has beside its name.
const BODY: usize = 1000;

pub(crate) struct Origin {
    caches: BTreeMap<Option<usize>, Cache<Frame>>,
}

#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "1000")]
    serial: String,
    #[prost(bytes = "bytes", tag = "1001")]
    body: Bytes,
}

impl Origin {
    pub(crate) fn new(groups: usize) -> Self {
        let groups = (0..groups).map(Some).chain([None]);
        Self { caches: groups.map(|group| (group, Cache::new(Options::default()))).collect() }
    }

    pub(crate) fn cache_of(&mut self, node: &Bytes) -> &mut Cache<Frame> {
        self.caches.get_mut(&group_of(node)).unwrap()
    }

    pub(crate) fn put(&mut self, now: Instant, group: Option<usize>, name: &str, serial: u64) {
        let body = Bytes::from(vec![b'.'; BODY]);
        let payload = Payload { name: name.to_owned(), serial: serial.to_string(), body };
        let frame = Frame::of_message(&type_of(group).into(), &payload.encode_to_vec());
        let mut edit = self.caches.get_mut(&group).unwrap().edit(now);
        edit.put(&type_of(group).into(), &name.parse().unwrap(), frame.into_resource(Some(serial.to_string().into())));
        let _ = edit.finish();
    }

    pub(crate) fn remove(&mut self, now: Instant, group: Option<usize>, name: &str) {
        let mut edit = self.caches.get_mut(&group).unwrap().edit(now);
        edit.remove(&type_of(group).into(), &name.parse().unwrap());
        let _ = edit.finish();
    }
}

/// Names of authorities are clusters here, and those of node groups listeners.
fn type_of(group: Option<usize>) -> &'static str {
    if group.is_some() { LISTENERS } else { CLUSTERS }
}

/// The node of a client.
pub(crate) fn node(id: &str, group: usize) -> Bytes {
    Node { id: id.to_owned(), cluster: format!("g{group}"), ..Node::default() }.encode_to_vec().into()
}

/// The node group of an encoded node; a relay speaks for itself where names do not depend on it.
fn group_of(node: &Bytes) -> Option<usize> {
    Node::decode(node.clone()).unwrap().cluster.strip_prefix('g')?.parse().ok()
}
