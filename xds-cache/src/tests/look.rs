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
fn there_are_no_aliases_until_there_is_one() {
    let mut aliases = Aliases::default();
    assert!(aliases.is_empty());
    aliases.insert(name("alias"), &name("a"));
    assert!(!aliases.is_empty());
}
