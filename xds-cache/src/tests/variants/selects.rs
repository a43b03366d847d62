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
