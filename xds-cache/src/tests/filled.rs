//! A cache that is filled after somebody asked.

use super::world::World;
use super::{digest, interest, invariants, name};
use crate::{Cache, Extent, Known, Options, Removals, Resource, TypeUrl};

const GLOB: &str = "xdstp://a/T/*";
const GLOB_IS_EMPTY: &str = "-xdstp://a/T/*";
const MEMBER: &str = "xdstp://a/T/1";

fn unfilled() -> World {
    World::new(Options { filled: false, ..Options::default() })
}

fn fill(world: &mut World) -> usize {
    let mut edit = world.cache.edit(world.now);
    edit.fill();
    edit.finish().into_iter().count()
}

#[test]
fn nothing_is_known_of_what_is_not_there_before_it_is_filled() {
    let mut world = unfilled();
    let waits = world.subscriber(&["here", "not", "*", GLOB]);
    assert!(world.pull(waits).is_empty());
    assert_eq!(world.put("here", "1"), [waits]);
    assert_eq!(world.pull(waits), ["here@1"]);
    let known = |cache: &Cache<u64>, text: &str| cache.is_known(&"T".into(), &interest(text));
    assert!(known(&world.cache, "here"));
    for text in ["not", "*", GLOB, "other"] {
        assert!(!known(&world.cache, text), "{text}");
    }
    assert!(!world.cache.is_known(&TypeUrl::from("U"), &interest("a")));

    assert_eq!(fill(&mut world), 1);
    for text in ["here", "not", "*", GLOB, "other"] {
        assert!(known(&world.cache, text), "{text}");
    }
    assert!(world.cache.is_known(&TypeUrl::from("U"), &interest("a")));
    assert_eq!(world.pull(waits), ["-not", &format!("-{GLOB}")]);
    assert_eq!((fill(&mut world), world.pull(waits)), (0, vec![]), "it is once");
}

#[test]
fn who_comes_after_that_is_answered_as_if_it_had_always_been() {
    let mut worlds = [unfilled(), World::authoritative()];
    let said = worlds.each_mut().map(|world| {
        world.put("here", "1");
        fill(world);
        let late = world.subscriber(&["here", "not", "*", GLOB]);
        let said = world.pull(late);
        world.put("not", "1");
        world.remove("here");
        (said, world.pull(late))
    });
    assert_eq!(said[0], said[1]);
}

#[test]
fn a_relay_has_nothing_to_be_filled_with() {
    let mut world = World::relay();
    let waits = world.subscriber(&["not"]);
    assert_eq!((fill(&mut world), world.pull(waits)), (0, vec![]));
}

/// What another cache knew comes back into one that is not filled.
fn recall(world: &mut World, names: &[&str]) {
    let of = world.of.clone();
    let mut edit = world.cache.edit(world.now);
    for text in names {
        let resource = Resource::new("1".into(), digest("1"), 0);
        let (type_url, name) = (of.clone(), name(text));
        edit.recall(Known::Present { type_url, name, variant: None, aliases: Vec::new(), resource });
    }
    for collection in [interest("*"), interest(GLOB)] {
        edit.recall(Known::Answered { type_url: of.clone(), collection, extent: Extent::Stale });
    }
    let _ = edit.finish();
    invariants::check(&world.cache);
}

#[test]
fn what_is_recalled_before_it_is_filled_is_there_and_says_of_nothing_that_it_is_not() {
    let mut world = unfilled();
    recall(&mut world, &["same", "other", "gone", MEMBER]);
    let early = world.subscriber(&["same", "not", "*", GLOB]);
    world.cache.resume(early, [(name("brought"), "1".into()), (name("other"), "newer".into())]);
    let (said, pulled) = world.pull_as(early, Removals::Include);
    assert_eq!(said, ["same", MEMBER, "gone"].map(|name| format!("{name}@1")));
    assert!(pulled.answered && !pulled.empty, "collections have begun");
    assert_eq!(world.cache.stale_count(), 4);

    world.put("same", "1");
    world.put("other", "2");
    world.put(MEMBER, "1");
    world.remove("gone");
    fill(&mut world);
    invariants::check(&world.cache);
    let mut said = world.pull(early);
    said.sort();
    assert_eq!(said, ["-brought", "-gone", "-not", "other@2"]);
    assert_eq!(world.cache.stale_count(), 0);
}

#[test]
fn what_was_recalled_keeps_nothing_once_it_is_filled() {
    let mut world = unfilled();
    recall(&mut world, &["gone", MEMBER]);
    world.remove("gone");
    world.remove(MEMBER);
    fill(&mut world);
    invariants::check(&world.cache);
    recall(&mut world, &["late"]);
    assert!(world.cache.resource(&world.of, &name("late")).is_none());
    let late = world.subscriber(&["late", GLOB]);
    assert_eq!(world.pull(late), ["-late", GLOB_IS_EMPTY, "-xdstp://a/T/1"]);
}
