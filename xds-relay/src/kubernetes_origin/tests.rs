//! An origin by a scripted API server, in the time that a test says.

mod cluster;
mod histories;
mod listing;
mod partly;
mod read_late;
mod removing;
mod restarting;
mod script;
mod secure;
mod seen;
mod values;
mod watching;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::cluster::Cluster;
use self::restarting::Disk;
use self::seen::Seen;
use super::api::Api;
use super::collection::Collection;
use super::following::follow;
use super::value::Reader;
use crate::config::{Kubernetes, KubernetesKind};
use crate::file_origin::{Descriptors, Served};

/// To read them takes longer than all that is tested with them.
static TYPES: LazyLock<Descriptors> = LazyLock::new(|| Descriptors::built_in().unwrap());

/// Longer than anything takes that happens by itself, but for a list every hour.
const SETTLED: Duration = Duration::from_secs(400);

/// A cluster, and who follows it.
struct World {
    cluster: Cluster,
    seen: Seen,
    following: JoinHandle<()>,
}

impl World {
    /// Of config maps in the namespace `mesh`.
    fn new() -> Self {
        Self::of(Cluster::default(), Kubernetes::in_cluster(), &["mesh"])
    }

    fn of(cluster: Cluster, kubernetes: Kubernetes, namespaces: &[&str]) -> Self {
        Self::keeping(cluster, kubernetes, namespaces, None)
    }

    /// Of who keeps on a disk what he knows.
    fn keeping(cluster: Cluster, kubernetes: Kubernetes, namespaces: &[&str], disk: Option<&Disk>) -> Self {
        Self::reading(TYPES.clone(), (cluster, kubernetes, namespaces), disk)
    }

    /// Of who holds values to the rules of their types, as an origin does that says nothing.
    fn validating(cluster: Cluster, disk: Option<&Disk>) -> Self {
        Self::reading(TYPES.clone().with_validation(), (cluster, Kubernetes::in_cluster(), &["mesh"]), disk)
    }

    fn reading(
        types: Descriptors,
        (cluster, kubernetes, namespaces): (Cluster, Kubernetes, &[&str]),
        disk: Option<&Disk>,
    ) -> Self {
        let namespaces: Vec<_> = namespaces.iter().map(|name| (*name).to_owned()).collect();
        let collections = Collection::all(&kubernetes, &namespaces);
        let reader = Reader::new(types, Served::default());
        let api = Api::new(Arc::new(cluster.clone()), "kubernetes".to_owned(), None);
        let seen = Seen::default();
        let following = tokio::spawn(follow(api, collections, reader, disk.map(Disk::keeper), seen.clone()));
        Self { cluster, seen, following }
    }

    /// Waits until it is so, in the time of the test.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if is_so(self) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}, {:?}", self.seen.served(), self.seen.trouble());
    }

    /// Waits until this is served, and nothing else.
    async fn serves(&self, expected: &[(&str, u32)]) {
        let expected: Vec<_> = expected.iter().map(|(name, timeout)| ((*name).to_owned(), *timeout)).collect();
        self.until(|world| world.seen.served() == Some(expected.clone())).await;
    }

    /// Waits until something was wrong, and says what.
    async fn is_in_trouble(&self, words: &str) -> String {
        self.until(|world| world.seen.trouble_with(words).is_some()).await;
        self.seen.trouble_with(words).unwrap()
    }

    async fn is_well(&self) {
        self.until(|world| world.seen.trouble().is_none()).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.following.abort();
    }
}

/// The text of a cluster.
fn text(name: &str, timeout: u32) -> String {
    format!(
        "{{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {name}, connect_timeout: {timeout}s}}"
    )
}

fn both() -> Kubernetes {
    Kubernetes::in_cluster().with_kinds([KubernetesKind::ConfigMaps, KubernetesKind::XdsResources])
}
