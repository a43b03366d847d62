//! Stores that are in trouble, and what is older than it seems.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::Bytes;
use prost::Message as _;
use xds_relay::state::{Commit, Compare, Listing, Memory, Op, Revision, State, Store, StoreError, Watch, identities};
use xds_transport::server::Stream;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

use crate::last_known_good::{copy, keys, restarted, served_from, stale, text, world};

use crate::support::*;

/// A store that cannot be listed, or is gone.
#[derive(Clone, Default)]
struct Troubled {
    inner: Memory,
    unreadable: Arc<AtomicBool>,
    gone: Arc<AtomicBool>,
}

impl Store for Troubled {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        if self.unreadable.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("no answer").into());
        }
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        if self.gone.load(Ordering::Relaxed) { Err(StoreError::Gone) } else { self.inner.commit(ops, compares) }
    }
}

#[test]
fn what_a_scope_knew_that_went_while_the_store_could_not_be_listed_is_written_later() {
    let (mut world, store) = restarted(DELTA);
    let store = Troubled { inner: store, ..Troubled::default() };
    world.restart(0, &text(DELTA), store.clone());
    let client = world.client(DELTA, "n2");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(10 * SECOND);
    assert_eq!(stale(&world), 3);
    store.unreadable.store(true, Ordering::Relaxed);
    world.put(0, CLUSTERS, "a", "2");
    world.remove(0, CLUSTERS, "b");
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"]);
    world.disconnect(client);
    world.advance(2 * LINGER);
    assert_eq!(world.scopes_of(0), [""; 0]);
    store.unreadable.store(false, Ordering::Relaxed);
    world.advance(5 * SECOND);
    // What nobody wants is not known any more, and what was known before that is older.
    assert_eq!(served_from(&mut world, store.inner), [""; 0]);
}

/// A relay whose store is there when `there` is.
fn restart_later(world: &mut World, store: &Memory, there: &Arc<AtomicBool>) -> Arc<AtomicUsize> {
    let tries = Arc::<AtomicUsize>::default();
    let (store, there, counted) = (store.clone(), there.clone(), tries.clone());
    world.restart_with(0, &text(DELTA), move |config, grouping, now, wall| {
        let open = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let full = || std::io::Error::other("no space");
            if there.load(Ordering::Relaxed) { Ok(store.clone()) } else { Err(full().into()) }
        };
        State::later(open, identities(config, grouping), xds_relay::state::keys(config).unwrap(), now, wall)
    });
    tries
}

#[test]
fn a_store_that_cannot_be_opened_is_opened_later_and_who_waits_is_served_from_it() {
    let (mut world, store) = restarted(DELTA);
    let there = Arc::<AtomicBool>::default();
    let tries = restart_later(&mut world, &store, &there);
    let client = world.client(DELTA, "n2");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(30 * SECOND);
    assert_eq!(tries.load(Ordering::Relaxed), 3, "not every second");
    assert_eq!((world.counted(0, "state_kept "), world.clients[client].held(CLUSTERS).len()), (0, 0));
    there.store(true, Ordering::Relaxed);
    world.advance(12 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1"]);
    assert_eq!((world.counted(0, "state_kept "), stale(&world)), (1, 3));
    assert!(world.counted(0, "stale_seconds ") >= 30);
    // And it is written.
    world.put(0, CLUSTERS, "a", "2");
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!(served_from(&mut world, store), ["a@2", "b@1"]);
}

#[test]
fn what_an_origin_said_before_the_store_was_read_counts_and_is_written() {
    let (mut world, store) = restarted(DELTA);
    let there = Arc::<AtomicBool>::default();
    restart_later(&mut world, &store, &there);
    world.put(0, CLUSTERS, "a", "2");
    world.remove(0, CLUSTERS, "b");
    world.set_up(0, true);
    let client = world.client(DELTA, "n2");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(10 * SECOND);
    there.store(true, Ordering::Relaxed);
    world.advance(30 * SECOND);
    assert_eq!((world.clients[client].held(CLUSTERS), stale(&world)), (vec!["a@2".to_owned()], 0));
    assert_eq!(served_from(&mut world, store), ["a@2"]);
}

#[test]
fn what_was_in_a_store_that_is_gone_is_written_to_the_next() {
    let (mut world, _) = world(DELTA);
    let stores = Arc::<Mutex<Vec<Troubled>>>::default();
    let opened = stores.clone();
    world.restart_with(0, &text(DELTA), move |config, grouping, now, wall| {
        let open = move || {
            let store = Troubled::default();
            opened.lock().unwrap().push(store.clone());
            Ok(store)
        };
        State::later(open, identities(config, grouping), xds_relay::state::keys(config).unwrap(), now, wall)
    });
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n1");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(5 * SECOND);
    stores.lock().unwrap()[0].gone.store(true, Ordering::Relaxed);
    world.put(0, CLUSTERS, "b", "1");
    world.advance(20 * SECOND);
    let store = stores.lock().unwrap().pop().unwrap().inner;
    assert_eq!(stores.lock().unwrap().len(), 1);
    assert_eq!(served_from(&mut world, store), ["a@1", "b@1"]);
}

/// Endpoints are sent to who comes back, whatever he has (rule 124): not what may be older than that.
#[test]
fn endpoints_do_not_go_back_in_time_while_the_origin_is_away() {
    for (kept, sent, at_last) in [("1", 2, 2), ("2", 2, 3)] {
        let (mut world, _) = world(DELTA);
        let store = Memory::default();
        world.restart(0, &text(DELTA), store.clone());
        world.put(0, ENDPOINTS, "e", "1");
        let client = world.client(DELTA, "n1");
        world.subscribe(client, ENDPOINTS, &["e"]);
        world.advance(SECOND);
        let before = copy(&store);
        // The last of it was not written.
        world.put(0, ENDPOINTS, "e", kept);
        world.set_up(0, false);
        world.restart(0, &text(DELTA), before);
        world.told(client);
        world.connect(client, 0);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), [format!("e@{kept}")]);
        assert_eq!(world.clients[client].chunks.len(), sent, "what it has it may need again");
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), [format!("e@{kept}")]);
        assert_eq!(world.clients[client].chunks.len(), at_last, "as it always is");
    }
}

/// One that has all of it already is told nothing, and has no reason to go elsewhere.
#[test]
fn rule_157_who_comes_back_with_what_is_stale_stays() {
    let (mut world, _) = restarted(DELTA);
    let core = world.relays[0].core.clone();
    let node = Node { id: "n1".into(), cluster: "c".into(), ..Node::default() };
    let request = |held: Vec<Bytes>| DeltaDiscoveryRequest {
        node: node.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: vec!["a".into(), "b".into()],
        initial_resource_versions: held,
        ..Default::default()
    };
    let mut held = Vec::new();
    for comes_back in [false, true] {
        let ended = Arc::new(Ended::default());
        let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(ended.clone()));
        let mut stream = Stream::new(DELTA, core.settings());
        let request = request(held.clone()).encode_to_vec().into();
        stream.handle_message(world.now, request, &mut routes).unwrap();
        let mut told = 0;
        for _ in 0..10 {
            world.advance(SECOND);
            while let Some(mut response) = stream.poll_transmit(world.now, &mut routes).unwrap() {
                let bytes: Vec<u8> = std::iter::from_fn(|| response.next_chunk()).flatten().collect();
                let response = DeltaDiscoveryResponse::decode(&bytes[..]).unwrap();
                told += response.resources.len();
                held.extend(response.resources.iter().map(|resource| entry(&resource.name, &resource.version)));
            }
        }
        assert_eq!((ended.0.lock().unwrap().clone(), told), (None, if comes_back { 0 } else { 2 }));
        stream.close(&mut routes);
    }
}

/// Of a map.
fn entry(key: &str, value: &str) -> Bytes {
    let field = |number: u8, text: &str| [&[number << 3 | 2, text.len() as u8], text.as_bytes()].concat();
    [field(1, key), field(2, value)].concat().into()
}

#[test]
fn what_is_stale_is_as_old_as_it_is_over_restarts_until_its_origin_confirms_it() {
    let (mut world, store) = restarted(DELTA);
    let age = |world: &mut World| {
        let client = world.client(DELTA, "n2");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(5 * SECOND);
        world.counted(0, "stale_seconds ")
    };
    assert!(age(&mut world) < 60);
    world.advance(1000 * SECOND);
    for restart in 1..3 {
        world.restart(0, &text(DELTA), store.clone());
        world.advance(100 * SECOND);
        let age = age(&mut world);
        assert!(age >= 1000 + 100 * restart, "{age}");
    }
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!((stale(&world), world.counted(0, "stale_seconds ")), (0, 0));
    world.set_up(0, false);
    world.restart(0, &text(DELTA), store);
    let age = age(&mut world);
    assert!(age < 90, "{age}");
}

#[test]
fn what_is_known_of_an_origin_is_so_by_what_was_read_of_it() {
    let has_read = |world: &World| world.relays[0].core.state().unwrap().has_read(0);
    let (mut world, store) = restarted(DELTA);
    assert!(has_read(&world));
    world.restart(0, &text(DELTA), Memory::default());
    assert!(!has_read(&world), "there is nothing");
    world.restart(0, &text(DELTA).replace("name: o0", "name: other"), copy(&store));
    assert!(!has_read(&world), "it is another's");
    world.restart(0, &text(DELTA).replace("share_by: [cluster]\n", "share_by: [id]\n"), copy(&store));
    assert!(has_read(&world), "what groups have not in common authorities have");
    world.restart(0, &text(DELTA), store);
    assert!(has_read(&world));
}

#[test]
fn of_nodes_that_are_each_by_itself_nothing_is_written_but_of_those_that_have_something() {
    let (mut world, store) = world(DELTA);
    let text = text(DELTA).replace("cluster", "id");
    world.restart(0, &text, store.clone());
    world.put(0, ENDPOINTS, "e", "1");
    let clients = ["n1", "n2", "n3", "n4"].map(|node| world.client(DELTA, node));
    for (client, name) in clients.iter().zip(["e", "none", "e", "none"]) {
        world.subscribe(*client, ENDPOINTS, &[name]);
    }
    world.advance(40 * SECOND);
    let records = |store: &Memory| keys(store).iter().filter(|key| key.contains("/scope/")).count();
    assert_eq!((world.scopes_of(0).len(), records(&store)), (4, 2));
    // Nobody has it any more, and nobody can.
    world.remove(0, ENDPOINTS, "e");
    world.advance(40 * SECOND);
    assert_eq!(records(&store), 0);
    world.put(0, ENDPOINTS, "e", "2");
    world.advance(5 * SECOND);
    assert_eq!(records(&store), 2);
    world.set_up(0, false);
    world.restart(0, &text, store.clone());
    let client = world.client(DELTA, "n1");
    world.subscribe(client, ENDPOINTS, &["e"]);
    world.advance(5 * SECOND);
    assert_eq!(world.clients[client].held(ENDPOINTS), ["e@2"]);
}

#[test]
fn no_secret_of_any_version_is_kept() {
    let (mut world, store) = world(DELTA);
    let of = [
        "type.googleapis.com/envoy.api.v2.auth.Secret",
        "example.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.SecretCollection",
    ];
    let client = world.client(DELTA, "n1");
    for of in of {
        world.put(0, of, "key", "1");
        world.subscribe(client, of, &["key"]);
    }
    world.advance(5 * SECOND);
    assert_eq!(world.clients[client].held(of[0]), ["key@1"]);
    assert!(!keys(&store).iter().any(|key| key.contains("Secret")));
}

#[test]
fn secrets_are_kept_encrypted_if_there_is_a_key() {
    const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    let [first, second] = ["11", "22"].map(|digits| digits.repeat(32));
    std::fs::write(&keys, &first).unwrap();
    let (mut world, store) = world(DELTA);
    let text = format!(
        "{}state: {{ path: '{}', secrets: {{ encrypted: '{}' }} }}\n",
        text(DELTA),
        directory.path().display(),
        keys.display()
    );
    world.restart(0, &text, store.clone());
    world.put(0, SECRETS, "key", "sesame");
    world.put(0, CLUSTERS, "a", "plain");
    let client = world.client(DELTA, "n1");
    world.subscribe(client, SECRETS, &["key"]);
    world.subscribe(client, CLUSTERS, &["a"]);
    world.advance(5 * SECOND);
    world.set_up(0, false);
    let shows = |store: &Memory, text: &str| {
        let entries = store.list("").unwrap().entries;
        entries.iter().any(|entry| String::from_utf8_lossy(&entry.value).contains(text))
    };
    assert!(shows(&store, "plain") && !shows(&store, "sesame"));
    let served = |world: &mut World, text: &str, store: &Memory| {
        world.restart(0, text, store.clone());
        let client = world.client(DELTA, "n2");
        world.subscribe(client, SECRETS, &["key"]);
        world.advance(2 * SECOND);
        world.clients[client].held(SECRETS)
    };
    assert_eq!(served(&mut world, &text, &store), ["key@sesame"]);
    // A further key: what is read by the old one is written by the new one.
    std::fs::write(&keys, format!("{second}\n{first}\n")).unwrap();
    assert_eq!(served(&mut world, &text, &store), ["key@sesame"]);
    std::fs::write(&keys, &second).unwrap();
    assert_eq!(served(&mut world, &text, &store), ["key@sesame"]);
    let before = copy(&store);
    std::fs::write(&keys, &first).unwrap();
    assert_eq!(served(&mut world, &text, &before), [""; 0], "by no key that there is");
    assert_eq!(world.relays[0].core.state().unwrap().damaged(), 1);
    // Secrets are not kept any more: nor is what was.
    assert!(keys_of_secrets(&store));
    let without = text.split("state:").next().unwrap();
    assert_eq!(served(&mut world, without, &store), [""; 0]);
    assert!(!keys_of_secrets(&store));
}

fn keys_of_secrets(store: &Memory) -> bool {
    keys(store).iter().any(|key| key.contains("Secret"))
}
