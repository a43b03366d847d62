//! What a subscriber holds is said late: after pulls, and after further interests.

use super::*;

fn resume(world: &mut World, id: SubscriberId, held: &[(&str, &str)]) {
    world.cache.resume(id, held.iter().map(|(text, version)| (name(text), (*version).into())));
}

#[test]
fn rule_084_what_is_known_late_to_be_held_is_told_as_gone_if_it_is() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["*", "named"]);
    assert_eq!(world.pull(id), ["a@1", "-named"]);
    resume(&mut world, id, &[("a", "0"), ("gone", "1"), ("named", "1"), (MEMBER, "1")]);
    assert!(world.cache.has_work(id));
    // The one that it did not ask for, too; the one that it was sent, it holds as it was sent.
    assert_eq!(world.pull(id), ["-gone", "-named", &format!("-{MEMBER}")]);
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_083_what_is_known_late_to_be_held_is_not_sent_again_unless_it_was() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    assert_eq!(world.pull(id), ["-a"]);
    for text in ["b", "c"] {
        world.put(text, "1");
    }
    world.cache.subscribe(id, &Interest::Wildcard);
    resume(&mut world, id, &[("b", "1"), ("c", "0")]);
    assert_eq!(world.pull(id), ["c@1"]);
    // A change after it was sent is one.
    resume(&mut world, id, &[("c", "2")]);
    world.put("c", "2");
    assert_eq!(world.pull(id), ["c@2"]);
}

#[test]
fn what_is_known_late_to_be_held_waits_for_an_answer_that_is_not_complete() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    resume(&mut world, id, &[(MEMBER, "1")]);
    resume(&mut world, id, &[(OTHER, "1")]);
    assert_eq!(world.pull(id), [""; 0]);
    world.put(MEMBER, "1");
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{OTHER}")]);
}

/// What cannot be had is told before other removals, but not what may be in use (rule 158).
#[test]
fn rule_158_a_miss_of_what_is_known_late_to_be_held_is_a_removal() {
    let mut world = World::authoritative();
    world.put("b", "1");
    let id = world.subscriber(&["a", "b"]);
    assert_eq!(world.pull_one(id), "b@1");
    resume(&mut world, id, &[("a", "1")]);
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert_eq!(world.pull(id), ["-a"]);
}
