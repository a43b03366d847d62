//! What is known after a restart, while the origin is away and when it is back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use xds_relay::state::{Commit, Compare, Listing, Memory, Op, Revision, Store, StoreError, Watch};

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

pub(crate) fn text(protocol: Protocol) -> String {
    let protocol = if protocol == DELTA { "delta" } else { "sotw" };
    format!(
        "origins: [{{ name: o0, server: 127.0.0.1:1, protocol: {protocol}, authorities: [a] }}]\nshare_by: [cluster]\n"
    )
}

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

/// A relay that keeps what it hears, and an origin.
pub(crate) fn world(protocol: Protocol) -> (World, Memory) {
    let mut world = World::of(&[protocol], &[&["a"]], "");
    let store = Memory::default();
    world.restart(0, &text(protocol), store.clone());
    (world, store)
}

/// A fleet's first client has been here, and the relay is killed and restarted while the origin is away.
pub(crate) fn restarted(protocol: Protocol) -> (World, Memory) {
    let (mut world, store) = world(protocol);
    for name in ["a", "b", &member("a"), &member("b")] {
        world.put(0, CLUSTERS, name, "1");
    }
    world.put(0, ENDPOINTS, "e", "1");
    let first = world.client(DELTA, "n1");
    world.subscribe(first, CLUSTERS, &["*", GLOB]);
    world.subscribe(first, ENDPOINTS, &["e"]);
    world.advance(40 * SECOND);
    world.set_up(0, false);
    world.restart(0, &text(protocol), store.clone());
    (world, store)
}

pub(crate) fn stale(world: &World) -> usize {
    world.counted(0, "stale_resources{origin=\"o0\"}") as usize
}

pub(crate) fn keys(store: &Memory) -> Vec<String> {
    store.list("").unwrap().entries.into_iter().map(|entry| entry.key).collect()
}

#[test]
fn a_new_client_is_served_after_a_restart_while_the_origin_is_away() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let (mut world, _) = restarted(upstream);
            let new = world.client(downstream, "n2");
            world.subscribe(new, CLUSTERS, &["*", GLOB]);
            world.subscribe(new, ENDPOINTS, &["e"]);
            world.advance(SECOND);
            let all = ["a@1", "b@1", &format!("{}@1", member("a")), &format!("{}@1", member("b"))];
            assert_eq!(world.clients[new].held(CLUSTERS), all, "{upstream:?} {downstream:?}");
            assert_eq!(world.clients[new].held(ENDPOINTS), ["e@1"], "{upstream:?} {downstream:?}");
            assert_eq!(stale(&world), 5);
            world.advance(3600 * SECOND);
            assert_eq!(world.clients[new].held(CLUSTERS), all, "for as long as it is away");
            let dump = world.relays[0].core.config_dump(world.now);
            let resources = dump.scopes.iter().flat_map(|scope| &scope.types).flat_map(|of| &of.resources);
            assert!(resources.clone().count() == 5 && resources.clone().all(|resource| resource.stale));
        }
    }
}

#[test]
fn rule_150_what_the_origin_has_no_more_is_gone_when_it_says_so_and_not_before() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let (mut world, store) = restarted(upstream);
            let new = world.client(downstream, "n2");
            world.subscribe(new, CLUSTERS, &["*", GLOB]);
            world.advance(60 * SECOND);
            world.told(new);
            world.remove(0, CLUSTERS, "a");
            world.remove(0, CLUSTERS, &member("a"));
            world.put(0, CLUSTERS, "b", "2");
            world.advance(60 * SECOND);
            assert_eq!(world.told(new), [""; 0], "{upstream:?} {downstream:?}");
            world.asked(0);
            world.set_up(0, true);
            world.advance(60 * SECOND);
            let held = ["b@2", &format!("{}@1", member("b"))];
            assert_eq!(world.clients[new].held(CLUSTERS), held, "{upstream:?} {downstream:?}");
            assert_eq!(stale(&world), 0, "{upstream:?}");
            // And it is not there after the next restart.
            world.set_up(0, false);
            world.restart(0, &text(upstream), store);
            let next = world.client(downstream, "n3");
            world.subscribe(next, CLUSTERS, &["*", GLOB]);
            world.advance(SECOND);
            assert_eq!(world.clients[next].held(CLUSTERS), held, "{upstream:?} {downstream:?}");
        }
    }
}

#[test]
fn rule_083_an_origin_that_is_back_with_the_same_has_nothing_to_send_and_clients_get_nothing_twice() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let (mut world, _) = restarted(upstream);
            let new = world.client(downstream, "n2");
            world.subscribe(new, CLUSTERS, &["*", GLOB]);
            world.subscribe(new, ENDPOINTS, &["e"]);
            world.advance(10 * SECOND);
            world.told(new);
            world.asked(0);
            world.set_up(0, true);
            world.advance(60 * SECOND);
            assert_eq!(world.told(new), [""; 0], "{upstream:?} {downstream:?}");
            assert_eq!(stale(&world), 0, "{upstream:?} {downstream:?}");
            if upstream == DELTA {
                let asked = world.asked(0);
                let (a, b) = (member("a"), member("b"));
                for line in [
                    "n2 Cluster =a@1 =b@1".to_owned(),
                    format!("xds-relay Cluster +{GLOB} ={a}@1 ={b}@1"),
                    "n2 ClusterLoadAssignment +e =e@1".to_owned(),
                ] {
                    assert!(asked.contains(&line), "{line}: {asked:?}");
                }
            }
        }
    }
}

/// What is kept may be older than what clients have: from another relay, or from this one in its last second.
#[test]
fn who_comes_back_with_another_version_keeps_it_until_the_origin_answers() {
    for (version, told) in [("2", vec![]), ("3", vec!["Cluster b@3"]), ("1", vec!["Cluster b@1"])] {
        let (mut world, _) = world(DELTA);
        let store = Memory::default();
        world.restart(0, &text(DELTA), store.clone());
        world.put(0, CLUSTERS, "a", "1");
        world.put(0, CLUSTERS, "b", "1");
        let client = world.client(DELTA, "n1");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        let kept = copy(&store);
        world.put(0, CLUSTERS, "b", "2");
        world.advance(SECOND);
        world.set_up(0, false);
        world.restart(0, &text(DELTA), kept);
        world.told(client);
        world.connect(client, 0);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@2"]);
        world.put(0, CLUSTERS, "b", version);
        world.set_up(0, true);
        world.advance(60 * SECOND);
        let news: Vec<_> = world.told(client).into_iter().filter(|line| line.contains('@')).collect();
        assert_eq!(news, told, "{version}");
    }
}

pub(crate) fn copy(store: &Memory) -> Memory {
    let copy = Memory::default();
    let entries = store.list("").unwrap().entries;
    let ops: Vec<_> = entries.into_iter().map(|entry| Op::Put(entry.key, entry.value)).collect();
    let _ = copy.commit(&ops, &[]).unwrap();
    copy
}

#[test]
fn an_origin_that_answers_is_heard_before_what_is_kept() {
    for upstream in [DELTA, SOTW] {
        let (mut world, _) = restarted(upstream);
        world.remove(0, CLUSTERS, "a");
        world.put(0, CLUSTERS, "b", "2");
        world.set_up(0, true);
        let client = world.client(DELTA, "n1");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(60 * SECOND);
        let told = world.told(client).join(" ");
        assert!(told.contains("b@2") && !told.contains("b@1") && !told.contains("a@1"), "{upstream:?}: {told}");
        assert_eq!(stale(&world), 0);
    }
}

#[test]
fn an_origin_that_says_nothing_is_away_after_a_moment() {
    let (mut world, _) = restarted(DELTA);
    world.origins[0].silent = true;
    world.set_up(0, true);
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    assert_eq!(world.told(client), [""; 0]);
    world.advance(SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1"]);
}

#[test]
fn what_was_lost_again_before_all_was_asked_for_is_served_but_for_what_was_said_otherwise() {
    let (mut world, _) = restarted(DELTA);
    world.set_up(0, true);
    world.remove(0, CLUSTERS, "a");
    let first = world.client(DELTA, "n1");
    world.subscribe(first, CLUSTERS, &["a"]);
    world.advance(SECOND);
    world.set_up(0, false);
    let second = world.client(DELTA, "n2");
    world.subscribe(second, CLUSTERS, &["*"]);
    world.subscribe(second, ENDPOINTS, &["e"]);
    world.advance(SECOND);
    assert_eq!(world.clients[second].held(CLUSTERS), ["b@1"]);
    assert_eq!(world.clients[second].held(ENDPOINTS), ["e@1"]);
}

#[test]
fn rule_100_a_removal_that_a_client_missed_is_told_after_a_restart() {
    let (mut world, store) = restarted(DELTA);
    world.set_up(0, true);
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &[GLOB]);
    world.advance(60 * SECOND);
    world.remove(0, CLUSTERS, &member("a"));
    world.advance(SECOND);
    world.restart(0, &text(DELTA), store.clone());
    // One who does not say what it holds.
    let returning = world.client(DELTA, "n2");
    world.set_up(0, false);
    world.subscribe(returning, CLUSTERS, &[GLOB]);
    world.advance(10 * SECOND);
    assert_eq!(world.told(returning), [format!("Cluster {}@1 ok", member("b"))]);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    let told = world.told(returning);
    assert!(told.iter().any(|line| line.contains(&format!("-{}", member("a")))), "{told:?}");
    // It is not known for ever.
    world.advance(2 * 3600 * SECOND);
    assert!(!keys(&store).iter().any(|key| key.contains(&member("a"))));
}

#[test]
fn rule_121_what_must_not_be_kept_is_not() {
    let (mut world, store) = world(DELTA);
    let now = world.now;
    world.put(0, CLUSTERS, "plain", "plain-body");
    world.origins[0].put_uncached(now, "", CLUSTERS, "private", "private-body");
    world.put(0, SECRETS, "key", "secret-body");
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.subscribe(client, SECRETS, &["key"]);
    world.advance(10 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["plain@plain-body", "private@private-body"]);
    assert_eq!(world.clients[client].held(SECRETS), ["key@secret-body"]);
    let written: String = store
        .list("")
        .unwrap()
        .entries
        .iter()
        .fold(String::new(), |all, entry| all + &entry.key + &String::from_utf8_lossy(&entry.value));
    for (text, is_there) in [("plain-body", true), ("private", false), ("secret-body", false), ("\0key", false)] {
        assert_eq!(written.contains(text), is_there, "{text}");
    }
    // What was shared before and is not any more, is not kept any more.
    world.origins[0].put_uncached(now, "", CLUSTERS, "plain", "plain-private");
    world.advance(10 * SECOND);
    assert!(!keys(&store).iter().any(|key| key.contains("\0plain")));
}

#[test]
fn what_nobody_wants_any_more_is_not_kept() {
    let (mut world, store) = world(DELTA);
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    let is_kept = |store: &Memory| keys(store).iter().any(|key| key.contains("/body/") || key.contains("/known/"));
    assert!(is_kept(&store));
    world.disconnect(client);
    world.advance(LINGER + 5 * SECOND);
    assert!(!is_kept(&store), "{:?}", keys(&store));
}

#[test]
fn nobody_is_served_what_another_origin_or_another_group_said() {
    let away = text(DELTA);
    for (other, is_served) in [
        (away.clone(), true),
        (away.replace("share_by: [cluster]", "share_by: [id]"), false),
        (away.replace("127.0.0.1:1", "127.0.0.1:2"), true),
        (away.replace("o0", "o1"), false),
        (away.replace("delta", "sotw"), false),
        (away.replace("delta", "delta, node_metadata: { a: b }"), false),
    ] {
        let (mut world, store) = restarted(DELTA);
        world.restart(0, &other, store);
        let client = world.client(DELTA, "c");
        world.subscribe(client, CLUSTERS, &["a"]);
        world.advance(SECOND);
        assert_eq!(!world.clients[client].held(CLUSTERS).is_empty(), is_served, "{other}");
    }
}

#[test]
fn what_nobody_asked_for_for_a_week_is_not_kept() {
    let (mut world, store) = restarted(DELTA);
    for (days, is_kept) in [(6, true), (2, false)] {
        world.advance(days * 24 * 3600 * SECOND / 3600);
        world.now += days * 24 * 3600 * SECOND;
        world.restart(0, &text(DELTA), store.clone());
        world.advance(SECOND);
        assert_eq!(keys(&store).iter().any(|key| key.contains("/known/")), is_kept, "{days}");
    }
}

#[test]
fn what_is_damaged_is_left_out() {
    let (mut world, store) = restarted(DELTA);
    let entries = store.list("").unwrap().entries;
    let damaged = |key: &str| key.contains("\0a");
    let ops: Vec<_> = entries
        .into_iter()
        .filter(|entry| damaged(&entry.key))
        .map(|entry| {
            let mut value = entry.value.to_vec();
            value[1] ^= 1;
            Op::Put(entry.key, value.into())
        })
        .collect();
    assert_eq!(ops.len(), 1);
    let _ = store.commit(&ops, &[]).unwrap();
    world.restart(0, &text(DELTA), store.clone());
    assert_eq!(world.relays[0].core.state().unwrap().damaged(), 1);
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["b@1"]);
    assert!(!keys(&store).iter().any(|key| key.contains("\0a")));
}

#[test]
fn another_format_is_not_read() {
    let store = Memory::default();
    let _ = store.commit(&[Op::put("xds-relay/v1/format", "2"), Op::put("xds-relay/v1/known/x", "")], &[]).unwrap();
    let config = xds_relay::Config::parse("relay.yaml", &text(DELTA)).unwrap();
    let now = std::time::Instant::now();
    let open = xds_relay::state::State::open(
        store,
        xds_relay::state::identities(&config, &xds_relay::relay_core::EveryNode),
        None,
        now,
        std::time::SystemTime::UNIX_EPOCH,
    );
    assert!(matches!(open, Err(StoreError::Format(_))));
}

/// A store whose disk is full, or hangs.
#[derive(Clone, Default)]
struct Bad {
    inner: Memory,
    full: Arc<AtomicBool>,
    hangs: Arc<(Mutex<bool>, Condvar)>,
    tries: Arc<AtomicUsize>,
    largest: Arc<AtomicUsize>,
}

impl Bad {
    fn hang(&self, hangs: bool) {
        *self.hangs.0.lock().unwrap() = hangs;
        self.hangs.1.notify_all();
    }
}

impl Store for Bad {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.tries.fetch_add(1, Ordering::Relaxed);
        self.largest.fetch_max(ops.len(), Ordering::Relaxed);
        drop(self.hangs.1.wait_while(self.hangs.0.lock().unwrap(), |hangs| *hangs).unwrap());
        if self.full.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("no space").into());
        }
        self.inner.commit(ops, compares)
    }
}

/// A relay on a store that may turn bad, and a client that wants every cluster.
fn with_bad_store() -> (World, Bad, usize) {
    let (mut world, _) = world(DELTA);
    let store = Bad::default();
    world.restart(0, &text(DELTA), store.clone());
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    (world, store, client)
}

/// What a client of a relay that was restarted with this store is served.
pub(crate) fn served_from(world: &mut World, store: impl Store) -> Vec<String> {
    world.set_up(0, false);
    world.restart(0, &text(DELTA), store);
    let client = world.client(DELTA, "later");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.clients[client].held(CLUSTERS)
}

#[test]
fn a_full_disk_is_told_and_what_was_not_written_is_later() {
    let (mut world, store, client) = with_bad_store();
    world.put(0, CLUSTERS, "a", "1");
    world.advance(SECOND);
    store.full.store(true, Ordering::Relaxed);
    for version in 2..100 {
        world.put(0, CLUSTERS, "a", &version.to_string());
        world.put(0, CLUSTERS, &format!("b{version}"), "1");
        world.advance(SECOND);
    }
    assert_eq!(world.clients[client].held(CLUSTERS).len(), 99);
    store.full.store(false, Ordering::Relaxed);
    world.advance(2 * SECOND);
    let held = served_from(&mut world, store);
    assert!(held.len() == 99 && held.contains(&"a@99".to_owned()), "{held:?}");
}

#[test]
fn a_disk_that_hangs_keeps_nobody_waiting_and_what_waits_for_it_is_bounded() {
    let (mut world, store, client) = with_bad_store();
    world.put(0, CLUSTERS, "first", "1");
    world.advance(SECOND);
    store.hang(true);
    let core = world.relays[0].core.clone();
    let tries = store.tries.load(Ordering::Relaxed);
    world.put(0, CLUSTERS, "second", "1");
    let (now, wall) = (world.now, world.wall());
    let saving = std::thread::spawn(move || core.save(now, wall).is_ok());
    while store.tries.load(Ordering::Relaxed) == tries {
        std::thread::yield_now();
    }
    // More names than are noted.
    for round in 0..70 {
        let now = world.now;
        for number in 0..1000 {
            world.origins[0].put(now, CLUSTERS, &format!("{round}-{number}"), "1");
        }
        world.settle();
        for number in 0..1000 {
            world.origins[0].remove(now, CLUSTERS, &format!("{round}-{number}"));
        }
        world.put(0, CLUSTERS, "first", &round.to_string());
    }
    assert_eq!(world.clients[client].held(CLUSTERS), ["first@69", "second@1"]);
    store.hang(false);
    assert!(saving.join().unwrap());
    world.advance(5 * SECOND);
    assert!(store.largest.load(Ordering::Relaxed) < 1000, "each once, as it is");
    assert_eq!(served_from(&mut world, store.inner), ["first@69", "second@1"]);
}

#[test]
fn an_alias_and_a_ttl_are_kept() {
    let (mut world, store) = world(DELTA);
    let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    let now = world.now;
    let aliased = frame(hosts, "host", "1").with_wrapper(Bytes::from_static(b"\x22\x05alias"), None, false);
    world.origins[0].put_frame(now, "", hosts, "host", "1", aliased);
    let short = frame(CLUSTERS, "short", "1").with_wrapper(Bytes::new(), Some(100 * SECOND), false);
    world.origins[0].put_frame(now, "", CLUSTERS, "short", "1", short);
    let client = world.client(DELTA, "n1");
    world.subscribe(client, hosts, &["alias"]);
    world.subscribe(client, CLUSTERS, &["short"]);
    world.advance(10 * SECOND);
    world.set_up(0, false);
    world.restart(0, &text(DELTA), copy(&store));
    let new = world.client(DELTA, "n2");
    world.subscribe(new, hosts, &["alias"]);
    world.subscribe(new, CLUSTERS, &["short"]);
    world.advance(SECOND);
    assert_eq!(
        (world.clients[new].held(hosts), world.clients[new].held(CLUSTERS)),
        (vec!["host@1".into()], vec!["short@1".into()])
    );
    world.advance(200 * SECOND);
    assert_eq!(world.clients[new].held(CLUSTERS), [""; 0], "nobody has refreshed it");
    world.restart(0, &text(DELTA), store);
    let late = world.client(DELTA, "n3");
    world.subscribe(late, CLUSTERS, &["short"]);
    world.advance(SECOND);
    assert_eq!(world.clients[late].held(CLUSTERS), [""; 0], "nor since it was written");
}

/// Two groups that are sent the same.
#[test]
fn a_body_that_several_groups_have_is_kept_once_for_all_further_ones() {
    let (mut world, store) = world(DELTA);
    let other = text(DELTA).replace("share_by: [cluster]\n", "");
    world.restart(0, &other, store.clone());
    let body = "body".repeat(100);
    world.put(0, CLUSTERS, "a", &body);
    let clients = ["n1", "n2", "n3"].map(|node| world.client(DELTA, node));
    clients.iter().for_each(|client| world.subscribe(*client, CLUSTERS, &["a"]));
    world.advance(5 * SECOND);
    let bodies = |store: &Memory| store.list("xds-relay/v1/body/").unwrap().entries.len();
    assert_eq!(bodies(&store), 1);
    world.set_up(0, false);
    world.restart(0, &other, store.clone());
    for client in clients {
        world.connect(client, 0);
    }
    let new = ["n1", "n3"].map(|node| world.client(DELTA, node));
    new.iter().for_each(|client| world.subscribe(*client, CLUSTERS, &["a"]));
    world.advance(SECOND);
    for client in new {
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("a@{body}")]);
    }
    world.set_up(0, true);
    world.put(0, CLUSTERS, "a", "2");
    world.advance(60 * SECOND);
    let kept = store.list("").unwrap().entries;
    assert!(!kept.iter().any(|entry| String::from_utf8_lossy(&entry.value).contains("bodybody")));
}
