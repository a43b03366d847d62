//! Random histories with aliases, against a table of names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use proptest::prelude::*;
use xdstp_uri::ResourceName;

use super::super::{World, interest, invariants, name};
use crate::{Interest, Options, Pull, Removals, SubscriberId, Version};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "xdstp://x/T/d/1", "xdstp://x/T/d/2"];
const INTERESTS: [&str; 8] = ["a", "b", "c", "d", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "*", "xdstp://x/T/d/*"];
const SUBSCRIBERS: usize = 2;

#[derive(Clone, Debug)]
enum Op {
    Open { who: usize, asks: Vec<usize>, holds: Vec<(usize, u64)> },
    Subscribe { who: usize, what: usize },
    Unsubscribe { who: usize, what: usize },
    Upsert { what: usize, version: u64 },
    Alias { what: usize, aliases: Vec<usize>, version: u64 },
    Remove { what: usize },
    Pull { who: usize, entries: usize },
    PullAll { who: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..SUBSCRIBERS;
    let named = || 0..NAMES.len();
    let either = || 0..INTERESTS.len();
    prop_oneof![
        2 => (who(), prop::collection::vec(either(), 0..4), prop::collection::vec((named(), 0..3_u64), 0..3))
            .prop_map(|(who, asks, holds)| Op::Open { who, asks, holds }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Subscribe { who, what }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Unsubscribe { who, what }),
        5 => (named(), 0..3_u64).prop_map(|(what, version)| Op::Upsert { what, version }),
        5 => (named(), prop::collection::vec(named(), 0..3), 0..3_u64)
            .prop_map(|(what, aliases, version)| Op::Alias { what, aliases, version }),
        3 => named().prop_map(|what| Op::Remove { what }),
        3 => (who(), 1..3_usize).prop_map(|(who, entries)| Op::Pull { who, entries }),
        3 => who().prop_map(|who| Op::PullAll { who }),
    ]
}

/// What one client wants, and holds.
struct Client {
    id: SubscriberId,
    interests: BTreeSet<Interest>,
    /// What it holds, with the aliases that it came with.
    view: BTreeMap<ResourceName, (String, BTreeSet<ResourceName>)>,
    brought: BTreeMap<ResourceName, String>,
    /// What is to be sent, if it is there.
    owed: BTreeSet<ResourceName>,
    may_put: BTreeSet<ResourceName>,
}

impl Client {
    /// A name that is a resource, or is not there, is no alias; an alias is no resource, and belongs to the last to
    /// claim it.
    fn claim(&mut self, name: &ResourceName, aliases: &BTreeSet<ResourceName>) {
        let Self { view, interests, .. } = self;
        view.retain(|held, (_, before)| {
            let claims = |alias: &ResourceName| alias == name || aliases.contains(alias);
            let claimed = before.iter().any(claims);
            before.retain(|alias| !claims(alias));
            !aliases.contains(held) && (!claimed || interests.iter().any(|asked| knows(asked, held, before)))
        });
    }
}

/// Whether a client finds that what it asked for covers what it holds.
fn knows(asked: &Interest, name: &ResourceName, aliases: &BTreeSet<ResourceName>) -> bool {
    match asked {
        Interest::Wildcard => name.is_opaque(),
        Interest::Name(asked) => name.answers(asked) || aliases.contains(asked),
    }
}

struct Model {
    world: World,
    resources: BTreeMap<ResourceName, u64>,
    /// What an alias stands for.
    aliases: BTreeMap<ResourceName, ResourceName>,
    /// What each ever stood for: who leaves it may be sent that again.
    former: BTreeSet<(ResourceName, ResourceName)>,
    clients: [Option<Client>; SUBSCRIBERS],
}

impl Model {
    fn matches(&self, asked: &Interest, name: &ResourceName) -> bool {
        match asked {
            Interest::Wildcard => name.is_opaque(),
            Interest::Name(asked) => name.answers(asked) || self.aliases.get(asked) == Some(name),
        }
    }

    fn wants(&self, client: &Client, name: &ResourceName) -> bool {
        client.interests.iter().any(|asked| self.matches(asked, name))
    }

    fn aliases_of(&self, name: &ResourceName) -> BTreeSet<ResourceName> {
        self.aliases.iter().filter(|(_, of)| *of == name).map(|(alias, _)| alias.clone()).collect()
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Open { who, asks, holds } => {
                if let Some(client) = self.clients[who].take() {
                    self.world.cache.close(client.id);
                }
                let id = self.world.cache.open(&self.world.of);
                let brought: BTreeMap<_, _> =
                    holds.into_iter().map(|(what, version)| (name(NAMES[what]), version.to_string())).collect();
                let view = brought.iter().map(|(name, version)| (name.clone(), (version.clone(), BTreeSet::new())));
                let mut client = Client {
                    id,
                    interests: BTreeSet::new(),
                    view: view.collect(),
                    brought: BTreeMap::new(),
                    owed: BTreeSet::new(),
                    may_put: BTreeSet::new(),
                };
                for what in asks {
                    self.subscribe(&mut client, &interest(INTERESTS[what]));
                }
                let held = brought.iter().map(|(name, version)| (name.clone(), Version::from(version.as_str())));
                self.world.cache.resume(id, held.collect::<Vec<_>>());
                client.may_put.extend(brought.keys().cloned());
                client.brought = brought;
                self.clients[who] = Some(client);
            }
            Op::Subscribe { who, what } => {
                let Some(mut client) = self.clients[who].take() else { return };
                self.subscribe(&mut client, &interest(INTERESTS[what]));
                self.clients[who] = Some(client);
            }
            Op::Unsubscribe { who, what } => {
                let Some(mut client) = self.clients[who].take() else { return };
                self.unsubscribe(&mut client, &interest(INTERESTS[what]));
                self.clients[who] = Some(client);
            }
            Op::Upsert { what, version } => {
                self.world.put(NAMES[what], &version.to_string());
                self.upserted(&name(NAMES[what]), version);
            }
            Op::Alias { what, aliases, version } => {
                let texts: Vec<_> = aliases.into_iter().map(|what| NAMES[what]).collect();
                self.world.alias(NAMES[what], &texts, &version.to_string());
                let of = name(NAMES[what]);
                self.upserted(&of, version);
                let aliases: BTreeSet<_> =
                    texts.into_iter().map(name).filter(|alias| !self.resources.contains_key(alias)).collect();
                if self.aliases_of(&of) != aliases {
                    self.aliases.retain(|_, canonical| *canonical != of);
                    aliases.iter().for_each(|alias| self.end_alias(alias));
                    self.former.extend(aliases.iter().map(|alias| (alias.clone(), of.clone())));
                    self.aliases.extend(aliases.into_iter().map(|alias| (alias, of.clone())));
                    self.owe(&of);
                }
            }
            Op::Remove { what } => {
                let name = name(NAMES[what]);
                self.world.remove(NAMES[what]);
                self.end_alias(&name);
                self.resources.remove(&name);
                self.aliases.retain(|_, canonical| *canonical != name);
            }
            Op::Pull { who, entries } => drop(self.pull(who, entries)),
            Op::PullAll { who } => self.pull_all(who),
        }
    }

    fn upserted(&mut self, name: &ResourceName, version: u64) {
        self.end_alias(name);
        if self.resources.insert(name.clone(), version) != Some(version) {
            self.owe(name);
        }
    }

    /// What was sent because of it, and not yet because of what else covers it, may be sent again; it need not be.
    fn end_alias(&mut self, alias: &ResourceName) {
        let Some(name) = self.aliases.remove(alias) else { return };
        for client in self.clients.iter_mut().flatten() {
            client.may_put.insert(name.clone());
            client.owed.remove(&name);
        }
    }

    fn owe(&mut self, name: &ResourceName) {
        let mut clients = std::mem::take(&mut self.clients);
        for client in clients.iter_mut().flatten().filter(|client| self.wants(client, name)) {
            client.owed.insert(name.clone());
            client.may_put.insert(name.clone());
        }
        self.clients = clients;
    }

    fn subscribe(&mut self, client: &mut Client, asked: &Interest) {
        self.world.cache.subscribe(client.id, asked);
        client.interests.insert(asked.clone());
        for name in self.resources.keys().filter(|name| self.matches(asked, name)) {
            client.may_put.insert(name.clone());
            if !asked.is_collection() {
                client.owed.insert(name.clone());
                client.brought.remove(name);
            }
        }
    }

    /// The client drops what none of the names it knows it by is wanted for any more, and may drop what it left.
    fn unsubscribe(&mut self, client: &mut Client, asked: &Interest) {
        self.world.cache.unsubscribe(client.id, asked);
        if !client.interests.remove(asked) {
            return;
        }
        let Client { interests, view, brought, owed, may_put, .. } = client;
        let known = |name: &ResourceName, aliases: &BTreeSet<ResourceName>| {
            let leaves = self.matches(asked, name);
            // By which other names it had what it brought along, this model does not know.
            let aliases_ever = || self.former.iter().filter(|(_, of)| of == name);
            let ever = |asked: &Interest| aliases_ever().any(|(alias, _)| Interest::Name(alias.clone()) == *asked);
            let spared = !leaves && brought.contains_key(name) && (!ever(asked) || interests.iter().any(ever));
            let mut known_by = interests.iter().filter(|asked| knows(asked, name, aliases));
            spared || known_by.any(|by| !by.is_collection() || asked.is_collection() || !leaves)
        };
        let dropped: Vec<_> = view.iter().filter(|(name, held)| !known(name, &held.1)).map(|(name, _)| name).collect();
        let dropped: Vec<_> = dropped.into_iter().cloned().collect();
        dropped.iter().for_each(|name| drop(view.remove(name)));
        for name in self.resources.keys().filter(|name| self.matches(asked, name)) {
            may_put.insert(name.clone());
        }
        may_put.extend(dropped);
        let former = self.former.iter().filter(|(alias, _)| Interest::Name(alias.clone()) == *asked);
        may_put.extend(former.map(|(_, name)| name.clone()));
        owed.retain(|name| interests.iter().any(|asked| self.matches(asked, name)));
    }

    fn pull(&mut self, who: usize, entries: usize) -> bool {
        let Some(mut client) = self.clients[who].take() else { return false };
        let mut said = Vec::new();
        let pulled = self.world.cache.pull(client.id, Removals::Include, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, resource, .. } => (name.clone(), Some(resource.version.to_string())),
                Pull::Removed { name, .. } => (name.clone(), None),
            });
            if said.len() < entries { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let names: BTreeSet<_> = said.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), said.len(), "each name once: {said:?}");
        for (name, put) in said {
            client.brought.remove(&name);
            let Some(version) = put else {
                client.view.remove(&name);
                client.claim(&name, &BTreeSet::new());
                continue;
            };
            assert!(self.wants(&client, &name), "{name} is not wanted");
            assert_eq!(version, self.resources[&name].to_string(), "{name}: the newest state");
            assert!(client.may_put.remove(&name), "{name} is sent twice");
            client.owed.remove(&name);
            let aliases = self.aliases_of(&name);
            client.claim(&name, &aliases);
            client.view.insert(name, (version, aliases));
        }
        self.clients[who] = Some(client);
        pulled.more
    }

    fn pull_all(&mut self, who: usize) {
        while self.pull(who, 2) {}
        let Some(mut client) = self.clients[who].take() else { return };
        assert!(!self.world.cache.has_work(client.id));
        let cache = &self.world.cache;
        let settled = client.interests.iter().all(|asked| cache.is_known(&self.world.of, asked));
        for name in NAMES.map(name) {
            let held = client.view.get(&name).map(|(version, _)| version.clone());
            let current = self.resources.get(&name).map(u64::to_string);
            match current {
                Some(current) if self.wants(&client, &name) => {
                    assert_eq!(held, Some(current.clone()), "{name}");
                    let skipped = client.brought.get(&name) == Some(&current);
                    assert!(skipped || !client.owed.contains(&name), "{name} was not sent");
                }
                // What was not answered may be what it brought along. That a resource became an alias is told with what it
                // stands for.
                _ if settled && !self.aliases.contains_key(&name) => {
                    assert_eq!(held, None, "{name} is held though not there, or not wanted");
                }
                _ => {}
            }
        }
        let mut visited = Vec::new();
        cache.visit(client.id, &mut |name, _| visited.push(name.clone()));
        visited.sort();
        let expected: Vec<_> = self.resources.keys().filter(|name| self.wants(&client, name)).cloned().collect();
        assert_eq!(visited, expected, "each once");
        let mut brought = std::mem::take(&mut client.brought);
        brought.retain(|name, _| {
            let compared = self.resources.contains_key(name) && self.wants(&client, name);
            if let (true, Some(held)) = (compared, client.view.get_mut(name)) {
                held.1 = self.aliases_of(name);
            }
            !compared
        });
        client.brought = brought;
        client.owed.clear();
        client.may_put.clear();
        self.clients[who] = Some(client);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(ProptestConfig::default().cases * 4)
    })]

    #[test]
    fn a_random_history_with_aliases_is_what_a_table_says(
        authoritative in any::<bool>(),
        looks in prop_oneof![Just(usize::MAX), 0..4_usize],
        history in prop::collection::vec(op(), 1..60),
    ) {
        let mut model = Model {
            world: World::new(Options { authoritative, looks, ..Options::default() }),
            resources: BTreeMap::new(),
            aliases: BTreeMap::new(),
            former: BTreeSet::new(),
            clients: Default::default(),
        };
        for op in history {
            model.apply(op);
            invariants::check(&model.world.cache);
        }
        for who in 0..SUBSCRIBERS {
            model.pull_all(who);
        }
    }
}
