//! Files of a real disk at `file:` locators. Nothing waits for a time: files are looked at when a test says so, or a watch is awaited.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use prost::Message as _;
use xds_transport::wire::{self, Any};
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::federation::Held;
use xdstp_client::test::Network;
use xdstp_client::{Client, Decode, DiscoveryResponse, Error, Event, Files, Watch};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A file with a cluster of this name.
fn content(name: &str) -> Vec<u8> {
    let value = Bytes::from([&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat());
    let resources = vec![Any { type_url: CLUSTERS.into(), value }];
    wire::DiscoveryResponse { resources, type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec()
}

struct World {
    directory: tempfile::TempDir,
    files: Files,
    client: Client,
}

impl World {
    fn new() -> Self {
        Self::by(DiscoveryResponse::default())
    }

    /// Files are read from a directory within one that has others.
    fn by(decode: impl Decode) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        let files = Files::within([root], decode).by_hand();
        let client = client(files.clone());
        Self { directory, files, client }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    fn watch(&self, name: &str) -> Watch {
        self.client.watch(CLUSTERS, &locator(&self.path(name)))
    }

    /// What a watch says after so many looks.
    fn after(&self, looks: usize, watch: &mut Watch) -> Vec<String> {
        (0..looks).for_each(|_| self.files.look(Instant::now()));
        std::iter::from_fn(|| watch.try_next()).map(|event| words(&event)).collect()
    }
}

fn client(files: Files) -> Client {
    let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    Client::builder(bootstrap).transport(Network::new(Instant::now())).files(files).build().unwrap()
}

fn locator(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn words(event: &Event) -> String {
    match event {
        Event::Put { name, .. } => format!("put {name}"),
        Event::Removed { name } => format!("removed {name}"),
        Event::Failed { error: Error::Unreachable { reason, .. }, .. } => format!("failed: {reason}"),
        Event::Ambient { error: Some(Error::Unreachable { reason, .. }), .. } => format!("ambient: {reason}"),
        Event::Ambient { error: Some(Error::Invalid { reason, .. }), .. } => format!("invalid: {reason}"),
        Event::Ambient { error: None, .. } => "cleared".to_owned(),
        Event::Answered => "answered".to_owned(),
        event => format!("{event:?}"),
    }
}

const GONE: &str = "there is no such file";
const REFUSED: &str = "failed: it is not in a directory of which files are read";

#[test]
fn a_file_comes_is_replaced_goes_and_comes_back() {
    let world = World::new();
    let (file, new) = (world.path("clusters.pb"), world.path("new"));
    let mut watch = world.watch("clusters.pb");
    assert_eq!(world.after(0, &mut watch), [""; 0], "nobody looked");
    assert_eq!(world.after(1, &mut watch), [format!("failed: {GONE}")]);
    fs::write(&file, content("a")).unwrap();
    assert_eq!(world.after(2, &mut watch), ["cleared", "put a", "answered"]);
    // As editors do, and no longer than what was there.
    fs::write(&new, content("b")).unwrap();
    fs::rename(&new, &file).unwrap();
    assert_eq!(world.after(2, &mut watch), ["put b", "removed a"]);
    fs::remove_file(&file).unwrap();
    assert_eq!(world.after(2, &mut watch), [format!("ambient: {GONE}")]);
    fs::write(&file, content("b")).unwrap();
    assert_eq!(world.after(3, &mut watch), ["cleared"]);
    fs::write(&file, "\u{ff}").unwrap();
    let told = world.after(2, &mut watch);
    assert!(told.len() == 1 && told[0].starts_with("invalid: "), "{told:?}");
    assert_eq!(world.after(3, &mut watch), [""; 0], "once");
}

#[test]
fn a_file_is_read_once_it_stays_as_it_is() {
    let world = World::new();
    let file = world.path("clusters.pb");
    fs::write(&file, content("a")).unwrap();
    let mut watch = world.watch("clusters.pb");
    assert_eq!(world.after(1, &mut watch), ["put a", "answered"]);
    for length in [1, 2] {
        fs::write(&file, &content("bb")[..length]).unwrap();
        assert_eq!(world.after(1, &mut watch), [""; 0], "its writer is not done");
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(world.after(1, &mut watch), [""; 0]);
    fs::write(&file, content("bb")).unwrap();
    assert_eq!(world.after(1, &mut watch), [""; 0]);
    assert_eq!(world.after(1, &mut watch), ["put bb", "removed a"]);
}

#[cfg(unix)]
#[test]
fn a_volume_of_kubernetes_is_swapped() {
    use std::os::unix::fs::symlink;

    let world = World::new();
    for (revision, name) in [("..1", "a"), ("..2", "b")] {
        fs::create_dir(world.path(revision)).unwrap();
        fs::write(world.path(revision).join("c.pb"), content(name)).unwrap();
    }
    symlink("..1", world.path("..data")).unwrap();
    symlink("..data/c.pb", world.path("c.pb")).unwrap();
    let mut watch = world.watch("c.pb");
    assert_eq!(world.after(1, &mut watch), ["put a", "answered"]);
    symlink("..2", world.path("..data_tmp")).unwrap();
    fs::rename(world.path("..data_tmp"), world.path("..data")).unwrap();
    assert_eq!(world.after(2, &mut watch), ["put b", "removed a"]);
}

#[test]
fn nothing_is_read_outside_of_the_directories() {
    let world = World::new();
    let secret = world.directory.path().join("secret.pb");
    fs::write(&secret, content("secret")).unwrap();
    fs::create_dir(world.path("sub")).unwrap();
    fs::write(world.path("sub/in.pb"), content("in")).unwrap();
    let told = |name: &str| world.after(1, &mut world.watch(name));
    assert_eq!(told("../secret.pb"), [REFUSED]);
    assert_eq!(told("../nothing.pb"), [REFUSED], "nor is it said whether it is there");
    assert_eq!(told("sub/../sub/in.pb"), [REFUSED]);
    assert_eq!(told("sub"), ["failed: it is no file"]);
    assert_eq!(told("sub/in.pb"), ["put in", "answered"]);
    for at in [locator(&secret), "file:///etc/passwd".into(), "file:///nothing/there".into()] {
        let mut watch = world.client.watch(CLUSTERS, &at);
        assert_eq!(world.after(1, &mut watch), [REFUSED], "{at}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, world.path("link.pb")).unwrap();
        assert_eq!(told("link.pb"), [REFUSED]);
        std::os::unix::fs::symlink(world.path("sub"), world.path("inside")).unwrap();
        assert_eq!(told("inside/in.pb"), ["put in", "answered"], "a link within is none out of it");
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_comes_to_lead_out_takes_nothing_away() {
    use std::os::unix::fs::symlink;

    let world = World::new();
    let secret = world.directory.path().join("secret.pb");
    fs::write(&secret, content("secret")).unwrap();
    fs::write(world.path("a"), content("a")).unwrap();
    symlink(world.path("a"), world.path("link.pb")).unwrap();
    let mut watch = world.watch("link.pb");
    assert_eq!(world.after(1, &mut watch), ["put a", "answered"]);
    symlink(&secret, world.path("new")).unwrap();
    fs::rename(world.path("new"), world.path("link.pb")).unwrap();
    assert_eq!(world.after(2, &mut watch), [REFUSED.replace("failed", "ambient")]);
}

#[test]
fn a_reader_that_panics_refuses_one_file_and_others_are_read() {
    #[allow(clippy::panic, reason = "it is what is tested")]
    let reads = |file: &Path, content: &[u8]| -> Result<Vec<Held>, String> {
        assert!(!file.ends_with("bad.pb"), "on purpose");
        DiscoveryResponse::default().decode(file, content)
    };
    let world = World::by(reads);
    ["bad.pb", "good.pb"].iter().for_each(|name| fs::write(world.path(name), content("a")).unwrap());
    let [mut bad, mut good] = ["bad.pb", "good.pb"].map(|name| world.watch(name));
    assert_eq!(world.after(1, &mut good), ["put a", "answered"]);
    assert!(
        matches!(bad.try_next(), Some(Event::Failed { error: Error::Invalid { reason, .. }, .. }) if reason.contains("panicked"))
    );
}

#[tokio::test]
async fn files_are_looked_at_by_themselves_for_as_long_as_they_are_watched() {
    let directory = tempfile::tempdir().unwrap();
    let (file, new) = (directory.path().join("clusters.pb"), directory.path().join("new"));
    fs::write(&file, content("a")).unwrap();
    let client = client(Files::within([directory.path()], DiscoveryResponse::default()));
    let mut watch = client.watch(CLUSTERS, &locator(&file));
    assert_eq!(words(&watch.changed().await), "put a");
    assert_eq!(words(&watch.changed().await), "answered");
    fs::write(&new, content("b")).unwrap();
    fs::rename(&new, &file).unwrap();
    assert_eq!(words(&watch.changed().await), "put b");
    assert_eq!(words(&watch.changed().await), "removed a");
    // Opened anew after all were closed.
    drop(watch);
    client.sweep(Instant::now());
    let mut watch = client.watch(CLUSTERS, &locator(&file));
    assert_eq!(words(&watch.changed().await), "put b");
}
