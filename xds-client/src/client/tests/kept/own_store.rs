//! A store is a program's own code: no lock is held while it runs, and nobody else waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use super::super::own_code::unblocked;
use super::*;
use crate::state::{self, Commit, Compare, Listing, Memory, Op, Revision, StoreError};

/// A store that does something whenever it is asked for anything.
struct Calls<F>(Memory, F);

impl<F: Fn() + Send + Sync + 'static> Store for Calls<F> {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        (self.1)();
        self.0.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<state::Watch, StoreError> {
        self.0.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        (self.1)();
        self.0.commit(ops, compares)
    }
}

fn world(call: impl Fn() + Send + Sync + 'static) -> (World, Memory) {
    let (network, memory) = (Network::new(now()), Memory::default());
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure)).with_authority("a", Authority::default());
    let builder = Client::builder(bootstrap).transport(network.clone()).store(Calls(memory.clone(), call));
    (World { network, client: builder.build().unwrap() }, memory)
}

fn keeps(memory: &Memory, name: &str) -> bool {
    memory.list("").unwrap().entries.iter().any(|entry| entry.key.ends_with(&format!("\0{name}")))
}

#[test]
fn a_store_may_use_the_client_that_writes_to_it() {
    unblocked(|| {
        let (own, watches) = (Arc::<OnceLock<Client>>::default(), Arc::<Mutex<Vec<Watch>>>::default());
        let (client, opened) = (own.clone(), watches.clone());
        let (world, memory) = world(move || {
            let Some(client) = client.get() else { return };
            let watch = client.watch(CDS, "by the store");
            assert!(client.status(true).generic_xds_configs.len() < 9);
            client.sweep(now());
            // It is at it, or reads what there is to begin with.
            client.save(now(), SystemTime::now()).unwrap();
            let before = opened.lock().unwrap().pop();
            drop(before);
            opened.lock().unwrap().push(watch);
        });
        for name in ["x", "by the store"] {
            world.put(CDS, name, "1");
        }
        own.get_or_init(|| world.client.clone());
        let mut watch = world.watch("x");
        for _ in 0..3 {
            world.client.save(world.network.now(), SystemTime::now()).unwrap();
            world.network.settle();
        }
        assert_eq!(heard(&mut watch), ["put x 1"]);
        assert!(keeps(&memory, "x") && keeps(&memory, "by the store"));
        watches.lock().unwrap().clear();
    });
}

#[test]
fn nobody_who_watches_waits_for_a_store() {
    unblocked(|| {
        let ((tell, told), (go_on, waits)) = (mpsc::channel(), mpsc::channel());
        let (slow, waits) = (Arc::<AtomicBool>::default(), Mutex::<Receiver<()>>::new(waits));
        let is_slow = slow.clone();
        let (world, memory) = world(move || {
            if is_slow.swap(false, Ordering::Relaxed) {
                tell.send(()).unwrap();
                waits.lock().unwrap().recv().unwrap();
            }
        });
        let other = xdstp("a", CDS, "x");
        for name in ["x", "y", other.as_str()] {
            world.put(CDS, name, "1");
        }
        let mut watches = vec![world.watch("x")];
        let (client, at) = (world.client.clone(), world.network.now());
        let save = move || while client.save(at, SystemTime::now()).unwrap().more {};
        save();
        slow.store(true, Ordering::Relaxed);
        let saving = thread::spawn({
            world.put(CDS, "x", "2");
            save.clone()
        });
        told.recv().unwrap();
        // Of the scope that is written, and of another.
        watches.extend(["y", &other].map(|name| world.watch(name)));
        world.put(CDS, "x", "3");
        assert!(world.client.save(at, SystemTime::now()).unwrap().more, "another is at it");
        let all: Vec<_> = watches.iter_mut().map(told_last).collect();
        assert_eq!(all, ["put x 3".to_owned(), "put y 1".to_owned(), format!("put {other} 1")]);
        go_on.send(()).unwrap();
        saving.join().unwrap();
        save();
        assert!(["x", "y", &other].iter().all(|name| keeps(&memory, name)));
    });
}

fn told_last(watch: &mut Watch<Cluster>) -> String {
    heard(watch).pop().unwrap_or_default()
}
