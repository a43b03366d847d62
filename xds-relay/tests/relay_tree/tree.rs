//! The fleet, its relays in two tiers and its origin, in virtual time.

mod drive;
mod setting;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_relay::relay_core::RelayCore;

use crate::fault::Fault;
use crate::hop::{Dialer, Far, Hop, Rung, To, Whose};
use crate::ledger::{Key, Ledger};
use crate::load::{Load, Tier};
use crate::member::Holds;
use crate::origin::Origin;
use crate::random::Random;
use crate::wire::Pipe;

pub(crate) use setting::{EDGES, REGIONALS, REGIONS, Setting};

pub(crate) struct Tree {
    pub(crate) setting: Setting,
    start: Instant,
    /// In µs.
    now: u64,
    /// The same, for who opens streams.
    clock: Arc<Mutex<Instant>>,
    random: Random,
    hops: Vec<Option<Hop>>,
    /// Places of hops that are over.
    free: Vec<usize>,
    agenda: BinaryHeap<Reverse<(u64, usize)>>,
    rung: Rung,
    dialed: Arc<Mutex<Vec<Hop>>>,
    /// The regional ones, and then the edges.
    relays: Vec<Relay>,
    origin: Origin,
    origin_pipe: Pipe,
    origin_load: Load,
    members: Vec<(usize, Arc<Mutex<Holds>>)>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    next_sweep: u64,
}

struct Relay {
    core: Arc<RelayCore>,
    is_alive: bool,
    /// It has started anew.
    is_another: bool,
    pipe: Pipe,
    load: Load,
}

impl Tree {
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time.as_micros() as u64;
        loop {
            self.look_at_woken();
            let next = self.agenda.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            if self.next_sweep.min(next) > until {
                break;
            }
            if self.next_sweep <= next {
                self.pass(self.next_sweep);
                self.next_sweep += 1_000_000;
                for relay in self.relays.iter().filter(|relay| relay.is_alive) {
                    relay.core.sweep(self.start + Duration::from_micros(self.now));
                }
                continue;
            }
            let Some(Reverse((at, hop))) = self.agenda.pop() else { break };
            self.pass(at);
            // What was looked at since is due at another time.
            if self.hops[hop].as_ref().is_some_and(|hop| hop.due == Some(at)) {
                self.look_at(hop);
            }
        }
        self.pass(until);
    }

    fn pass(&mut self, until: u64) {
        self.now = self.now.max(until);
        *self.clock.lock().unwrap() = self.instant();
    }

    fn look_at_woken(&mut self) {
        loop {
            let dialed = std::mem::take(&mut *self.dialed.lock().unwrap());
            let mut woken = std::mem::take(&mut *self.rung.lock().unwrap());
            woken.extend(dialed.into_iter().map(|hop| self.add(hop)).collect::<Vec<_>>());
            if woken.is_empty() {
                return;
            }
            woken.into_iter().for_each(|hop| self.look_at(hop));
        }
    }

    fn add(&mut self, hop: Hop) -> usize {
        let at = self.free.pop().unwrap_or(self.hops.len());
        hop.bell.hop.store(at, std::sync::atomic::Ordering::Relaxed);
        if at == self.hops.len() {
            self.hops.push(None);
        }
        self.hops[at] = Some(hop);
        at
    }

    fn look_at(&mut self, at: usize) {
        let Some(mut hop) = self.hops[at].take() else { return };
        hop.bell.silence();
        if hop.is_dropped() {
            self.close(&mut hop);
            self.free.push(at);
            return;
        }
        hop.due = self.drive(&mut hop);
        if let Some(due) = hop.due {
            self.agenda.push(Reverse((due, at)));
        }
        self.hops[at] = Some(hop);
    }

    /// Whether every client is served, and holds what there is for it.
    pub(crate) fn has_converged(&self) -> bool {
        let ledger = self.ledger.lock().unwrap();
        self.members.iter().all(|(group, holds)| {
            let holds = holds.lock().unwrap();
            holds.is_served && ledger.is_held(*group, &holds.resources)
        })
    }

    /// How long that takes, if it happens in time.
    pub(crate) fn converges_within(&mut self, time: Duration) -> Option<Duration> {
        let step = Duration::from_millis(100);
        let steps = time.as_millis() / step.as_millis();
        (0..=steps).find_map(|at| {
            if self.has_converged() {
                return Some(step * at as u32);
            }
            self.run(step);
            None
        })
    }

    /// A resource of everybody, or of a node group, is new or changes.
    pub(crate) fn put(&mut self, group: Option<usize>, name: &str) {
        let serial = self.ledger.lock().unwrap().put(self.now, (group, name.to_owned()));
        self.origin.put(self.instant(), group, name, serial);
        self.wake_origin();
    }

    pub(crate) fn remove(&mut self, group: Option<usize>, name: &str) {
        let key: Key = (group, name.to_owned());
        self.ledger.lock().unwrap().remove(key);
        self.origin.remove(self.instant(), group, name);
        self.wake_origin();
    }

    fn wake_origin(&self) {
        for hop in self.hops.iter().flatten().filter(|hop| hop.far.as_ref().is_some_and(|far| far.to == To::Origin)) {
            hop.bell.ring();
        }
    }

    /// A process dies: its streams end on both sides.
    pub(crate) fn kill(&mut self, relay: usize) {
        self.relays[relay].is_alive = false;
        for at in 0..self.hops.len() {
            let Some(mut hop) = self.hops[at].take() else { continue };
            if matches!(hop.whose, Whose::Relay(of) if of == relay) {
                self.close(&mut hop);
                self.free.push(at);
                continue;
            }
            // Who it served notices a moment later.
            if let Some(far) = hop.far.as_mut().filter(|far| far.to == To::Relay(relay)) {
                far.breaks_at.get_or_insert(self.now + self.random.below(200_000));
                hop.bell.ring();
            }
            self.hops[at] = Some(hop);
        }
    }

    /// Another takes its place, which knows nothing.
    pub(crate) fn revive(&mut self, relay: usize) {
        let (rung, dialed, now) = (self.rung.clone(), self.dialed.clone(), self.clock.clone());
        let core = self.setting.core(Dialer { relay, rung, dialed, now });
        let of = &mut self.relays[relay];
        (of.core, of.is_alive, of.is_another) = (core, true, true);
    }

    fn close(&mut self, hop: &mut Hop) {
        let Some(Far { mut stream, routes, .. }) = hop.far.take() else { return };
        match routes {
            Some(mut routes) => stream.close(&mut routes),
            None => stream.close(self.origin.cache_of(&hop.node)),
        }
    }

    /// How many clients each edge serves.
    pub(crate) fn clients_by_edge(&self) -> Vec<usize> {
        let mut clients = vec![0; EDGES];
        for hop in self.hops.iter().flatten() {
            if let (Whose::Client(_), Some(Far { to: To::Relay(relay), .. })) = (hop.whose, &hop.far) {
                clients[relay - REGIONALS] += 1;
            }
        }
        clients
    }

    /// What each tier had to do since the last time: the origin, the regional relays, the edges.
    pub(crate) fn loads(&mut self) -> [Tier; 3] {
        let loads: Vec<_> = self.relays.iter_mut().map(|relay| std::mem::take(&mut relay.load)).collect();
        let (regional, edges) = loads.split_at(REGIONALS);
        let origin = std::mem::take(&mut self.origin_load);
        [Tier::of([origin]), Tier::of(regional.iter().copied()), Tier::of(edges.iter().copied())]
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_micros(self.now)
    }

    fn has(&self, fault: Fault) -> bool {
        self.setting.fault == Some(fault)
    }
}
