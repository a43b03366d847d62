//! What is kept over a restart: what was known is served while the API server is away, and what it says then counts.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::time::sleep;
use xdstp_client::state::{Identities, Keys, Memory, State, Store as _};

use super::cluster::{Cluster, Fault, Kind};
use super::{SETTLED, World, both, text};
use crate::config::Kubernetes;
use crate::keyed_origin::{GRACE, HELD, Keeper};

const MOMENT: Duration = Duration::from_millis(100);

/// What survives, and the relay that has it open.
pub(super) struct Disk {
    store: Memory,
    state: Arc<State>,
    server: &'static str,
}

fn keys(text: &str) -> Option<Arc<Keys>> {
    Some(Arc::new(Keys::parse(Path::new("keys"), text).unwrap()))
}

impl Disk {
    pub(super) fn new() -> Self {
        Self::of(Memory::default(), None)
    }

    fn of(store: Memory, keys: Option<Arc<Keys>>) -> Self {
        let identities = Identities::new(vec![None], None, String::new());
        let state = State::open(store.clone(), identities, keys, Instant::now(), SystemTime::now()).unwrap();
        Self { store, state: Arc::new(state), server: "https://a" }
    }

    /// The same as another relay finds it: what was not saved is lost.
    pub(super) fn restarted(&self) -> Self {
        Self::of(self.store.clone(), None)
    }

    /// The same as another relay finds it, that has not read it yet.
    pub(super) fn unread(&self) -> Self {
        let identities = Identities::new(vec![None], None, String::new());
        let store = self.store.clone();
        let state = State::later(move || Ok(store.clone()), identities, None, Instant::now(), SystemTime::now());
        Self { store: self.store.clone(), state: Arc::new(state), server: self.server }
    }

    pub(super) fn keeper(&self) -> Keeper {
        Keeper::new(self.state.clone(), 0, "kube", [self.server.to_owned()])
    }

    pub(super) fn save(&self) {
        while self.state.keep(&[], Instant::now(), SystemTime::now()).unwrap().more {}
    }

    /// What there is of values, and when that was written.
    fn written(&self) -> Vec<(String, u64)> {
        let entries = self.store.list("xds-relay/v1/value/").unwrap().entries;
        let named = |key: &str| key.rsplit_once("mesh/").map_or(key, |(_, name)| name).to_owned();
        entries.into_iter().map(|entry| (named(&entry.key), entry.revision)).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.written().into_iter().map(|(name, _)| name).collect()
    }

    pub(super) fn follows(&self, cluster: &Cluster) -> World {
        World::keeping(cluster.clone(), Kubernetes::in_cluster(), &["mesh"], Some(self))
    }
}

/// A cluster with these, which were heard and kept before it and the relay went.
pub(super) async fn kept(names: &[&str]) -> (Cluster, Disk) {
    let (cluster, disk) = (Cluster::default(), Disk::new());
    names.iter().for_each(|name| cluster.cluster(name, 1));
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    disk.save();
    cluster.state().is_away = true;
    (cluster, disk)
}

pub(super) fn all(names: &[&str]) -> Vec<(String, u32)> {
    names.iter().map(|name| ((*name).to_owned(), 1)).collect()
}

#[tokio::test(start_paused = true)]
async fn who_starts_while_the_api_server_is_away_serves_what_was_known() {
    let (cluster, disk) = kept(&["a", "b"]).await;
    let world = disk.restarted().follows(&cluster);
    world.serves(&[("a", 1), ("b", 1)]).await;
    assert!(!world.seen.is_all());
    world.is_in_trouble("Kubernetes is away, and what it had before a restart is served: ").await;
    cluster.state().is_away = false;
    world.until(|world| world.seen.is_all()).await;
    world.is_well().await;
    assert_eq!(world.seen.served().unwrap(), all(&["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_has_a_moment_before_what_was_known_is_served() {
    let (cluster, disk) = kept(&["a"]).await;
    cluster.state().is_away = false;
    cluster.fail(Kind::List, Fault::Silence);
    let world = disk.restarted().follows(&cluster);
    sleep(GRACE - MOMENT).await;
    assert_eq!((world.seen.served(), world.seen.trouble()), (None, None));
    sleep(2 * MOMENT).await;
    assert_eq!(world.seen.served(), Some(all(&["a"])));
    assert!(world.seen.trouble().unwrap().ends_with("configmap/mesh: it has not answered yet"));
    world.until(|world| world.seen.is_all()).await;
}

#[tokio::test(start_paused = true)]
async fn who_answers_within_that_moment_is_heard_at_once_and_alone() {
    let (cluster, disk) = kept(&["a"]).await;
    cluster.state().is_away = false;
    cluster.cluster("a", 2);
    let world = disk.restarted().follows(&cluster);
    world.until(|world| world.seen.served().is_some()).await;
    assert!(world.seen.is_all());
    assert_eq!(world.seen.served(), Some(vec![("a".to_owned(), 2)]));
    sleep(SETTLED).await;
    assert_eq!(world.seen.contents(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_as_it_was_is_neither_written_nor_read_again() {
    let (cluster, disk) = kept(&["a", "b"]).await;
    let before = disk.written();
    cluster.state().is_away = false;
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    disk.save();
    assert_eq!(disk.written(), before);
    cluster.cluster("b", 2);
    world.serves(&[("a", 1), ("b", 2)]).await;
    disk.save();
    assert_eq!(disk.written()[0], before[0]);
    assert_ne!(disk.written()[1], before[1]);
}

#[tokio::test(start_paused = true)]
async fn what_went_meanwhile_goes_with_the_first_whole_list_here_and_on_the_disk() {
    let (cluster, disk) = kept(&["a", "b", "c"]).await;
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.serves(&[("a", 1), ("b", 1), ("c", 1)]).await;
    cluster.delete("mesh", "b");
    // Of two pages only the first one comes, and so it is again for a while: how soon it is asked again is random.
    cluster.state().page = Some(1);
    (0..8).for_each(|_| cluster.fail(Kind::More, Fault::Cut(10)));
    cluster.state().is_away = false;
    world.until(|world| world.cluster.asked(Kind::More) > 0).await;
    disk.save();
    assert_eq!((world.seen.take_removed(), disk.names().len()), (vec![], 3));
    world.serves(&[("a", 1), ("c", 1)]).await;
    disk.save();
    assert_eq!(
        (world.seen.take_removed(), disk.names()),
        (vec!["b".to_owned()], vec!["a/a.yaml".into(), "c/a.yaml".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_has_lost_much_meanwhile_removes_it_when_it_says_so_twice() {
    let names: Vec<_> = (0..20).map(|number| format!("c{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (cluster, disk) = kept(&names).await;
    names.iter().for_each(|name| cluster.delete("mesh", name));
    cluster.state().is_away = false;
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.held_back() == 20).await;
    assert_eq!(world.seen.served(), Some(all(&names)), "whoever starts meanwhile is served it");
    disk.save();
    assert_eq!(disk.names().len(), 20);
    sleep(2 * GRACE).await;
    let trouble = world.seen.trouble().unwrap();
    assert!(!trouble.contains("away"), "who said it has answered: {trouble}");
    // Another restart begins that anew.
    drop(world);
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.held_back() == 20).await;
    sleep(HELD - MOMENT).await;
    assert_eq!(world.seen.served(), Some(all(&names)));
    world.serves(&[]).await;
    assert!(world.seen.is_all());
    disk.save();
    assert_eq!(disk.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_was_empty_for_a_moment_removes_nothing() {
    let (cluster, disk) = kept(&["a", "b", "c"]).await;
    ["a", "b", "c"].iter().for_each(|name| cluster.delete("mesh", name));
    cluster.state().is_away = false;
    let world = disk.restarted().follows(&cluster);
    world.until(|world| world.seen.held_back() == 3).await;
    ["a", "b", "c"].iter().for_each(|name| cluster.cluster(name, 1));
    world.until(|world| world.seen.is_all()).await;
    sleep(SETTLED).await;
    assert_eq!((world.seen.served(), world.seen.take_removed()), (Some(all(&["a", "b", "c"])), vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_last_good_value_of_what_is_bad_survives_a_restart_whether_the_api_server_is_there_or_not() {
    let (cluster, disk) = kept(&["a", "b"]).await;
    cluster.state().is_away = false;
    cluster.apply("mesh", "a", 5, &[("a.yaml", "no: resource")]);
    let first = disk.restarted();
    let world = first.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    assert_eq!((world.seen.served(), world.seen.refused()), (Some(all(&["a", "b"])), 1));
    first.save();
    drop(world);
    cluster.state().is_away = true;
    let second = first.restarted();
    let world = second.follows(&cluster);
    world.serves(&[("a", 1), ("b", 1)]).await;
    cluster.state().is_away = false;
    world.until(|world| world.seen.is_all()).await;
    world.serves(&[("a", 1), ("b", 1)]).await;
    cluster.delete("mesh", "a");
    world.serves(&[("b", 1)]).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_of_what_another_place_had() {
    let (cluster, disk) = kept(&["a"]).await;
    let selecting = Kubernetes { label_selector: Some("x=y".to_owned()), ..Kubernetes::in_cluster() };
    let elsewhere = Disk { server: "https://b", ..disk.restarted() };
    let worlds = [
        World::keeping(cluster.clone(), selecting, &["mesh"], Some(&disk.restarted())),
        World::keeping(cluster.clone(), Kubernetes::in_cluster(), &["other"], Some(&disk.restarted())),
        World::keeping(cluster.clone(), Kubernetes::in_cluster(), &[], Some(&disk.restarted())),
        elsewhere.follows(&cluster),
    ];
    sleep(2 * GRACE).await;
    for world in worlds {
        assert_eq!(world.seen.served(), None);
        assert!(world.seen.trouble().unwrap().contains("nothing is known"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_part_says_counts_while_another_is_not_answered_and_removes_nothing() {
    let (cluster, disk) = (Cluster::default(), Disk::new());
    ["a", "b"].iter().for_each(|name| cluster.cluster(name, 1));
    let other = |timeout: u32| {
        let spec: serde_json::Value = serde_saphyr::from_str(&text("other", timeout)).unwrap();
        cluster.put("xdsresources", "mesh", "other", 0, serde_json::json!({ "spec": spec }));
    };
    other(1);
    let world = World::keeping(cluster.clone(), both(), &["mesh"], Some(&disk));
    world.serves(&[("a", 1), ("b", 1), ("other", 1)]).await;
    disk.save();
    drop(world);
    cluster.state().forbidden = Some("xdsresources");
    cluster.cluster("a", 2);
    cluster.delete("mesh", "b");
    other(2);
    let disk = disk.restarted();
    let world = World::keeping(cluster.clone(), both(), &["mesh"], Some(&disk));
    world.serves(&[("a", 2), ("b", 1), ("other", 1)]).await;
    sleep(SETTLED).await;
    cluster.cluster("a", 3);
    world.serves(&[("a", 3), ("b", 1), ("other", 1)]).await;
    assert!(!world.seen.is_all());
    cluster.state().forbidden = None;
    world.serves(&[("a", 3), ("other", 2)]).await;
    disk.save();
    assert_eq!(disk.names().len(), 2);
}

fn secret(name: &str) -> String {
    format!(
        "{{'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: {name}, generic_secret: {{ secret: {{ inline_string: hunter2 }} }}}}"
    )
}

/// A relay that keeps a cluster and a secret, with these keys.
async fn with_secret(keys: Option<Arc<Keys>>) -> (Cluster, Disk) {
    let (cluster, disk) = (Cluster::default(), Disk::of(Memory::default(), keys));
    cluster.cluster("a", 1);
    cluster.apply("mesh", "key", 0, &[("key.yaml", &secret("key"))]);
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    disk.save();
    cluster.state().is_away = true;
    (cluster, disk)
}

fn is_legible(disk: &Disk) -> bool {
    let entries = disk.store.list("").unwrap().entries;
    entries.iter().any(|entry| entry.value.windows(7).any(|part| part == b"hunter2"))
}

#[tokio::test(start_paused = true)]
async fn secrets_are_not_kept_or_so_that_none_reads_them_without_the_key() {
    let (cluster, disk) = with_secret(None).await;
    assert_eq!(disk.names(), ["a/a.yaml"]);
    disk.restarted().follows(&cluster).serves(&[("a", 1)]).await;

    let (old, new) = ("a".repeat(64), "b".repeat(64));
    let (cluster, disk) = with_secret(keys(&old)).await;
    assert!(!is_legible(&disk));
    let before = disk.written();
    assert_eq!(before.len(), 2);
    // With another key in front it is read, and written anew: only what is secret, and though nobody answers.
    let rotated = Disk::of(disk.store.clone(), keys(&format!("{new}\n{old}")));
    rotated.follows(&cluster).serves(&[("a", 1), ("key", 0)]).await;
    rotated.save();
    assert_eq!(rotated.written()[0], before[0]);
    assert_ne!(rotated.written()[1], before[1]);
    let disk = Disk::of(disk.store.clone(), keys(&new));
    disk.follows(&cluster).serves(&[("a", 1), ("key", 0)]).await;
    assert!(!is_legible(&disk));
    // Without the key it is not, and goes where it is not to be kept.
    let other = Disk::of(disk.store.clone(), keys(&old));
    other.follows(&cluster).serves(&[("a", 1)]).await;
    other.save();
    let omitting = Disk::of(disk.store.clone(), None);
    let world = omitting.follows(&cluster);
    world.serves(&[("a", 1)]).await;
    omitting.save();
    assert_eq!((other.state.damaged(), omitting.state.damaged()), (1, 0));
    assert_eq!(omitting.names(), ["a/a.yaml"]);
    cluster.state().is_away = false;
    world.serves(&[("a", 1), ("key", 0)]).await;
    omitting.save();
    assert_eq!(omitting.names(), ["a/a.yaml"]);
}

/// Of two objects with the same resource the older one has a secret in it, too.
#[tokio::test(start_paused = true)]
async fn whose_a_resource_was_is_known_after_a_restart_though_its_object_is_not_kept() {
    let (cluster, disk) = (Cluster::default(), Disk::new());
    cluster.cluster("web", 1);
    let both = format!("resources: [{}, {}, {}]", text("twice", 1), secret("key"), text("own", 1));
    cluster.apply("mesh", "old", 1, &[("a.yaml", &both)]);
    cluster.apply("mesh", "new", 5, &[("a.yaml", &text("twice", 2))]);
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    let before = world.seen.served();
    assert!(before.as_ref().is_some_and(|served| served.contains(&("twice".to_owned(), 1))), "{before:?}");
    disk.save();
    assert!(!is_legible(&disk));
    drop(world);
    cluster.state().is_away = true;
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    // Nothing is known of it, and not that it is the other one's.
    world.serves(&[("web", 1)]).await;
    cluster.state().is_away = false;
    world.until(|world| world.seen.is_all()).await;
    assert_eq!((world.seen.served(), world.seen.take_removed()), (before, vec![]));
    disk.save();
    assert!(!is_legible(&disk));
    // Once it is the other one's, that is known, too.
    cluster.delete("mesh", "old");
    world.until(|world| world.seen.served().is_some_and(|served| served.contains(&("twice".to_owned(), 2)))).await;
    disk.save();
    drop(world);
    cluster.state().is_away = true;
    disk.restarted().follows(&cluster).serves(&[("twice", 2), ("web", 1)]).await;
}

/// Such as by keys that somebody forgot to mount.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_of_what_is_bad_now_is_there_for_who_can() {
    let (right, wrong) = ("a".repeat(64), "b".repeat(64));
    let (cluster, disk) = with_secret(keys(&right)).await;
    cluster.state().is_away = false;
    cluster.apply("mesh", "key", 0, &[("key.yaml", "no: resource")]);
    let other = Disk::of(disk.store.clone(), keys(&wrong));
    let world = other.follows(&cluster);
    world.serves(&[("a", 1)]).await;
    world.is_in_trouble("it is not known what is in a value that cannot be read").await;
    assert!(!world.seen.is_all());
    other.save();
    drop(world);
    cluster.state().is_away = true;
    let disk = Disk::of(disk.store.clone(), keys(&right));
    disk.follows(&cluster).serves(&[("a", 1), ("key", 0)]).await;
}

#[tokio::test(start_paused = true)]
async fn what_becomes_a_secret_is_kept_as_one() {
    let (cluster, disk) = kept(&["a"]).await;
    cluster.state().is_away = false;
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    cluster.apply("mesh", "a", 0, &[("a.yaml", &secret("s"))]);
    world.serves(&[("s", 0)]).await;
    disk.save();
    assert_eq!(disk.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_rotted_on_the_disk_is_left_out_and_comes_again() {
    let (cluster, disk) = kept(&["a", "b"]).await;
    let entries = disk.store.list("xds-relay/v1/value/").unwrap().entries;
    let mut rotten = entries[0].value.to_vec();
    rotten[3] ^= 1;
    let _ = disk.store.commit(&[xdstp_client::state::Op::put(&*entries[0].key, rotten)], &[]).unwrap();
    let disk = disk.restarted();
    let world = disk.follows(&cluster);
    world.serves(&[("b", 1)]).await;
    assert_eq!(disk.state.damaged(), 1);
    disk.save();
    assert_eq!(disk.names().len(), 2, "nobody said that it is gone");
    cluster.state().is_away = false;
    world.serves(&[("a", 1), ("b", 1)]).await;
    disk.save();
    let world = disk.restarted().follows(&cluster);
    world.serves(&[("a", 1), ("b", 1)]).await;
}
