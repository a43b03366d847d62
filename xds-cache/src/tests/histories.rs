//! Short histories that the random ones against a model found: each once went wrong.

use super::*;
use crate::Version;

impl World {
    /// What is told while removals wait.
    fn additions(&mut self, id: SubscriberId) -> Vec<String> {
        self.pull_as(id, Removals::Defer).0
    }

    pub(super) fn bring(&mut self, id: SubscriberId, text: &str, version: &str) {
        self.cache.resume(id, [(name(text), Version::from(version))]);
    }
}

#[test]
fn rule_158_what_was_brought_along_and_is_asked_for_before_it_is_told_as_gone_is_no_miss() {
    let mut world = World::relay();
    let id = world.subscriber(&[]);
    world.bring(id, "a", "1");
    world.cache.subscribe(id, &interest("a"));
    assert_eq!(world.pull(id), [""; 0]);
    world.remove("a");
    assert_eq!(world.additions(id), [""; 0]);
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn rule_158_what_was_sent_as_a_member_is_no_miss_when_another_has_an_error() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    world.pull(id);
    world.remove(MEMBER);
    world.cache.subscribe(id, &interest(MEMBER));
    world.fail(OTHER, 14);
    assert_eq!(world.additions(id), [""; 0]);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

#[test]
fn rule_158_what_was_sent_as_a_member_is_no_miss_once_the_collection_is_left() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    world.put("a", "1");
    assert_eq!(world.pull(id), ["a@1"]);
    world.cache.subscribe(id, &interest("a"));
    world.cache.unsubscribe(id, &Interest::Wildcard);
    world.remove("a");
    assert_eq!(world.additions(id), [""; 0]);
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn rule_158_what_was_sent_of_a_wildcard_is_no_miss_before_that_was_pulled_to_its_end() {
    let mut world = World::new(Options { authoritative: false, wildcard_covers_xdstp: true, ..Options::default() });
    let id = world.subscriber(&["*"]);
    world.put(MEMBER, "1");
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    world.put("a", "1");
    world.put(OTHER, "1");
    world.fail(MEMBER, 5);
    world.cache.subscribe(id, &interest(MEMBER));
    assert_eq!(world.pull_one(id), "a@1");
    let mut told = Vec::new();
    for removals in [Removals::Defer, Removals::Include] {
        world.cache.pull_errors(id, removals, &mut |failed| {
            told.push((removals, failed.name.to_string(), failed.removed));
            ControlFlow::Continue(())
        });
    }
    assert_eq!(told, [(Removals::Include, MEMBER.to_owned(), true)]);
}

#[test]
fn rule_100_what_went_before_and_after_a_glob_was_asked_for_is_told_once() {
    let mut world = World::relay();
    let away = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    world.cache.close(away);
    let id = world.subscriber(&[GLOB]);
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{GLOB}")], "it is empty");
}

#[test]
fn rule_117_an_error_that_lasts_takes_what_a_transient_one_spared_from_who_holds_it_alone() {
    let mut world = World::authoritative();
    let [told, spared] = [world.subscriber(&["*"]), world.subscriber(&["*"])];
    world.bring(told, "a", "1");
    assert_eq!(world.pull(told), ["-a"]);
    world.fail("a", 14);
    world.bring(spared, "a", "1");
    assert_eq!(world.pull(spared), [""; 0]);
    assert_eq!(world.fail("a", 7), [spared], "the other is told nothing");
    assert_eq!(world.pull(spared), ["-a"]);
    assert_eq!(world.pull(told), [""; 0]);
}

#[test]
fn rule_117_an_error_is_kept_as_long_as_it_spares_what_somebody_holds() {
    let mut world = World::relay();
    let asks = world.subscriber(&["a"]);
    world.fail("a", 14);
    let holds = world.subscriber(&["*"]);
    world.bring(holds, "a", "1");
    world.answered("*");
    assert_eq!(world.pull(holds), [""; 0]);
    world.cache.close(asks);
    world.cache.evict(&world.of, &interest("a"), world.now);
    assert_eq!(world.pull(holds), [""; 0]);
    assert!(world.cache.error(&world.of, &name("a")).is_some());
    world.cache.close(holds);
    assert!(world.cache.error(&world.of, &name("a")).is_none());
}

#[test]
fn rule_052_who_leaves_one_alias_of_what_it_brought_along_is_sent_it_for_the_other() {
    let mut world = World::authoritative();
    world.alias("a", &["b", "c"], "1");
    let id = world.subscriber(&["b", "c"]);
    world.bring(id, "a", "1");
    assert_eq!(world.pull(id), [""; 0]);
    // It was told of no alias: it may think that with this one it left the resource.
    world.cache.unsubscribe(id, &interest("b"));
    assert_eq!(world.pull(id), ["a@1"]);
}

#[test]
fn rule_105_what_is_left_and_gone_is_told_to_who_may_keep_it_by_an_alias() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    world.alias("a", &["b"], "1");
    assert_eq!(world.pull(id), ["a@1"]);
    world.remove("a");
    world.cache.subscribe(id, &interest("b"));
    // Looked at, but not told.
    assert_eq!(world.additions(id), ["-b"]);
    world.cache.unsubscribe(id, &interest("a"));
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn rule_100_what_one_answer_lacks_another_does_not_repeat() {
    let mut world = World::new(Options { authoritative: false, wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    world.answered("*");
    let id = world.subscriber(&[GLOB]);
    world.bring(id, MEMBER, "1");
    world.cache.subscribe(id, &Interest::Wildcard);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
}

#[test]
fn rule_037_what_a_complete_answer_lacks_is_not_told_as_gone_once_more_when_that_is_said() {
    let mut world = World::relay();
    for collection in ["*", GLOB] {
        let member = if collection == GLOB { MEMBER } else { "a" };
        let id = world.subscriber(&[collection]);
        world.bring(id, member, "1");
        world.answered(collection);
        assert!(world.pull(id).contains(&format!("-{member}")));
        let other = world.subscriber(&[collection]);
        world.pull(other);
        world.remove(member);
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.pull(other), [format!("-{member}")], "it may hold it, and did not say so");
        world.put(member, "2");
        world.remove(member);
        assert_eq!(world.pull(id), [format!("-{member}")], "what came in between may have been sent");
    }
}

#[test]
fn the_end_of_an_error_is_told_though_a_complete_answer_lacked_the_name_before() {
    for failed_before in [true, false] {
        let mut world = World::relay();
        // Somebody is told of it.
        world.subscriber(&[GLOB]);
        if failed_before {
            world.fail(MEMBER, 7);
        }
        let id = world.subscriber(&[GLOB]);
        world.bring(id, MEMBER, "1");
        world.answered(GLOB);
        world.pull(id);
        if !failed_before {
            world.fail(MEMBER, 7);
        }
        world.pull(id);
        world.cache.pull_errors(id, Removals::Include, &mut |_| ControlFlow::Continue(()));
        world.remove(MEMBER);
        assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
    }
}

#[test]
fn rule_117_an_error_that_only_who_asked_was_told_is_no_news_to_others_when_it_comes_again_and_there_is_room() {
    let mut world = World::new(Options { authoritative: false, tombstones: 1, ..Options::default() });
    let [glob, _stranger] = [&[GLOB] as &[_], &[MEMBER, OTHER]].map(|asks| world.subscriber(asks));
    world.pull(glob);
    let told = |world: &mut World, text: &str| {
        let mut edit = world.cache.edit(world.now);
        edit.fail_by_name(&world.of, &name(text), ResourceError::new(7, "why"));
        let woken = edit.finish().into_iter().any(|id| id == glob);
        world.pull(glob);
        world.cache.pull_errors(glob, Removals::Include, &mut |_| ControlFlow::Continue(()));
        woken
    };
    assert!(told(&mut world, OTHER));
    assert!(!told(&mut world, MEMBER), "there is no room");
    world.put(OTHER, "1");
    world.pull(glob);
    assert!(!told(&mut world, MEMBER), "it is the same error");
}

#[test]
fn rule_099_the_end_of_a_glob_s_error_is_no_news_of_what_is_in_it() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.pull(id);
    world.fail(GLOB, 14);
    world.pull(id);
    world.cache.pull_errors(id, Removals::Include, &mut |_| ControlFlow::Continue(()));
    world.answered(GLOB);
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")], "it is not said to be empty");
}

#[test]
fn rule_117_what_is_sent_again_because_it_was_left_has_its_error_told_again_too() {
    let mut world = World::authoritative();
    world.put(MEMBER, "1");
    world.fail(MEMBER, 14);
    let id = world.subscriber(&[GLOB, MEMBER]);
    let told = |world: &mut World| {
        let (mut errors, said) = (0, world.pull(id));
        world.cache.pull_errors(id, Removals::Include, &mut |_| {
            errors += 1;
            ControlFlow::Continue(())
        });
        (said, errors)
    };
    assert_eq!(told(&mut world), (vec![format!("{MEMBER}@1")], 1));
    world.cache.unsubscribe(id, &interest(MEMBER));
    assert_eq!(told(&mut world), (vec![format!("{MEMBER}@1")], 1));
}
