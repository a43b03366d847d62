//! What a subscriber is yet to be told.

use super::*;

#[test]
fn the_newest_removal_is_another_one_only_when_there_is_one_more_to_tell() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a", "b", GLOB]);
    for text in ["a", "b", MEMBER] {
        world.put(text, "1");
    }
    assert_eq!(world.cache.newest_removal(id), 0, "what came is no removal");
    world.pull(id);
    let mut before = 0;
    for text in ["a", MEMBER, "b"] {
        world.remove(text);
        let newest = world.cache.newest_removal(id);
        assert!(newest > before, "{text}");
        before = newest;
        world.put(OTHER, text);
        assert_eq!(world.cache.newest_removal(id), before, "{text}: that is none");
    }
}
