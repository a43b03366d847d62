//! What it costs to keep what changed: each of a thousand resources of 1 KB that did since the last time. Fails where a goal is
//! missed.
//!
//! *Nowhere* is a store that forgets all it is given: what is counted is what is done before a store is asked. *A file* is redb's.
//! Under callgrind SHA-256 is computed without the processor's help, which takes many times as long.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use client_bench::content::{TYPE_URL, body, name};
use instructions::{Counter, Goals, count};
use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
use xdstp_client::state::{Commit, Compare, Listing, Memory, Op, Redb, Revision, Store, StoreError, Watch as Changes};
use xdstp_client::test::Network;
use xdstp_client::{Client, Watch};

const SERVER: &str = "xds:1";
const RESOURCES: usize = 10_000;
/// So many change between two looks.
const CHANGES: usize = 1000;
const TIMES: usize = 5;
const NOWHERE: &str = "a change, kept nowhere";
const SECOND: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let directory = std::env::temp_dir().join(format!("kept-instructions-{}", std::process::id()));
    let counts = count(|counter| {
        measure(counter, NOWHERE, Nowhere::default());
        std::fs::create_dir_all(&directory).unwrap();
        measure(counter, "a change, kept in a file", Redb::open(directory.join("state.redb")).unwrap());
        std::fs::remove_dir_all(&directory).unwrap();
    });
    counts.print();
    let mut goals = Goals::default();
    goals.at_most("a change, kept nowhere: thousands of instructions", counts.of(NOWHERE, CHANGES) / 1e3, 100.0);
    goals.exit_code()
}

fn measure(counter: &mut Counter, what: &str, store: impl Store) {
    let mut kept = Kept::new(store);
    kept.change(RESOURCES);
    kept.save();
    // What is done once is done by then.
    kept.change(CHANGES);
    kept.save();
    for _ in 0..TIMES {
        kept.change(CHANGES);
        counter.count(what, CHANGES, CHANGES, || kept.save());
    }
}

/// A program that keeps what it watches.
struct Kept {
    network: Network,
    client: Client,
    _watch: Watch,
    began: (Instant, SystemTime),
    round: u64,
    next: usize,
}

impl Kept {
    fn new(store: impl Store) -> Self {
        let bootstrap = Bootstrap::new(Server::new(SERVER, ChannelCreds::Insecure));
        let bootstrap = bootstrap.with_authority("bench.example", Authority::default());
        let network = Network::new(Instant::now());
        let client = Client::builder(bootstrap).transport(network.clone()).store(store).build().unwrap();
        let (pool, _) = name(0).rsplit_once('/').map(|(pool, last)| (pool.to_owned(), last.to_owned())).unwrap();
        let watch = client.watch(TYPE_URL, &format!("{pool}/*"));
        network.settle();
        let began = (network.now(), SystemTime::now());
        Self { network, client, _watch: watch, began, round: 0, next: 0 }
    }

    /// Changes the next so many.
    fn change(&mut self, count: usize) {
        self.round += 1;
        let server = self.network.server(SERVER);
        for _ in 0..count {
            let index = self.next % RESOURCES;
            server.put(TYPE_URL, &name(index), &self.round.to_string(), &body(index, self.round));
            self.next += 1;
        }
        self.network.settle();
        server.take_asked();
        server.take_requests();
        self.network.pass(SECOND);
    }

    fn save(&self) {
        let now = self.network.now();
        let wall = self.began.1 + now.duration_since(self.began.0);
        while self.client.save(now, wall).unwrap().more {}
    }
}

/// A store that takes all and has nothing.
#[derive(Default)]
struct Nowhere(Memory);

impl Store for Nowhere {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.0.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Changes, StoreError> {
        self.0.watch(prefix, after)
    }

    fn commit(&self, _: &[Op], _: &[Compare]) -> Result<Commit, StoreError> {
        Ok(Commit::Done(1))
    }
}
