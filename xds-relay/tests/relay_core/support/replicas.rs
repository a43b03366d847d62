//! Relays that have their releases in one store, of which each may be cut off.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use xds_relay::config::{Config, Rollout};
use xds_relay::relay_core::{Following, NodeGrouping, ReleaseStore, RolloutError};
use xds_relay::releases::{Act, Applied, By, Control, Instance, Order, Stage, Stages, Transition, Turn, Turns, Who};
use xds_relay::state::{Commit, Compare, Limits, Listing, Memory, Op, Revision, State, Store, StoreError, Watch};
use xds_transport::wire::Node;

use crate::support::{CLUSTERS, DELTA, Feeder, Protocol, SECOND, World, file};

pub(crate) const FILES: &str = "origins: [{name: files, files: .}]\n";

pub(crate) type NoState = fn(&Config, &dyn NodeGrouping, Instant, SystemTime) -> State;

/// What one relay has of the store that all have.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) store: Arc<Mutex<Memory>>,
    pub(crate) holder: Arc<Mutex<Option<u64>>>,
    pub(crate) is_cut_off: Arc<AtomicBool>,
    /// It is cut off when it reads what is under such keys, and not before; how often it was.
    pub(crate) hidden: Arc<Mutex<&'static str>>,
    pub(crate) hidden_reads: Arc<AtomicU64>,
    /// It is told that it may not.
    pub(crate) refuses: Arc<AtomicBool>,
    /// It does not hear that what it writes is written.
    pub(crate) is_unsure: Arc<AtomicBool>,
    /// It was stopped for so long that it does not know what time it is.
    pub(crate) believes: Arc<AtomicBool>,
    /// How many ops are one commit of who has the turn, if not any number; and how many commits are done before one is not.
    pub(crate) takes: Arc<AtomicUsize>,
    pub(crate) fails_after: Arc<AtomicUsize>,
}

static TURNS: AtomicU64 = AtomicU64::new(1);

impl Seat {
    /// At a store that others are at, too, where one at most has the turn.
    pub(crate) fn at(store: Arc<Mutex<Memory>>, holder: Arc<Mutex<Option<u64>>>) -> Self {
        Self {
            store,
            holder,
            is_cut_off: Arc::default(),
            hidden: Arc::default(),
            hidden_reads: Arc::default(),
            refuses: Arc::default(),
            is_unsure: Arc::default(),
            believes: Arc::default(),
            takes: Arc::new(AtomicUsize::new(usize::MAX)),
            fails_after: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    fn memory(&self) -> Result<Memory, StoreError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(StoreError::Refused("permission denied".to_owned()));
        }
        match self.is_cut_off.load(Ordering::Relaxed) {
            true => Err(StoreError::Away("it is cut off".to_owned())),
            false => Ok(self.store.lock().unwrap().clone()),
        }
    }
}

impl Store for Seat {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let hidden = *self.hidden.lock().unwrap();
        if !hidden.is_empty() && prefix.contains(hidden) {
            self.hidden_reads.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Away("it is cut off".to_owned()));
        }
        self.memory()?.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.memory()?.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        let done = self.memory()?.commit(ops, compares)?;
        match self.is_unsure.load(Ordering::Relaxed) {
            true => Err(StoreError::Unsure("it lost its voice".to_owned())),
            false => Ok(done),
        }
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
pub(crate) struct Mine {
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
        Arc::new(Fenced { seat: self.seat.clone(), turn: self.turn })
    }
}

pub(crate) struct Fenced {
    seat: Seat,
    turn: u64,
}

impl Store for Fenced {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.seat.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.seat.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        let memory = self.seat.memory()?;
        assert!(ops.len() <= self.seat.takes.load(Ordering::Relaxed));
        let left = self.seat.fails_after.load(Ordering::Relaxed);
        if left == 0 {
            return Err(StoreError::Unsure("it lost its voice".to_owned()));
        }
        self.seat.fails_after.store(left.saturating_sub(usize::from(left < usize::MAX)), Ordering::Relaxed);
        let is_over = *self.seat.holder.lock().unwrap() != Some(self.turn);
        if is_over { Err(StoreError::Fenced) } else { memory.commit(ops, compares) }
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.ops = self.seat.takes.load(Ordering::Relaxed);
        limits
    }
}

impl Drop for Mine {
    /// It is given back, unless the store is away: then its time ends.
    fn drop(&mut self) {
        if let (Ok(memory), false) = (self.seat.memory(), self.is_over()) {
            *self.seat.holder.lock().unwrap() = None;
            let _ = memory.commit(&[Op::delete(&*self.key)], &[]).unwrap();
        }
    }
}

/// What one keeps by itself, which may be full.
struct OnDisk {
    inner: Memory,
    is_full: Arc<AtomicBool>,
    hides: Arc<Mutex<&'static str>>,
}

impl Store for OnDisk {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let hides = *self.hides.lock().unwrap();
        match !hides.is_empty() && prefix.contains(hides) {
            true => Err(std::io::Error::from(std::io::ErrorKind::ResourceBusy).into()),
            false => self.inner.list(prefix),
        }
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into()),
            false => self.inner.commit(ops, compares),
        }
    }
}

pub(crate) struct Replicas {
    pub(crate) world: World,
    pub(crate) store: Arc<Mutex<Memory>>,
    pub(crate) holder: Arc<Mutex<Option<u64>>>,
    pub(crate) seats: Vec<Seat>,
    /// What each hears, and of which of the stores that there were, one after the other.
    followings: Vec<(usize, Following)>,
    /// The relay that begins next is cut off once it follows the store, and has read nothing.
    pub(crate) is_cut_off_as_it_begins: bool,
    /// What each keeps by itself, and whether there is room for more.
    pub(crate) copies: Vec<Memory>,
    pub(crate) are_copies_full: Arc<AtomicBool>,
    /// What cannot be read of them.
    pub(crate) copies_hide: Arc<Mutex<&'static str>>,
    stores: usize,
    rollout: Rollout,
    pub(crate) protocol: Protocol,
}

impl Replicas {
    /// Relays of the same files, of which the canaries are served what is new first.
    pub(crate) fn new(relays: usize, change: impl FnOnce(&mut Rollout)) -> Self {
        let stage = |who| Stage { who, hold: 60 * SECOND };
        let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
        let mut rollout = Rollout::new(None, Stages::new([canaries, Who::Percent("100%".parse().unwrap())].map(stage)));
        change(&mut rollout);
        let (world, store, holder) = (World::empty(), Arc::default(), Arc::default());
        let mut replicas = Self {
            world,
            store,
            holder,
            seats: Vec::new(),
            followings: Vec::new(),
            copies: Vec::new(),
            are_copies_full: Arc::default(),
            copies_hide: Arc::default(),
            is_cut_off_as_it_begins: false,
            stores: 0,
            rollout,
            protocol: DELTA,
        };
        (0..relays).for_each(|_| replicas.start());
        replicas
    }

    /// One more relay, with the files that there are.
    pub(crate) fn start(&mut self) {
        let relay = self.world.add_relay(FILES, Vec::new());
        self.sit(relay);
    }

    /// One more relay, of a control plane.
    pub(crate) fn start_on(&mut self, text: &str, feeder: Feeder) {
        let relay = self.world.add_relay(text, vec![feeder]);
        self.sit(relay);
    }

    fn sit(&mut self, relay: usize) {
        let seat = Seat::at(self.store.clone(), self.holder.clone());
        self.seats.push(seat);
        self.followings.push((self.stores, Following::later(Arc::new(self.seats[relay].clone()))));
        self.copies.push(Memory::default());
        self.begin(relay);
    }

    /// A relay is killed and starts again, with what it kept and no files yet. Its clients, which these are, are connected to it.
    pub(crate) fn restart(&mut self, relay: usize, clients: &[usize]) {
        self.restart_on(relay, FILES, clients);
    }

    /// The same, with that configuration.
    pub(crate) fn restart_on(&mut self, relay: usize, text: &str, clients: &[usize]) {
        clients.iter().for_each(|client| self.world.disconnect(*client));
        self.world.stop(relay);
        self.world.start(relay, text, None::<NoState>);
        self.begin(relay);
        clients.iter().for_each(|client| self.world.connect(*client, relay));
    }

    /// A relay starts again, by other stages: so do all that start later.
    pub(crate) fn roll_out_by(&mut self, stages: Stages, relay: usize) {
        self.rollout.stages = stages;
        self.restart(relay, &[]);
    }

    fn begin(&mut self, relay: usize) {
        self.try_to_begin(relay).unwrap();
    }

    /// The same of a relay that may not begin.
    pub(crate) fn try_to_begin(&mut self, relay: usize) -> Result<(), RolloutError> {
        let copy = Arc::new(OnDisk {
            inner: self.copies[relay].clone(),
            is_full: self.are_copies_full.clone(),
            hides: self.copies_hide.clone(),
        });
        let seat = Arc::new(self.seats[relay].clone());
        let following = Following::begin(seat.clone()).unwrap_or_else(|_| Following::later(seat.clone()));
        if std::mem::take(&mut self.is_cut_off_as_it_begins) {
            self.cut_off(relay, true);
        }
        let store = ReleaseStore::shared(seat.clone(), seat).with_copy(Some(copy), "a test");
        let core = &self.world.relays[relay].core;
        core.roll_out_on(self.rollout.clone(), store, self.world.now)?;
        self.followings[relay] = (self.stores, following.after_reading(core));
        Ok(())
    }

    pub(crate) fn hear(&mut self) {
        let is_there =
            |at: &usize| !self.seats[*at].is_cut_off.load(Ordering::Relaxed) && !self.world.relays[*at].stopped;
        let there: Vec<_> = (0..self.seats.len()).filter(is_there).collect();
        for at in there {
            let (core, now) = (&self.world.relays[at].core, self.world.now);
            let (store, following) = &mut self.followings[at];
            if *store != self.stores {
                // Its watch is of another one.
                (*store, *following) = (self.stores, Following::later(Arc::new(self.seats[at].clone())));
            }
            let _ = following.step(core, Duration::ZERO, || now);
        }
        self.world.settle();
    }

    pub(crate) fn advance(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.hear();
            self.world.advance(SECOND);
        }
        self.hear();
    }

    /// All relays have these files.
    pub(crate) fn set(&mut self, files: &[&str]) {
        (0..self.seats.len()).for_each(|relay| self.set_at(relay, files));
    }

    pub(crate) fn set_at(&mut self, relay: usize, files: &[&str]) {
        let files = files.iter().map(|named| {
            let (name, body) = named.split_once('@').unwrap();
            file(CLUSTERS, name, body)
        });
        let (files, now) = (files.collect(), self.world.now);
        self.world.relays[relay].core.set_files(0, files, now);
        self.world.settle();
    }

    pub(crate) fn node(&mut self, relay: usize, id: &str, cluster: &str) -> usize {
        let node = Node { id: id.into(), cluster: cluster.into(), ..Node::default() };
        let client = self.world.client_with(relay, self.protocol, &node);
        self.world.subscribe(client, CLUSTERS, &["*"]);
        client
    }

    pub(crate) fn held<const N: usize>(&self, clients: [usize; N]) -> [String; N] {
        clients.map(|client| self.world.clients[client].held(CLUSTERS).join(" "))
    }

    pub(crate) fn control(&self, relay: usize) -> Control {
        self.world.relays[relay].core.release_control(None).unwrap()
    }

    pub(crate) fn order(&mut self, relay: usize, act: Act) -> Result<Transition, RolloutError> {
        Ok(self.apply(relay, act)?.transition)
    }

    /// The same, and what came of it: it may be in the store, or wait for that.
    pub(crate) fn apply(&mut self, relay: usize, act: Act) -> Result<Applied, RolloutError> {
        let order = Order::new(act, By::Person("ann".into()), "a test", self.world.wall());
        let applied = self.world.relays[relay].core.order_release(None, &order, self.world.now);
        self.world.settle();
        applied
    }

    pub(crate) fn cut_off(&self, relay: usize, is: bool) {
        self.seats[relay].is_cut_off.store(is, Ordering::Relaxed);
    }

    pub(crate) fn publisher(&self) -> usize {
        let is_his = |relay: &usize| {
            let core = &self.world.relays[*relay].core;
            let publisher = self.control(*relay).publisher().unwrap();
            core.instance() == format!("{:016x}", publisher.instance.0)
        };
        (0..self.seats.len()).find(is_his).unwrap()
    }

    /// Whoever has the turn has been silent for too long.
    pub(crate) fn expire(&self) {
        let store = self.store.lock().unwrap().clone();
        *self.holder.lock().unwrap() = None;
        let entries = store.list("").unwrap().entries.into_iter();
        if let Some(turn) = entries.into_iter().find(|entry| entry.key.ends_with("/pub")) {
            let _ = store.commit(&[Op::delete(turn.key)], &[]).unwrap();
        }
    }

    /// What was done and a relay has not heard is compacted: it is to read all.
    pub(crate) fn compact(&mut self, relay: usize) {
        self.followings[relay].1 = Following::later(Arc::new(self.seats[relay].clone()));
    }

    pub(crate) fn snapshot(&self) -> Vec<Op> {
        let entries = self.store.lock().unwrap().list("").unwrap().entries.into_iter();
        entries.map(|entry| Op::put(entry.key, entry.value)).collect()
    }

    /// The store is another one, in which this is.
    pub(crate) fn restore(&mut self, snapshot: &[Op]) {
        let restored = Memory::default();
        let _ = restored.commit(snapshot, &[]).unwrap();
        *self.store.lock().unwrap() = restored;
        self.stores += 1;
        self.expire();
    }
}
