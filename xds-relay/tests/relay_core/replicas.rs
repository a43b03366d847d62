//! Relays that have their releases in one store: one publishes, and all serve the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use xds_relay::config::Rollout;
use xds_relay::relay_core::RolloutError;
use xds_relay::releases::{
    Act, By, Control, Instance, Order, Progress, Stage, Stages, Threshold, Transition, Turn, Turns, Who,
};
use xds_relay::state::{Commit, Compare, Listing, Memory, Op, Revision, Store, StoreError, Watch};
use xds_transport::wire::Node;

use crate::support::{CLUSTERS, DELTA, SECOND, SOTW, World, file};

const FILES: &str = "origins: [{name: files, files: .}]\n";

/// What one relay has of the store that all have.
#[derive(Clone)]
struct Seat {
    store: Arc<Mutex<Memory>>,
    holder: Arc<Mutex<Option<u64>>>,
    is_cut_off: Arc<AtomicBool>,
    /// It was stopped for so long that it does not know what time it is.
    believes: Arc<AtomicBool>,
}

static TURNS: AtomicU64 = AtomicU64::new(1);

impl Seat {
    fn memory(&self) -> Result<Memory, StoreError> {
        match self.is_cut_off.load(Ordering::Relaxed) {
            true => Err(StoreError::Away("it is cut off".to_owned())),
            false => Ok(self.store.lock().unwrap().clone()),
        }
    }
}

impl Store for Seat {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.memory()?.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.memory()?.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.memory()?.commit(ops, compares)
    }
}

impl Turns for Seat {
    fn take(&self, key: &str, of: Instance) -> Result<Option<Box<dyn Turn>>, StoreError> {
        let memory = self.memory()?;
        let mut holder = self.holder.lock().unwrap();
        if holder.is_some() {
            return Ok(None);
        }
        let turn = TURNS.fetch_add(1, Ordering::Relaxed);
        *holder = Some(turn);
        let _ = memory.commit(&[Op::put(key, of.0.to_string())], &[]).unwrap();
        Ok(Some(Box::new(Mine { seat: self.clone(), turn, key: key.to_owned() })))
    }
}

/// A turn, which is over when its relay lets go of it, or it is [taken](Replicas::expire).
#[derive(Clone)]
struct Mine {
    seat: Seat,
    turn: u64,
    key: String,
}

impl Mine {
    fn is_over(&self) -> bool {
        *self.seat.holder.lock().unwrap() != Some(self.turn)
    }
}

impl Turn for Mine {
    fn is_held(&self) -> bool {
        self.seat.believes.load(Ordering::Relaxed) || !self.is_over()
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Fenced(self.clone()))
    }
}

struct Fenced(Mine);

impl Store for Fenced {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.0.seat.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.0.seat.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        let memory = self.0.seat.memory()?;
        if self.0.is_over() { Err(StoreError::Fenced) } else { memory.commit(ops, compares) }
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = &self.key;
    }
}

struct Replicas {
    world: World,
    store: Arc<Mutex<Memory>>,
    holder: Arc<Mutex<Option<u64>>>,
    seats: Vec<Seat>,
    watches: Vec<Watch>,
    rollout: Rollout,
}

impl Replicas {
    /// Relays of the same files, of which the canaries are served what is new first.
    fn new(relays: usize, change: impl FnOnce(&mut Rollout)) -> Self {
        let stage = |who| Stage { who, hold: 60 * SECOND };
        let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
        let mut rollout = Rollout::new(None, Stages::new([canaries, Who::Percent("100%".parse().unwrap())].map(stage)));
        change(&mut rollout);
        let (world, store, holder) = (World::empty(), Arc::default(), Arc::default());
        let mut replicas = Self { world, store, holder, seats: Vec::new(), watches: Vec::new(), rollout };
        (0..relays).for_each(|_| replicas.start());
        replicas
    }

    /// One more relay, with the files that there are.
    fn start(&mut self) {
        let relay = self.world.add_relay(FILES, Vec::new());
        let seat = Seat {
            store: self.store.clone(),
            holder: self.holder.clone(),
            is_cut_off: Arc::default(),
            believes: Arc::default(),
        };
        self.watches.push(seat.watch("", seat.list("none").unwrap().revision).unwrap());
        let turns = Arc::new(seat.clone());
        let core = &self.world.relays[relay].core;
        core.roll_out_in_turn(self.rollout.clone(), turns.clone(), turns, self.world.now).unwrap();
        self.seats.push(seat);
    }

    fn hear(&mut self) {
        for (at, seat) in self.seats.iter().enumerate().filter(|(_, seat)| !seat.is_cut_off.load(Ordering::Relaxed)) {
            let (core, now) = (&self.world.relays[at].core, self.world.now);
            if let Ok(events) = self.watches[at].next(Duration::ZERO) {
                core.hear_releases(&events, now);
                continue;
            }
            self.watches[at] = seat.watch("", seat.list("none").unwrap().revision).unwrap();
            core.read_releases_anew(now);
        }
        self.world.settle();
    }

    fn advance(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.hear();
            self.world.advance(SECOND);
        }
        self.hear();
    }

    /// All relays have these files.
    fn set(&mut self, files: &[&str]) {
        (0..self.seats.len()).for_each(|relay| self.set_at(relay, files));
    }

    fn set_at(&mut self, relay: usize, files: &[&str]) {
        let files = files.iter().map(|named| {
            let (name, body) = named.split_once('@').unwrap();
            file(CLUSTERS, name, body)
        });
        let (files, now) = (files.collect(), self.world.now);
        self.world.relays[relay].core.set_files(0, files, now);
        self.world.settle();
    }

    fn node(&mut self, relay: usize, id: &str, cluster: &str) -> usize {
        let node = Node { id: id.into(), cluster: cluster.into(), ..Node::default() };
        let client = self.world.client_with(relay, DELTA, &node);
        self.world.subscribe(client, CLUSTERS, &["*"]);
        client
    }

    fn held<const N: usize>(&self, clients: [usize; N]) -> [String; N] {
        clients.map(|client| self.world.clients[client].held(CLUSTERS).join(" "))
    }

    fn control(&self, relay: usize) -> Control {
        self.world.relays[relay].core.release_control(None).unwrap()
    }

    fn order(&mut self, relay: usize, act: Act) -> Result<Transition, RolloutError> {
        let order = Order::new(act, By::Person("ann".into()), "a test", self.world.wall());
        let applied = self.world.relays[relay].core.order_release(None, &order, self.world.now);
        self.world.settle();
        Ok(applied?.transition)
    }

    fn cut_off(&self, relay: usize, is: bool) {
        self.seats[relay].is_cut_off.store(is, Ordering::Relaxed);
    }

    fn publisher(&self) -> usize {
        let is_his = |relay: &usize| {
            let core = &self.world.relays[*relay].core;
            let publisher = self.control(*relay).publisher().unwrap();
            core.instance() == format!("{:016x}", publisher.instance.0)
        };
        (0..self.seats.len()).find(is_his).unwrap()
    }

    /// Whoever has the turn has been silent for too long.
    fn expire(&self) {
        let store = self.store.lock().unwrap().clone();
        let turn = store.list("").unwrap().entries.into_iter().find(|entry| entry.key.ends_with("/pub"));
        *self.holder.lock().unwrap() = None;
        let _ = store.commit(&[Op::delete(turn.unwrap().key)], &[]).unwrap();
    }
}

#[test]
fn one_relay_publishes_and_all_serve_the_same_stage() {
    for protocol in [DELTA, SOTW] {
        let mut relays = Replicas::new(3, |_| {});
        relays.set(&["a@1", "b@1"]);
        let _ = protocol;
        let canaries = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        let others = [0, 1, 2].map(|relay| relays.node(relay, &format!("o{relay}"), "other"));
        relays.advance(5);
        assert_eq!(relays.held(others), ["a@1 b@1"; 3]);
        relays.set(&["a@2", "b@1"]);
        relays.advance(5);
        assert_eq!(
            (relays.held(canaries), relays.held(others)),
            (["a@2 b@1"; 3].map(str::to_owned), ["a@1 b@1"; 3].map(str::to_owned))
        );
        relays.advance(61);
        assert_eq!(relays.held(others), ["a@2 b@1"; 3]);
        relays.advance(61);
        let controls = [0, 1, 2].map(|relay| relays.control(relay));
        assert!(controls.iter().all(|control| *control == controls[0] && control.candidate().is_none()));
        assert_eq!(controls[0].publisher().unwrap().term, 1, "nobody else published");
    }
}

#[test]
fn what_clients_of_any_relay_refuse_halts_the_candidate_on_all() {
    for at in 0..3 {
        let mut relays = Replicas::new(3, |_| {});
        relays.set(&["a@1"]);
        let canaries = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        relays.world.clients[canaries[at]].refuses = true;
        relays.set(&["a@bad"]);
        relays.advance(120);
        for relay in 0..3 {
            let control = relays.control(relay);
            let Some(Progress::Halted(said)) = control.candidate().map(|candidate| &candidate.progress) else {
                panic!("{control:?}")
            };
            assert!(said.why.starts_with("clients refused 1, such as a"), "{}", said.why);
        }
    }
}

/// Two relays of which each has one that refuses: that is two.
#[test]
fn clients_of_all_relays_are_counted_together() {
    for (refuse, is_halted) in [([true, false], false), ([true, true], true)] {
        let mut relays = Replicas::new(2, |rollout| rollout.halt.rejected = Threshold::Count(2));
        relays.set(&["a@1"]);
        let canaries = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        for (canary, refuses) in canaries.into_iter().zip(refuse) {
            relays.world.clients[canary].refuses = refuses;
        }
        relays.set(&["a@bad"]);
        relays.advance(20);
        let candidate = relays.control(0).candidate().cloned().unwrap();
        assert_eq!(matches!(candidate.progress, Progress::Halted(_)), is_halted, "{candidate:?}");
    }
}

#[test]
fn a_client_that_moves_to_another_relay_is_not_lost_and_one_that_goes_is() {
    for moves in [true, false] {
        let mut relays = Replicas::new(2, |rollout| rollout.halt.lost = Threshold::Count(1));
        relays.set(&["a@1"]);
        // Whichever of the two publishes.
        let canaries = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        relays.set(&["a@2"]);
        relays.advance(5);
        let left = 1 - relays.publisher();
        relays.world.disconnect(canaries[left]);
        if moves {
            let there = relays.node(1 - left, &format!("c{left}"), "canary");
            relays.advance(40);
            assert_eq!(relays.held([there]), ["a@2"]);
        } else {
            relays.advance(40);
        }
        let candidate = relays.control(0).candidate().cloned().unwrap();
        assert_eq!(matches!(candidate.progress, Progress::Halted(_)), !moves, "{candidate:?}");
    }
}

#[test]
fn another_relay_takes_over_and_whoever_published_before_writes_nothing_more() {
    let mut relays = Replicas::new(3, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let first = relays.publisher();
    // It is stopped, and does not know that its time is over; what it wants to publish comes too late.
    relays.seats[first].believes.store(true, Ordering::Relaxed);
    relays.expire();
    relays.set_at(first, &["a@late"]);
    let [second, third] = [(first + 1) % 3, (first + 2) % 3];
    [second, third].into_iter().for_each(|relay| relays.set_at(relay, &["a@2"]));
    relays.advance(10);
    assert_ne!(relays.publisher(), first);
    assert_eq!(relays.held(clients), ["a@2"; 3]);
    assert_eq!(relays.control(first), relays.control(second));
    // It knows by now, and waits for its turn.
    relays.seats[first].believes.store(false, Ordering::Relaxed);
    relays.advance(10);
    assert_ne!(relays.publisher(), first);
    assert_eq!(relays.control(0).publisher().unwrap().term, 2);
}

#[test]
fn who_is_cut_off_serves_what_there_was_and_catches_up() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let cut = relays.publisher();
    relays.cut_off(cut, true);
    relays.expire();
    relays.set(&["a@2"]);
    relays.advance(20);
    let held = relays.held(clients);
    assert_eq!((held[cut].as_str(), held[1 - cut].as_str()), ("a@1", "a@2"));
    assert_eq!(relays.order(cut, Act::Freeze).unwrap(), Transition::Frozen, "that is done here");
    relays.advance(600);
    assert_eq!(relays.held(clients)[cut], "a@1");
    relays.cut_off(cut, false);
    relays.advance(5);
    // What others did comes first; the freeze holds for all.
    assert!(relays.control(0).frozen().is_some() && relays.control(0) == relays.control(1));
    assert_eq!(relays.held(clients), ["a@2"; 2], "it was stable before");
}

#[test]
fn an_order_at_any_relay_is_done_on_all() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    relays.set(&["a@2"]);
    relays.advance(5);
    let other = 1 - relays.publisher();
    assert_eq!(relays.order(other, Act::Freeze).unwrap(), Transition::Frozen);
    relays.advance(1);
    assert_eq!(relays.held(clients), ["a@1"; 2]);
    assert_eq!(relays.order(other, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    relays.advance(100);
    assert_eq!(relays.control(0), relays.control(1));
    assert_eq!(relays.control(0).refused().len(), 1);
}

#[test]
fn a_relay_that_starts_serves_what_is_stable_without_an_origin() {
    let mut relays = Replicas::new(1, |_| {});
    let many: Vec<_> = (0..500).map(|name| format!("c-{name:03}@{name}")).collect();
    relays.set(&many.iter().map(String::as_str).collect::<Vec<_>>());
    relays.advance(5);
    relays.start();
    let client = relays.node(1, "c", "other");
    relays.advance(2);
    assert_eq!(relays.held([client]), [many.join(" ")]);
}

/// A snapshot is restored: what was done since is not there, be it that it is frozen.
#[test]
fn a_store_that_is_put_back_loses_nothing_that_a_relay_knows() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "other"));
    relays.advance(5);
    let snapshot = relays.store.lock().unwrap().list("").unwrap().entries;
    relays.set(&["a@1", "b@1"]);
    relays.advance(130);
    assert_eq!(relays.held(clients), ["a@1 b@1"; 2]);
    relays.order(0, Act::Freeze).unwrap();
    relays.advance(1);
    for client in clients {
        relays.world.told(client);
    }

    let restored = Memory::default();
    let ops: Vec<_> = snapshot.into_iter().map(|entry| Op::put(entry.key, entry.value)).collect();
    let _ = restored.commit(&ops, &[]).unwrap();
    *relays.store.lock().unwrap() = restored.clone();
    relays.expire();
    for at in 0..2 {
        relays.watches[at] = restored.watch("", restored.list("none").unwrap().revision).unwrap();
        relays.world.relays[at].core.read_releases_anew(relays.world.now);
    }
    relays.advance(10);
    for (at, client) in clients.into_iter().enumerate() {
        assert_eq!(relays.world.told(client), [""; 0], "nothing is taken away");
        assert!(relays.control(at).frozen().is_some());
    }
    relays.start();
    let client = relays.node(2, "new", "other");
    relays.advance(2);
    assert_eq!(relays.held([client]), ["a@1 b@1"], "all of it is there again");
    assert!(relays.control(2).frozen().is_some() && relays.control(2) == relays.control(0));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Set(u8),
    SetAt(u8, u8),
    Cut(u8, bool),
    Expire,
    Freeze(u8),
    Unfreeze(u8),
    Rollback(u8),
    Move(u8, u8),
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let relay = 0..3u8;
    prop_oneof![
        4 => (1..6u8).prop_map(Event::Set),
        2 => (relay.clone(), 1..6u8).prop_map(|(relay, body)| Event::SetAt(relay, body)),
        2 => (relay.clone(), any::<bool>()).prop_map(|(relay, is)| Event::Cut(relay, is)),
        2 => Just(Event::Expire),
        1 => relay.clone().prop_map(Event::Freeze),
        2 => relay.clone().prop_map(Event::Unfreeze),
        1 => relay.clone().prop_map(Event::Rollback),
        2 => (0..4u8, relay).prop_map(|(client, relay)| Event::Move(client, relay)),
        6 => (1..70u8).prop_map(Event::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens, who has something is not left without; and relays that hear each other agree.
    #[test]
    fn whatever_happens_nothing_is_taken_away_and_relays_agree(events in proptest::collection::vec(event(), 1..24)) {
        let mut relays = Replicas::new(3, |_| {});
        relays.set(&["a@1", "b@0"]);
        relays.advance(5);
        let mut clients: Vec<_> = (0..4).map(|number: usize| {
            relays.node(number % 3, &format!("n{number}"), if number == 0 { "canary" } else { "other" })
        }).collect();
        relays.advance(2);
        for event in events {
            match event {
                Event::Set(body) => relays.set(&[&format!("a@{body}"), "b@0"]),
                Event::SetAt(relay, body) => relays.set_at(relay.into(), &[&format!("a@{body}"), "b@0"]),
                Event::Cut(relay, is) => relays.cut_off(relay.into(), is),
                Event::Expire if relays.holder.lock().unwrap().is_some() => relays.expire(),
                Event::Expire => {}
                Event::Freeze(relay) => _ = relays.order(relay.into(), Act::Freeze),
                Event::Unfreeze(relay) => _ = relays.order(relay.into(), Act::Unfreeze),
                Event::Rollback(relay) => _ = relays.order(relay.into(), Act::Rollback { to: None }),
                Event::Move(client, relay) => {
                    let client = usize::from(client);
                    relays.world.disconnect(clients[client]);
                    let cluster = if client == 0 { "canary" } else { "other" };
                    clients[client] = relays.node(relay.into(), &format!("n{client}"), cluster);
                    relays.advance(1);
                }
                Event::Wait(seconds) => relays.advance(seconds.into()),
            }
            relays.hear();
            for client in &clients {
                let held = relays.world.clients[*client].held(CLUSTERS);
                prop_assert_eq!(held.len(), 2, "{:?}", held);
            }
            let there: Vec<_> = (0..3).filter(|relay| !relays.seats[*relay].is_cut_off.load(Ordering::Relaxed)).collect();
            for relay in &there {
                let (one, first) = (relays.control(*relay), relays.control(there[0]));
                prop_assert_eq!(one.publisher(), first.publisher());
            }
        }
        (0..3).for_each(|relay| relays.cut_off(relay, false));
        relays.advance(8);
        let controls = [0, 1, 2].map(|relay| relays.control(relay));
        prop_assert_eq!(&controls[0], &controls[1]);
        prop_assert_eq!(&controls[0], &controls[2]);
    }
}
