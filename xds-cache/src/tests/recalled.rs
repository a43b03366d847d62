//! What an earlier cache knew.

use super::*;
use crate::{Cause, Extent, Known};

/// What a relay knows after a restart, from the snapshot of another.
fn recalled(before: &World) -> World {
    let mut world = World::relay();
    world.now = before.now;
    recall(&mut world, before);
    world
}

fn recall(world: &mut World, before: &World) -> Vec<SubscriberId> {
    let mut edit = world.cache.edit(before.now);
    before.cache.snapshot(before.now).for_each(|known| _ = edit.recall(known.map(|value| *value)));
    let woken = edit.finish().into_iter().collect();
    invariants::check(&world.cache);
    woken
}

fn before(names: &[&str]) -> World {
    let mut world = World::relay();
    let id = world.subscriber(&["*", GLOB]);
    names.iter().for_each(|name| _ = world.put(name, "1"));
    world.answered("*");
    world.answered(GLOB);
    world.cache.close(id);
    world
}

fn confirm(world: &mut World, text: &str) -> Vec<SubscriberId> {
    let mut edit = world.cache.edit(world.now);
    edit.confirm(&world.of, &interest(text));
    let woken = edit.finish().into_iter().collect();
    invariants::check(&world.cache);
    woken
}

#[test]
fn who_waits_is_sent_what_is_recalled_and_who_comes_later_too() {
    let mut world = World::relay();
    let waits = world.subscriber(&["a", "*", "b"]);
    assert_eq!(world.pull(waits), [""; 0]);
    assert!(recall(&mut world, &before(&["a", "c"])).contains(&waits));
    assert_eq!(world.pull(waits), ["a@1", "c@1"]);
    let later = world.subscriber(&["*"]);
    assert_eq!(world.pull_as(later, Removals::Include).0.len(), 2);
    assert_eq!(["a", "b", "c"].map(|text| world.cache.is_stale(&world.of, &name(text))), [true, false, true]);
    assert_eq!(world.cache.stale_count(), 2);
}

/// An error of the origin's counts for more than what was known, and one that it never said does not.
#[test]
fn what_the_origin_could_not_be_asked_for_is_recalled_and_nobody_is_told_that_it_is_gone() {
    for (cause, told, is_recalled) in [(Cause::Said, "-a:14", false), (Cause::Unasked, "a:14", true)] {
        let mut world = World::relay();
        let waits = world.subscriber(&["a"]);
        world.pull(waits);
        let mut edit = world.cache.edit(world.now);
        edit.fail(&world.of, &name("a"), ResourceError::new(14, "why").found_by(cause));
        let _ = edit.finish();
        assert_eq!(world.pull(waits), [""; 0]);
        assert_eq!(world.errors(waits), [told]);
        recall(&mut world, &before(&["a"]));
        assert_eq!(world.pull(waits), if is_recalled { vec!["a@1"] } else { vec![] });
        assert_eq!(world.cache.error(&world.of, &name("a")).is_none(), is_recalled);
    }
}

#[test]
fn what_is_recalled_never_says_that_something_is_not_there() {
    let mut world = recalled(&before(&["a", MEMBER]));
    let id = world.subscriber(&["*", GLOB, "gone"]);
    world.cache.resume(id, [(name("b"), "1".into()), (name(OTHER), "1".into()), (name("gone"), "1".into())]);
    let (told, pulled) = world.pull_as(id, Removals::Include);
    assert_eq!(told, ["xdstp://x/T/d/1@1", "a@1"]);
    assert!(pulled.answered && !pulled.empty);
    assert!(world.cache.visit(id, &mut |_, _| ()).incomplete > 0);
    world.answered("*");
    world.answered(GLOB);
    let mut told = world.pull(id);
    told.sort();
    assert_eq!(told, ["-b", &format!("-{OTHER}")], "that is for the origin to say");
}

#[test]
fn what_the_origin_said_counts_before_what_is_recalled() {
    let known = before(&["a", "b", "c", MEMBER]);
    let mut world = World::relay();
    let id = world.subscriber(&["a", "b", "c", GLOB]);
    world.put("a", "2");
    world.remove("b");
    world.fail("c", 5);
    world.answered(GLOB);
    recall(&mut world, &known);
    assert_eq!((world.cache.stale_count(), world.pull(id)), (0, vec!["a@2".into(), "-b".into(), format!("-{GLOB}")]));
}

#[test]
fn what_comes_as_it_is_known_is_not_stale_and_not_sent_again() {
    let mut world = recalled(&before(&["a", "b", "c"]));
    let id = world.subscriber(&["*"]);
    assert_eq!(world.pull(id).len(), 3);
    assert!(world.put("a", "1").is_empty());
    assert_eq!((world.cache.stale_count(), world.cache.is_stale(&world.of, &name("a"))), (2, false));
    assert_eq!(world.put("b", "2"), [id]);
    assert!(confirm(&mut world, "*").is_empty());
    assert_eq!((world.pull(id), world.cache.stale_count()), (vec!["b@2".into()], 0));
    for touches in [false, true] {
        let mut world = recalled(&before(&["a"]));
        match touches {
            true => world.cache.touch(&world.of, &name("a"), &mut Vec::new()),
            false => _ = world.remove("a"),
        }
        invariants::check(&world.cache);
        assert_eq!(world.cache.stale_count(), 0);
    }
}

#[test]
fn who_holds_another_version_keeps_it_until_the_origin_says_which_counts() {
    for (asks, said) in [("a", "1"), ("*", "1"), ("a", "2"), ("*", "2"), ("a", "3"), ("*", "3")] {
        let mut world = recalled(&before(&["a"]));
        let id = world.subscriber(&[asks]);
        world.cache.resume(id, [(name("a"), "2".into())]);
        assert_eq!(world.pull(id), [""; 0]);
        let new = world.subscriber(&[asks]);
        assert_eq!(world.pull(new), ["a@1"], "who has nothing");
        let woken = match said {
            "1" => confirm(&mut world, asks),
            said => world.put("a", said),
        };
        assert!(woken.contains(&id));
        let told = world.pull(id);
        match said {
            "2" => assert_eq!(told, [""; 0], "{asks}: it has that"),
            said => assert_eq!(told, [format!("a@{said}")], "{asks}"),
        }
        assert_eq!(world.pull(id), [""; 0]);
    }
}

#[test]
fn an_origin_that_says_the_same_of_everything_leaves_nothing_stale() {
    let mut world = recalled(&before(&["a", "b"]));
    let id = world.subscriber(&["a", "b"]);
    world.cache.resume(id, [(name("a"), "2".into()), (name("b"), "1".into())]);
    assert_eq!(world.pull(id), [""; 0]);
    let mut edit = world.cache.edit(world.now);
    edit.confirm_all();
    assert!(edit.finish().into_iter().any(|woken| woken == id));
    assert_eq!((world.cache.stale_count(), world.pull(id)), (0, vec!["a@1".to_owned()]));
    invariants::check(&world.cache);
}

#[test]
fn who_holds_the_same_version_is_not_sent_it() {
    let mut world = recalled(&before(&["a"]));
    let id = world.subscriber(&["*"]);
    world.cache.resume(id, [(name("a"), "1".into())]);
    assert_eq!(world.pull(id), [""; 0]);
    confirm(&mut world, "a");
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn a_tombstone_that_is_recalled_is_told_with_the_next_complete_answer() {
    let mut known = before(&[MEMBER, OTHER]);
    known.remove(OTHER);
    let mut world = World::relay();
    let waits = world.subscriber(&[GLOB]);
    recall(&mut world, &known);
    let later = world.subscriber(&[GLOB]);
    for id in [waits, later] {
        assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    }
    world.answered(GLOB);
    for id in [waits, later] {
        assert_eq!(world.pull(id), [format!("-{OTHER}")]);
    }
    world.cache.expire(world.now + Options::default().tombstone_age);
    assert_eq!(world.cache.next_expiry(), None);
    invariants::check(&world.cache);
}

#[test]
fn an_answer_that_was_complete_has_begun() {
    let world = recalled(&before(&["a"]));
    let extents = world.cache.snapshot(world.now).filter_map(|known| match known {
        Known::Answered { extent, .. } => Some(extent),
        _ => None,
    });
    assert_eq!(extents.collect::<Vec<_>>(), [Extent::Begun, Extent::Begun]);
}

#[test]
fn what_is_evicted_is_not_stale() {
    let mut world = recalled(&before(&["a", MEMBER]));
    for text in ["*", GLOB] {
        world.cache.evict(&world.of, &interest(text), world.now);
    }
    assert_eq!(world.cache.stale_count(), 0);
    invariants::check(&world.cache);
}

#[test]
fn a_cache_that_has_all_there_is_recalls_nothing() {
    let mut known = before(&["a", MEMBER]);
    known.remove(MEMBER);
    known.cache.set_type_version(&known.of, Some("old".into()));
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    recall(&mut world, &known);
    assert!(world.cache.resource(&world.of, &name("a")).is_none());
    assert_eq!((world.cache.type_version(id), world.cache.next_expiry()), (None, None));
}

#[test]
fn the_version_of_a_type_is_recalled_unless_the_origin_gave_one() {
    let mut known = before(&["a"]);
    known.cache.set_type_version(&known.of, Some("old".into()));
    for given in [None, Some("new")] {
        let mut world = World::relay();
        world.cache.set_type_version(&world.of, given.map(Into::into));
        recall(&mut world, &known);
        let id = world.subscriber(&["a"]);
        assert_eq!(world.cache.type_version(id), Some(&given.unwrap_or("old").into()));
    }
}

#[test]
fn what_went_before_a_restart_and_after_it_expires_in_one_step() {
    let mut known = before(&[MEMBER]);
    known.remove(MEMBER);
    let mut world = World::relay();
    world.now = known.now + Duration::from_secs(1);
    world.subscriber(&[GLOB]);
    world.put(OTHER, "1");
    world.answered(GLOB);
    world.remove(OTHER);
    recall(&mut world, &known);
    world.cache.expire(world.now + Options::default().tombstone_age);
    assert_eq!(world.cache.next_expiry(), None);
    invariants::check(&world.cache);
}

#[test]
fn a_glob_of_which_a_name_is_recalled_as_gone_was_wanted_once() {
    let mut known = before(&[MEMBER, OTHER]);
    known.remove(OTHER);
    let mut world = World::relay();
    let mut edit = world.cache.edit(known.now);
    let names = known.cache.snapshot(known.now).filter(|known| !matches!(known, Known::Answered { .. }));
    names.for_each(|known| _ = edit.recall(known.map(|value| *value)));
    let _ = edit.finish();
    // Whoever wanted it may come back, and hold what is forgotten now.
    world.cache.evict(&world.of, &interest(MEMBER), known.now);
    let back = world.subscriber(&[GLOB]);
    world.answered(GLOB);
    let mut told = world.pull(back);
    told.sort();
    assert_eq!(told, [format!("-{GLOB}"), format!("-{MEMBER}"), format!("-{OTHER}")]);
}
