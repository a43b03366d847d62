//! A program on the core: origins and clients of its own, and nothing of a relay.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::server::{NodeError, Refused, Source, Tally};
use xdstp_cache::{Interest, Pull, Removals, Resource, Selector, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use super::client::Client;
use super::core::{Federation, Limits, Settings};
use super::lock::lock;
use super::node_group::NodeGroup;
use super::origin::{ByNode, Origin, Speaker};
use super::part::View;
use super::realm::Authorities;
use super::routes::Routes;
use super::scope::Scope;
use super::share::{OverLimit, Quota};
use super::supply::{Status, Supply};
use super::timings::Timings;

mod tracks;

const GLOB: &str = "xdstp://authority/T/g/*";
const MEMBER: &str = "xdstp://authority/T/g/a";

/// An origin that has an old-style resource, `a`, and the only member of a glob.
pub(super) struct Held {
    by_node: ByNode,
    is_authoritative: bool,
    /// How often it was told of a scope.
    told: AtomicUsize,
    asked: Arc<AtomicUsize>,
    left: Arc<Mutex<Vec<u64>>>,
}

/// Counts how often it is asked, and says who left.
struct Asked(Arc<AtomicUsize>, Arc<Mutex<Vec<u64>>>);

/// A client whose group is what it calls itself.
#[derive(Default)]
struct Program(Arc<Mutex<Vec<String>>>, Option<Arc<dyn Timings>>);

impl Origin for Held {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn by_node(&self) -> ByNode {
        self.by_node
    }

    fn is_authoritative(&self) -> bool {
        self.is_authoritative
    }

    fn selects(&self, _: &Selector) -> Result<bool, String> {
        Ok(true)
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        self.told.fetch_add(1, Ordering::Relaxed);
        scope.replace(&resources(), now());
        if !self.is_authoritative {
            scope.feed_from(Arc::new(Asked(self.asked.clone(), self.left.clone())));
        }
    }
}

impl Supply for Asked {
    fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn label(&self) -> &str {
        "asked"
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn unreachable_since(&self, _: Instant) -> Option<String> {
        None
    }

    fn join(&self, _: u64, _: Bytes) {}

    fn leave(&self, routes: u64) {
        lock(&self.1).push(routes);
    }
}

impl Client for Program {
    fn identify(&self, node: &Bytes) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(node.to_vec(), "a group".to_owned()))
    }

    fn refused(&self, error: &OverLimit) -> String {
        format!("{}: {error}", error.key)
    }

    fn opened(&self, _: &TypeUrl) -> Option<Arc<dyn Timings>> {
        self.1.clone()
    }

    fn closed(&self, type_url: &TypeUrl, _: &Tally) {
        lock(&self.0).push(type_url.to_string());
    }
}

pub(super) fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn resources() -> [(TypeUrl, ResourceName, Resource<Frame>); 2] {
    ["a", MEMBER].map(|name| resource(name, "body"))
}

pub(super) fn resource(name: &str, body: &'static str) -> (TypeUrl, ResourceName, Resource<Frame>) {
    ("T".into(), name.parse().unwrap(), Frame::new(Bytes::from_static(body.as_bytes())).into_resource(None))
}

pub(super) fn federation(by_node: ByNode, is_authoritative: bool) -> (Arc<Federation>, Arc<Held>) {
    let (told, asked, left) = (AtomicUsize::new(0), Arc::default(), Arc::default());
    let origin = Arc::new(Held { by_node, is_authoritative, told, asked, left });
    (of_origin(origin.clone()), origin)
}

fn of_origin(origin: Arc<dyn Origin>) -> Arc<Federation> {
    let limits = Limits {
        groups: Quota::new("groups", "groups", 2),
        authorities: Quota::new("authorities", "authorities", 1),
        names: Quota::new("names", "names", 1000),
        authorities_per_stream: 10,
        names_per_turn: 10,
        lingering: Quota::new("lingering_names", "lingering names", 1000),
    };
    Federation::new(Settings {
        origins: vec![origin],
        authorities: Arc::new(Authorities::new([].into(), 0)),
        node: Bytes::new(),
        linger: Duration::ZERO,
        limits,
        interner: Arc::default(),
        last_known_good: None,
    })
}

/// Of a client that is not asked who it is, and whose sessions are timed.
pub(super) fn timed_routes(federation: &Arc<Federation>, timings: Arc<dyn Timings>) -> Routes {
    let client = Box::new(Program(Arc::default(), Some(timings)));
    Routes::new(federation.clone(), federation.number_routes(), client, Waker::noop().clone(), Arc::default())
}

/// A subscriber of type `T` that is of a node group.
fn subscriber(federation: &Arc<Federation>, group: &'static str) -> (Routes, SubscriberId) {
    let (number, view) = (federation.number_routes(), Arc::<View>::default());
    let client = Box::new(Program::default());
    let mut routes = Routes::new(federation.clone(), number, client, Waker::noop().clone(), view);
    routes.identify(&Bytes::from_static(group.as_bytes())).unwrap();
    let id = routes.open(&"T".into());
    (routes, id)
}

fn wants(name: &str) -> Interest {
    Interest::from(name.parse::<ResourceName>().unwrap())
}

fn pulled((routes, id): &mut (Routes, SubscriberId)) -> Vec<String> {
    let mut said = Vec::new();
    routes.pull(*id, Removals::Include, &mut |pull| {
        match pull {
            Pull::Put { name, .. } => said.push(format!("+{name}")),
            Pull::Removed { name, .. } => said.push(format!("-{name}")),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    said
}

#[test]
fn an_authoritative_origin_answers_before_the_first_pull_and_one_that_is_asked_says_nothing_of_the_rest() {
    for (is_authoritative, expected) in [(true, vec!["+a", "-b"]), (false, vec!["+a"])] {
        let (federation, origin) = federation(ByNode::OldStyleNames, is_authoritative);
        let mut subscriber = subscriber(&federation, "g");
        for name in ["a", "b"] {
            assert!(subscriber.0.subscribe(subscriber.1, &wants(name)));
        }
        assert_eq!(pulled(&mut subscriber), expected);
        assert_eq!(origin.asked.load(Ordering::Relaxed) > 0, !is_authoritative);
    }
}

#[test]
fn an_origin_that_is_asked_is_told_again_of_a_scope_that_rested_and_another_is_not() {
    for (is_authoritative, told) in [(true, 1), (false, 2)] {
        let (federation, origin) = federation(ByNode::OldStyleNames, is_authoritative);
        let (mut routes, id) = subscriber(&federation, "g");
        routes.subscribe(id, &wants(GLOB));
        // What went of a collection is remembered.
        let [scope] = federation.scopes().try_into().unwrap_or_else(|_| panic!("one scope"));
        if !is_authoritative {
            scope.replace(&[], now());
        }
        drop(routes);
        while scope.take_asks(now(), (0, 0), true, &mut |_| ()) {}
        drop(scope);
        federation.sweep(now());
        let [scope] = federation.scopes().try_into().unwrap_or_else(|_| panic!("it is kept"));
        assert!(scope.supply().is_none());
        let mut second = subscriber(&federation, "g");
        second.0.subscribe(second.1, &wants(GLOB));
        assert_eq!((pulled(&mut second), origin.told.load(Ordering::Relaxed)), (vec![format!("+{MEMBER}")], told));
    }
}

#[test]
fn what_goes_by_the_node_is_as_the_origin_says() {
    let shared = "xdstp://authority/T/a";
    for (by_node, scopes) in [
        (ByNode::Nothing, ["every node", "xdstp://authority"].as_slice()),
        (ByNode::OldStyleNames, &["a group", "a group", "xdstp://authority"]),
        (ByNode::Everything, &["a group", "a group"]),
    ] {
        let (federation, _) = federation(by_node, true);
        let mut subscribers = ["g", "h"].map(|group| subscriber(&federation, group));
        for (routes, id) in &mut subscribers {
            for name in ["a", shared] {
                routes.subscribe(*id, &wants(name));
            }
        }
        let mut found: Vec<_> = federation.scopes().iter().map(|scope| scope.key.to_string()).collect();
        found.sort();
        assert_eq!(found, scopes, "{by_node:?}");
    }
}

#[test]
fn who_asks_for_too_much_is_told_so_in_its_servers_words() {
    let (federation, _) = federation(ByNode::OldStyleNames, true);
    let (mut routes, id) = subscriber(&federation, "g");
    for (authority, refusal) in [("a", None), ("b", Some("authorities: more than 1 authorities"))] {
        routes.subscribe(id, &wants(&format!("xdstp://{authority}/T/a")));
        assert_eq!(routes.refused(), refusal.map(Refused::new));
    }
}

#[test]
fn a_stream_that_selects_anew_again_and_again_has_the_scopes_of_what_it_selects_by_now() {
    let (federation, origin) = federation(ByNode::OldStyleNames, false);
    let (mut routes, plain) = subscriber(&federation, "g");
    routes.subscribe(plain, &wants("a"));
    for at in 0..10 {
        let selector = Selector::Parameters([("n", at.to_string())].into_iter().collect());
        let ids = ["T", "U"].map(|of| routes.open_selecting(&of.into(), &selector));
        for id in ids {
            routes.subscribe(id, &wants("a"));
            // There are two groups: that of who selects nothing, and one more.
            assert_eq!(routes.refused(), None, "{at}");
        }
        let [first, last] = ids;
        routes.close(first, &Tally::default());
        assert_eq!(lock(&origin.left).len(), at, "another type selects by it");
        routes.close(last, &Tally::default());
        assert_eq!(lock(&origin.left).len(), at + 1);
        federation.scopes().iter().for_each(|scope| while scope.take_asks(now(), (0, 0), true, &mut |_| ()) {});
        federation.sweep(now());
        assert_eq!(federation.scopes().len(), 1);
    }
}

#[test]
fn a_client_hears_of_every_session_that_ends() {
    let (federation, _) = federation(ByNode::OldStyleNames, true);
    let (number, heard) = (federation.number_routes(), Arc::<Mutex<Vec<String>>>::default());
    let client = Box::new(Program(heard.clone(), None));
    let mut routes = Routes::new(federation, number, client, Waker::noop().clone(), Arc::default());
    let ids = ["T", "U"].map(|type_url| routes.open(&type_url.into()));
    ids.into_iter().for_each(|id| routes.close(id, &Tally::default()));
    drop(routes);
    assert_eq!(*lock(&heard), ["T", "U"]);
    assert_eq!(Arc::strong_count(&heard), 1, "it goes with the routes");
}

/// An origin that is asked, with a group that another stream joins while its scope is being fed; who joined its supply, and who left.
struct Joined {
    federation: OnceLock<Arc<Federation>>,
    other: Mutex<Option<(Routes, SubscriberId)>>,
    speakers: Arc<Speakers>,
}

#[derive(Default)]
struct Speakers(Mutex<Vec<u64>>);

impl Origin for Joined {
    fn kind(&self) -> &'static str {
        "joined"
    }

    fn by_node(&self) -> ByNode {
        ByNode::OldStyleNames
    }

    fn is_authoritative(&self) -> bool {
        false
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        let mut gone = subscriber(self.federation.get().unwrap(), "g");
        let mut other = subscriber(self.federation.get().unwrap(), "g");
        for (routes, id) in [&mut gone, &mut other] {
            routes.subscribe(*id, &wants("b"));
        }
        drop(gone);
        *lock(&self.other) = Some(other);
        scope.feed_from(self.speakers.clone());
    }
}

impl Supply for Speakers {
    fn ask(&self) {}

    fn label(&self) -> &str {
        "speakers"
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn unreachable_since(&self, _: Instant) -> Option<String> {
        None
    }

    fn join(&self, routes: u64, _: Bytes) {
        lock(&self.0).push(routes);
    }

    fn leave(&self, routes: u64) {
        lock(&self.0).retain(|known| *known != routes);
    }
}

#[test]
fn who_joins_a_group_while_its_scope_is_being_fed_speaks_for_it_as_long_as_it_is_there() {
    let (other, speakers) = (Mutex::default(), Arc::<Speakers>::default());
    let origin = Arc::new(Joined { federation: OnceLock::new(), other, speakers: speakers.clone() });
    let federation = origin.federation.get_or_init(|| of_origin(origin.clone()));
    let mut first = subscriber(federation, "g");
    first.0.subscribe(first.1, &wants("a"));
    let mut joined = lock(&speakers.0).clone();
    joined.sort_unstable();
    assert_eq!(joined, [1, 3], "the second is not there any more");
    drop(lock(&origin.other).take());
    assert_eq!(*lock(&speakers.0), [1]);
    drop(first);
    assert!(lock(&speakers.0).is_empty());
}
