//! What is at `file:` and `http:` locators (TP1), on a disk that a test has in its hands.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use xdstp_uri::Locator;

use super::lists::{LISTS, collection, elsewhere, inline_of};
use super::*;
use crate::federation::{DocumentError, Documents, Held, OpenDocument};

type Outcome = Result<Vec<Held>, DocumentError>;

#[derive(Clone, Default)]
struct Disk(Arc<Mutex<BTreeMap<String, File>>>);

#[derive(Default)]
struct File {
    outcome: Option<Outcome>,
    /// How often it was opened, and whom it is open for.
    opened: usize,
    open: Vec<OpenDocument>,
}

struct Opened(Disk, String);

impl Documents for Disk {
    fn open(&self, locator: &Locator<'_>, document: OpenDocument) -> Box<dyn Any + Send + Sync> {
        let at = locator.to_string();
        let outcome = {
            let files = &mut *self.0.lock().unwrap();
            let file = files.entry(at.clone()).or_default();
            file.opened += 1;
            file.open.push(document.clone());
            file.outcome.clone()
        };
        outcome.into_iter().for_each(|outcome| document.tell(outcome, now()));
        Box::new(Opened(self.clone(), at))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().entry(self.1.clone()).or_default().open.pop();
    }
}

impl Disk {
    fn set(&self, at: &str, outcome: Outcome) {
        let open = {
            let files = &mut *self.0.lock().unwrap();
            let file = files.entry(Locator::parse(at).unwrap().to_canonical().into_owned()).or_default();
            file.outcome = Some(outcome.clone());
            file.open.clone()
        };
        open.iter().for_each(|document| document.tell(outcome.clone(), now()));
    }

    /// Clusters at versions.
    fn put(&self, at: &str, clusters: &[(&str, &str)]) {
        self.set(at, Ok(clusters.iter().map(|(name, version)| cluster(name, version)).collect()));
    }

    fn vanish(&self, at: &str) {
        self.set(at, Err(DocumentError::Unreadable("no such file".into())));
    }

    fn spoil(&self, at: &str) {
        self.set(at, Err(DocumentError::Malformed("line 3".into())));
    }

    /// How often it was opened, and how often it is open.
    fn count(&self, at: &str) -> (usize, usize) {
        self.0.lock().unwrap().get(at).map_or((0, 0), |file| (file.opened, file.open.len()))
    }
}

fn cluster(name: &str, version: &str) -> Held {
    of_message(CDS, name, version, &message(name, version))
}

fn of_message(type_url: &str, name: &str, version: &str, message: &[u8]) -> Held {
    let frame = xds_transport::Frame::of_message(&type_url.into(), message);
    (type_url.into(), name.parse().unwrap(), frame.into_resource(Some(version.into())))
}

fn leading_to(locator: &str) -> Held {
    let mut to = Vec::new();
    prost::encoding::string::encode(1, &locator.to_owned(), &mut to);
    of_message("type.googleapis.com/xds.core.v3.ResourceLocator", "anything", "1", &to)
}

fn world() -> (World, Disk) {
    let (disk, network) = (Disk::default(), Network::new(now()));
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure)).with_authority("a", Authority::default());
    let client = Client::builder(bootstrap).transport(network.clone()).files(disk.clone()).http(disk.clone());
    (World { client: client.build().unwrap(), network }, disk)
}

const AT: &str = "file:///etc/x.yaml";

/// A watch of a resource that a server redirects to the file.
fn led() -> (World, Disk, Watch<Cluster>, String) {
    let (world, disk) = world();
    let name = xdstp("a", CDS, "x");
    world.redirect(&name, "1", AT);
    let mut watch = world.watch(&name);
    assert_eq!(world.follow(&mut watch), [""; 0]);
    (world, disk, watch, name)
}

#[test]
fn r082_a_redirect_leads_to_the_one_resource_of_a_file_which_is_followed() {
    let (world, disk, mut watch, name) = led();
    assert_eq!(disk.count(AT), (1, 1), "and nothing was told of it yet");
    disk.put(AT, &[("web", "1")]);
    assert_eq!(world.follow(&mut watch), [format!("put {name} 1")]);
    disk.put(AT, &[("web", "1")]);
    assert_eq!(world.follow(&mut watch), [""; 0], "it is as it was");
    disk.put(AT, &[("web", "2")]);
    assert_eq!(world.follow(&mut watch), [format!("put {name} 2")]);
    disk.put(AT, &[("web", "3"), ("other", "1")]);
    let two = "there are 2 of envoy.config.cluster.v3.Cluster: `#entry=` would say which";
    assert_eq!(world.follow(&mut watch), [format!("ambient {name}: invalid at \"\" ({two})")]);
    disk.put(AT, &[]);
    assert_eq!(world.follow(&mut watch), [format!("failed {name}: absent")], "the file says so");
}

#[test]
fn r082_a_file_that_is_away_or_of_no_use_takes_nothing_away() {
    let (world, disk, mut watch, name) = led();
    disk.vanish(AT);
    assert_eq!(world.follow(&mut watch), [format!("failed {name}: unreachable (no such file)")]);
    disk.spoil(AT);
    let told = world.follow(&mut watch);
    assert_eq!(told, [format!("cleared {name}"), format!("failed {name}: invalid at \"\" (line 3)")]);
    disk.put(AT, &[("web", "1")]);
    assert_eq!(world.follow(&mut watch).last(), Some(&format!("put {name} 1")));
    disk.vanish(AT);
    assert_eq!(world.follow(&mut watch), [format!("ambient {name}: unreachable (no such file)")]);
    disk.put(AT, &[("web", "1")]);
    assert_eq!(world.follow(&mut watch), [format!("cleared {name}")]);
    for _ in 0..2 {
        disk.spoil(AT);
    }
    assert_eq!(world.follow(&mut watch), [format!("ambient {name}: invalid at \"\" (line 3)")], "once");
    disk.put(AT, &[("web", "bad")]);
    assert_eq!(world.follow(&mut watch), [format!("ambient {name}: invalid at \"bad\" (bad is bad)")]);
    disk.put(AT, &[("web", "2")]);
    assert_eq!(world.follow(&mut watch), [format!("put {name} 2")]);
}

#[test]
fn what_a_file_was_before_somebody_looks_is_told_whatever_it_is() {
    let (world, disk) = world();
    disk.vanish("file:///gone");
    disk.spoil("file:///bad");
    let heard_of = |at: &str| world.follow(&mut world.watch(&format!("{at}#entry=web")));
    assert_eq!(heard_of("file:///gone"), ["failed all: unreachable (no such file)"]);
    assert_eq!(heard_of("file:///bad"), ["failed web: invalid at \"\" (line 3)"]);
}

#[test]
fn watches_of_one_file_have_it_open_once_and_the_last_that_ends_closes_it() {
    let (world, disk) = world();
    let [x, y] = ["x", "y"].map(|id| xdstp("a", CDS, id));
    [&x, &y].iter().for_each(|name| world.redirect(name, "1", AT));
    disk.put(AT, &[("web", "1")]);
    let mut watches = vec![world.watch(&x), world.watch(&y), world.watch(AT)];
    let told: Vec<_> = watches.iter_mut().map(|watch| world.follow(watch)).collect();
    let put = |name: &str| format!("put {name} 1");
    assert_eq!(told, [vec![put(&x)], vec![put(&y)], vec![put("web"), "answered".into()]]);
    assert_eq!(disk.count(AT), (1, 1), "also for who wants all that is there");
    while watches.pop().is_some() {
        world.network.settle();
        world.client.sweep(world.network.now());
        assert_eq!(disk.count(AT), (1, usize::from(!watches.is_empty())));
    }
    disk.put(AT, &[("web", "2")]);
    assert_eq!(world.follow(&mut world.watch(&x)), [format!("put {x} 2")], "it is read again");
    assert_eq!(disk.count(AT).0, 2);
}

#[test]
fn r083_a_file_is_the_alternative_of_who_starts_while_the_server_is_away() {
    let (world, disk) = world();
    let name = xdstp("a", CDS, "x");
    world.top().go_down("away");
    disk.put(AT, &[("fallback", "of the file")]);
    let mut watch = world.watch(&format!("{name}#alt={AT}"));
    world.network.pass(Duration::from_secs(60));
    assert_eq!(world.follow(&mut watch), [format!("put {name} of the file")]);
    disk.put(AT, &[("fallback", "newer")]);
    assert_eq!(world.follow(&mut watch), [format!("put {name} newer")]);
    world.top().come_up();
    world.put(CDS, &name, "of the server");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), [format!("put {name} of the server")]);
    world.client.sweep(world.network.now());
    assert_eq!(disk.count(AT), (1, 0));
}

#[test]
fn r083_a_file_that_cannot_be_read_has_an_alternative() {
    let (world, disk) = world();
    let (first, other) = (format!("{AT}?1"), "file:///other");
    disk.vanish(&first);
    disk.put(other, &[("web", "other")]);
    let list = collection(&[elsewhere(&format!("{first}#alt={other}"))]);
    disk.set(AT, Ok(vec![of_message(LISTS, "list", "1", &list)]));
    let mut watch = world.watch(AT);
    let member = first.replace('?', "%3F");
    assert_eq!(world.follow(&mut watch), [format!("put {member} other"), "answered".into()]);
    disk.put(&first, &[("web", "first")]);
    assert_eq!(world.follow(&mut watch), [format!("put {member} first")]);
}

#[test]
fn r081_a_member_of_a_list_is_in_a_file_and_fails_alone() {
    let (world, disk) = world();
    let list = format!("xdstp://a/{}/foo", LISTS.rsplit('/').next().unwrap());
    let entries = [elsewhere(AT), elsewhere("file:///y.yaml"), inline_of(CDS, "in", "1")];
    world.top().put(LISTS, &list, "1", &collection(&entries));
    world.network.settle();
    disk.put(AT, &[("web", "1")]);
    disk.spoil("file:///y.yaml");
    let mut watch = world.watch(&list);
    let mut told = world.follow(&mut watch);
    told.sort();
    let bad = "failed file:///y.yaml: invalid at \"\" (line 3)".to_owned();
    assert_eq!(told, ["answered".to_owned(), bad, format!("put {AT} 1"), "put in 1".into()]);
    disk.put("file:///y.yaml", &[("web", "2")]);
    assert_eq!(world.follow(&mut watch), ["put file:///y.yaml 2"]);
    world.top().put(LISTS, &list, "2", &collection(&entries[2..]));
    world.network.settle();
    let gone = ["file:///etc/x.yaml", "file:///y.yaml"].map(|name| format!("removed {name}"));
    assert_eq!(world.follow(&mut watch), gone);
}

#[test]
fn who_watches_a_file_has_all_resources_of_the_type_that_it_has() {
    let (world, disk) = world();
    let mut other = cluster("not a cluster", "1");
    other.0 = LDS.into();
    disk.set(AT, Ok(vec![cluster("a", "1"), cluster("b", "1"), other]));
    let mut watch = world.watch(AT);
    assert_eq!(world.follow(&mut watch), ["put a 1", "put b 1", "answered"]);
    disk.put(AT, &[("b", "2"), ("c", "1")]);
    assert_eq!(world.follow(&mut watch), ["put b 2", "put c 1", "removed a"]);
    disk.vanish(AT);
    assert_eq!(world.follow(&mut watch), ["ambient all: unreachable (no such file)"]);
    disk.put(AT, &[]);
    assert_eq!(world.follow(&mut watch), ["cleared all", "removed b", "removed c"]);
    // A list is what is in it.
    let list = collection(&[inline_of(CDS, "d", "1"), elsewhere("file:///e")]);
    disk.set(AT, Ok(vec![of_message(LISTS, "list", "1", &list)]));
    disk.put("file:///e", &[("e", "1")]);
    assert_eq!(world.follow(&mut watch), ["put d 1", "put file:///e 1"]);
    assert_eq!(world.follow(&mut world.watch(&format!("{AT}#entry=d"))), ["put d 1"]);
    disk.put(AT, &[("a", "7"), ("d", "2")]);
    assert_eq!(world.follow(&mut world.watch(&format!("{AT}#entry=a"))), ["put a 7"]);
}

#[test]
fn r082_redirects_from_file_to_file_end() {
    let (world, disk) = world();
    for (from, to) in [("file:///a", "file:///b"), ("file:///b", "file:///a")] {
        disk.set(from, Ok(vec![leading_to(to)]));
    }
    let name = xdstp("a", CDS, "x");
    world.redirect(&name, "1", "file:///a");
    let mut watch = world.watch(&name);
    let told = world.follow(&mut watch);
    assert!(told.len() == 1 && told[0].ends_with("it is the last of more redirects than are followed"), "{told:?}");
    assert_eq!(disk.count("file:///a"), (1, 1), "however often it comes by there");
    disk.put("file:///b", &[("web", "1")]);
    assert_eq!(world.follow(&mut watch).last(), Some(&format!("put {name} 1")));
}

#[test]
fn an_http_locator_says_of_which_type_it_is() {
    let (world, disk) = world();
    let [one, all] = ["Cluster", "ClusterCollection"].map(|of| format!("http://cdn/envoy.config.cluster.v3.{of}/x"));
    [&one, &all].iter().for_each(|at| disk.put(at, &[("web", "1")]));
    assert_eq!(world.follow(&mut world.watch(&one)), [format!("put {one} 1")]);
    assert_eq!(world.follow(&mut world.watch(&all)), ["put web 1", "answered"]);
    let told = world.follow(&mut world.watch("http://cdn/envoy.config.route.v3.Route/x"));
    assert!(told.len() == 1 && told[0].contains("it is the locator of a envoy.config.route.v3.Route"), "{told:?}");
    let name = xdstp("a", CDS, "x");
    world.redirect(&name, "1", &all);
    let told = world.follow(&mut world.watch(&name));
    assert!(told.len() == 1 && told[0].contains("it is a list, where a resource is expected"), "{told:?}");
}

#[test]
fn who_reads_no_files_says_so_of_each_locator_and_asks_for_names_that_look_alike() {
    let world = World::new();
    let name = xdstp("a", CDS, "x");
    world.redirect(&name, "1", AT);
    let told = world.follow(&mut world.watch(&name));
    assert_eq!(
        told,
        [format!("failed {name}: {AT}: only xdstp: is asked for, and the client was given nothing that reads file:")]
    );
    world.put(CDS, AT, "1");
    assert_eq!(world.follow(&mut world.watch(AT)), [format!("put {AT} 1")], "an old-style name");
}

#[test]
fn what_a_file_has_is_in_no_other_scope() {
    let (world, disk) = world();
    disk.set(AT, Ok(vec![cluster(&xdstp("a", CDS, "x"), "of the file")]));
    let mut all = world.watch(AT);
    assert_eq!(world.follow(&mut all).len(), 2);
    assert_eq!(
        world.follow(&mut world.watch(&xdstp("a", CDS, "x"))),
        [format!("failed {}: absent", xdstp("a", CDS, "x"))]
    );
    assert_eq!(all.server().as_deref(), Some("file"));
}
