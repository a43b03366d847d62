//! Who passes what another one was visited knows no more and no less than who was visited it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Place;

const NAMES: [&str; 6] = ["a", "b", "c", "d", MEMBER, OTHER];

/// Two who ask for the same: the second one passes what the first one was visited, where it can.
struct Twins {
    world: World,
    ids: [SubscriberId; 2],
    told: [Vec<String>; 2],
    passed: usize,
}

fn text(pull: &Pull<'_, u64>) -> String {
    match pull {
        Pull::Put { name, resource, .. } => format!("{name}@{}", resource.version),
        Pull::Removed { name, .. } => format!("-{name}"),
    }
}

/// What is put, in no order.
fn puts(told: &[String]) -> Vec<&str> {
    let mut puts: Vec<_> = told.iter().map(String::as_str).filter(|told| told.contains('@')).collect();
    puts.sort();
    puts
}

/// What is held in the end: of what came back before it was told as gone, not both need be told.
fn held(told: &[String]) -> BTreeMap<&str, &str> {
    let mut held = BTreeMap::new();
    for told in told {
        match told.split_once('@') {
            Some((name, version)) => _ = held.insert(name, version),
            None => _ = held.remove(&told[1..]),
        }
    }
    held
}

impl Twins {
    fn new(mut world: World, interests: &[&str]) -> Self {
        let ids = [(); 2].map(|()| world.subscriber(interests));
        Self { world, ids, told: Default::default(), passed: 0 }
    }

    fn pull(&mut self, who: usize, most: usize) -> Pulled {
        let Self { world, ids, told, .. } = self;
        let told = &mut told[who];
        let until = told.len() + most;
        world.cache.pull(ids[who], Removals::Include, &mut |pull| {
            told.push(text(&pull));
            if told.len() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }

    /// Both are told up to so many, as whoever keeps responses for others does it.
    fn tell(&mut self, most: usize) -> [Pulled; 2] {
        let [first, second] = self.ids;
        let (from, before) = (self.world.cache.place(first), self.told[0].len());
        let pulled = self.pull(0, most);
        let to = self.world.cache.place(first);
        let news = self.told[0][before..].to_vec();
        let puts = news.iter().take_while(|told| !told.starts_with('-')).count();
        let pass = |cache: &mut Cache<u64>, from: Place, to: Place| cache.pass(second, &from, &to);
        let passed = from.zip(to).filter(|_| puts > 0).and_then(|(from, to)| pass(&mut self.world.cache, from, to));
        let Some(more) = passed else { return [pulled, self.pull(1, most)] };
        self.passed += 1;
        self.told[1].extend_from_slice(&news[..puts]);
        let full = Pulled { more: true, ..Pulled::default() };
        [pulled, if puts == most && more { full } else { self.pull(1, (most - puts).max(1)) }]
    }

    /// Nothing is left to tell.
    fn tell_all(&mut self) {
        while self.ids.iter().any(|id| self.world.cache.has_work(*id)) {
            self.tell(3);
            for (who, id) in self.ids.into_iter().enumerate() {
                while self.world.cache.pull_errors(id, Removals::Include, &mut |failed| {
                    self.told[who].push(format!("!{}", failed.name));
                    ControlFlow::Continue(())
                }) {}
            }
        }
    }
}

proptest! {
    #[test]
    fn two_who_ask_for_the_same_are_told_the_same(
        authoritative: bool,
        wildcard: bool,
        steps in proptest::collection::vec((0..7_u8, 0..NAMES.len(), 1..4_usize), 1..40),
    ) {
        let options = Options { authoritative, ..Options::default() };
        let wanted = if wildcard { "*" } else { GLOB };
        let mut twins = Twins::new(World::new(options), &[wanted]);
        for (version, (step, at, most)) in steps.into_iter().enumerate() {
            match step {
                0..3 => drop(twins.world.put(NAMES[at], &version.to_string())),
                3 => drop(twins.world.remove(NAMES[at])),
                4 if at == 0 => drop(twins.world.fail(NAMES[at], 5)),
                4 => drop(twins.world.answered(wanted)),
                5 => {
                    // Again from the begin.
                    let [first, second] = twins.ids;
                    twins.world.cache.subscribe(first, &interest(wanted));
                    twins.world.cache.subscribe(second, &interest(wanted));
                }
                _ => {
                    let [first, second] = twins.tell(most);
                    prop_assert_eq!((first.answered, first.empty), (second.answered, second.empty));
                }
            }
        }
        twins.tell_all();
        let [first, second] = twins.told;
        prop_assert_eq!(puts(&first), puts(&second));
        prop_assert_eq!(held(&first), held(&second));
    }
}

#[test]
fn who_comes_to_what_is_as_it_was_passes_all_of_it_and_is_told_what_changes_then() {
    let mut world = World::authoritative();
    ["a", "b", "c"].iter().for_each(|text| drop(world.put(text, "1")));
    let mut twins = Twins::new(world, &["*"]);
    assert!(twins.tell(2).map(|pulled| pulled.more) == [true; 2]);
    assert!(twins.tell(2).map(|pulled| (pulled.more, pulled.answered)) == [(false, true); 2]);
    assert_eq!(twins.passed, 2);
    twins.world.put("b", "2");
    twins.world.remove("a");
    twins.tell_all();
    let told = ["a@1", "b@1", "c@1", "b@2", "-a"];
    assert_eq!(twins.told.map(|told| told.join(" ")), [told.join(" "), told.join(" ")]);
}

#[test]
fn nobody_passes_what_is_not_as_it_was_or_what_is_his_own() {
    let mut world = World::authoritative();
    ["a", "b"].iter().for_each(|text| drop(world.put(text, "1")));
    let [one, other, named] = [&["*"][..], &["*"], &["*", "a"]].map(|interests| world.subscriber(interests));
    assert!(world.cache.place(named).is_none(), "it asks for something else, too");
    let from = world.cache.place(one).unwrap();
    world.pull(one);
    let to = world.cache.place(one).unwrap();
    let held = world.subscriber(&["*"]);
    world.bring(held, "a", "1");
    assert_eq!(world.cache.pass(held, &from, &to), None, "it has some of it");
    world.put("a", "2");
    assert_eq!(world.cache.pass(other, &from, &to), None);
    assert_eq!(world.pull(other), ["b@1", "a@2"]);
}
