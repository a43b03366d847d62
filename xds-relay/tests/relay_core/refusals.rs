//! Collections that an origin does not send, and then sends, through a relay behind a relay, in histories drawn from seeds: rules
//! 117, 118 and 150.
//!
//! Clients of either protocol ask for the wildcard, for a glob, and for what is of them by its name. The origin refuses, in one word
//! and another, and answers; it is away, relays are killed and come back with nothing, and clients come back with what they hold.
//! Nobody loses what is there. In the end everybody has what there is, whoever asks for what is refused is told so at every hop, and
//! whoever asks for what is not, is not.
//!
//! `REFUSALS_SEED=n` runs one history, and `REFUSALS_SEEDS=n` so many.

mod faults;

use std::collections::{BTreeMap, BTreeSet};

use faults::Fault;

use crate::random::Random;
use crate::refused::errors;
use crate::shortest::shortest;
use crate::support::{CLUSTERS, Chain, DELTA, Hearer, Protocol, SECOND, SOTW};

/// How many seeds the gate runs.
const SEEDS: u64 = 60;
/// In how many a planted fault is looked for.
const SOUGHT: u64 = 60;
const STEPS: u64 = 16;
/// Longer than any relay waits before it comes back to its origin, and than any silence that says something.
const QUIET: u32 = 60;
const RELAYS: usize = 2;

const COLLECTIONS: [&str; 2] = ["*", "xdstp://a/envoy.config.cluster.v3.Cluster/g/*"];
const NAMES: [[&str; 2]; 2] =
    [["c", "d"], ["xdstp://a/envoy.config.cluster.v3.Cluster/g/x", "xdstp://a/envoy.config.cluster.v3.Cluster/g/y"]];
/// What nobody asks for by its name.
const OTHERS: [&str; 2] = ["other", "xdstp://a/envoy.config.cluster.v3.Cluster/g/other"];
/// The relay of each client, what it speaks, and whether it asks for collections, or for names.
const CLIENTS: [(usize, Protocol, bool); 5] =
    [(1, DELTA, true), (1, SOTW, true), (0, DELTA, true), (0, DELTA, false), (1, SOTW, false)];

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(usize, usize),
    Refuse(usize, &'static str),
    Answer(usize),
    /// A client asks for one of two, or does not any more.
    Want(usize, usize, bool),
    Up(bool),
    Restart(usize),
    /// The stream of a client breaks; it comes back.
    Return(usize),
    Wait(u32),
}

#[derive(Clone, Debug)]
struct History {
    hops: [Protocol; RELAYS],
    steps: Vec<Step>,
}

impl History {
    fn random(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let hops = [(); RELAYS].map(|()| random.pick(&[DELTA, SOTW]));
        let steps = (0..STEPS / 2 + random.below(STEPS)).map(|_| step(random)).collect();
        Self { hops, steps }
    }

    /// The shortest that still fails.
    fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let hops = self.hops;
        Self { hops, steps: shortest(&self.steps, |steps| fails(&Self { hops, steps: steps.to_vec() })) }
    }
}

fn step(random: &mut Random) -> Step {
    let (of, client) = (random.index(2), random.index(CLIENTS.len()));
    match random.below(100) {
        0..24 => Step::Put(of, random.index(2)),
        24..40 => Step::Refuse(of, random.pick(&["not yet", "ask by name"])),
        40..48 => Step::Answer(of),
        48..66 => Step::Want(client, random.index(2), !random.one_in(3)),
        66..74 => Step::Up(random.one_in(2)),
        74..82 => Step::Restart(random.index(RELAYS)),
        82..90 => Step::Return(client),
        _ => Step::Wait(random.pick(&[1, 5, 40])),
    }
}

#[test]
fn whatever_is_refused_is_so_at_every_hop_until_it_is_sent() {
    let number = |variable: &str| std::env::var(variable).ok()?.parse().ok();
    let seeds = number("REFUSALS_SEED").map_or(0..number("REFUSALS_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    for seed in seeds {
        let history = History::random(seed);
        if let Err(wrong) = run(&history, None) {
            let least = history.shrunk(|shorter| run(shorter, None).is_err());
            panic!("seed {seed}: {wrong}\nleast: {least:?}\n{:?}", run(&least, None));
        }
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Fault::ALL {
        let wrong = |seed| run(&History::random(seed), Some(fault)).err();
        let found = (0..SOUGHT)
            .find_map(|seed| Some((seed, wrong(seed)?)).filter(|(_, wrong)| wrong.starts_with(fault.found_by())));
        let (seed, wrong) = found.unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("{fault:?}: seed {seed}: {wrong}");
    }
}

fn run(history: &History, fault: Option<Fault>) -> Result<(), String> {
    let mut refusals = Refusals::new(history.hops, fault);
    for step in &history.steps {
        refusals.apply(*step)?;
    }
    refusals.converge()
}

struct Refusals {
    chain: Chain,
    clients: Vec<usize>,
    wants: Vec<BTreeSet<&'static str>>,
    /// What there is: nothing of it goes.
    content: BTreeMap<&'static str, String>,
    serial: u64,
}

impl Refusals {
    fn new(hops: [Protocol; RELAYS], fault: Option<Fault>) -> Self {
        let mut chain = Chain::new(&hops, "share_by: [cluster]");
        let mut plant = fault.map(Fault::plant);
        chain.world.between = Some(Box::new(move |_, hearer, response| match (&mut plant, hearer) {
            (Some(plant), Hearer::Relay(1)) => plant(hops[1], response),
            _ => response,
        }));
        let clients = CLIENTS.iter().map(|(relay, protocol, _)| chain.client(*relay, *protocol, "n")).collect();
        let wants = CLIENTS.iter().map(|_| BTreeSet::new()).collect();
        Self { chain, clients, wants, content: BTreeMap::new(), serial: 0 }
    }

    fn apply(&mut self, step: Step) -> Result<(), String> {
        let held = |at: &usize| self.chain.world.clients[*at].holds.keys().map(|(_, name)| name.clone()).collect();
        let before: Vec<BTreeSet<String>> = self.clients.iter().map(held).collect();
        let now = self.chain.world.now;
        match step {
            Step::Put(of, at) => self.put(NAMES[of][at]),
            Step::Refuse(of, words) => self.chain.world.fail(0, CLUSTERS, COLLECTIONS[of], 7, words),
            Step::Answer(of) => self.chain.world.origins[0].answered(now, CLUSTERS, COLLECTIONS[of]),
            Step::Want(client, of, wants) => self.want(client, of, wants),
            Step::Up(up) => self.chain.world.set_up(0, up),
            Step::Restart(relay) => {
                self.chain.kill(relay);
                self.chain.world.advance(SECOND);
                self.chain.revive(relay);
            }
            Step::Return(client) => self.chain.world.connect(self.clients[client], CLIENTS[client].0),
            Step::Wait(seconds) => self.chain.world.advance(seconds * SECOND),
        }
        self.chain.world.settle();
        for (client, before) in self.clients.iter().zip(&before) {
            let told = self.chain.world.told(*client).join(" ");
            // Over SotW a silence says that what is not known any more is not there.
            let lost = told.split(' ').filter_map(|word| word.strip_prefix('-')).find(|name| before.contains(*name));
            if let Some(lost) = lost.filter(|_| CLIENTS[*client].1 == DELTA) {
                return Err(format!("lost: {client} has {lost} no more: {told}"));
            }
        }
        Ok(())
    }

    fn put(&mut self, name: &'static str) {
        self.serial += 1;
        let version = self.serial.to_string();
        self.chain.world.put(0, CLUSTERS, name, &version);
        self.content.insert(name, version);
    }

    fn want(&mut self, client: usize, of: usize, wants: bool) {
        let asked = if CLIENTS[client].2 { &[COLLECTIONS[of]][..] } else { &NAMES[of] };
        for name in asked {
            if wants && self.wants[client].insert(name) {
                self.chain.world.subscribe(self.clients[client], CLUSTERS, &[name]);
            } else if !wants && self.wants[client].remove(name) {
                self.chain.world.unsubscribe(self.clients[client], CLUSTERS, &[name]);
                // What it has of it is its own to drop.
                let held = &mut self.chain.world.clients[self.clients[client]].holds;
                held.retain(|(_, held), _| !(is_of(held, name) || held == name));
            }
        }
    }

    /// What the origin has for who asks for this.
    fn expected(&self, wants: &BTreeSet<&str>) -> Vec<String> {
        let is_wanted = |name: &str| wants.iter().any(|asked| *asked == name || is_of(name, asked));
        let content = self.content.iter().filter(|(name, _)| is_wanted(name));
        content.map(|(name, version)| format!("{name}@{version}")).collect()
    }

    fn converge(mut self) -> Result<(), String> {
        self.chain.world.set_up(0, true);
        self.chain.world.advance(2 * QUIET * SECOND);
        let refused = COLLECTIONS.map(|of| self.chain.world.origins[0].words_of(CLUSTERS, of));
        // What is sent again with nothing but what is asked for by its name, only a new stream says.
        for (of, other) in OTHERS.into_iter().enumerate().filter(|(of, _)| refused[*of].is_none()) {
            self.put(other);
            let now = self.chain.world.now;
            self.chain.world.origins[0].answered(now, CLUSTERS, COLLECTIONS[of]);
        }
        self.chain.world.advance(QUIET * SECOND);
        for (client, wants) in self.clients.iter().zip(&self.wants) {
            // A full state that lacks what is refused takes that from who came back with it: it is not written (rule 151).
            let is_refused = COLLECTIONS.iter().zip(&refused).any(|(of, words)| wants.contains(of) && words.is_some());
            if is_refused && CLIENTS[*client].1 == SOTW {
                continue;
            }
            let held = self.chain.world.clients[*client].held(CLUSTERS);
            let expected = self.expected(wants);
            if held != expected {
                return Err(format!("content: {client} asks for {wants:?} and has {held:?}, not {expected:?}"));
            }
        }
        let cases = (0..RELAYS).flat_map(|relay| [DELTA, SOTW].map(|protocol| (relay, protocol)));
        for (relay, protocol) in cases {
            for (asked, words) in COLLECTIONS.into_iter().zip(&refused) {
                let later = self.chain.client(relay, protocol, "n");
                self.chain.world.subscribe(later, CLUSTERS, &[asked]);
                self.chain.world.advance(QUIET * SECOND);
                let told = errors(&mut self.chain, later, protocol);
                let expected: Vec<_> = words.iter().map(|words| format!("{asked}:7 {words}")).collect();
                if told != expected {
                    return Err(format!("refusal: {relay} {protocol:?} says {told:?}, not {expected:?}"));
                }
            }
        }
        Ok(())
    }
}

fn is_of(name: &str, collection: &str) -> bool {
    let of_glob = collection.strip_suffix('*').filter(|directory| !directory.is_empty());
    of_glob.map_or(collection == "*" && !name.starts_with("xdstp:"), |directory| name.starts_with(directory))
}
