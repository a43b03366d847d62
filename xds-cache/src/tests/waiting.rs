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

#[test]
fn rule_158_only_what_is_told_while_removals_wait_makes_others_wait() {
    for wanted in ["*", GLOB] {
        let mut world = World::relay();
        let id = world.subscriber(&[wanted]);
        assert!(!world.cache.has_additions(id), "{wanted} is not answered");
        let member = if wanted == GLOB { MEMBER } else { "a" };
        world.put(member, "1");
        assert!(world.cache.has_additions(id));
        world.pull(id);
        world.answered(wanted);
        assert!(world.cache.has_additions(id), "the answer");
        world.pull(id);
        world.remove(member);
        assert!(world.cache.has_work(id) && !world.cache.has_additions(id), "a removal");
    }
}
