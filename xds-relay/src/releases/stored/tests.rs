//! On memory and on a file: what is written is read, and what is torn, lost or away is no other release.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_client::state::{Commit, Compare, Listing, Memory, Redb, StoreError, Watch};

use super::*;
use crate::releases::act::{Act, By, Instance, OnHalt, Order, Publisher};
use crate::releases::control::error::ControlError;
use crate::releases::manifest::{Item, Manifest};
use crate::releases::stage::{Stage, Stages, Who};
use crate::releases::types::Types;

mod at_once;
mod away;
mod contended;
mod damage;
mod marks;
mod ordered_since;
mod put_back;
mod written;

const SCOPE: &str = "xdstp://example.com";
const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// What a scope has: a body for each name.
type Content = BTreeMap<String, Vec<u8>>;

fn content(of: impl IntoIterator<Item = (usize, Vec<u8>)>) -> Content {
    of.into_iter().map(|(name, body)| (format!("name-{name}"), body)).collect()
}

fn frame(body: &[u8]) -> Frame {
    Frame::of_message(&CLUSTER.into(), body)
}

fn manifest(content: &Content) -> Manifest {
    let item = |(name, body): (&String, &Vec<u8>)| {
        let resource = frame(body).into_resource(Some("1".into()));
        Item::of(&CLUSTER.into(), &name.parse().unwrap(), &resource, Types::Default)
    };
    Manifest::new(content.iter().filter_map(item))
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1000)
}

fn stages() -> Stages {
    Stages::new([Stage { who: Who::Percent("100%".parse().unwrap()), hold: Duration::from_secs(60) }])
}

/// Who publishes to a store.
struct Relay {
    stored: Stored,
    publisher: Publisher,
}

impl Relay {
    fn start(store: Arc<dyn Store>) -> Self {
        let mut stored = Stored::open(store, SCOPE).unwrap();
        let take_over = Order::new(Act::TakeOver, By::Instance(Instance(1)), "", now());
        stored.apply(&take_over, &stages()).unwrap();
        let publisher = stored.control().publisher().unwrap();
        Self { stored, publisher }
    }

    fn save(&mut self, content: &Content) -> Result<Release, StoredError> {
        let manifest = manifest(content);
        let body = |item: &Item| content.get(&item.name).map(|body| frame(body).any().clone());
        self.stored.save(&manifest, self.publisher, "test", now(), &body)?;
        Ok(manifest.release())
    }

    fn publish(&mut self, content: &Content) -> Result<Transition, StoredError> {
        Ok(self.publish_by(content, &stages(), false)?[0])
    }

    /// The same by these stages, and it is to go on if it may.
    fn publish_by(
        &mut self,
        content: &Content,
        stages: &Stages,
        advances: bool,
    ) -> Result<Vec<Transition>, StoredError> {
        let manifest = manifest(content);
        let release = manifest.release();
        let order = |act| Order::new(act, By::Publisher(self.publisher), "because", now());
        let advance = advances.then(|| order(Act::Advance { release }));
        let publish = order(Act::Publish { release, removes_much: false });
        let body = |item: &Item| content.get(&item.name).map(|body| frame(body).any().clone());
        let taken = Taken { manifest: &manifest, from: "test", body: &body };
        self.stored.publish(&taken, &publish, advance.as_ref(), stages)
    }

    fn order(&mut self, act: Act) -> Result<Transition, StoredError> {
        let by = match act {
            Act::Publish { .. } | Act::Advance { .. } | Act::Halt { .. } => By::Publisher(self.publisher),
            _ => By::Person("ann".to_owned()),
        };
        Ok(self.stored.apply(&Order::new(act, by, "because", now()), &stages())?.transition)
    }

    /// Everything that is kept of a release is what was saved.
    fn check(&mut self, content: &Content) {
        let manifest = manifest(content);
        assert_eq!(self.stored.manifest(manifest.release()).unwrap(), manifest);
        for (name, body) in content {
            let item = manifest.item(CLUSTER, name, "").unwrap();
            assert_eq!(self.stored.body(item.body).unwrap(), frame(body).any());
        }
    }
}

fn keys(store: &dyn Store) -> Vec<String> {
    store.list("").unwrap().entries.into_iter().map(|entry| entry.key).collect()
}

fn what_is_saved_and_ordered_is_there_after_a_restart(store: impl Fn() -> Arc<dyn Store>) {
    let one = content((0..300).map(|name| (name, vec![(name % 7) as u8; 100])));
    let mut two = one.clone();
    // A body that goes in several pieces, one that is empty, and one that is gone.
    two.insert("name-0".to_owned(), (0..1_300_000_u32).map(|at| at as u8).collect());
    two.insert("new".to_owned(), Vec::new());
    two.remove("name-1");
    let mut relay = Relay::start(store());
    assert_eq!(relay.publish(&one).unwrap(), Transition::Promoted);
    assert_eq!(relay.publish(&two).unwrap(), Transition::Opened);
    assert_eq!(relay.order(Act::Hold).unwrap(), Transition::Held);
    assert_eq!(relay.order(Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    assert_eq!(relay.order(Act::Freeze).unwrap(), Transition::Frozen);
    let before = relay.stored.control().clone();
    drop(relay);

    let stored = Stored::open(store(), SCOPE).unwrap();
    assert_eq!((stored.control(), stored.damaged()), (&before, &[][..]));
    assert_eq!(stored.control().refused(), [manifest(&two).release()]);
    let logged: Vec<_> =
        stored.log().unwrap().into_iter().map(|entry| (entry.number, entry.said.by, entry.what)).collect();
    let what = ["took over", "promoted", "opened", "held", "rolled back", "frozen"];
    assert_eq!(logged.iter().map(|(_, _, what)| &**what).collect::<Vec<_>>(), what);
    assert_eq!((logged[0].0, &*logged[0].1, logged[5].0, &*logged[5].1), (0, "relay 0000000000000001", 5, "ann"));
    drop(stored);
    let mut relay = Relay::start(store());
    [&one, &two].iter().for_each(|content| relay.check(content));
    let kept: Vec<_> = relay.stored.releases().iter().map(|kept| (kept.release, kept.resources)).collect();
    assert_eq!(kept, [(manifest(&two).release(), 300), (manifest(&one).release(), 300)]);
    assert!(Stored::open(relay.stored.store.clone(), "another").unwrap().releases().is_empty());
}

fn the_last_20_are_kept_and_what_is_stable_and_nothing_of_the_others(store: impl Fn() -> Arc<dyn Store>) {
    let of = |number: usize| content([(0, vec![1]), (1, number.to_be_bytes().to_vec()), (2 + number, vec![2])]);
    let mut relay = Relay::start(store());
    relay.publish(&of(0)).unwrap();
    for number in 1..=40 {
        assert_eq!(relay.publish(&of(number)).unwrap(), Transition::Opened);
    }
    let kept: Vec<_> = relay.stored.releases().iter().map(|kept| kept.release).collect();
    let expected: Vec<_> = (22..=40).rev().chain([0]).map(|number| manifest(&of(number)).release()).collect();
    assert_eq!(kept, expected);
    [0, 22, 40].iter().for_each(|number| relay.check(&of(*number)));
    assert!(matches!(relay.stored.manifest(manifest(&of(21)).release()), Err(StoredError::NotKept(_))));
    assert!(matches!(
        relay.order(Act::Rollback { to: Some(manifest(&of(21)).release()) }),
        Err(StoredError::Control(ControlError::NotKept(_)))
    ));
    // Twenty releases have three bodies each, one and another of which are the same in all.
    let count = |part: &str| keys(&*relay.stored.store).iter().filter(|key| key.contains(part)).count();
    assert_eq!((count("/rel/"), count("/body/")), (20, 22));
    Stored::forget(&*relay.stored.store, SCOPE).unwrap();
    assert_eq!(keys(&*relay.stored.store), [""; 0]);
}

#[test]
fn a_thousand_changes_are_kept_in_the_log() {
    let mut relay = Relay::start(Arc::new(Memory::default()));
    relay.publish(&content([])).unwrap();
    for _ in 0..550 {
        relay.order(Act::Freeze).unwrap();
        relay.order(Act::Unfreeze).unwrap();
    }
    let log = relay.stored.log().unwrap();
    assert_eq!(log.last().map(|entry| (entry.number, &*entry.what)), Some((1101, "unfrozen")));
    assert!((1000..1064).contains(&log.len()), "{}", log.len());
    assert_eq!(log[0].number + log.len() as u64, 1102);
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() {
                let store = super::Memory::default();
                super::$name(|| std::sync::Arc::new(store.clone()));
            })*
        }
        mod redb {
            $(#[test] fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(|| std::sync::Arc::new(super::Redb::open(directory.path().join("state.redb")).unwrap()));
            })*
        }
    };
}

suite! {
    what_is_saved_and_ordered_is_there_after_a_restart,
    the_last_20_are_kept_and_what_is_stable_and_nothing_of_the_others,
}

#[test]
fn who_does_not_publish_saves_nothing() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut relay = Relay::start(store.clone());
    let before = keys(&*store);
    relay.publisher = Publisher::new(Instance(1), 0);
    let refused = relay.save(&content([(0, vec![1])]));
    assert!(matches!(refused, Err(StoredError::Control(ControlError::NotThePublisher))));
    assert_eq!(keys(&*store), before);
}

#[test]
fn a_body_that_is_another_is_not_saved() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut relay = Relay::start(store.clone());
    let before = keys(&*store);
    let manifest = manifest(&content([(0, vec![1])]));
    for body in [None, Some(Bytes::from_static(b"another"))] {
        let saved = relay.stored.save(&manifest, relay.publisher, "", now(), &|_| body.clone());
        assert!(matches!(saved, Err(StoredError::NoBody { name, .. }) if name == "name-0"));
    }
    assert_eq!(keys(&*store), before);
}
