//! A cache that is filled after somebody asked.

use super::interest;
use super::world::World;
use crate::{Cache, Options, TypeUrl};

const GLOB: &str = "xdstp://a/T/*";

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
