//! What a cache keeps, in exact live bytes, and that an update allocates nothing.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and has a clock")]

use std::ops::ControlFlow;
use std::time::Instant;

use allocation_counter::measure;
use xdstp_cache::{Cache, Interest, Options, Removals, Resource, SubscriberId, Woken};
use xdstp_uri::ResourceName;

type Body = Box<[u8]>;

const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const GLOB: &str = "xdstp://control-plane.example/envoy.config.endpoint.v3.ClusterLoadAssignment/pool/*";
/// An encoded `ClusterLoadAssignment` of 16 endpoints.
const BODY: usize = 429;

fn name(index: usize) -> ResourceName {
    ResourceName::parse(&GLOB.replace('*', &format!("{index:06}"))).unwrap()
}

fn upsert(cache: &mut Cache<Body>, index: usize, round: usize) {
    let resource = Resource::new(round.to_string().into(), round as u128, vec![0; BODY].into());
    let mut edit = cache.edit(Instant::now());
    edit.put(&TYPE_URL.into(), &name(index), resource);
    let _ = edit.finish();
}

fn cache_of(resources: usize) -> Cache<Body> {
    let mut options = Options::default();
    options.wildcard_covers_xdstp = true;
    let mut cache = Cache::new(options);
    for index in 0..resources {
        upsert(&mut cache, index, 0);
    }
    cache
}

/// Bytes that are still allocated after `make`, whose result is kept.
fn live_bytes<T>(make: impl FnOnce() -> T) -> (usize, T) {
    let mut made = None;
    let bytes = measure(|| made = Some(make())).bytes_current;
    (bytes.try_into().unwrap(), made.unwrap())
}

/// Subscribers that have been sent all they want: what each wants follows from its number.
fn subscribe(cache: &mut Cache<Body>, count: usize, wants: impl Fn(usize) -> Vec<Interest>) -> usize {
    let wants: Vec<_> = (0..count).map(wants).collect();
    live_bytes(|| {
        for interests in &wants {
            let id = cache.open(&TYPE_URL.into());
            for interest in interests {
                cache.subscribe(id, interest);
            }
            pull(cache, id);
        }
    })
    .0
}

fn pull(cache: &mut Cache<Body>, id: SubscriberId) -> usize {
    let mut visited = 0;
    cache.pull(id, Removals::Include, &mut |_| {
        visited += 1;
        ControlFlow::Continue(())
    });
    visited
}

#[test]
fn a_resource_costs_its_body_twice_its_name_and_120_bytes() {
    for resources in [1_000, 10_000, 100_000] {
        let (bytes, _cache) = live_bytes(|| cache_of(resources));
        let each = bytes / resources;
        println!("{each} bytes for each of {resources} resources, {BODY} of them its body");
        assert!(each <= BODY + 2 * name(0).as_str().len() + 120, "{each}");
    }
}

#[test]
fn a_name_of_a_subscriber_costs_44_bytes() {
    for (subscribers, names) in [(1, 1_000), (100, 10), (100, 100), (1_000, 10), (1_000, 100)] {
        let mut cache = cache_of(1_000);
        let bare = subscribe(&mut cache_of(1_000), subscribers, |_| Vec::new());
        let wants = |who| (0..names).map(|which| name((who * names + which) % 1_000).into()).collect();
        let bytes = subscribe(&mut cache, subscribers, wants) - bare;
        let each = bytes / (subscribers * names);
        println!("{each} bytes for each of {names} names of {subscribers} subscribers");
        assert!(each <= 44, "{each}");
    }
}

#[test]
fn a_subscriber_to_a_collection_costs_512_bytes_whatever_is_in_it() {
    for collection in [Interest::Wildcard, Interest::Name(GLOB.parse().unwrap())] {
        let costs = [10, 100_000].map(|resources| {
            let mut cache = cache_of(resources);
            subscribe(&mut cache, 100, |_| vec![collection.clone()]) / 100
        });
        println!("{costs:?} bytes for a subscriber to {collection}");
        assert!(costs[0] <= 512, "{costs:?}");
        assert_eq!(costs[0], costs[1]);
    }
}

#[test]
fn telling_a_thousand_subscribers_of_an_update_allocates_nothing() {
    let by_name = Interest::Name(name(7));
    for interest in [by_name, Interest::Name(GLOB.parse().unwrap()), Interest::Wildcard] {
        let mut cache = cache_of(1_000);
        subscribe(&mut cache, 1_000, |_| vec![interest.clone()]);
        let (url, name) = (TYPE_URL.into(), name(7));
        let mut woken = Woken::default();
        let mut tell = |digest| {
            let mut update = Some(Resource::new("1".into(), digest, vec![1; BODY].into()));
            let mut visited = 0;
            let allocations = measure(|| {
                let mut edit = cache.edit_reusing(Instant::now(), std::mem::take(&mut woken));
                if let Some(update) = update.take() {
                    edit.put(&url, &name, update);
                }
                woken = edit.finish();
                visited = woken.iter().map(|id| pull(&mut cache, id)).sum();
            });
            (visited, allocations.count_total)
        };
        assert_eq!(tell(1).0, 1_000, "{interest}, and there is room for their names from now on");
        assert_eq!(tell(2), (1_000, 0), "{interest}");
    }
}

/// Whoever leaves first: those who came first, those who came last, or every second one first.
#[test]
fn what_100_subscribers_to_1000_names_needed_is_given_back_when_they_leave() {
    type Order = fn(&mut Vec<SubscriberId>);
    let orders: [(&str, Order); 3] = [
        ("forwards", |_| {}),
        ("backwards", |ids| ids.reverse()),
        ("every second", |ids| ids.sort_by_key(|id| id.index() % 2)),
    ];
    for (label, order) in orders {
        let mut cache = cache_of(1000);
        let open = |cache: &mut Cache<Body>| {
            let id = cache.open(&TYPE_URL.into());
            for index in 0..1000 {
                cache.subscribe(id, &Interest::Name(name(index)));
            }
            pull(cache, id);
            id
        };
        let stays = open(&mut cache);
        let mut left = 0;
        let needed = measure(|| {
            let mut ids: Vec<_> = (0..100).map(|_| open(&mut cache)).collect();
            order(&mut ids);
            left = measure(|| ids.iter().for_each(|id| drop(cache.close(*id)))).bytes_current;
        });
        let (kept, peak) = (needed.bytes_current, needed.bytes_current - left);
        assert!(peak > 100 * 1000 * 30, "{peak}");
        assert!(kept < peak / 20, "{label}: {kept} of {peak} bytes are kept");
        assert!(cache.is_open(stays));
    }
}

#[test]
fn what_a_subscriber_brought_along_is_given_back_once_it_is_told() {
    const HELD: usize = 10_000;
    let mut cache = cache_of(HELD / 2);
    let glob = Interest::Name(GLOB.parse().unwrap());
    let one = Interest::Name(name(0));
    // All of the glob's, which half are gone; and all that it does not ask for.
    for interest in [glob, one] {
        let held: Vec<_> = (0..HELD).map(|index| (name(index), "0".into())).collect();
        let (bytes, told) = live_bytes(|| {
            let id = cache.open(&TYPE_URL.into());
            cache.subscribe(id, &interest);
            cache.resume(id, held.iter().cloned());
            let mut told = 0;
            while cache.has_work(id) {
                told += pull(&mut cache, id);
            }
            told
        });
        println!("{bytes} bytes after {told} removals");
        assert!(told >= HELD / 2 && bytes < 64 << 10, "{bytes} bytes after {told} removals");
    }
}
