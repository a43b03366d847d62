//! How far a collection is answered, and what that says.

use super::{GLOB, MEMBER, OTHER, World, interest, name};
use crate::{Cache, Options, Removals, Unanswered};

fn resumed(world: &mut World, interests: &[&str], held: &[(&str, &str)]) -> crate::SubscriberId {
    let id = world.subscriber(interests);
    world.cache.resume(id, held.iter().map(|(text, version)| (name(text), (*version).into())));
    id
}

#[test]
fn rule_151_nothing_is_gone_before_the_answer_is_complete() {
    for collection in [GLOB, "*"] {
        let (here, gone) = if collection == GLOB { (MEMBER, OTHER) } else { ("a", "b") };
        let mut world = World::relay();
        let id = resumed(&mut world, &[collection], &[(here, "1"), (gone, "1")]);
        assert_eq!(world.cache.visit(id, &mut |_, _| ()).collections, 1);
        _ = world.begun(collection);
        world.put(here, "1");
        assert_eq!(world.pull(id), [""; 0]);
        let unanswered = world.cache.visit(id, &mut |_, _| ());
        assert_eq!((unanswered.collections, unanswered.incomplete), (0, 1));
        assert_eq!(world.cache.undecided(&world.of), [name(gone)].into());
        world.cache.answered(&world.of, &interest(collection), &mut Vec::new());
        assert_eq!(world.pull(id), [format!("-{gone}")]);
        assert!(world.cache.undecided(&world.of).is_empty());
    }
}

#[test]
fn rule_150_what_is_complete_says_what_is_gone_while_only_another_type_is_lost() {
    let mut world = World::relay();
    world.subscriber(&["*"]);
    world.put("a", "1");
    world.cache.answered(&world.of, &interest("*"), &mut Vec::new());
    world.cache.type_lost(&"another".into());
    let id = resumed(&mut world, &["*"], &[("a", "1"), ("b", "1")]);
    assert_eq!(world.pull(id), ["-b"]);
}

#[test]
fn rule_150_what_was_complete_says_nothing_is_gone_once_the_origin_is_lost() {
    for (collection, of_type) in [(GLOB, false), ("*", false), (GLOB, true), ("*", true)] {
        let (here, new) = if collection == GLOB { (MEMBER, OTHER) } else { ("a", "b") };
        let mut world = World::relay();
        let first = world.subscriber(&[collection]);
        world.put(here, "1");
        world.cache.answered(&world.of, &interest(collection), &mut Vec::new());
        world.pull(first);
        if of_type {
            world.cache.type_lost(&world.of);
        } else {
            world.cache.origin_lost();
        }
        // Another relay, which is not cut off, told it of something newer.
        let id = resumed(&mut world, &[collection], &[(here, "1"), (new, "1")]);
        assert_eq!(world.pull(id), [""; 0]);
        assert!(world.cache.is_known(&world.of, &interest(collection)));
        assert_eq!(world.cache.undecided(&world.of), [name(new)].into());
        world.put(new, "1");
        world.cache.answered(&world.of, &interest(collection), &mut Vec::new());
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.pull(first), [format!("{new}@1")]);
    }
}

#[test]
fn a_glob_that_failed_is_known_to_be_answered_though_nobody_asks_for_it_any_more() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.fail(GLOB, 14);
    world.cache.close(id);
    world.answered(GLOB);
    let again = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(again), [format!("-{GLOB}")]);
}

/// An empty glob is told by a removal of the glob: who lists no members when it comes back would lose them.
#[test]
fn rule_150_a_glob_is_not_told_empty_while_the_origin_is_lost() {
    let mut world = World::relay();
    let first = world.subscriber(&[GLOB]);
    world.cache.answered(&world.of, &interest(GLOB), &mut Vec::new());
    assert_eq!(world.pull(first), [format!("-{GLOB}")]);
    world.cache.origin_lost();
    let id = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(id), [""; 0]);
    world.cache.answered(&world.of, &interest(GLOB), &mut Vec::new());
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    assert_eq!(world.pull(first), [""; 0]);
}

#[test]
fn rule_158_that_a_glob_is_empty_after_all_is_told_though_removals_wait() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    _ = world.begun(GLOB);
    assert!(world.pull_as(id, Removals::Defer).1.answered);
    assert!(!world.cache.has_additions(id));
    world.answered(GLOB);
    assert!(world.cache.has_additions(id));
    assert_eq!(world.pull_as(id, Removals::Defer).0, [format!("-{GLOB}")]);
}

#[test]
fn what_several_sources_have_not_answered_is_counted_together() {
    let one = Unanswered { names: 1, collections: 2, incomplete: 3, held: 4, refused: 5 };
    let other = Unanswered { names: 10, collections: 20, incomplete: 30, held: 40, refused: 50 };
    assert_eq!(one.and(other), Unanswered { names: 11, collections: 22, incomplete: 33, held: 44, refused: 55 });
}

#[test]
fn what_changes_all_the_time_does_not_hold_back_what_changed_once() {
    for interests in [["a", "b"], ["xdstp://x/T/a/*", "xdstp://x/T/b/*"]] {
        let member = |text: &str| text.replace('*', "1");
        let [quiet, busy] = interests.map(member);
        let mut world = World::authoritative();
        let id = world.subscriber(&interests);
        world.put(&quiet, "1");
        world.put(&busy, "1");
        world.pull(id);
        world.put(&busy, "2");
        world.put(&quiet, "2");
        let told: Vec<_> = (3..6)
            .map(|version| {
                let told = world.pull_one(id);
                world.put(&busy, &version.to_string());
                // To be asked for once more is no reason to wait longer.
                world.cache.subscribe(id, &interest(interests[0]));
                told
            })
            .collect();
        assert_eq!(told, [format!("{busy}@2"), format!("{quiet}@2"), format!("{busy}@4")]);
    }
}

/// Others wait for who has something to say.
#[test]
fn who_had_no_room_after_the_last_has_nothing_more_to_say() {
    for (interest, name) in [("*", "a"), (GLOB, MEMBER), ("a", "a")] {
        let mut world = World::authoritative();
        let id = world.subscriber(&[interest]);
        world.put(name, "1");
        assert_eq!(world.pull_one(id), format!("{name}@1"));
        assert!(!world.cache.has_work(id), "{interest}");
        world.put(name, "2");
        assert_eq!(world.pull(id), [format!("{name}@2")]);
    }
}

#[test]
fn that_the_error_of_a_glob_is_over_does_not_say_that_its_members_are_gone() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    world.fail(GLOB, 14);
    world.answered(GLOB);
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_151_who_waits_for_a_collection_is_told_that_its_answer_has_begun() {
    for collection in [GLOB, "*"] {
        let mut world = World::relay();
        let id = world.subscriber(&[collection]);
        assert!(!world.pull_as(id, Removals::Include).1.answered);
        assert_eq!(world.begun(collection), [id]);
        assert!(world.pull_as(id, Removals::Include).1.answered);
    }
}

#[test]
fn what_has_begun_with_a_name_is_no_empty_answer_of_the_glob_beside_it() {
    let mut world = World::relay();
    world.put("a", "1");
    let id = world.subscriber(&["a", GLOB]);
    _ = world.begun(GLOB);
    assert_eq!(world.pull_one(id), "a@1");
    let (said, pulled) = world.pull_as(id, Removals::Include);
    assert_eq!((said, pulled.answered, pulled.empty), (vec![], true, false));
    let other = world.subscriber(&[GLOB]);
    let (said, pulled) = world.pull_as(other, Removals::Include);
    assert_eq!((said, pulled.answered, pulled.empty), (vec![], true, true));
}

#[test]
fn rule_100_what_goes_from_a_glob_after_a_restart_is_told_to_who_comes_back() {
    for is_evicted in [false, true] {
        let mut world = World::relay();
        let id = world.subscriber(&[GLOB]);
        world.put(MEMBER, "1");
        world.put(OTHER, "1");
        world.answered(GLOB);
        world.pull(id);
        world.cache.close(id);
        let known: Vec<_> = world.cache.snapshot(world.now).map(|known| known.map(|value| *value)).collect();
        world.cache = Cache::restore(Options { authoritative: false, ..Options::default() }, known, world.now);
        if is_evicted {
            // Whether it is gone is for the next answer to say.
            world.cache.evict(&world.of, &interest(GLOB), world.now);
        } else {
            world.remove(MEMBER);
        }
        let back = world.subscriber(&[GLOB]);
        world.put(OTHER, "1");
        world.answered(GLOB);
        assert_eq!(world.pull(back), [format!("{OTHER}@1"), format!("-{MEMBER}")], "evicted: {is_evicted}");
    }
}
