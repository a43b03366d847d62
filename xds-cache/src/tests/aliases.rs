//! Names that stand for a resource of another name (rule 105).

mod model;

use super::{MEMBER, World, digest, interest, name};
use crate::{Interest, Options, Removals, Resource, Subscribed, SubscriberId};

const HOST: &str = "rc/shop";
const ALIAS: &str = "rc/shop.example";
const OTHER: &str = "rc/www.shop.example";

impl World {
    pub(super) fn alias(&mut self, text: &str, aliases: &[&str], version: &str) -> Vec<SubscriberId> {
        let mut woken = Vec::new();
        let resource = Resource::new(version.into(), digest(version), 0);
        let aliases = aliases.iter().map(|alias| name(alias));
        self.cache.upsert_raw_with_aliases(&self.of, &name(text), aliases, resource, self.now, &mut woken);
        woken
    }

    fn host(&mut self, version: &str) {
        self.alias(HOST, &[ALIAS, OTHER], version);
    }
}

/// Who knows by which name it holds what it brought along, gives that up with the name.
#[test]
fn rule_105_what_was_brought_along_is_sent_again_if_a_name_that_may_stand_for_it_was_left_meanwhile() {
    let mut world = World::relay();
    let id = world.subscriber(&[OTHER]);
    world.cache.resume(id, [(name(HOST), "1".into())]);
    world.cache.subscribe(id, &interest(ALIAS));
    world.alias(HOST, &[ALIAS], "0");
    world.remove(ALIAS);
    world.cache.unsubscribe(id, &interest(ALIAS));
    world.alias(HOST, &[OTHER], "1");
    assert_eq!(world.pull(id), ["rc/shop@1"]);
}

#[test]
fn rule_105_who_asks_for_an_alias_is_sent_the_resource_and_its_changes_under_its_own_name() {
    let mut world = World::relay();
    let id = world.subscriber(&[ALIAS]);
    assert_eq!(world.pull(id), [""; 0]);
    world.host("1");
    assert_eq!(world.pull(id), ["rc/shop@1"]);
    world.put(HOST, "2");
    assert_eq!(world.pull(id), ["rc/shop@2"], "a plain upsert leaves them alone");
    assert!(world.cache.unsubscribe(id, &interest(ALIAS)), "nobody else wants it");
    world.put(HOST, "3");
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_105_who_asks_later_is_answered_at_once() {
    for mut world in [World::relay(), World::authoritative()] {
        world.host("1");
        assert!(world.cache.is_known(&world.of, &interest(ALIAS)));
        let id = world.subscriber(&[OTHER]);
        assert_eq!(world.pull(id), ["rc/shop@1"]);
    }
}

#[test]
fn rule_105_an_alias_is_what_was_asked_for_and_stands_for_another_name() {
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[ALIAS, HOST, "missing"]);
    let is_alias = |id, text| world.cache.is_alias(id, &name(text));
    assert!(is_alias(id, ALIAS));
    assert!(!is_alias(id, HOST) && !is_alias(id, "missing"));
    assert!(!is_alias(id, OTHER), "nobody asked for it");
}

#[test]
fn rule_103_a_resource_asked_for_by_all_its_names_is_sent_once() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*", HOST, ALIAS, OTHER]);
    world.pull(id);
    for version in ["1", "2", "3"] {
        world.host(version);
        assert_eq!(world.pull(id), [format!("{HOST}@{version}")]);
    }
    let mut visited = 0;
    world.cache.visit(id, &mut |_, _| visited += 1);
    assert_eq!(visited, 1);
}

#[test]
fn rule_048_who_asks_by_another_name_is_sent_it_again() {
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[HOST]);
    world.pull(id);
    assert_eq!(world.cache.subscribe(id, &interest(ALIAS)), Subscribed::First);
    assert_eq!(world.pull(id), ["rc/shop@1"]);
    assert_eq!(world.cache.subscribe(id, &interest(HOST)), Subscribed::Again);
    assert_eq!(world.pull(id), ["rc/shop@1"]);
}

#[test]
fn rule_105_when_the_resource_goes_so_do_its_aliases() {
    let mut world = World::authoritative();
    world.host("1");
    let by_alias = world.subscriber(&[ALIAS]);
    let by_name = world.subscriber(&[HOST]);
    world.pull(by_alias);
    world.pull(by_name);
    world.remove(HOST);
    assert_eq!(world.pull(by_alias), ["-rc/shop", "-rc/shop.example"]);
    assert_eq!(world.pull(by_name), ["-rc/shop"]);
    world.put(HOST, "2");
    assert_eq!(world.pull(by_alias), [""; 0], "aliases have to be said again");
    world.alias(HOST, &[ALIAS], "2");
    assert_eq!(world.pull(by_alias), ["rc/shop@2"]);
}

#[test]
fn rule_105_an_alias_that_moves_takes_its_subscribers_along() {
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[ALIAS]);
    let both = world.subscriber(&[ALIAS, OTHER]);
    world.pull(id);
    world.pull(both);
    let mut woken = world.alias("rc/till", &[ALIAS], "7");
    woken.sort();
    assert_eq!(woken, [id, both]);
    assert_eq!(world.pull(id), ["rc/till@7", "-rc/shop"]);
    assert_eq!(world.pull(both), ["rc/till@7"], "by another name it still wants the first");
}

#[test]
fn rule_105_a_resource_of_its_own_is_no_alias() {
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[ALIAS]);
    world.pull(id);
    world.put(ALIAS, "5");
    assert_eq!(world.pull(id), ["rc/shop.example@5", "-rc/shop"]);
    world.alias(HOST, &[ALIAS], "1");
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_084_what_is_held_by_an_alias_is_not_sent_again() {
    let held = || [(name(HOST), "1".into())];
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[ALIAS]);
    world.cache.resume(id, held());
    assert_eq!(world.pull(id), [""; 0]);

    // A relay cannot know what an alias stands for before it was answered.
    let mut world = World::relay();
    let [told, gone] = [world.subscriber(&[ALIAS]), world.subscriber(&["rc/else"])];
    for id in [told, gone] {
        world.cache.resume(id, held());
        assert_eq!(world.pull(id), [""; 0]);
    }
    world.host("1");
    world.remove("rc/else");
    assert_eq!(world.pull(told), [""; 0]);
    assert_eq!(world.pull(gone), ["-rc/else", "-rc/shop"]);
}

/// With its wildcard it left all that it does not ask for by name, as far as it knows.
#[test]
fn rule_054_what_was_brought_along_under_a_wildcard_that_is_left_is_sent_by_an_alias() {
    let mut world = World::authoritative();
    world.host("1");
    world.put("a", "1");
    let id = world.subscriber(&["*", ALIAS, "a"]);
    world.cache.resume(id, [(name(HOST), "1".into()), (name("a"), "1".into())]);
    let compared = world.subscriber(&["*", ALIAS, "a"]);
    world.cache.resume(compared, [(name(HOST), "1".into()), (name("a"), "1".into())]);
    assert_eq!(world.pull(compared), [""; 0]);
    for id in [id, compared] {
        world.cache.unsubscribe(id, &Interest::Wildcard);
        assert_eq!(world.pull(id), ["rc/shop@1"], "a it asks for itself, and has");
    }
}

/// Whether it knows that it had it by the alias, only it can tell.
#[test]
fn rule_054_what_was_brought_along_is_told_as_gone_when_the_alias_that_covered_it_is_left() {
    let mut world = World::authoritative();
    world.host("1");
    let id = world.subscriber(&[ALIAS]);
    world.cache.resume(id, [(name(HOST), "1".into())]);
    world.cache.unsubscribe(id, &interest(ALIAS));
    assert_eq!(world.pull(id), ["-rc/shop"]);
}

#[test]
fn rule_052_who_leaves_an_alias_is_sent_what_something_else_covers() {
    let mut world = World::authoritative();
    world.host("1");
    let [wildcard, named] = [world.subscriber(&["*", ALIAS]), world.subscriber(&[OTHER, ALIAS])];
    for id in [wildcard, named] {
        world.pull(id);
        world.cache.unsubscribe(id, &interest(ALIAS));
    }
    assert_eq!(world.pull(wildcard), ["rc/shop@1", "-rc/shop.example"]);
    assert_eq!(world.pull(named), [""; 0], "it knows the resource by the other one");
}

#[test]
fn what_is_wanted_by_an_alias_is_not_evicted() {
    let mut world = World::new(Options { authoritative: false, capacity: Some(0), ..Options::default() });
    let id = world.subscriber(&[ALIAS]);
    world.host("1");
    assert_eq!(world.pull(id), ["rc/shop@1"]);
    world.cache.evict(&world.of, &Interest::Name(name(HOST)), world.now);
    assert!(world.cache.is_known(&world.of, &interest(HOST)));
    world.cache.unsubscribe(id, &interest(ALIAS));
    assert!(!world.cache.is_known(&world.of, &interest(HOST)) && !world.cache.is_known(&world.of, &interest(ALIAS)));
}

#[test]
fn rule_158_an_alias_that_another_name_brought_is_not_told_early() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[HOST, ALIAS]);
    assert_eq!(world.pull(id), ["-rc/shop", "-rc/shop.example"]);
    world.host("1");
    assert_eq!(world.pull(id), ["rc/shop@1"]);
    world.remove(HOST);
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert_eq!(world.pull(id), ["-rc/shop", "-rc/shop.example"]);
}

/// By the other name alone it would keep it.
#[test]
fn rule_052_who_leaves_a_name_is_sent_it_for_a_collection_though_another_name_of_it_is_over() {
    let mut world = World::relay();
    world.alias("a", &[MEMBER], "1");
    let id = world.subscriber(&["*", "a"]);
    assert_eq!(world.pull(id), ["a@1"]);
    world.cache.subscribe(id, &interest(MEMBER));
    world.cache.unsubscribe(id, &interest("a"));
    world.put(MEMBER, "1");
    assert_eq!(world.pull(id), [format!("{MEMBER}@1"), "a@1".to_owned()]);
}

#[test]
fn rule_105_what_is_gone_is_told_to_who_asks_for_it_by_name_though_its_alias_is_left_before() {
    let mut world = World::relay();
    world.alias("b", &["d"], "1");
    world.put("a", "1");
    let id = world.subscriber(&["d", "b", "a"]);
    assert_eq!(world.pull_one(id), "b@1");
    world.remove("b");
    assert_eq!(world.pull_one(id), "a@1", "that b is gone comes after it");
    world.cache.unsubscribe(id, &interest("d"));
    assert_eq!(world.pull(id), ["-b"]);
}

/// Of what it brought along it may not know that other name.
#[test]
fn rule_084_what_was_brought_along_is_told_as_gone_when_the_last_name_it_is_called_by_is_over() {
    let mut world = World::relay();
    world.alias("b", &["a"], "1");
    let id = world.subscriber(&["d", "a"]);
    world.cache.resume(id, [(name("b"), "1".into())]);
    world.alias("b", &["d"], "1");
    world.cache.unsubscribe(id, &interest("a"));
    world.alias("b", &[], "1");
    assert_eq!(world.pull(id), ["-b", "-d"]);
}

#[test]
fn rule_105_what_an_error_spared_is_gone_once_its_name_stands_for_what_is_not_asked_for() {
    for (collection, held) in [(super::GLOB, MEMBER), ("*", "a")] {
        let mut world = World::relay();
        let (holds, _asks) = (world.subscriber(&[collection]), world.subscriber(&[held]));
        world.bring(holds, held, "1");
        world.fail(held, 14);
        world.answered(collection);
        for _ in 0..2 {
            world.pull(holds);
            world.cache.pull_errors(holds, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
        }
        assert!(world.alias("xdstp://x/T/other/1", &[held], "1").contains(&holds));
        assert_eq!(world.pull(holds), [format!("-{held}")]);
    }
}

#[test]
fn rule_105_what_an_alias_stood_for_when_that_was_sent_may_be_held_by_it_until_the_change_is_told() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*", ALIAS]);
    world.host("1");
    assert_eq!(world.pull(id), ["rc/shop@1"]);
    world.alias("rc/new", &[ALIAS], "1");
    let may_hold = world.cache.may_hold(id, &interest(ALIAS));
    assert!([HOST, "rc/new"].iter().all(|text| may_hold.contains(&name(text))), "{may_hold:?}");
    world.pull(id);
    assert!(!world.cache.may_hold(id, &interest(ALIAS)).contains(&name(HOST)));
}

#[test]
fn who_left_every_alias_is_as_who_never_asked_for_one() {
    let mut world = World::relay();
    world.host("1");
    let id = world.subscriber(&[ALIAS, OTHER]);
    world.pull(id);
    for (left, text) in [(1, ALIAS), (0, OTHER)] {
        assert!(!world.cache.subscribers[id].aliased.is_empty());
        world.cache.unsubscribe(id, &interest(text));
        assert_eq!(world.cache.subscribers[id].aliased.links().count(), left);
    }
    assert!(world.cache.subscribers[id].aliased.is_empty());
}
