//! Which variants somebody holds, and which it may hold who has not looked.

use super::*;
use crate::tests::invariants;

#[test]
fn what_an_error_took_away_is_replaced_by_nothing() {
    let mut world = World::authoritative();
    world.vary("a", &[("env=prod", Some("1")), ("env=test", Some("1"))]);
    let id = world.selecting(&parameters(&[("env", "prod")]), &["a"]);
    assert_eq!(world.selected(id), ["a@1 (env=prod)"]);
    world.vary("a", &[("env=prod", None)]);
    world.fail("a", 7);
    assert_eq!(world.selected(id), [""; 0], "that is left to the error");
    let mut removed = Vec::new();
    world.cache.pull_errors(id, Removals::Include, &mut |failed| {
        removed.push(failed.removed);
        ControlFlow::Continue(())
    });
    assert_eq!(removed, [true]);
    world.vary("a", &[("exists(env)", Some("2"))]);
    assert_eq!(world.selected(id), ["a@2 (exists(env))"]);
}

#[test]
fn of_variants_that_came_one_after_another_those_before_the_chosen_one_may_be_held() {
    let mut world = World::authoritative();
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("env=test", Some("1"))]);
    world.vary(MEMBER, &[("exists(env)", Some("1"))]);
    let away = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(away), [format!("{MEMBER}@1 (exists(env))")]);
    world.cache.close(away);
    world.vary(MEMBER, &[("env=prod", Some("2"))]);
    world.vary(MEMBER, &[("not exists(v)", Some("3"))]);
    let back = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(back), [format!("{MEMBER}@2 (env=prod) for (exists(env))")]);
}

#[test]
fn who_did_not_look_at_a_name_that_went_held_nothing_of_it_unless_it_was_without_variants() {
    for (before, holds) in [("env=test", ""), ("true", " for (true)")] {
        let mut world = World::authoritative();
        let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB]);
        world.selected(id);
        world.vary(MEMBER, &[(before, Some("1"))]);
        if before == "true" {
            world.selected(id);
        }
        world.remove(MEMBER);
        world.vary(MEMBER, &[("env=prod", Some("2"))]);
        assert_eq!(world.selected(id), [format!("{MEMBER}@2 (env=prod){holds}")]);
    }
}

#[test]
fn rule_048_who_asks_for_a_glob_is_sent_its_variant_of_a_member_again_and_not_that_it_has_none() {
    for (variant, first, again) in [
        ("env=prod", format!("{MEMBER}@1 (env=prod)"), vec![format!("{MEMBER}@1 (env=prod)")]),
        ("env=test", format!("-{MEMBER}"), vec![format!("-{GLOB}")]),
    ] {
        let mut world = World::authoritative();
        world.vary(MEMBER, &[(variant, Some("1"))]);
        let id = world.selecting(&parameters(&[("env", "prod")]), &[MEMBER]);
        assert_eq!(world.selected(id), [first]);
        world.cache.subscribe(id, &interest(GLOB));
        assert_eq!(world.selected(id), again);
    }
}

#[test]
fn what_is_left_is_looked_at_no_more() {
    for env in ["prod", "test"] {
        let mut world = World::authoritative();
        world.vary("a", &[("env=prod", Some("1"))]);
        let id = world.selecting(&parameters(&[("env", env)]), &["a", "b"]);
        world.selected(id);
        world.cache.unsubscribe(id, &interest("a"));
        invariants::check(&world.cache);
        world.selected(id);
        invariants::check(&world.cache);
    }
}

#[test]
fn of_what_went_and_was_left_before_that_was_told_what_it_was_without_variants_may_be_held() {
    for answered in [true, false] {
        let mut world = World::new(Options { authoritative: answered, ..Options::default() });
        world.put(MEMBER, "1");
        world.put("a", "1");
        let id = world.selecting(&parameters(&[("env", "prod")]), &["a", GLOB, MEMBER]);
        assert_eq!(world.selected(id), ["a@1".to_owned(), format!("{MEMBER}@1")]);
        world.remove("a");
        world.remove(MEMBER);
        let pulled = world.cache.pull(id, Removals::Include, &mut |_| ControlFlow::Break(()));
        assert!(pulled.more, "one removal is told, and one not");
        world.cache.unsubscribe(id, &interest(MEMBER));
        world.vary(MEMBER, &[("env=prod", Some("2"))]);
        assert_eq!(world.selected(id), [format!("{MEMBER}@2 (env=prod) for (true)")], "answered: {answered}");
    }
}

#[test]
fn what_nobody_can_tell_to_be_gone_is_looked_at_no_more() {
    for variant in ["env=prod", "env=test"] {
        let mut world = World::relay();
        let id = world.selecting(&parameters(&[("env", "prod")]), &["*", MEMBER]);
        world.vary(MEMBER, &[(variant, Some("1"))]);
        world.selected(id);
        world.cache.unsubscribe(id, &interest(MEMBER));
        world.cache.evict(&world.of, &interest(MEMBER), world.now);
        world.cache.subscribe(id, &interest(GLOB));
        assert_eq!(world.selected(id), [""; 0]);
        invariants::check(&world.cache);
    }
}

#[test]
fn of_a_variant_that_went_and_came_back_meanwhile_the_one_before_may_be_held() {
    let mut world = World::authoritative();
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("env=prod", Some("1"))]);
    let away = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(away), [format!("{MEMBER}@1 (env=prod)")]);
    world.cache.close(away);
    let back = world.selecting(&prod, &[GLOB]);
    world.vary(MEMBER, &[("env=prod", None), ("env=prod and not exists(v)", Some("2"))]);
    world.vary(MEMBER, &[("env=prod", Some("3"))]);
    let [told] = &world.selected(back)[..] else { panic!("one of them") };
    assert!(told.contains("@2 (env=prod and not exists(v)) for (env=prod)"), "{told}");
}

#[test]
fn a_variant_that_went_and_came_back_is_said_once_to_be_replaced() {
    let mut world = World::authoritative();
    world.vary(MEMBER, &[("env=test", Some("1")), ("exists(env)", Some("1"))]);
    world.vary(MEMBER, &[("exists(env)", None)]);
    world.vary(MEMBER, &[("exists(env)", Some("1"))]);
    world.vary(MEMBER, &[("env=prod", Some("2"))]);
    let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB]);
    assert_eq!(world.selected(id), [format!("{MEMBER}@2 (env=prod) for (exists(env))")]);
}

#[test]
fn of_a_collection_that_was_left_the_chosen_one_may_be_held_when_it_is_chosen_no_more() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("exists(env)", Some("1"))]);
    world.vary(MEMBER, &[("env=prod", Some("2"))]);
    let away = world.selecting(&prod, &[GLOB]);
    assert!(world.selected(away).concat().contains("@2 (env=prod)"));
    world.cache.close(away);
    let back = world.selecting(&prod, &["*", GLOB]);
    world.cache.unsubscribe(back, &interest("*"));
    world.vary(MEMBER, &[("env=prod and not exists(v)", Some("3"))]);
    let [told] = &world.selected(back)[..] else { panic!("one of them") };
    assert!(told.contains(" for (env=prod)"), "{told}");
}

#[test]
fn draft_of_what_is_not_as_large_as_the_chosen_one_no_overlap_is_counted() {
    let mut world = World::authoritative();
    let within = Subscription::where_present(&"shard in 0..5".parse().unwrap()).unwrap();
    let id = world.selecting(&Selector::Constraints(within), &["a"]);
    let mut edit = world.cache.edit(world.now);
    for (shard, env) in [("3", "a"), ("4", "b"), ("4", "c")] {
        let variant = Variant::Parameters(DynamicParameters::from_iter([("shard", shard), ("env", env)]));
        edit.put_variant(&world.of, &name("a"), &variant, Resource::new(env.into(), digest(env), 0));
    }
    let _ = edit.finish();
    assert_eq!(world.selected(id), ["a@b ({env=b, shard=4})"]);
    assert_eq!(world.cache.totals().overlapping, 1, "with c, as large as b");
}
