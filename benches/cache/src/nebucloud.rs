//! The crate `xds-cache`: a change is a new snapshot of everything, and every watch of the node is sent it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nebucloud_cache::{Cache, ShardedCache, Snapshot};
use nebucloud_core::{BoxResource, NodeHash, Resource, TypeUrl};

use crate::tasks::Tasks;
use crate::{Peer, TYPE_URL, Workload, body};

/// All subscribers are of one node, which is the one way to share resources there. Only the wildcard can be told.
pub struct Snapshots {
    cache: ShardedCache,
    node: NodeHash,
    resources: Vec<BoxResource>,
    round: u64,
    tasks: Tasks,
    subscribers: usize,
}

/// What that crate asks of a resource.
#[derive(Debug)]
struct Encoded {
    name: String,
    any: prost_types::Any,
}

impl Resource for Encoded {
    fn type_url(&self) -> &str {
        TYPE_URL
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self) -> Result<prost_types::Any, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.any.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn resource(index: usize, round: u64) -> BoxResource {
    let any = prost_types::Any { type_url: TYPE_URL.into(), value: body(round).to_vec() };
    Arc::new(Encoded { name: Workload::Wildcard.name(index), any })
}

impl Snapshots {
    fn snapshot(&self) -> Snapshot {
        let resources = self.resources.iter().cloned();
        Snapshot::builder().version(self.round.to_string()).resources(TypeUrl::new(TYPE_URL), resources).build()
    }
}

impl Peer for Snapshots {
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self {
        assert_eq!(workload, Workload::Wildcard);
        let mut peer = Self {
            cache: ShardedCache::new(),
            node: NodeHash::from_id("node"),
            resources: (0..resources).map(|index| resource(index, 0)).collect(),
            round: 0,
            tasks: Tasks::default(),
            subscribers,
        };
        peer.cache.set_snapshot(peer.node, peer.snapshot());
        for _ in 0..subscribers {
            let (mut watch, seen) = (peer.cache.create_watch(peer.node), peer.tasks.seen());
            peer.tasks.spawn_future(async move {
                let (type_url, name) = (TypeUrl::new(TYPE_URL), Workload::Wildcard.name(0));
                while let Some(snapshot) = watch.recv().await {
                    black_box(snapshot.get_resources(type_url.clone()).and_then(|of| of.get(&name)));
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        peer
    }

    fn prepare(&mut self) {
        self.round += 1;
        self.resources[0] = resource(0, self.round);
    }

    fn publish(&mut self) {
        self.cache.set_snapshot(self.node, self.snapshot());
        self.tasks.run_until(self.subscribers);
    }
}
