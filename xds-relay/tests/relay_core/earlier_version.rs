//! What an earlier version of the program kept, which told an origin by its address, too, beside what is kept since: what counts is
//! one of both, whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use xds_relay::state::{
    Commit, Compare, Limits, Listing, Memory, Op, Revision, State, Store, StoreError, Watch, identities,
};

use crate::last_known_good::{copy, keys, served_from, text, world};
use crate::moved_after_restart::former;
use crate::shared_known::Sharers;
use crate::support::*;

/// A relay of an earlier version starts, with a client, and hears its origin for a while.
fn runs_as_earlier(world: &mut World, store: &Memory) {
    world.restart_with(0, &text(DELTA), |config, grouping, now, wall| {
        State::open(store.clone(), former(config, grouping), None, now, wall).unwrap()
    });
    hears(world);
}

fn runs(world: &mut World, store: &Memory) {
    world.restart(0, &text(DELTA), store.clone());
    hears(world);
}

fn hears(world: &mut World) {
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.set_up(0, true);
    world.advance(40 * SECOND);
    world.disconnect(client);
}

fn of_scopes(store: &Memory) -> Vec<String> {
    let is_of_scope = |key: &String| ["/scope/", "/known/", "/body/"].iter().any(|part| key.contains(part));
    keys(store).into_iter().filter(is_of_scope).collect()
}

/// With what is kept by a name of before and by the one of now, each from another time.
fn back_and_forth() -> (World, Memory, Vec<String>) {
    let (mut world, store) = world(DELTA);
    for name in ["a", "b"] {
        world.put(0, CLUSTERS, name, "1");
    }
    runs_as_earlier(&mut world, &store);
    let of_earlier = of_scopes(&store);
    runs(&mut world, &store);
    world.remove(0, CLUSTERS, "a");
    world.put(0, CLUSTERS, "b", "2");
    world.put(0, CLUSTERS, "c", "1");
    (world, store, of_earlier)
}

#[test]
fn what_an_earlier_version_kept_that_ran_last_is_all_that_counts() {
    let (mut world, store, _) = back_and_forth();
    runs(&mut world, &store);
    let of_now = of_scopes(&store);
    world.remove(0, CLUSTERS, "c");
    world.put(0, CLUSTERS, "b", "3");
    world.put(0, CLUSTERS, "d", "1");
    runs_as_earlier(&mut world, &store);
    assert!(of_scopes(&store).len() > of_now.len(), "both are there");
    // What is served is kept, and nothing else.
    for _ in 0..2 {
        assert_eq!(served_from(&mut world, store.clone()), ["b@3", "d@1"]);
        world.advance(10 * SECOND);
        assert_eq!(of_scopes(&store).len(), of_now.len());
    }
}

#[test]
fn what_an_earlier_version_kept_long_before_does_not_count_where_newer_is_kept() {
    let (mut world, store, of_earlier) = back_and_forth();
    // It comes back, from a copy.
    world.set_up(0, false);
    let (mut earlier, old_store) = self::world(DELTA);
    for name in ["a", "b"] {
        earlier.put(0, CLUSTERS, name, "1");
    }
    runs_as_earlier(&mut earlier, &old_store);
    assert_eq!(of_scopes(&old_store), of_earlier);
    runs(&mut world, &store);
    let of_now = of_scopes(&store);
    let old = old_store.list("").unwrap().entries.into_iter().filter(|entry| of_earlier.contains(&entry.key));
    let _ = store.commit(&old.map(|entry| Op::Put(entry.key, entry.value)).collect::<Vec<_>>(), &[]).unwrap();
    for _ in 0..2 {
        assert_eq!(served_from(&mut world, store.clone()), ["b@2", "c@1"]);
        world.advance(10 * SECOND);
        assert_eq!(of_scopes(&store), of_now, "what is old is deleted");
    }
}

/// Each restart finds there what it was long ago.
#[test]
fn what_an_earlier_version_shared_is_not_served_again_where_newer_is_kept() {
    let mut sharers = Sharers::new(0, &text(DELTA));
    sharers.identities = former;
    sharers.start();
    for name in ["a", "b"] {
        sharers.world.put(0, CLUSTERS, name, "1");
    }
    let client = sharers.client(0, DELTA, "n1");
    sharers.world.subscribe(client, CLUSTERS, &["*"]);
    sharers.advance(100);
    sharers.identities = identities;
    sharers.expire();
    sharers.restart(0);
    sharers.world.connect(client, 0);
    sharers.world.remove(0, CLUSTERS, "a");
    sharers.world.put(0, CLUSTERS, "b", "2");
    sharers.advance(100);
    sharers.world.set_up(0, false);
    for restart in 0..2 {
        sharers.expire();
        sharers.restart(0);
        let new = sharers.client(0, DELTA, "n2");
        sharers.world.subscribe(new, CLUSTERS, &["*"]);
        sharers.advance(20);
        assert_eq!(sharers.world.clients[new].held(CLUSTERS), ["b@2"], "{restart}");
        sharers.world.disconnect(new);
    }
    // Nor to who knows nothing by itself.
    sharers.kill(0);
    sharers.start();
    let new = sharers.client(1, DELTA, "n3");
    sharers.world.subscribe(new, CLUSTERS, &["*"]);
    sharers.advance(20);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), ["b@2"]);
}

/// It is asked for before it is known that it was kept by another name.
#[test]
fn what_an_earlier_version_shared_is_learned_by_who_starts_while_the_store_is_away() {
    let mut sharers = Sharers::new(0, &text(DELTA));
    sharers.identities = former;
    sharers.start();
    sharers.world.put(0, CLUSTERS, "a", "1");
    let client = sharers.client(0, DELTA, "n1");
    sharers.world.subscribe(client, CLUSTERS, &["*"]);
    sharers.advance(100);
    sharers.world.set_up(0, false);
    sharers.kill(0);
    sharers.identities = identities;
    sharers.start();
    sharers.seats[1].is_cut_off.store(true, Ordering::Relaxed);
    sharers.own[1] = Memory::default();
    sharers.restart(1);
    let new = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(new, CLUSTERS, &["*"]);
    sharers.advance(20);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), [""; 0]);
    sharers.seats[1].is_cut_off.store(false, Ordering::Relaxed);
    sharers.advance(10);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), ["a@1"]);
}

/// A store that takes a few ops at once, and nothing any more after some commits.
#[derive(Clone)]
struct CutShort {
    inner: Memory,
    left: Arc<AtomicUsize>,
}

impl Store for CutShort {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(StoreError::Away("it was killed".to_owned()));
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.inner.commit(ops, compares)
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.ops = 3;
        limits
    }
}

#[test]
fn nothing_is_lost_where_a_relay_is_killed_that_keeps_it_by_another_name() {
    let (mut world, store) = world(DELTA);
    for name in 0..8 {
        world.put(0, CLUSTERS, &format!("n{name}"), if name < 4 { "1" } else { "2" });
    }
    runs_as_earlier(&mut world, &store);
    let before = of_scopes(&store);
    world.set_up(0, false);
    let (mut is_whole, mut commits) = (false, 0);
    while !is_whole {
        let inner = copy(&store);
        let left = Arc::new(AtomicUsize::new(commits));
        let cut_short = CutShort { inner: inner.clone(), left };
        assert_eq!(served_from(&mut world, cut_short).len(), 8);
        world.advance(20 * SECOND);
        is_whole = !of_scopes(&inner).iter().any(|key| before.contains(key) && !key.contains("/body/"));
        // Once more, to the end.
        for _ in 0..2 {
            assert_eq!(served_from(&mut world, inner.clone()).len(), 8, "after {commits} commits");
            world.advance(10 * SECOND);
        }
        let now = of_scopes(&inner);
        assert!(!now.iter().any(|key| before.contains(key) && !key.contains("/body/")), "after {commits} commits");
        commits += 1;
    }
    assert!(commits > 5, "{commits}");
}
