//! What is gone stays in the full states of those who are yet to be told, as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::{GLOB, MEMBER, OTHER, World, interest, invariants, name};
use crate::{Options, Removals, Resource, Selector, SubscriberId, Variant};

impl World {
    /// The full state that a subscriber is sent: `name@version`.
    fn full_state(&mut self, id: SubscriberId, removals: Removals) -> Vec<String> {
        self.pull_as(id, removals);
        let mut state = self.leaving(id, removals);
        self.cache.visit(id, &mut |name, resource| state.push(format!("{name}@{}", resource.version)));
        state.sort();
        state
    }

    fn leaving(&mut self, id: SubscriberId, removals: Removals) -> Vec<String> {
        let mut leaving = Vec::new();
        let mut visitor = |name: &_, resource: &Resource<_>| {
            leaving.push(format!("{name}@{}", resource.version));
            true
        };
        self.cache.visit_leaving(id, removals, &mut visitor);
        leaving
    }

    fn departed(&self) -> usize {
        self.cache.store.types().values().map(|of| of.departures.departed.len()).sum()
    }
}

#[test]
fn rule_122_a_full_state_that_adds_has_what_is_gone_until_that_may_be_told() {
    for mut world in [World::authoritative(), World::relay()] {
        for names in [&["*"][..], &["a", "b"]] {
            let id = world.subscriber(names);
            world.put("a", "1");
            assert_eq!(world.full_state(id, Removals::Defer), ["a@1"]);
            world.remove("a");
            world.put("b", "1");
            assert_eq!(world.full_state(id, Removals::Defer), ["a@1", "b@1"]);
            world.put("b", "2");
            assert_eq!(world.full_state(id, Removals::Defer), ["a@1", "b@2"], "as long as it takes");
            assert_eq!(world.full_state(id, Removals::Include), ["b@2"]);
            assert_eq!(world.full_state(id, Removals::Defer), ["b@2"], "it is told once");
            assert_eq!(world.departed(), 0);
            world.remove("b");
            world.cache.close(id);
        }
    }
}

#[test]
fn what_came_and_went_between_two_full_states_was_never_there() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*"]);
    world.full_state(id, Removals::Defer);
    world.put("a", "1");
    world.remove("a");
    assert_eq!(world.full_state(id, Removals::Defer), [""; 0]);
    assert_eq!(world.full_state(id, Removals::Defer), [""; 0]);
}

#[test]
fn what_went_came_and_went_again_is_as_it_was_in_the_last_full_state() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.full_state(id, Removals::Defer);
    for version in ["2", "3"] {
        world.remove(MEMBER);
        world.put(MEMBER, version);
    }
    world.remove(MEMBER);
    world.put(OTHER, "1");
    let expected = [format!("{MEMBER}@1"), format!("{OTHER}@1")];
    assert_eq!(world.full_state(id, Removals::Defer), expected);
    world.put(MEMBER, "4");
    assert_eq!(world.full_state(id, Removals::Defer), [format!("{MEMBER}@4"), format!("{OTHER}@1")]);
}

#[test]
fn what_is_gone_is_kept_only_for_full_states_and_only_until_all_of_them_are_told() {
    let mut world = World::authoritative();
    let changes = world.subscriber(&["*"]);
    world.put("a", "1");
    world.pull(changes);
    world.remove("a");
    assert_eq!(world.departed(), 0);
    let ids = [(); 3].map(|()| world.subscriber(&["*"]));
    world.put("a", "1");
    ids.iter().for_each(|id| drop(world.full_state(*id, Removals::Defer)));
    world.remove("a");
    for (left, id) in [ids[2], ids[0], ids[1]].into_iter().enumerate() {
        assert_eq!(world.departed(), 1);
        if left == 1 {
            world.cache.close(id);
        } else {
            world.full_state(id, Removals::Include);
        }
    }
    assert_eq!(world.departed(), 0, "though one that is sent changes was not told");
}

#[test]
fn what_is_gone_is_bounded_in_number_and_age() {
    let options = Options { departed_age: Duration::from_secs(5), ..Options::default() };
    let mut world = World::new(options);
    let id = world.subscriber(&["*"]);
    let names: Vec<_> = (0..1002).map(|number| format!("{number:04}")).collect();
    names.iter().for_each(|name| drop(world.put(name, "1")));
    world.full_state(id, Removals::Defer);
    names.iter().for_each(|name| drop(world.remove(name)));
    let expected: Vec<_> = names.iter().skip(2).map(|name| format!("{name}@1")).collect();
    assert_eq!(world.full_state(id, Removals::Defer), expected);
    world.now += Duration::from_secs(4);
    world.put("d", "1");
    assert_eq!(world.departed(), 1000);
    world.now += Duration::from_secs(1);
    world.put("d", "2");
    assert_eq!(world.departed(), 0);
    assert_eq!(world.full_state(id, Removals::Defer), ["d@2"]);
}

#[test]
fn what_a_full_state_does_not_have_it_has_told() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*"]);
    world.put("a", "1");
    world.full_state(id, Removals::Include);
    world.put("b", "1");
    world.remove("b");
    world.cache.subscribe(id, &interest("c"));
    assert_eq!(world.full_state(id, Removals::Defer), ["a@1"]);
    assert!(!world.cache.has_work(id));
    world.remove("a");
    world.put("b", "2");
    assert_eq!(world.full_state(id, Removals::Defer), ["a@1", "b@2"]);
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn what_is_left_and_asked_for_again_is_not_missing_while_a_wildcard_had_it() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*"]);
    world.put("a", "1");
    world.full_state(id, Removals::Include);
    world.remove("a");
    world.put("b", "1");
    assert_eq!(world.full_state(id, Removals::Defer), ["a@1", "b@1"]);
    for _ in 0..2 {
        world.cache.subscribe(id, &interest("a"));
        world.cache.unsubscribe(id, &interest("a"));
    }
    world.cache.subscribe(id, &interest("a"));
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert_eq!(world.leaving(id, Removals::Defer), ["a@1"]);
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn what_is_left_is_not_leaving() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a", "b"]);
    world.put("a", "1");
    world.full_state(id, Removals::Defer);
    world.remove("a");
    world.cache.unsubscribe(id, &interest("a"));
    world.put("b", "1");
    assert_eq!(world.full_state(id, Removals::Defer), ["b@1"]);
}

#[test]
fn what_is_left_stays_for_as_long_as_the_glob_that_still_covers_it_is_not_answered() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB, MEMBER]);
    world.put(MEMBER, "1");
    world.full_state(id, Removals::Include);
    world.remove(MEMBER);
    let held = [format!("{MEMBER}@1")];
    assert_eq!(world.full_state(id, Removals::Defer), held);
    world.cache.unsubscribe(id, &interest(MEMBER));
    for _ in 0..2 {
        assert_eq!(world.full_state(id, Removals::Defer), held);
    }
    world.answered(GLOB);
    assert_eq!(world.full_state(id, Removals::Defer), held);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
    assert_eq!(world.full_state(id, Removals::Defer), [""; 0]);
}

#[test]
fn what_a_glob_covers_stays_while_it_is_asked_for_by_name_anew() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB, MEMBER]);
    world.put(MEMBER, "1");
    world.full_state(id, Removals::Include);
    world.remove(MEMBER);
    let held = [format!("{MEMBER}@1")];
    assert_eq!(world.full_state(id, Removals::Defer), held);
    world.cache.unsubscribe(id, &interest(MEMBER));
    world.cache.subscribe(id, &interest(MEMBER));
    assert_eq!(world.full_state(id, Removals::Defer), held);
    world.remove(MEMBER);
    assert_eq!(world.full_state(id, Removals::Defer), held);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

#[test]
fn rule_122_what_was_in_a_full_state_by_a_name_that_is_left_stays_by_what_was_asked_for_since() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    world.put("a", "1");
    assert_eq!(world.full_state(id, Removals::Defer), ["a@1"]);
    world.cache.subscribe(id, &interest("*"));
    world.cache.unsubscribe(id, &interest("a"));
    world.remove("a");
    world.put("b", "1");
    assert_eq!(world.full_state(id, Removals::Defer), ["a@1", "b@1"]);
    assert_eq!(world.full_state(id, Removals::Include), ["b@1"]);
}

#[derive(Clone, Debug)]
enum Op {
    Put(usize, u8),
    Remove(usize),
    FullState(usize, bool),
    Close(usize),
    /// One more interest, or one less.
    Toggle(usize, usize),
}

const NAMES: [&str; 4] = ["a", "b", MEMBER, OTHER];
const INTERESTS: [&[&str]; 4] = [&["*"], &["a", MEMBER], &["*", GLOB], &["*", "a", OTHER, GLOB]];

type Held = BTreeMap<&'static str, (String, usize)>;

struct Client {
    id: SubscriberId,
    interests: BTreeSet<&'static str>,
    last: Held,
}

impl Client {
    fn new(world: &mut World, interests: &[&'static str]) -> Self {
        let id = world.subscriber(interests);
        Self { id, interests: interests.iter().copied().collect(), last: Held::new() }
    }
}

fn covers(interests: &BTreeSet<&str>, text: &str) -> bool {
    interests.iter().any(|interest| match *interest {
        "*" => name(text).is_opaque(),
        GLOB => !name(text).is_opaque(),
        own => own == text,
    })
}

fn op() -> impl Strategy<Value = Op> {
    let of = 0..INTERESTS.len();
    prop_oneof![
        (0..NAMES.len(), any::<u8>()).prop_map(|(at, version)| Op::Put(at, version)),
        (0..NAMES.len()).prop_map(Op::Remove),
        (of.clone(), any::<bool>()).prop_map(|(of, defer)| Op::FullState(of, defer)),
        of.clone().prop_map(Op::Close),
        (of, 0..INTERESTS[3].len()).prop_map(|(of, interest)| Op::Toggle(of, interest)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A full state is what is there and, while removals are deferred, what the last one had and nobody told of.
    #[test]
    fn full_states_are_what_a_naive_client_expects(
        authoritative in any::<bool>(),
        history in prop::collection::vec(op(), 1..60),
    ) {
        let mut world = World::new(Options { authoritative, ..Options::default() });
        // The version of each name, and which of its lives it is of.
        let mut there = Held::new();
        let mut clients = INTERESTS.map(|names| Client::new(&mut world, names));
        for (step, op) in history.into_iter().enumerate() {
            match op {
                Op::Put(at, version) => {
                    world.put(NAMES[at], &version.to_string());
                    let life = there.get(NAMES[at]).map_or(step, |(_, life)| *life);
                    there.insert(NAMES[at], (version.to_string(), life));
                }
                Op::Remove(at) => {
                    world.remove(NAMES[at]);
                    let last = there.remove(NAMES[at]);
                    for client in &mut clients {
                        if let (Some(held), Some(last)) = (client.last.get_mut(NAMES[at]), &last) && held.1 == last.1 {
                            held.clone_from(last);
                        }
                    }
                }
                Op::FullState(of, defer) => {
                    let Client { id, interests, last } = &mut clients[of];
                    let mut now = if defer { std::mem::take(last) } else { BTreeMap::new() };
                    let present = there.iter().filter(|(name, _)| covers(interests, name));
                    now.extend(present.map(|(name, version)| (*name, version.clone())));
                    let mut expected: Vec<_> = now.iter().map(|(name, (version, _))| format!("{name}@{version}")).collect();
                    expected.sort();
                    *last = now;
                    let removals = if defer { Removals::Defer } else { Removals::Include };
                    prop_assert_eq!(world.full_state(*id, removals), expected);
                }
                Op::Close(of) => {
                    world.cache.close(clients[of].id);
                    clients[of] = Client::new(&mut world, INTERESTS[of]);
                }
                Op::Toggle(of, at) => {
                    let Client { id, interests, last } = &mut clients[of];
                    let text = INTERESTS[3][at];
                    if interests.insert(text) {
                        world.cache.subscribe(*id, &interest(text));
                    } else {
                        world.cache.unsubscribe(*id, &interest(text));
                        interests.remove(text);
                        // What it wants by another, it has had all the time.
                        last.retain(|name, _| !covers(&[text].into(), name) || covers(interests, name));
                    }
                }
            }
            invariants::check(&world.cache);
        }
    }
}

#[test]
fn what_was_asked_for_since_the_last_full_state_was_not_in_it() {
    for asked in [MEMBER, GLOB] {
        let mut world = World::authoritative();
        world.put("a", "1");
        world.put(MEMBER, "1");
        let id = world.subscriber(&["a"]);
        assert_eq!(world.full_state(id, Removals::Defer), ["a@1"]);
        world.cache.subscribe(id, &interest(asked));
        world.remove(MEMBER);
        assert_eq!(world.full_state(id, Removals::Defer), ["a@1"], "{asked}");
    }
}

#[test]
fn what_several_selected_is_in_the_full_states_of_all_of_them() {
    let mut world = World::authoritative();
    let variant = Variant::Constraints("exists(env)".parse().unwrap());
    let mut edit = world.cache.edit(world.now);
    edit.put_variant(&world.of, &name("a"), &variant, Resource::new("1".into(), 1, 0));
    let _ = edit.finish();
    let ids = ["prod", "test"].map(|env| {
        let id = world.cache.open_selecting(&world.of, &Selector::from([("env", env)]));
        world.cache.subscribe(id, &interest("*"));
        id
    });
    ids.iter().for_each(|id| assert_eq!(world.full_state(*id, Removals::Defer), ["a@1"]));
    world.remove("a");
    ids.iter().for_each(|id| assert_eq!(world.full_state(*id, Removals::Defer), ["a@1"]));
}
