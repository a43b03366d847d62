//! Removals of what is, or was, covered by more than one thing that was asked for.

use super::{GLOB, MEMBER, OTHER, World, interest};
use crate::{Options, Removals};

/// Its tombstone is there already, and by itself it says nothing: an error spared what was held.
#[test]
fn rule_118_what_a_wildcard_told_as_gone_before_is_told_to_who_came_since_once_its_error_is_over() {
    let mut world = World::relay();
    let before = world.subscriber(&["*"]);
    world.answered("*");
    world.put("a", "1");
    world.pull(before);
    world.remove("a");
    assert_eq!(world.pull(before), ["-a"]);
    let asks = world.subscriber(&["a"]);
    world.fail("a", 14);
    world.pull(asks);
    let holds = world.subscriber(&["*"]);
    world.bring(holds, "a", "1");
    assert_eq!(world.pull(holds), [""; 0], "not while the error passes");
    assert!(world.remove("a").contains(&holds));
    assert_eq!(world.pull(holds), ["-a"]);
}

#[test]
fn rule_155_what_a_wildcard_has_told_as_gone_does_not_wait_for_a_glob_that_is_asked_for_meanwhile() {
    let mut world = World::new(Options { authoritative: false, wildcard_covers_xdstp: true, ..Options::default() });
    let id = world.subscriber(&["*"]);
    world.answered("*");
    for text in [MEMBER, OTHER] {
        world.put(text, "1");
    }
    world.pull(id);
    for text in [MEMBER, OTHER] {
        world.remove(text);
    }
    assert_eq!(world.pull_one(id), format!("-{MEMBER}"));
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.pull(id), [format!("-{OTHER}")]);
}

#[test]
fn rule_158_what_a_glob_that_is_left_has_sent_is_no_miss_of_the_one_name_that_is_asked_for_instead() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.pull(id);
    world.cache.subscribe(id, &interest(MEMBER));
    world.cache.unsubscribe(id, &interest(GLOB));
    world.remove(MEMBER);
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}
