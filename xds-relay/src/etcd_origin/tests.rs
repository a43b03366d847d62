//! An origin in a store in memory, by a clock of the test.

use std::time::{Duration, Instant};

use prost::Message as _;
use xds_transport::wire::Any;
use xdstp_client::federation::Held;
use xdstp_client::state::{Commit, Event, Memory, Op, Revision, Store, Watch};

use super::following::{listed, told};
use super::key::RESOURCES;
use super::value::Reader;
use crate::config::Config;
use crate::file_origin::{Descriptors, Served};
use crate::keyed_origin::logged::logged;
use crate::keyed_origin::{Contents, Follower, HELD, Next};

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

fn key(name: &str) -> String {
    format!("{RESOURCES}{CLUSTER}/{name}")
}

/// A cluster by the text that a person puts.
fn cluster(name: &str, timeout: u32) -> Op {
    let text = format!("{{\"@type\": type.googleapis.com/{CLUSTER}, connect_timeout: {timeout}s}}");
    Op::put(key(name), text)
}

/// What is in the store, as it is followed.
struct World {
    store: Memory,
    follower: Follower<Reader>,
    watch: Option<Watch>,
    now: Instant,
}

impl World {
    fn new() -> Self {
        Self::serving(Served::default())
    }

    fn serving(served: Served) -> Self {
        Self::reading(Reader::new(Descriptors::built_in().unwrap(), served))
    }

    fn reading(reader: Reader) -> Self {
        let follower = Follower::new(Contents::new(reader), [""]);
        Self { store: Memory::default(), follower, watch: None, now: Instant::now() }
    }

    /// With so many clusters, which are listed.
    fn of(clusters: usize) -> Self {
        let mut world = Self::new();
        let names: Vec<_> = (0..clusters).map(|number| cluster(&format!("c{number:03}"), 1)).collect();
        world.commit(&names);
        world.list();
        assert_eq!(world.news().map(|names| names.len()), Some(clusters));
        world
    }

    fn commit(&self, ops: &[Op]) -> Revision {
        let Commit::Done(revision) = self.store.commit(ops, &[]).unwrap() else { panic!("nothing to compare") };
        revision
    }

    fn list(&mut self) -> Next {
        let listing = self.store.list(RESOURCES).unwrap();
        let next = listed(&mut self.follower, &listing, self.now);
        self.watch = match next {
            Next::Watch => Some(self.store.watch(RESOURCES, listing.revision).unwrap()),
            Next::List(_) => None,
        };
        next
    }

    fn events(&mut self) -> Vec<Event> {
        self.watch.as_mut().unwrap().next(Duration::ZERO).unwrap()
    }

    fn told(&mut self) -> Next {
        let events = self.events();
        told(&mut self.follower, &events, self.now)
    }

    /// The names that are served, if they are otherwise than before, with their versions.
    fn news(&mut self) -> Option<Vec<(String, String)>> {
        let named = |(_, name, resource): Held| (name.as_str().to_owned(), resource.version.as_str().to_owned());
        self.follower.news().map(|held| held.into_iter().map(named).collect())
    }

    /// Another relay, that follows the same.
    fn newcomer(&self, reader: Reader) -> Self {
        let follower = Follower::new(Contents::new(reader), [""]);
        Self { store: self.store.clone(), follower, watch: None, now: self.now }
    }

    /// Of which names it is not known whether they are there, and why.
    fn unreadable(&self) -> Vec<String> {
        self.follower.unreadable().iter().map(|of| format!("{} {}", of.name, of.reason)).collect()
    }

    fn names(&mut self) -> Option<Vec<String>> {
        self.news().map(|held| held.into_iter().map(|(name, _)| name).collect())
    }
}

#[test]
fn before_anything_is_listed_there_is_no_news_and_then_that_there_is_nothing_is_news() {
    let mut world = World::new();
    assert_eq!(world.names(), None);
    world.list();
    assert_eq!(world.names(), Some(vec![]));
    world.list();
    assert_eq!(world.told(), Next::Watch);
}

#[test]
fn what_is_put_in_one_transaction_is_one_change() {
    let mut world = World::new();
    world.list();
    world.names();
    world.commit(&[cluster("a", 1), cluster("b", 1)]);
    assert_eq!(world.told(), Next::Watch);
    assert_eq!(world.names(), Some(vec!["a".to_owned(), "b".to_owned()]));
    world.commit(&[Op::delete(key("a")), cluster("c", 1)]);
    assert_eq!(world.told(), Next::Watch);
    assert_eq!(world.names(), Some(vec!["b".to_owned(), "c".to_owned()]));
}

#[test]
fn the_same_content_put_again_is_no_change_whatever_its_revision() {
    let mut world = World::new();
    world.commit(&[cluster("a", 1)]);
    world.list();
    let first = world.news();
    world.commit(&[cluster("a", 1)]);
    assert_eq!((world.told(), world.news()), (Next::Watch, None));
    // In other words: its version is that of what it says.
    world.commit(&[Op::put(
        key("a"),
        format!("\"@type\": type.googleapis.com/{CLUSTER}\nname: a\nconnect_timeout: 1s\n"),
    )]);
    world.told();
    assert_eq!(world.news(), first);
    world.commit(&[cluster("a", 2)]);
    world.told();
    assert_ne!(world.news().unwrap(), first.unwrap());
}

#[test]
fn a_value_that_is_not_good_leaves_the_last_good_one_until_the_key_goes() {
    let mut world = World::new();
    world.commit(&[cluster("a", 1), Op::put(key("b"), "no: resource")]);
    world.list();
    assert_eq!(world.names(), Some(vec!["a".to_owned()]));
    world.commit(&[Op::put(key("a"), "{"), Op::put("res/odd", "")]);
    assert_eq!((world.told(), world.names()), (Next::Watch, None));
    let (refused, first) = world.follower.refused();
    assert_eq!((refused, world.follower.newly_refused()), (3, 3));
    assert!(first.as_deref().unwrap().starts_with(&format!("{}: value:1:1: ", key("a"))), "{first:?}");
    // Listed again it is refused still, and it is no news.
    world.list();
    assert_eq!((world.names(), world.follower.newly_refused()), (Some(vec!["a".to_owned()]), 0));
    // Others may have one that was good of each of the two: both at once would be all there is.
    world.commit(&[Op::delete(key("b"))]);
    world.commit(&[Op::delete(key("a")), Op::delete("res/odd")]);
    world.told();
    assert_eq!((world.names(), world.follower.refused()), (Some(vec![]), (0, None)));
}

#[test]
fn what_is_refused_as_it_is_listed_first_is_not_known_to_be_gone_before_its_key_is() {
    let mut seen = World::new();
    seen.list();
    seen.names();
    seen.commit(&[cluster("a", 1), Op::put(key("b"), "{"), Op::put(key("c"), "{"), Op::put("res/odd", "")]);
    seen.told();
    // Who saw all of its values knows that nobody was served one.
    assert_eq!((seen.names(), seen.unreadable()), (Some(vec!["a".to_owned()]), vec![]));

    let mut late = seen.newcomer(Reader::new(Descriptors::built_in().unwrap(), Served::default()));
    late.list();
    assert_eq!(late.names(), Some(vec!["a".to_owned()]));
    let of = |late: &World| late.unreadable().iter().map(|of| of[..1].to_owned()).collect::<String>();
    assert_eq!(of(&late), "bc");
    // As bad in other words it is as unknown, and that is news for who asks why; listed again it is as it was.
    late.commit(&[Op::put(key("b"), "[")]);
    late.told();
    assert_eq!((late.names(), of(&late)), (Some(vec!["a".to_owned()]), "bc".to_owned()));
    late.follower.newly_refused();
    late.list();
    assert_eq!((of(&late), late.follower.newly_refused()), ("bc".to_owned(), 0));
    late.commit(&[cluster("b", 1)]);
    late.told();
    assert_eq!((late.names().map(|names| names.len()), of(&late)), (Some(2), "c".to_owned()));
    late.commit(&[Op::delete(key("c"))]);
    late.told();
    assert_eq!((late.names().map(|names| names.len()), of(&late)), (Some(2), String::new()));
}

#[test]
fn it_is_known_what_counts_instead_of_a_value_that_is_refused_and_since_when() {
    let mut world = World::new();
    world.commit(&[cluster("a", 1)]);
    world.list();
    assert_eq!(world.follower.instead(), None);
    let since = world.now;
    world.commit(&[Op::put(key("a"), "{")]);
    world.told();
    world.now += Duration::from_secs(60);
    world.commit(&[Op::put(key("a"), "[")]);
    world.told();
    let instead = world.follower.instead().unwrap();
    let words = "its last good value counts, with envoy.config.cluster.v3.Cluster `a` in version ";
    assert!(instead.since == since && instead.last_good.as_ref().unwrap().starts_with(words), "{instead:?}");
    // There is nothing that was good.
    world.commit(&[cluster("a", 2), Op::put(key("b"), "{")]);
    world.told();
    let instead = world.follower.instead().unwrap();
    assert_eq!((instead.since, instead.last_good), (world.now, None));
}

#[test]
fn a_value_that_breaks_a_rule_of_its_type_is_refused_in_whichever_form_it_is_put_and_the_last_good_one_stays() {
    let types = Descriptors::built_in().unwrap().with_validation();
    let mut world = World::reading(Reader::new(types, Served::default()));
    world.commit(&[cluster("a", 1)]);
    world.list();
    let first = world.news();
    let of_type = |value: &'static [u8]| {
        let any = Any { type_url: format!("type.googleapis.com/{CLUSTER}"), value: value.into() };
        Op::put(key("a"), any.encode_to_vec())
    };
    let why = "connect_timeout: expected more than 0s, found 0s; in Cluster `a`";
    for (put, place) in [(cluster("a", 0), "value:1:81"), (of_type(b"\x0a\x01a\x22\x00"), "value")] {
        world.commit(&[put]);
        assert_eq!((world.told(), world.news()), (Next::Watch, None));
        assert_eq!(world.follower.refused(), (1, Some(format!("{}: {place}: {why}", key("a")))));
        // Who comes new does not know what there is.
        let types = Descriptors::built_in().unwrap().with_validation();
        let mut other = world.newcomer(Reader::new(types, Served::default()));
        other.list();
        assert_eq!((other.names(), other.follower.newly_refused()), (Some(vec![]), 1));
        assert_eq!(other.unreadable(), [format!("a {}: {place}: {why}", key("a"))]);
    }
    world.commit(&[of_type(b"\x0a\x01a\x22\x02\x08\x02")]);
    world.told();
    assert!(world.news() != first && world.follower.refused() == (0, None));
}

#[test]
fn of_a_key_that_is_refused_the_log_has_the_origin_and_all_of_the_key() {
    let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default()).of("kv", "mesh/");
    let mut world = World::reading(reader);
    world.list();
    world.commit(&[Op::put(key("a"), "{")]);
    let lines = logged(|| assert_eq!(world.told(), Next::Watch));
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains(" origin=\"kv\"") && line.contains(&format!("mesh/{}: refused", key("a"))), "{line}");
}

#[test]
fn a_key_that_is_no_text_is_refused_like_any_that_is_bad_until_it_is_not_there() {
    let mut world = World::new();
    world.commit(&[cluster("a", 1)]);
    let mut listing = world.store.list(RESOURCES).unwrap();
    listing.no_text = [&b"res/\xff"[..], b"res/\xfe"].map(bytes::Bytes::from_static).to_vec();
    assert_eq!(listed(&mut world.follower, &listing, world.now), Next::Watch);
    assert_eq!((world.names(), world.follower.newly_refused()), (Some(vec!["a".to_owned()]), 2));
    let (refused, first) = world.follower.refused();
    assert_eq!((refused, first.as_deref()), (2, Some("no UTF-8: res/\\\\xfe: a key is text, in UTF-8")));
    world.list();
    assert_eq!((world.names(), world.follower.refused()), (Some(vec!["a".to_owned()]), (0, None)));
}

#[test]
fn what_is_lost_to_who_is_slow_is_listed_again() {
    let mut world = World::of(3);
    for number in 0..5000 {
        world.commit(&[cluster("c000", number + 2)]);
    }
    world.commit(&[Op::delete(key("c001"))]);
    assert!(world.watch.as_mut().unwrap().next(Duration::ZERO).is_err());
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!(world.names(), Some(vec!["c000".to_owned(), "c002".to_owned()]));
}

#[test]
fn all_keys_that_are_gone_at_once_are_held_however_few_there_were() {
    let mut world = World::of(3);
    world.commit(&[0, 1, 2].map(|number| Op::delete(key(&format!("c{number:03}")))));
    let watch = world.watch.as_mut().unwrap();
    let events = watch.next(Duration::ZERO).unwrap();
    assert_eq!(told(&mut world.follower, &events, world.now), Next::List(world.now + HELD));
    assert!(world.news().is_none());
    world.now += HELD;
    world.list();
    assert_eq!(world.news().map(|names| names.len()), Some(0));
}

#[test]
fn keys_that_are_deleted_one_by_one_go_at_once() {
    let mut world = World::of(50);
    for number in 0..50 {
        world.commit(&[Op::delete(key(&format!("c{number:03}")))]);
    }
    assert_eq!((world.told(), world.names()), (Next::Watch, Some(vec![])));
}

#[test]
fn a_list_that_lacks_much_counts_when_it_is_so_later_too() {
    let mut world = World::of(50);
    let all = |range: std::ops::Range<usize>| {
        range.map(|number| Op::delete(key(&format!("c{number:03}")))).collect::<Vec<_>>()
    };
    // Ten are not many.
    world.commit(&all(0..10));
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!(world.names().unwrap().len(), 40);
    world.commit(&all(10..30));
    let until = world.now + HELD;
    assert_eq!(world.list(), Next::List(until));
    assert_eq!((world.names(), world.follower.held_back()), (None, 20));
    // Nor does it count any sooner, nor what else is new in it.
    world.now += HELD / 2;
    world.commit(&[cluster("new", 1)]);
    assert_eq!((world.list(), world.names()), (Next::List(until), None));
    world.now = until;
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!((world.names().unwrap().len(), world.follower.held_back()), (21, 0));
}

#[test]
fn a_list_that_lacks_much_and_then_does_not_removes_nothing() {
    let mut world = World::of(50);
    let names: Vec<_> = (0..50).map(|number| format!("c{number:03}")).collect();
    world.commit(&names.iter().map(|name| Op::delete(key(name))).collect::<Vec<_>>());
    assert!(matches!(world.list(), Next::List(_)));
    world.now += HELD;
    world.commit(&names.iter().map(|name| cluster(name, 1)).collect::<Vec<_>>());
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!((world.names().unwrap().len(), world.follower.held_back()), (50, 0));
}

#[test]
fn a_list_that_lacks_much_more_than_the_one_before_is_seen_for_the_first_time() {
    let mut world = World::of(100);
    let all = |range: std::ops::Range<usize>| {
        range.map(|number| Op::delete(key(&format!("c{number:03}")))).collect::<Vec<_>>()
    };
    world.commit(&all(0..30));
    world.list();
    world.now += HELD;
    world.commit(&all(30..90));
    assert_eq!(world.list(), Next::List(world.now + HELD));
    world.now += HELD;
    // A few more are no reason to wait.
    world.commit(&all(90..95));
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!(world.names().unwrap().len(), 5);
}

#[test]
fn one_transaction_that_removes_much_is_held_and_what_was_before_it_counts() {
    let mut world = World::of(50);
    world.commit(&[cluster("first", 1)]);
    world.commit(&(0..40).map(|number| Op::delete(key(&format!("c{number:03}")))).collect::<Vec<_>>());
    world.commit(&[cluster("last", 1)]);
    let until = world.now + HELD;
    assert_eq!(world.told(), Next::List(until));
    assert_eq!((world.names().unwrap().len(), world.follower.held_back()), (51, 40));
    world.now = until;
    assert!(matches!(world.list(), Next::Watch));
    assert_eq!(world.names().unwrap().len(), 12);
    // Moved from key to key in one transaction, nothing much is gone.
    let mut world = World::of(50);
    let renamed = |number: usize| [Op::delete(key(&format!("c{number:03}"))), cluster(&format!("c{number:03}"), 2)];
    world.commit(&(0..50).flat_map(renamed).collect::<Vec<_>>());
    assert_eq!(world.told(), Next::Watch);
    assert_eq!(world.names().unwrap().len(), 50);
}

#[test]
fn a_name_that_another_origin_serves_is_refused() {
    let text = "origins: [{ name: a, server: 'a:1', authorities: [x] }, { name: b, etcd: { endpoints: ['b:1'], prefix: b/ }, authorities: [y] }]";
    let served = Served::by(&Config::parse("relay.yaml", text).unwrap(), "b");
    let mut world = World::serving(served);
    let names = ["old", "xdstp://x/envoy.config.cluster.v3.Cluster/a", "xdstp://y/envoy.config.cluster.v3.Cluster/a"];
    world.commit(&names.map(|name| cluster(name, 1)));
    world.list();
    assert_eq!((world.follower.newly_refused(), world.names().unwrap().len()), (2, 1));
    assert!(world.follower.refused().1.unwrap().ends_with("names without an authority come from origin `a`"));
}
