//! The least that does it: a map to slots, a map to those who are interested, and a queue without duplicates for each.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::tasks::{Signal, Tasks};
use crate::{Peer, Workload, body, glob_of};

/// No versions, no removals, no absence, no second interest of a subscriber in one resource; nobody can leave.
pub struct Floor {
    slots: HashMap<String, usize>,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    /// By name, glob and `*`.
    interested: HashMap<String, Vec<usize>>,
    queues: Vec<Queue>,
    signals: Vec<Signal>,
    tasks: Tasks,
    name: String,
    round: u64,
    next: Bytes,
}

type Queue = Arc<Mutex<Vec<usize>>>;

impl Peer for Floor {
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self {
        let mut floor = Self {
            slots: (0..resources).map(|index| (workload.name(index), index)).collect(),
            bodies: Arc::new(Mutex::new((0..resources).map(|_| body(0)).collect())),
            interested: HashMap::new(),
            queues: Vec::new(),
            signals: Vec::new(),
            tasks: Tasks::default(),
            name: workload.name(0),
            round: 0,
            next: Bytes::new(),
        };
        for who in 0..subscribers {
            for text in workload.asks(who, resources) {
                floor.interested.entry(text).or_default().push(who);
            }
            let queue = Queue::default();
            let (bodies, dirty) = (floor.bodies.clone(), queue.clone());
            floor.queues.push(queue);
            floor.signals.push(floor.tasks.spawn(move || {
                for slot in dirty.lock().unwrap().drain(..) {
                    black_box(bodies.lock().unwrap()[slot].len());
                }
            }));
        }
        floor
    }

    fn prepare(&mut self) {
        self.round += 1;
        self.next = body(self.round);
    }

    fn publish(&mut self) {
        let slot = self.slots[&self.name];
        self.bodies.lock().unwrap()[slot] = std::mem::take(&mut self.next);
        let mut woken = 0;
        for interest in [&self.name, &glob_of(&self.name), "*"] {
            for who in self.interested.get(interest).into_iter().flatten() {
                let mut queue = self.queues[*who].lock().unwrap();
                if !queue.contains(&slot) {
                    queue.push(slot);
                    self.signals[*who].wake();
                    woken += 1;
                }
            }
        }
        self.tasks.run_until(woken);
    }
}
