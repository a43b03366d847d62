//! Looking at single resources.

use super::*;
use crate::Aliases;

#[test]
fn what_is_not_content_is_changed_without_a_word() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a"]);
    world.pull(id);
    *world.cache.value_mut(&world.of, &name("a")).unwrap() = 7;
    assert_eq!(world.cache.resource(&world.of, &name("a")).unwrap().value, 7);
    assert_eq!(world.pull(id), [""; 0]);
    assert!(world.cache.value_mut(&world.of, &name("b")).is_none());
}

#[test]
fn what_may_be_held_by_a_collection_is_what_is_there_and_what_went_and_was_not_told() {
    let mut world = World::relay();
    let away = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    let id = world.subscriber(&[GLOB]);
    world.put(OTHER, "1");
    let may_hold = |world: &World| world.cache.may_hold(id, &interest(GLOB));
    assert_eq!(may_hold(&world), [name(MEMBER), name(OTHER)].into(), "one went before it came");
    world.answered(GLOB);
    world.pull(id);
    assert_eq!(may_hold(&world), [name(OTHER)].into());
    world.remove(OTHER);
    assert_eq!(may_hold(&world), [name(OTHER)].into());
    world.pull(id);
    assert_eq!(may_hold(&world), [].into());
    world.cache.close(away);
}

#[test]
fn there_are_no_aliases_until_there_is_one() {
    let mut aliases = Aliases::default();
    assert!(aliases.is_empty());
    aliases.insert(name("alias"), &name("a"));
    assert!(!aliases.is_empty());
}
