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
fn what_a_complete_collection_lacks_is_absent_to_it_though_another_waits_for_the_name() {
    let mut world = World::relay();
    let other = world.subscriber(&["a"]);
    let id = world.subscriber(&["*"]);
    assert!(!world.cache.is_absent(id, &name("a")));
    world.answered("*");
    assert!(world.cache.is_absent(id, &name("a")) && !world.cache.is_absent(other, &name("a")));
}

#[test]
fn what_went_from_a_wildcard_is_absent_until_the_origin_is_lost() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    for text in ["a", "b"] {
        world.put(text, "1");
    }
    world.remove("a");
    world.put("b", "2");
    let absent = |world: &World| ["a", "b", "never there"].map(|text| world.cache.is_absent(id, &name(text)));
    assert_eq!(absent(&world), [true, false, false], "the answer is not complete");
    world.cache.origin_lost();
    assert_eq!(absent(&world), [false; 3], "it may be there by now");
    world.remove("b");
    assert_eq!(absent(&world), [false, true, false]);
}

#[test]
fn what_is_there_of_a_name_or_a_collection_is_known() {
    let mut world = World::authoritative();
    let all = ["a", "*", MEMBER, GLOB];
    let holds = |world: &World| all.map(|text| world.cache.holds_any(&world.of, &interest(text)));
    assert_eq!(holds(&world), [false; 4]);
    world.subscriber(&all);
    assert_eq!(holds(&world), [false; 4], "but asked for");
    world.put("a", "1");
    assert_eq!(holds(&world), [true, true, false, false]);
    world.put(MEMBER, "1");
    assert_eq!(holds(&world), [true; 4]);
    world.remove("a");
    assert_eq!(holds(&world), [false, false, true, true]);
}

#[test]
fn a_resource_is_wanted_by_whatever_covers_its_name_if_it_is_there() {
    let mut world = World::authoritative();
    let ids = ["a", GLOB, "*"].map(|text| world.subscriber(&[text]));
    let covers = |world: &World, text| ids.map(|id| world.cache.covers(id, &name(text)));
    let wanted = |world: &World, text| ids.map(|id| world.cache.wanted(id, &name(text)).is_some());
    assert_eq!((covers(&world, "a"), wanted(&world, "a")), ([true, false, true], [false; 3]));
    for text in ["a", MEMBER] {
        world.put(text, "1");
    }
    assert_eq!(wanted(&world, "a"), [true, false, true]);
    assert_eq!((covers(&world, MEMBER), wanted(&world, MEMBER)), ([false, true, false], [false, true, false]));
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
