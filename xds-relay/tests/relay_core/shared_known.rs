//! What relays know of an origin, in one store: who starts with nothing serves what others knew.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use xds_relay::relay_core::KnownSharing;
use xds_relay::state::{Memory, Op, State, Store, identities, keys};

use crate::last_known_good::{keys as keys_in, text};
use crate::support::replicas::Seat;
use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

/// Relays of one origin.
pub(crate) struct Sharers {
    pub(crate) world: World,
    text: String,
    pub(crate) store: Arc<Mutex<Memory>>,
    holder: Arc<Mutex<Option<u64>>>,
    pub(crate) seats: Vec<Seat>,
    sharings: Vec<KnownSharing>,
    /// What each keeps by itself.
    pub(crate) own: Vec<Memory>,
}

impl Sharers {
    pub(crate) fn new(relays: usize, text: &str) -> Self {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let (store, holder, text) = (Arc::default(), Arc::default(), text.to_owned());
        let (seats, sharings, own) = (Vec::new(), Vec::new(), Vec::new());
        let mut sharers = Self { world, text, store, holder, seats, sharings, own };
        (0..relays).for_each(|_| sharers.start());
        sharers
    }

    /// One more relay, which knows nothing by itself.
    pub(crate) fn start(&mut self) {
        let relay = self.world.add_relay(&self.text, vec![Feeder::Origin(0)]);
        let seat = Seat::at(self.store.clone(), self.holder.clone());
        self.sharings.push(KnownSharing::new(Arc::new(seat.clone()), None));
        self.seats.push(seat);
        self.own.push(Memory::default());
        self.restart(relay);
    }

    /// A relay is killed and starts again, with what it kept by itself. Its clients are for the caller to connect.
    pub(crate) fn restart(&mut self, relay: usize) {
        self.world.stop(relay);
        let own = self.own[relay].clone();
        let sharing = &mut self.sharings[relay];
        let seat = Arc::new(self.seats[relay].clone());
        self.world.start(
            relay,
            &self.text,
            Some(|config: &_, grouping: &_, now, wall| {
                let keys = keys(config).unwrap();
                let state = State::open(own, identities(config, grouping), keys.clone(), now, wall).unwrap();
                *sharing = KnownSharing::new(seat, keys);
                sharing.learn(&state, now, wall);
                state
            }),
        );
    }

    pub(crate) fn kill(&mut self, relay: usize) {
        self.world.stop(relay);
        self.expire();
    }

    /// Whoever writes has been silent for too long.
    pub(crate) fn expire(&self) {
        *self.holder.lock().unwrap() = None;
        let store = self.store.lock().unwrap().clone();
        let turns = store.list("xds-relay/known/").unwrap().entries.into_iter();
        turns.for_each(|turn| _ = store.commit(&[Op::delete(turn.key)], &[]).unwrap());
    }

    pub(crate) fn advance(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.world.advance(SECOND);
            for (relay, sharing) in self.world.relays.iter().zip(&mut self.sharings).filter(|(relay, _)| !relay.stopped)
            {
                sharing.step(&relay.core, self.world.now, self.world.wall());
            }
        }
    }

    pub(crate) fn client(&mut self, relay: usize, protocol: Protocol, id: &str) -> usize {
        let node = xds_transport::wire::Node { id: id.into(), cluster: "c".into(), ..Default::default() };
        self.world.client_with(relay, protocol, &node)
    }

    fn keys(&self) -> Vec<String> {
        keys_in(&self.store.lock().unwrap())
    }

    /// Whether something is kept of a name.
    fn has(&self, name: &str) -> bool {
        self.keys().iter().any(|key| key.ends_with(&format!("\0{name}")))
    }
}

/// A relay has heard an origin for long, which is away then.
fn known(protocol: Protocol) -> Sharers {
    let mut sharers = Sharers::new(1, &text(protocol));
    for name in ["a", "b", &member("a"), &member("b")] {
        sharers.world.put(0, CLUSTERS, name, "1");
    }
    sharers.world.put(0, ENDPOINTS, "e", "1");
    let first = sharers.client(0, DELTA, "n1");
    sharers.world.subscribe(first, CLUSTERS, &["*", GLOB]);
    sharers.world.subscribe(first, ENDPOINTS, &["e"]);
    sharers.advance(100);
    sharers
}

fn all() -> [String; 4] {
    ["a@1".to_owned(), "b@1".to_owned(), format!("{}@1", member("a")), format!("{}@1", member("b"))]
}

#[test]
fn a_relay_that_starts_for_the_first_time_serves_what_others_knew_while_the_origin_is_away() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut sharers = known(upstream);
            sharers.world.set_up(0, false);
            sharers.advance(5);
            sharers.kill(0);
            sharers.start();
            let new = sharers.client(1, downstream, "n2");
            sharers.world.subscribe(new, CLUSTERS, &["*", GLOB]);
            sharers.world.subscribe(new, ENDPOINTS, &["e"]);
            sharers.advance(1);
            assert_eq!(sharers.world.clients[new].held(CLUSTERS), all(), "{upstream:?} {downstream:?}");
            assert_eq!(sharers.world.clients[new].held(ENDPOINTS), ["e@1"]);
            assert_eq!(sharers.world.counted(1, "stale_resources{origin=\"o0\"}") as usize, 5);
            // The origin is back, and has the same: nothing is sent again.
            sharers.world.told(new);
            sharers.world.set_up(0, true);
            sharers.advance(60);
            assert_eq!(sharers.world.told(new), [""; 0], "{upstream:?} {downstream:?}");
            assert_eq!(sharers.world.counted(1, "stale_resources{origin=\"o0\"}") as usize, 0);
        }
    }
}

#[test]
fn what_is_gone_by_the_origins_word_is_served_by_nobody_who_starts_later() {
    for upstream in [DELTA, SOTW] {
        let mut sharers = known(upstream);
        sharers.world.remove(0, CLUSTERS, "a");
        sharers.world.remove(0, CLUSTERS, &member("a"));
        sharers.world.remove(0, ENDPOINTS, "e");
        sharers.world.put(0, CLUSTERS, "b", "2");
        sharers.advance(40);
        sharers.world.set_up(0, false);
        sharers.advance(5);
        sharers.kill(0);
        sharers.start();
        let new = sharers.client(1, DELTA, "n2");
        sharers.world.subscribe(new, CLUSTERS, &["*", GLOB]);
        sharers.world.subscribe(new, ENDPOINTS, &["e"]);
        sharers.advance(5);
        let held = ["b@2".to_owned(), format!("{}@1", member("b"))];
        assert_eq!(sharers.world.clients[new].held(CLUSTERS), held, "{upstream:?}");
        // SotW says nothing of endpoints that go.
        assert_eq!(sharers.world.clients[new].held(ENDPOINTS), if upstream == DELTA { vec![] } else { vec!["e@1"] });
    }
}

/// A relay that serves others forgets what none of its clients wants. The origin has it still.
#[test]
fn what_clients_leave_is_known_to_others_for_longer() {
    let mut sharers = known(DELTA);
    let client = sharers.client(0, DELTA, "n3");
    sharers.world.put(0, ENDPOINTS, "left", "1");
    sharers.world.subscribe(client, ENDPOINTS, &["left"]);
    sharers.advance(40);
    assert!(sharers.has("left"));
    sharers.world.unsubscribe(client, ENDPOINTS, &["left"]);
    sharers.advance(300);
    assert!(!keys_in(&sharers.own[0]).iter().any(|key| key.ends_with("\0left")), "it is not kept here");
    assert!(sharers.has("left"));
}

#[test]
fn another_relay_writes_when_the_one_that_did_is_gone_and_leaves_what_it_does_not_know() {
    let mut sharers = known(DELTA);
    sharers.start();
    sharers.world.put(0, ENDPOINTS, "other", "1");
    let other = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(other, ENDPOINTS, &["other"]);
    sharers.advance(100);
    assert!(!sharers.has("other") && sharers.has("e"), "one writes");
    sharers.kill(0);
    sharers.advance(100);
    assert!(sharers.has("other") && sharers.has("e") && sharers.has("b"));
}

/// What went while nobody wrote, and who writes next heard of.
#[test]
fn what_goes_while_nobody_writes_is_not_known_for_ever() {
    for upstream in [DELTA, SOTW] {
        let mut sharers = known(upstream);
        sharers.start();
        let other = sharers.client(1, DELTA, "n2");
        sharers.world.subscribe(other, CLUSTERS, &["*", GLOB]);
        sharers.world.subscribe(other, ENDPOINTS, &["e"]);
        sharers.advance(10);
        sharers.world.stop(0);
        for (of, name) in [(ENDPOINTS, "e"), (CLUSTERS, "a"), (CLUSTERS, &member("a"))] {
            sharers.world.remove(0, of, name);
        }
        // One comes back before anybody writes.
        sharers.world.remove(0, CLUSTERS, "b");
        sharers.world.put(0, CLUSTERS, "b", "1");
        sharers.advance(5);
        sharers.expire();
        sharers.advance(100);
        sharers.world.set_up(0, false);
        sharers.advance(5);
        sharers.kill(1);
        sharers.start();
        let new = sharers.client(2, DELTA, "n3");
        sharers.world.subscribe(new, CLUSTERS, &["*", GLOB]);
        sharers.advance(5);
        let held = ["b@1".to_owned(), format!("{}@1", member("b"))];
        assert_eq!(sharers.world.clients[new].held(CLUSTERS), held, "{upstream:?}");
        assert_eq!(sharers.has("e"), upstream == SOTW);
    }
}

/// A relay that hears no origin does not write, and one that hears none any more lets others.
#[test]
fn who_writes_hears_an_origin() {
    let mut sharers = Sharers::new(2, &text(DELTA));
    sharers.world.put(0, ENDPOINTS, "e", "1");
    sharers.advance(60);
    assert_eq!(sharers.keys(), [""; 0], "nobody asks the origin for anything");
    let client = sharers.client(1, DELTA, "n");
    sharers.world.subscribe(client, ENDPOINTS, &["e"]);
    sharers.advance(60);
    assert!(sharers.has("e"));
    sharers.world.set_up(0, false);
    sharers.advance(100);
    assert!(sharers.holder.lock().unwrap().is_none());
    assert!(sharers.has("e"));
}

#[test]
fn what_a_relay_knows_by_itself_is_not_given_up_for_what_others_know() {
    let mut sharers = known(DELTA);
    sharers.start();
    let client = sharers.client(1, DELTA, "n2");
    sharers.world.put(0, ENDPOINTS, "own", "1");
    sharers.world.subscribe(client, CLUSTERS, &["*"]);
    sharers.world.subscribe(client, ENDPOINTS, &["own"]);
    sharers.advance(100);
    sharers.world.stop(1);
    sharers.advance(400);
    sharers.world.set_up(0, false);
    sharers.kill(0);
    sharers.restart(1);
    let new = sharers.client(1, DELTA, "n3");
    sharers.world.subscribe(new, CLUSTERS, &["*"]);
    sharers.world.subscribe(new, ENDPOINTS, &["own"]);
    sharers.advance(5);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), ["a@1", "b@1"]);
    assert_eq!(sharers.world.clients[new].held(ENDPOINTS), ["own@1"]);
}

/// An etcd takes so many ops at once, and who writes may end after any of them: what others read meanwhile is whole.
#[test]
fn what_is_written_in_pieces_is_read_whole_wherever_it_ends() {
    for commits in 0..14 {
        let mut sharers = Sharers::new(2, &text(DELTA));
        for (name, body) in [("a", "1"), ("b", "1"), ("c", "1"), (&member("a"), "1"), (&member("b"), "2")] {
            sharers.world.put(0, CLUSTERS, name, body);
        }
        let client = sharers.client(0, DELTA, "n1");
        sharers.world.subscribe(client, CLUSTERS, &["*", GLOB]);
        sharers.seats[0].takes.store(1, Ordering::Relaxed);
        sharers.seats[0].fails_after.store(commits, Ordering::Relaxed);
        sharers.advance(40);
        sharers.world.remove(0, CLUSTERS, "a");
        sharers.world.put(0, CLUSTERS, "b", "2");
        sharers.advance(60);
        let seat = Seat::at(sharers.store.clone(), sharers.seats[0].holder.clone());
        let config = xds_relay::Config::parse("relay.yaml", &sharers.text).unwrap();
        let grouping = xds_relay::relay_core::ShareBy::new(config.share_by.clone().unwrap());
        let (now, wall) = (sharers.world.now, sharers.world.wall());
        let state = State::open(Memory::default(), identities(&config, &grouping), None, now, wall).unwrap();
        KnownSharing::new(Arc::new(seat), None).learn(&state, now, wall);
        assert_eq!(state.damaged(), 0, "after {commits}");
        // It is tried again, and all of it is there.
        sharers.seats[0].fails_after.store(usize::MAX, Ordering::Relaxed);
        sharers.advance(200);
        sharers.world.set_up(0, false);
        sharers.advance(2);
        sharers.kill(0);
        sharers.own[1] = Memory::default();
        sharers.restart(1);
        let new = sharers.client(1, DELTA, "n2");
        sharers.world.subscribe(new, CLUSTERS, &["*", GLOB]);
        sharers.advance(5);
        let held = ["b@2", "c@1", &format!("{}@1", member("a")), &format!("{}@2", member("b"))];
        assert_eq!(sharers.world.clients[new].held(CLUSTERS), held, "after {commits}");
    }
}

/// What nobody says again is not forgotten because it could not be written.
#[test]
fn that_something_went_is_written_though_that_failed_at_first() {
    let mut sharers = known(DELTA);
    sharers.seats[0].fails_after.store(0, Ordering::Relaxed);
    sharers.world.remove(0, ENDPOINTS, "e");
    sharers.advance(40);
    assert!(sharers.has("e"));
    sharers.seats[0].fails_after.store(usize::MAX, Ordering::Relaxed);
    sharers.advance(100);
    assert!(!sharers.has("e") && sharers.has("a"));
}

#[test]
fn a_scope_that_nothing_changes_of_is_said_to_be_in_use() {
    let mut sharers = known(DELTA);
    let used = |sharers: &Sharers| {
        let entries = sharers.store.lock().unwrap().list("xds-relay/v1/scope/").unwrap().entries;
        entries.iter().map(|entry| entry.revision).min().unwrap()
    };
    let before = used(&sharers);
    sharers.advance(600);
    assert_eq!(used(&sharers), before, "not all the time");
    sharers.world.now += 26 * 3600 * SECOND;
    sharers.advance(120);
    assert!(used(&sharers) > before);
}

/// Its thread that notes what is known stands still, or is told nothing.
#[test]
fn a_relay_that_keeps_nothing_by_itself_does_not_write() {
    let mut sharers = known(DELTA);
    sharers.kill(0);
    sharers.start();
    sharers.world.stop(1);
    sharers.world.start(
        1,
        &sharers.text.clone(),
        Some(|config: &_, grouping: &_, now, wall| {
            let open = || Err::<Memory, _>(xds_relay::state::StoreError::Locked);
            State::later(open, identities(config, grouping), None, now, wall)
        }),
    );
    let client = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(client, CLUSTERS, &["*"]);
    sharers.advance(60);
    assert!(sharers.holder.lock().unwrap().is_none());
}

#[test]
fn a_relay_that_starts_while_the_store_is_away_learns_later() {
    let mut sharers = known(DELTA);
    sharers.world.set_up(0, false);
    sharers.kill(0);
    let store = std::mem::take(&mut *sharers.store.lock().unwrap());
    sharers.start();
    // It has read an empty store: it is cut off as it begins instead.
    *sharers.store.lock().unwrap() = store;
    sharers.seats[1].is_cut_off.store(true, Ordering::Relaxed);
    sharers.own[1] = Memory::default();
    sharers.restart(1);
    let new = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(new, CLUSTERS, &["*", GLOB]);
    sharers.advance(20);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), [""; 0]);
    sharers.seats[1].is_cut_off.store(false, Ordering::Relaxed);
    sharers.advance(10);
    assert_eq!(sharers.world.clients[new].held(CLUSTERS), all());
}

/// Each write is work for the store: who takes over finds that what it knows is there.
#[test]
fn who_takes_over_writes_what_is_not_there() {
    let mut sharers = known(DELTA);
    sharers.start();
    let client = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(client, CLUSTERS, &["*", GLOB]);
    sharers.world.subscribe(client, ENDPOINTS, &["e"]);
    sharers.advance(60);
    let revision = |sharers: &Sharers, name: &str| {
        let entries = sharers.store.lock().unwrap().list("").unwrap().entries;
        entries.iter().find(|entry| entry.key.ends_with(&format!("\0{name}"))).unwrap().revision
    };
    let before = ["a", "b", "e"].map(|name| revision(&sharers, name));
    sharers.kill(0);
    sharers.world.put(0, CLUSTERS, "b", "2");
    sharers.advance(100);
    let after = ["a", "b", "e"].map(|name| revision(&sharers, name));
    assert_eq!((after[0], after[2]), (before[0], before[2]));
    assert!(after[1] > before[1]);
}

#[test]
fn who_was_taken_for_gone_writes_nothing_more() {
    let mut sharers = known(DELTA);
    sharers.start();
    let client = sharers.client(1, DELTA, "n2");
    sharers.world.subscribe(client, ENDPOINTS, &["e"]);
    sharers.advance(60);
    sharers.seats[0].believes.store(true, Ordering::Relaxed);
    // It does not hear for a while, and another writes meanwhile.
    sharers.expire();
    sharers.world.put(0, ENDPOINTS, "e", "2");
    sharers.advance(100);
    let turns = sharers.store.lock().unwrap().list("xds-relay/known/").unwrap().entries;
    assert_eq!(turns.len(), 1);
    let instances: Vec<_> = sharers.world.relays.iter().map(|relay| relay.core.instance()).collect();
    let holder: u64 = String::from_utf8(turns[0].value.to_vec()).unwrap().parse().unwrap();
    assert_eq!(format!("{holder:016x}"), instances[1]);
    assert!(sharers.holder.lock().unwrap().is_some());
}

#[test]
fn secrets_are_shared_encrypted_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    std::fs::write(&file, "ab".repeat(32)).unwrap();
    for is_kept in [false, true] {
        let mut text = text(DELTA);
        if is_kept {
            let (path, keys) = (directory.path().display(), file.display());
            text += &format!("state: {{ path: '{path}', secrets: {{ encrypted: '{keys}' }} }}\n");
        }
        let mut sharers = Sharers::new(1, &text);
        sharers.world.put(0, SECRETS, "s", "hush");
        let client = sharers.client(0, DELTA, "n");
        sharers.world.subscribe(client, SECRETS, &["s"]);
        sharers.advance(60);
        let entries = sharers.store.lock().unwrap().list("").unwrap().entries;
        assert!(entries.iter().all(|entry| !String::from_utf8_lossy(&entry.value).contains("hush")));
        assert_eq!(sharers.has("s"), is_kept);
        sharers.world.set_up(0, false);
        sharers.kill(0);
        sharers.start();
        let new = sharers.client(1, DELTA, "n2");
        sharers.world.subscribe(new, SECRETS, &["s"]);
        sharers.advance(5);
        assert_eq!(sharers.world.clients[new].held(SECRETS), if is_kept { vec!["s@hush"] } else { vec![] });
    }
}

/// Keys are changed at one relay after the other.
#[test]
fn who_cannot_read_a_secret_leaves_it_to_those_who_can() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    std::fs::write(&file, "ab".repeat(32)).unwrap();
    let without = text(DELTA);
    let (path, keys) = (directory.path().display(), file.display());
    let with = format!("{without}state: {{ path: '{path}', secrets: {{ encrypted: '{keys}' }} }}\n");
    for other_keys in [true, false] {
        std::fs::write(&file, "ab".repeat(32)).unwrap();
        let mut sharers = Sharers::new(1, &with);
        sharers.world.put(0, SECRETS, "s", "hush");
        sharers.world.put(0, CLUSTERS, "a", "1");
        let client = sharers.client(0, DELTA, "n");
        sharers.world.subscribe(client, SECRETS, &["s"]);
        sharers.advance(60);
        sharers.kill(0);
        if other_keys {
            std::fs::write(&file, "cd".repeat(32)).unwrap();
        } else {
            sharers.text.clone_from(&without);
        }
        sharers.start();
        let client = sharers.client(1, DELTA, "n2");
        sharers.world.subscribe(client, CLUSTERS, &["a"]);
        sharers.advance(100);
        assert!(sharers.has("a") && sharers.has("s"), "{other_keys}");
    }
}
