//! What a subscriber holds is said late: after pulls, and after further interests.

use super::*;

fn resume(world: &mut World, id: SubscriberId, held: &[(&str, &str)]) {
    world.cache.resume(id, held.iter().map(|(text, version)| (name(text), (*version).into())));
}

#[test]
fn rule_084_what_is_known_late_to_be_held_is_told_as_gone_if_it_is() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["*", "named"]);
    assert_eq!(world.pull(id), ["a@1", "-named"]);
    resume(&mut world, id, &[("a", "0"), ("gone", "1"), ("named", "1"), (MEMBER, "1")]);
    assert!(world.cache.has_work(id));
    // The one that it did not ask for, too; the one that it was sent, it holds as it was sent.
    assert_eq!(world.pull(id), ["-gone", "-named", &format!("-{MEMBER}")]);
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_083_what_is_known_late_to_be_held_is_not_sent_again_unless_it_was() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    assert_eq!(world.pull(id), ["-a"]);
    for text in ["b", "c"] {
        world.put(text, "1");
    }
    world.cache.subscribe(id, &Interest::Wildcard);
    resume(&mut world, id, &[("b", "1"), ("c", "0")]);
    assert_eq!(world.pull(id), ["c@1"]);
    // A change after it was sent is one.
    resume(&mut world, id, &[("c", "2")]);
    world.put("c", "2");
    assert_eq!(world.pull(id), ["c@2"]);
}

#[test]
fn what_is_known_late_to_be_held_waits_for_an_answer_that_is_not_complete() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    resume(&mut world, id, &[(MEMBER, "1")]);
    resume(&mut world, id, &[(OTHER, "1")]);
    assert_eq!(world.pull(id), [""; 0]);
    world.put(MEMBER, "1");
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{OTHER}")]);
}

/// What cannot be had is told before other removals, but not what may be in use (rule 158).
#[test]
fn rule_158_a_miss_of_what_is_known_late_to_be_held_is_a_removal() {
    let mut world = World::authoritative();
    world.put("b", "1");
    let id = world.subscriber(&["a", "b"]);
    assert_eq!(world.pull_one(id), "b@1");
    resume(&mut world, id, &[("a", "1")]);
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert_eq!(world.pull(id), ["-a"]);
}

/// What is left to look at, in as many pulls as that takes.
fn pull_in_parts(world: &mut World, id: SubscriberId) -> (Vec<String>, usize) {
    let (mut told, mut pulls) = (Vec::new(), 0);
    while world.cache.has_work(id) {
        let (said, pulled) = world.pull_as(id, Removals::Include);
        assert!(said.is_empty() || !pulled.paused, "nothing is said before all is looked at");
        told.extend(said);
        pulls += 1;
        assert!(pulls < 1000, "it ends");
    }
    (told, pulls)
}

const FEW_LOOKS: Options = Options {
    authoritative: false,
    filled: true,
    looks: 10,
    wildcard_covers_xdstp: false,
    tombstones: 0,
    tombstone_age: Duration::ZERO,
    departed_age: Duration::ZERO,
    capacity: None,
};

/// What a glob has to say is said of what was brought along of that, and a little at a time.
#[test]
fn rule_084_what_is_brought_along_of_globs_is_looked_at_in_parts() {
    for globs in [1, 10, 100] {
        let mut world = World::new(FEW_LOOKS);
        let asks: Vec<_> = (0..globs).map(|number| format!("xdstp://x/T/{number}/*")).collect();
        let id = world.subscriber(&asks.iter().map(String::as_str).collect::<Vec<_>>());
        for number in 0..100 {
            resume(&mut world, id, &[(&format!("xdstp://x/T/{}/{number}", number % globs), "1")]);
        }
        asks.iter().for_each(|glob| _ = world.answered(glob));
        let (told, pulls) = pull_in_parts(&mut world, id);
        assert_eq!(told.len(), 100 + globs, "and that each glob is empty");
        assert!((10..30).contains(&pulls), "{pulls} pulls of {globs} globs");
    }
}

/// Names, and one who asks for each and for all.
fn asked_for_each(world: &mut World) -> (Vec<String>, SubscriberId) {
    let names: Vec<_> = (10..40).map(|number| number.to_string()).collect();
    let asks = world.subscriber(&names.iter().map(String::as_str).chain(["*"]).collect::<Vec<_>>());
    world.answered("*");
    (names, asks)
}

fn holding(world: &mut World, names: &[String]) -> SubscriberId {
    let id = world.subscriber(&["*"]);
    resume(world, id, &names.iter().map(|name| (name.as_str(), "1")).collect::<Vec<_>>());
    id
}

#[test]
fn rule_118_what_an_error_spares_is_looked_at_once_in_as_many_parts_as_that_takes() {
    let mut world = World::new(FEW_LOOKS);
    let (names, _) = asked_for_each(&mut world);
    names[5..].iter().for_each(|name| _ = world.fail(name, 14));
    let id = holding(&mut world, &names);
    let (mut told, pulls) = pull_in_parts(&mut world, id);
    told.sort();
    assert_eq!(told, names[..5].iter().map(|name| format!("-{name}")).collect::<Vec<_>>());
    assert!(pulls <= 5, "{pulls}");
}

/// The collection told it as gone to others before, and its complete answer is being compared.
#[test]
fn rule_118_what_an_error_spared_of_a_wildcard_is_told_as_gone_if_that_ends_while_the_rest_is_looked_at() {
    let mut world = World::new(Options { tombstones: 100, tombstone_age: Duration::from_secs(60), ..FEW_LOOKS });
    let (names, _) = asked_for_each(&mut world);
    names.iter().for_each(|name| _ = world.put(name, "1"));
    names.iter().for_each(|name| _ = world.remove(name));
    names.iter().for_each(|name| _ = world.fail(name, 14));
    let id = holding(&mut world, &names);
    assert!(world.pull_as(id, Removals::Include).1.paused, "some were looked at");
    names.iter().for_each(|name| _ = world.remove(name));
    let (told, _) = pull_in_parts(&mut world, id);
    assert_eq!(told.len(), names.len(), "{told:?}");
}

/// What was asked for itself is for its own answer.
#[test]
fn rule_083_what_a_complete_collection_lacks_is_not_sent_again_if_it_comes_for_who_asked_for_it_itself() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB, MEMBER]);
    world.bring(id, MEMBER, "1");
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    world.put(MEMBER, "1");
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_084_what_nobody_asked_for_is_looked_at_in_parts() {
    let mut world = World::new(FEW_LOOKS);
    let id = world.subscriber(&["a"]);
    let held: Vec<_> = (0..100).map(|number| format!("b{number:02}")).collect();
    resume(&mut world, id, &held.iter().map(|name| (name.as_str(), "1")).collect::<Vec<_>>());
    assert_eq!(world.pull(id), [""; 0], "any of it may be what `a` is an alias of");
    world.alias("b42", &["a"], "1");
    let (told, pulls) = pull_in_parts(&mut world, id);
    assert_eq!(told.iter().filter(|word| word.starts_with('-')).count(), 99, "{told:?}");
    assert!((10..15).contains(&pulls), "{pulls}");
    // What is noted while it is looked at is looked at, too.
    resume(&mut world, id, &[("a0", "1"), ("c", "1")]);
    assert_eq!(pull_in_parts(&mut world, id).0, ["-a0", "-c"]);
}

/// What stands behind an alias was looked at, and is held by it; the rest is still to be looked at.
#[test]
fn rule_105_what_was_held_by_an_alias_that_ends_while_the_rest_is_looked_at_is_gone() {
    let ends: [fn(&mut World) -> Vec<SubscriberId>; 5] = [
        |world| world.put("alias", "1"),
        |world| world.alias("other", &["alias"], "1"),
        |world| world.alias("0", &[], "1"),
        |world| world.remove("alias"),
        |world| world.remove("0"),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut world = World::new(FEW_LOOKS);
        let id = world.subscriber(&["alias"]);
        let others: Vec<_> = (10..40).map(|number| number.to_string()).collect();
        let held = others.iter().map(String::as_str).chain(["0"]).map(|name| (name, "1"));
        resume(&mut world, id, &held.collect::<Vec<_>>());
        world.alias("0", &["alias"], "1");
        let (told, pulled) = world.pull_as(id, Removals::Include);
        assert!(told.is_empty() && pulled.paused, "{number}");
        end(&mut world);
        let (told, _) = pull_in_parts(&mut world, id);
        assert!(told.contains(&"-0".to_owned()), "{number}: {told:?}");
    }
}

#[test]
fn who_has_nothing_left_to_compare_is_not_asked_what_it_brought_along() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    resume(&mut world, id, &[("a", "1"), ("b", "1")]);
    world.put("a", "1");
    assert_eq!(world.pull(id), [""; 0]);
    assert_eq!(world.cache.subscribers.bringing.len(), 1);
    world.answered("*");
    assert_eq!(world.pull(id), ["-b"]);
    assert!(world.cache.subscribers.bringing.is_empty());
}

#[test]
fn rule_086_that_nothing_is_there_is_said_though_a_pull_paused_before_it_had_said_anything() {
    let mut world = World::new(Options { authoritative: true, ..FEW_LOOKS });
    let held: Vec<_> = (0..30).map(|number| format!("xdstp://x/T/d/{number}")).collect();
    held.iter().for_each(|text| drop(world.put(text, "1")));
    let id = world.subscriber(&["*", GLOB]);
    world.cache.resume(id, held.iter().map(|text| (name(text), "1".into())));
    let (mut pulls, mut empty) = (0, false);
    while world.cache.has_work(id) {
        let (said, pulled) = world.pull_as(id, Removals::Include);
        assert_eq!(said, [""; 0], "it has all of the glob, and there is none else");
        empty |= pulled.empty;
        pulls += 1;
    }
    assert!(pulls > 1 && empty);
}

#[test]
fn what_is_to_be_told_as_gone_is_not_gone_through_for_each_glob_that_is_asked_for() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    world.answered("*");
    world.pull(id);
    let held: Vec<_> = (0..100).map(|number| format!("gone {number}")).collect();
    world.cache.resume(id, held.iter().map(|text| (name(text), "1".into())));
    world.cache.subscribe(id, &interest(GLOB));
    let removals = world.cache.subscribers[id].owed.removals();
    assert!(removals.is_indexed());
    assert_eq!(world.pull(id).len(), held.len());
}

#[test]
fn rule_048_each_time_a_collection_is_asked_for_again_what_was_said_to_be_held_since_is_sent() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["*"]);
    for _ in 0..2 {
        resume(&mut world, id, &[("a", "1")]);
        world.cache.subscribe(id, &Interest::Wildcard);
        world.cache.subscribe(id, &Interest::Wildcard);
        assert_eq!(world.pull(id), ["a@1"]);
        world.put("a", "2");
        world.put("a", "1");
    }
}

#[test]
fn who_is_gone_brings_nothing_along() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    resume(&mut world, id, &[("a", "1")]);
    assert!(world.cache.brings(id));
    world.cache.close(id);
    assert!(!world.cache.brings(id));
}
