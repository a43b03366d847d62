//! Who selects what, beside others and after a time away.

use super::*;

#[test]
fn each_variant_that_went_while_one_was_away_is_told_and_not_only_the_last() {
    let mut world = World::authoritative();
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("env=prod", Some("1")), ("not exists(env)", Some("1"))]);
    let away = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(away), [format!("{MEMBER}@1 (env=prod)")]);
    world.cache.close(away);
    world.vary(MEMBER, &[("env=prod", None), ("exists(env)", Some("2"))]);
    let looked = world.selecting(&prod, &[MEMBER]);
    world.selected(looked);
    world.vary(MEMBER, &[("exists(env)", None)]);
    let back = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(back), [format!("-{GLOB}"), format!("-{MEMBER} (env=prod) (exists(env))")]);
}

#[test]
fn who_comes_to_what_others_want_learns_whether_any_of_them_selects_the_same() {
    let mut world = World::authoritative();
    let (all, prod) = (Selector::default(), parameters(&[("env", "prod")]));
    for (wanted, [one, other]) in [(MEMBER, [&all, &prod]), (GLOB, [&prod, &all]), ("*", [&all, &prod])] {
        let mut subscribe = |selector| {
            let id = world.cache.open_selecting(&world.of, selector);
            world.cache.subscribe(id, &interest(wanted))
        };
        let said = [one, one, other, other, one].map(&mut subscribe);
        let expected =
            [Subscribed::First, Subscribed::Joined, Subscribed::Selecting, Subscribed::Joined, Subscribed::Joined];
        assert_eq!(said, expected, "{wanted}");
    }
}

#[test]
fn draft_a_variant_is_for_who_sends_its_values_or_none_of_its_keys() {
    let variant = Variant::Parameters(DynamicParameters::from_iter([("env", "prod"), ("zone", "a")]));
    for (sent, is_for) in [
        (&[("env", "prod"), ("zone", "a"), ("v", "1")][..], true),
        (&[("env", "prod")], true),
        (&[], true),
        (&[("env", "prod"), ("zone", "b")], false),
        (&[("env", "test")], false),
    ] {
        assert_eq!(variant.is_for(&parameters(sent)), is_for, "{sent:?}");
    }
}

#[test]
fn what_takes_the_place_of_a_variant_and_of_what_was_none_says_so_though_the_name_went_in_between() {
    let mut world = World::authoritative();
    let id = world.selecting(&parameters(&[("env", "prod")]), &["a"]);
    world.put("a", "1");
    assert_eq!(world.selected(id), ["a@1"]);
    world.remove("a");
    assert_eq!(world.select(id, Removals::Defer), [""; 0], "it waits");
    world.vary("a", &[("env=prod", Some("2"))]);
    assert_eq!(world.selected(id), ["a@2 (env=prod) for (true)"]);
    world.remove("a");
    world.put("a", "3");
    assert_eq!(world.selected(id), ["a@3 for (env=prod)"]);
    assert!(world.cache.subscribers[id].looked.is_empty(), "nothing is left of its variants");
}

#[test]
fn a_variant_that_is_removed_went_at_that_moment() {
    let age = Duration::from_secs(60);
    let mut world = World::new(Options { tombstone_age: age, ..Options::default() });
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("env=prod", Some("1")), ("env=test", Some("1"))]);
    world.now += 2 * age;
    world.vary(MEMBER, &[("env=prod", None)]);
    world.now += age / 2;
    world.put("a", "1");
    let id = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(id), [format!("-{GLOB}"), format!("-{MEMBER} (env=prod)")]);
    world.now += age / 2;
    world.put("a", "2");
    let late = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(late), [format!("-{GLOB}")]);
}

#[test]
fn of_two_forms_that_of_the_selector_comes_first_and_the_plain_one_is_final() {
    let mut world = World::authoritative();
    let draft = Variant::Parameters(DynamicParameters::from_iter([("env", "prod")]));
    let constraints = Selector::Constraints(Subscription::where_present(&"env=prod".parse().unwrap()).unwrap());
    world.vary("a", &[("env=test", Some("1")), ("true", Some("2"))]);
    let mut edit = world.cache.edit(world.now);
    edit.put_variant(&world.of, &name("a"), &draft, Resource::new("3".into(), 3, 0));
    let _ = edit.finish();
    let id = world.selecting(&constraints, &["a"]);
    assert_eq!(world.selected(id), ["a@3 ({env=prod})"]);
}

#[test]
fn what_is_put_over_variants_counts_as_visited() {
    let mut world = World::new(Options { looks: 2, ..Options::default() });
    let id = world.selecting(&parameters(&[("env", "prod")]), &["*"]);
    let texts: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
    world.vary("variants", &[("env=prod", Some("1"))]);
    world.selected(id);
    texts.iter().for_each(|text| drop(world.put(text, "1")));
    assert_eq!(world.selected(id).len(), texts.len(), "in one pull");
}

#[test]
fn what_none_was_for_is_looked_at_no_more_once_it_is_gone() {
    let mut world = World::authoritative();
    let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB]);
    world.vary(MEMBER, &[("env=test", Some("1"))]);
    assert_eq!(world.selected(id), [format!("-{GLOB}")]);
    assert!(!world.cache.subscribers[id].looked.is_empty());
    world.remove(MEMBER);
    assert_eq!(world.selected(id), [""; 0]);
    assert!(world.cache.subscribers[id].looked.is_empty());
}

#[test]
fn what_is_known_late_to_be_held_is_told_as_gone_if_no_variant_is_for_who_holds_it() {
    let mut world = World::authoritative();
    world.vary("a", &[("env=test", Some("1"))]);
    let id = world.selecting(&parameters(&[("env", "prod")]), &["a"]);
    assert_eq!(world.selected(id), ["-a"]);
    world.cache.resume(id, [(name("a"), "0".into())]);
    assert_eq!(world.selected(id), ["-a"], "only now it is known to be held");
    assert_eq!(world.selected(id), [""; 0]);
}

#[test]
fn a_glob_that_failed_is_told_as_empty_if_the_variants_that_came_of_it_are_gone() {
    let mut world = World::authoritative();
    let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB]);
    world.selected(id);
    world.fail(GLOB, 7);
    world.selected(id);
    world.cache.pull_errors(id, Removals::Include, &mut |_| ControlFlow::Continue(()));
    world.vary(MEMBER, &[("env=prod", Some("1"))]);
    world.remove(MEMBER);
    assert!(world.selected(id).contains(&format!("-{GLOB}")), "its error is over");
}

#[test]
fn who_comes_to_a_wildcard_was_not_there_when_a_variant_went() {
    let mut world = World::relay();
    let prod = parameters(&[("env", "prod")]);
    let there = world.selecting(&prod, &["*"]);
    world.vary("a", &[("env=prod", Some("1"))]);
    world.selected(there);
    world.vary("a", &[("env=prod", None), ("exists(env)", Some("2"))]);
    let comes = world.selecting(&prod, &["*"]);
    assert_eq!(world.selected(comes), ["a@2 (exists(env))"]);
}

#[test]
fn who_leaves_a_name_with_variants_that_a_glob_covers_is_sent_it_once_more() {
    let mut world = World::relay();
    let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB, MEMBER]);
    world.vary(MEMBER, &[("env=prod", Some("1"))]);
    assert_eq!(world.selected(id).len(), 1);
    world.cache.unsubscribe(id, &interest(MEMBER));
    assert_eq!(world.selected(id).len(), 1, "rule 52");
    assert!(!world.cache.brings(id));
    assert_eq!(world.selected(id), [""; 0]);
}

#[test]
fn a_member_of_which_no_variant_is_for_a_subscriber_it_does_not_hold() {
    let mut world = World::authoritative();
    let id = world.selecting(&parameters(&[("env", "prod")]), &[GLOB]);
    world.vary(MEMBER, &[("env=test", Some("1"))]);
    world.vary(OTHER, &[("env=prod", Some("1"))]);
    world.selected(id);
    assert_eq!(world.cache.may_hold(id, &interest(GLOB)), [name(OTHER)].into());
}

#[test]
fn each_overlap_is_counted_once() {
    let mut world = World::authoritative();
    let id = world.selecting(&parameters(&[("env", "prod")]), &["*"]);
    for number in 0..102 {
        world.vary(&format!("{number}"), &[("env=prod", Some("1")), ("exists(env)", Some("1"))]);
        world.selected(id);
    }
    assert_eq!(world.cache.totals().overlapping, 102);
}
