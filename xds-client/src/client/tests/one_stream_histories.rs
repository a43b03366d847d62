//! Servers of several lists come and go by chance, and so do those who watch: each list has what its servers say, and each
//! server one stream and what is wanted of it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::fallback::{LONG, SERVERS, insecure};
use super::*;

const LISTS: [(&str, &[usize]); 4] = [("x", &[0, 1]), ("y", &[0, 2]), ("z", &[1]), ("turned", &[1, 0])];
const IDS: [&str; 3] = ["1", "2", "3"];
/// That of old-style names: the third server alone.
const OLD: usize = LISTS.len();

#[derive(Clone, Copy, Debug)]
enum Step {
    Watch(usize, usize),
    Leave(usize),
    Put(usize, usize, usize),
    Remove(usize, usize, usize),
    Down(usize, bool),
    Silent(usize, bool),
    End(usize),
    Pass(u64),
    Sweep,
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let (list, id, server) = (0..=OLD, 0..IDS.len(), 0..SERVERS.len());
    prop_oneof![
        5 => (list.clone(), id.clone()).prop_map(|(list, id)| Step::Watch(list, id)),
        2 => any::<usize>().prop_map(Step::Leave),
        3 => (server.clone(), list.clone(), id.clone()).prop_map(|(server, list, id)| Step::Put(server, list, id)),
        1 => (server.clone(), list, id).prop_map(|(server, list, id)| Step::Remove(server, list, id)),
        3 => (server.clone(), any::<bool>()).prop_map(|(server, down)| Step::Down(server, down)),
        1 => (server.clone(), any::<bool>()).prop_map(|(server, silent)| Step::Silent(server, silent)),
        1 => server.prop_map(Step::End),
        3 => prop_oneof![0..5_u64, 10..20_u64, 100..300_u64].prop_map(Step::Pass),
        1 => Just(Step::Sweep),
        2 => Just(Step::Look),
    ]
}

/// The servers of a list, in order.
fn servers(list: usize) -> &'static [usize] {
    LISTS.get(list).map_or(&[2], |(_, servers)| servers)
}

fn name(list: usize, id: usize) -> String {
    LISTS.get(list).map_or_else(|| IDS[id].to_owned(), |(authority, _)| xdstp(authority, CDS, IDS[id]))
}

struct Watched {
    list: usize,
    id: usize,
    watch: Watch<Cluster>,
    content: Option<String>,
}

struct History {
    world: World,
    protocol: Protocol,
    watched: Vec<Watched>,
    version: usize,
}

impl History {
    fn new(protocol: Protocol) -> Self {
        let bootstrap = LISTS.iter().fold(Bootstrap::new(insecure(SERVERS[2])), |bootstrap, (name, list)| {
            let servers = list.iter().map(|server| insecure(SERVERS[*server]));
            bootstrap.with_authority(*name, servers.fold(Authority::default(), Authority::with_server))
        });
        let mut history = Self { world: World::with(protocol, bootstrap), protocol, watched: Vec::new(), version: 0 };
        history.put_everywhere();
        history
    }

    /// Each server has all, whether it may set it or not: the number of the server is in it.
    fn put_everywhere(&mut self) {
        for server in 0..SERVERS.len() {
            (0..=OLD).for_each(|list| (0..IDS.len()).for_each(|id| self.put(server, list, id)));
        }
    }

    fn put(&mut self, server: usize, list: usize, id: usize) {
        self.version += 1;
        self.world.put_at(server, &name(list, id), &format!("{} by {server}", self.version));
    }

    fn act(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Watch(list, id) => {
                let watch = self.world.watch(&name(list, id));
                self.watched.push(Watched { list, id, watch, content: None });
            }
            Step::Leave(which) if !self.watched.is_empty() => {
                drop(self.watched.remove(which % self.watched.len()));
            }
            Step::Leave(_) => {}
            Step::Put(server, list, id) => self.put(server, list, id),
            Step::Remove(server, list, id) => self.world.at(server).remove(CDS, &name(list, id)),
            Step::Down(server, true) => self.world.at(server).go_down("away"),
            Step::Down(server, false) => self.world.at(server).come_up(),
            Step::Silent(server, silent) => self.world.at(server).be_silent(silent),
            Step::End(server) => self.world.at(server).end_streams(),
            Step::Pass(seconds) => self.world.seconds(seconds),
            Step::Sweep => self.world.client.sweep(self.world.network.now()),
            Step::Look => self.look()?,
        }
        self.world.network.settle();
        let streams = self.world.streams();
        prop_assert!(streams.iter().all(|streams| *streams <= 1), "{:?}", streams);
        for server in 0..SERVERS.len() {
            prop_assert_eq!(self.world.at(server).take_refused(), Vec::<String>::new(), "of {}", server);
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), TestCaseError> {
        for Watched { list, watch, content, .. } in &mut self.watched {
            while let Some(event) = watch.try_next() {
                let words = words(&event);
                match event {
                    Event::Put { resource, .. } => {
                        let by = resource.0.rsplit(' ').next().and_then(|by| by.parse().ok());
                        let is_own = by.is_some_and(|by| servers(*list).contains(&by));
                        prop_assert!(is_own, "{}: {} of no server of its list", words, resource.0);
                        *content = Some(resource.0.clone());
                    }
                    Event::Failed { .. } => prop_assert!(content.is_none(), "{}: it is taken away", words),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// All are well for long, and have all anew.
    fn end_well(&mut self) -> Result<(), TestCaseError> {
        for server in 0..SERVERS.len() {
            self.act(Step::Down(server, false))?;
            self.act(Step::Silent(server, false))?;
        }
        self.world.network.pass(LONG);
        self.put_everywhere();
        self.world.network.pass(LONG);
        self.look()
    }

    fn sweep(&self) {
        for _ in 0..2 {
            self.world.network.settle();
            self.world.client.sweep(self.world.network.now());
        }
        self.world.network.settle();
    }

    /// The names that a server is asked for on a new stream.
    fn asked(&self, server: usize) -> BTreeSet<String> {
        self.world.at(server).take_asked();
        self.world.at(server).end_streams();
        self.world.network.pass(LONG);
        let asked = self.world.at(server).take_asked();
        match self.protocol {
            Protocol::Delta => asked.iter().filter_map(|name| name.strip_prefix('+')).map(str::to_owned).collect(),
            Protocol::Sotw => {
                let names = asked.iter().flat_map(|names| names.split(' ')).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r024_whatever_becomes_of_servers_each_has_one_stream_that_asks_for_what_is_wanted_of_it(
        steps in proptest::collection::vec(step(), 1..40),
        sotw in any::<bool>(),
    ) {
        let mut history = History::new(if sotw { Protocol::Sotw } else { Protocol::Delta });
        for step in steps {
            history.act(step)?;
        }
        history.end_well()?;
        let mut wanted: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for Watched { list, id, content, .. } in &history.watched {
            let first = servers(*list)[0];
            wanted.entry(first).or_default().insert(name(*list, *id));
            let by_first = content.as_ref().is_some_and(|content| content.ends_with(&format!("by {first}")));
            prop_assert!(by_first, "{}: {:?}", name(*list, *id), content);
        }
        history.sweep();
        for server in 0..SERVERS.len() {
            let of_server = wanted.remove(&server).unwrap_or_default();
            prop_assert_eq!(history.world.at(server).streams(), usize::from(!of_server.is_empty()));
            prop_assert_eq!(history.asked(server), of_server, "of {}", server);
        }
        history.watched.clear();
        history.sweep();
        prop_assert_eq!(history.world.streams(), [0; 3]);
    }
}
