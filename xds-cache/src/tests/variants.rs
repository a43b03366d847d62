//! Variants, and who gets which.

mod held;
mod model;
mod naive;
mod selects;

use proptest::prelude::*;
use xds_matcher::DynamicParameters;
use xds_matcher::draft::Subscription;

use self::naive::FORMS;
use super::*;
use crate::store::Store;
use crate::{Selector, Variant};

fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

fn parameters(pairs: &[(&str, &str)]) -> Selector {
    Selector::Parameters(DynamicParameters::from_iter(pairs.iter().copied()))
}

impl World {
    /// Puts these variants of a name, and removes those without a version, at once.
    fn vary(&mut self, text: &str, changes: &[(&str, Option<&str>)]) -> Vec<SubscriberId> {
        let mut edit = self.cache.edit(self.now);
        for (variant, version) in changes {
            let variant = constraints(variant);
            match version {
                Some(version) => {
                    let resource = Resource::new((*version).into(), digest(version), 0);
                    edit.put_variant(&self.of, &name(text), &variant, resource);
                }
                None => edit.remove_variant(&self.of, &name(text), &variant),
            }
        }
        edit.finish().into_iter().collect()
    }

    fn selecting(&mut self, selector: &Selector, interests: &[&str]) -> SubscriberId {
        let id = self.cache.open_selecting(&self.of, selector);
        for text in interests {
            self.cache.subscribe(id, &interest(text));
        }
        id
    }

    /// What a pull visits: `name@version (variant, before: the one it replaces)`, or `-name (variant)`.
    fn select(&mut self, id: SubscriberId, removals: Removals) -> Vec<String> {
        let mut said = Vec::new();
        self.cache.pull(id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, variant, replaces, resource } => {
                    let variant = variant.map_or_else(String::new, |variant| format!(" ({variant})"));
                    let replaces: String = replaces.iter().map(|replaces| format!(" for ({replaces})")).collect();
                    format!("{name}@{}{variant}{replaces}", resource.version)
                }
                Pull::Removed { name, variants } => {
                    let variants: String = variants.iter().map(|variant| format!(" ({variant})")).collect();
                    format!("-{name}{variants}")
                }
            });
            ControlFlow::Continue(())
        });
        said
    }

    fn selected(&mut self, id: SubscriberId) -> Vec<String> {
        self.select(id, Removals::Include)
    }
}

#[test]
fn a_subscriber_gets_the_variant_that_is_for_it_by_name_glob_and_wildcard() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.vary(MEMBER, &[("env=prod", Some("1")), ("env=test", Some("2")), ("not exists(env)", Some("3"))]);
    world.put(OTHER, "4");
    for interest in [MEMBER, GLOB, "*"] {
        let others = if interest == MEMBER { vec![] } else { vec![format!("{OTHER}@4")] };
        for (selector, version, variant) in [
            (parameters(&[("env", "prod")]), "1", "env=prod"),
            (parameters(&[("env", "test"), ("v", "1")]), "2", "env=test"),
            (Selector::default(), "3", "not exists(env)"),
        ] {
            let id = world.selecting(&selector, &[interest]);
            let expected = [vec![format!("{MEMBER}@{version} ({variant})")], others.clone()].concat();
            assert_eq!(world.selected(id), expected, "{interest}");
        }
        let none = world.selecting(&parameters(&[("env", "qa")]), &[interest]);
        let absent = if interest == MEMBER { vec![format!("-{MEMBER}")] } else { others };
        assert_eq!(world.selected(none), absent, "{interest}: as if there were no such name");
    }
}

#[test]
fn a_swap_of_variants_is_one_entry_however_little_a_pull_takes_and_whatever_waits() {
    let mut world = World::authoritative();
    world.vary("a", &[("env=prod", Some("1"))]);
    let id = world.selecting(&parameters(&[("env", "prod"), ("v", "2")]), &["a", "b"]);
    world.selected(id);
    for (went, came, version) in [("env=prod", "v=2", "2"), ("v=2", "env=prod and v=2", "3")] {
        assert_eq!(world.vary("a", &[(went, None), (came, Some(version))]), [id]);
        let expected = format!("a@{version} ({came}) for ({went})");
        assert_eq!(world.select(id, Removals::Defer), [expected], "nothing of it waits");
        assert_eq!(world.selected(id), [""; 0]);
    }
    // And if what took its place is gone by then, it is a removal.
    world.vary("a", &[("env=prod and v=2", None), ("env=prod", Some("4"))]);
    world.vary("a", &[("env=prod", None), ("env=test", Some("5"))]);
    assert_eq!(world.select(id, Removals::Defer), [""; 0]);
    assert_eq!(world.selected(id), ["-a (env=prod and v=2)"]);
}

#[test]
fn a_name_gets_variants_and_loses_them_in_one_step_for_everybody() {
    for interest in [MEMBER, GLOB] {
        let mut world = World::authoritative();
        world.put(MEMBER, "1");
        let [plain, prod] =
            [Selector::default(), parameters(&[("env", "prod")])].map(|by| world.selecting(&by, &[interest]));
        for id in [plain, prod] {
            assert_eq!(world.selected(id), [format!("{MEMBER}@1")]);
        }
        world.vary(MEMBER, &[("true", None), ("env=prod", Some("2")), ("not exists(env)", Some("3"))]);
        assert_eq!(world.selected(plain), [format!("{MEMBER}@3 (not exists(env)) for (true)")], "{interest}");
        assert_eq!(world.selected(prod), [format!("{MEMBER}@2 (env=prod) for (true)")], "{interest}");
        let mut edit = world.cache.edit(world.now);
        edit.replace(&world.of, [(name(MEMBER), Resource::new("4".into(), 4, 0))]);
        let _ = edit.finish();
        assert_eq!(world.selected(plain), [format!("{MEMBER}@4 for (not exists(env))")]);
        assert_eq!(world.selected(prod), [format!("{MEMBER}@4 for (env=prod)")]);
        world.remove(MEMBER);
        assert_eq!(world.selected(prod), [format!("-{MEMBER} (true)")]);
    }
}

#[test]
fn who_selects_what_did_not_change_is_not_woken() {
    let mut world = World::authoritative();
    world.vary(MEMBER, &[("env=prod", Some("1")), ("env=test", Some("1"))]);
    let selectors = [parameters(&[("env", "prod")]), parameters(&[("env", "test")])];
    for interest in [MEMBER, GLOB] {
        let [prod, test] = selectors.each_ref().map(|selector| world.selecting(selector, &[interest]));
        world.selected(prod);
        world.selected(test);
        assert_eq!(world.vary(MEMBER, &[("env=prod", Some(interest))]), [prod]);
        assert!(!world.cache.has_work(test));
        assert_eq!(world.selected(prod), [format!("{MEMBER}@{interest} (env=prod)")]);
        // It is as far as the other one though it has not been woken since.
        world.vary(MEMBER, &[("env=test", Some(interest))]);
        assert_eq!(world.selected(test), [format!("{MEMBER}@{interest} (env=test)")]);
        world.cache.close(prod);
        world.cache.close(test);
    }
}

#[test]
fn of_variants_that_overlap_the_first_in_their_own_order_is_served_and_that_is_counted() {
    let orders = [["exists(env)", "env=prod"], ["env=prod", "exists(env)"]];
    for order in orders {
        let mut world = World::authoritative();
        let selector = parameters(&[("env", "prod")]);
        let id = world.selecting(&selector, &["a"]);
        order.iter().for_each(|variant| _ = world.vary("a", &[(variant, Some(variant))]));
        assert_eq!(world.selected(id).last().unwrap(), "a@env=prod (env=prod)");
        assert_eq!(world.cache.totals().overlapping, 1);
        world.vary("a", &[("env=prod", Some("2"))]);
        assert_eq!(world.selected(id).last().unwrap(), "a@2 (env=prod)");
        assert_eq!(world.cache.totals().overlapping, 1, "once, as long as the variants are the same");
    }
}

#[test]
fn draft_the_largest_integer_is_served_and_an_absent_key_matches() {
    let mut world = World::authoritative();
    let within = Subscription::where_present(&"shard in 0..5".parse().unwrap()).unwrap();
    let id = world.selecting(&Selector::Constraints(within), &["a"]);
    let mut edit = world.cache.edit(world.now);
    for shard in ["3", "4", "7"] {
        let variant = Variant::Parameters(DynamicParameters::from_iter([("shard", shard)]));
        edit.put_variant(&world.of, &name("a"), &variant, Resource::new(shard.into(), digest(shard), 0));
    }
    let _ = edit.finish();
    assert_eq!(world.selected(id), ["a@4 ({shard=4})"]);
    // What is here is served, and hides nothing that there may be upstream: all of it is still wanted.
    assert_eq!(world.cache.selections(&world.of, &interest("a")).len(), 1);
}

#[test]
fn rule_100_who_was_away_is_told_that_its_variant_is_gone_though_its_name_is_not() {
    let mut world = World::authoritative();
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("env=prod", Some("1")), ("env=test", Some("1"))]);
    let id = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(id).len(), 1);
    world.cache.close(id);
    // Somebody else has looked meanwhile: what nobody knows, nobody had.
    let other = world.selecting(&prod, &[MEMBER]);
    world.selected(other);
    world.vary(MEMBER, &[("env=prod", None)]);
    let back = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(back), [format!("-{GLOB}"), format!("-{MEMBER} (env=prod)")]);
    let test = world.selecting(&parameters(&[("env", "test")]), &[GLOB]);
    assert_eq!(world.selected(test), [format!("{MEMBER}@1 (env=test)")]);
}

#[test]
fn who_was_away_is_told_which_of_its_variants_another_one_took_the_place_of() {
    let mut world = World::authoritative();
    let prod = parameters(&[("env", "prod")]);
    world.vary(MEMBER, &[("exists(env)", Some("1")), ("env=test", Some("1"))]);
    let away = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(away), [format!("{MEMBER}@1 (exists(env))")]);
    world.cache.close(away);
    world.vary(MEMBER, &[("env=prod", Some("2"))]);
    let expected = [format!("{MEMBER}@2 (env=prod) for (exists(env))")];
    let back = world.selecting(&prod, &[GLOB]);
    assert_eq!(world.selected(back), expected);
    // It is back, and does not look before that happens.
    world.vary(MEMBER, &[("env=prod", None)]);
    world.cache.close(back);
    let back = world.selecting(&prod, &[GLOB, MEMBER]);
    world.vary(MEMBER, &[("env=prod", Some("2"))]);
    world.cache.unsubscribe(back, &interest(GLOB));
    assert_eq!(world.selected(back), expected, "whatever it wants it by, by then");
}

#[test]
fn rule_37_what_others_get_is_no_news_to_who_was_told_that_there_is_none() {
    let mut world = World::authoritative();
    let id = world.selecting(&Selector::default(), &[MEMBER]);
    assert_eq!(world.selected(id), [format!("-{MEMBER}")]);
    for version in [Some("1"), None, Some("2")] {
        world.vary(MEMBER, &[("env=prod", version)]);
        assert_eq!(world.selected(id), [""; 0], "{version:?}");
    }
    world.cache.subscribe(id, &interest(MEMBER));
    assert_eq!(world.selected(id), [format!("-{MEMBER}")], "rule 48");
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.selected(id), [format!("-{GLOB}")]);
}

#[test]
fn that_an_error_is_over_is_told_to_who_has_no_variant_before_and_after() {
    for ends in [false, true] {
        let mut world = World::authoritative();
        world.vary(MEMBER, &[("env=test", Some("1"))]);
        let id = world.selecting(&parameters(&[("env", "prod")]), &[MEMBER]);
        assert_eq!(world.selected(id), [format!("-{MEMBER}")]);
        world.fail(MEMBER, ResourceError::PERMISSION_DENIED);
        assert_eq!(world.selected(id), [""; 0]);
        let mut told = 0;
        world.cache.pull_errors(id, Removals::Include, &mut |_| {
            told += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(told, 1);
        if ends {
            world.remove(MEMBER);
        } else {
            world.vary(MEMBER, &[("env=test", Some("2"))]);
        }
        assert_eq!(world.selected(id), [format!("-{MEMBER}")], "{ends}");
        world.vary(MEMBER, &[("env=test", Some("3"))]);
        assert_eq!(world.selected(id), [""; 0], "{ends}: once");
    }
}

#[test]
fn rule_48_who_asks_for_a_glob_is_sent_of_its_members_what_it_selects_again() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.vary(MEMBER, &[("env=prod", Some("1"))]);
    let id = world.selecting(&parameters(&[("env", "prod")]), &["*"]);
    let expected = [format!("{MEMBER}@1 (env=prod)")];
    assert_eq!(world.selected(id), expected);
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.selected(id), expected);
}

#[test]
fn rule_122_a_full_state_has_the_variant_that_is_gone_as_long_as_removals_wait() {
    let mut world = World::authoritative();
    world.vary("a", &[("env=prod", Some("1")), ("env=test", Some("2"))]);
    let [prod, test] = ["prod", "test"].map(|env| world.selecting(&parameters(&[("env", env)]), &["a"]));
    let leaving = |world: &mut World, id, removals| {
        world.select(id, removals);
        let mut versions = Vec::new();
        world.cache.visit_leaving(id, removals, &mut |name, resource| {
            versions.push(format!("{name}@{}", resource.version));
            true
        });
        versions
    };
    for id in [prod, test] {
        assert_eq!(leaving(&mut world, id, Removals::Defer), [""; 0]);
    }
    world.vary("a", &[("env=prod", None)]);
    assert_eq!(leaving(&mut world, prod, Removals::Defer), ["a@1"]);
    assert_eq!(leaving(&mut world, test, Removals::Defer), [""; 0], "that is not for it");
    world.remove("a");
    assert_eq!(leaving(&mut world, test, Removals::Defer), ["a@2"]);
    assert_eq!(leaving(&mut world, prod, Removals::Defer), ["a@1"]);
    for id in [prod, test] {
        assert_eq!(leaving(&mut world, id, Removals::Include), [""; 0]);
    }
}

#[test]
fn equal_contents_of_a_name_are_kept_once() {
    let of = TypeUrl::from("T");
    let mut cache = Cache::new(Options::default());
    #[allow(clippy::disallowed_methods, reason = "any moment will do")]
    let mut edit = cache.edit(Instant::now());
    for variant in ["env=prod", "env=test", "env=qa"] {
        let body = std::sync::Arc::new(variant);
        edit.put_variant(&of, &name("a"), &constraints(variant), Resource::new("1".into(), 7, body));
    }
    let _ = edit.finish();
    let bodies: Vec<_> = cache.resources().filter_map(|stored| Some(stored.resource?.value.clone())).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| std::sync::Arc::ptr_eq(body, &bodies[0])));
}

/// V variants, S distinct selections of each of two names, and W subscribers for each.
#[test]
fn an_update_of_a_variant_costs_the_selections_of_its_name_and_a_name_without_variants_none() {
    const SUBSCRIBERS: usize = 4;
    for (variants, selections) in [(10, 10), (1_000, 10), (1_000, 100)] {
        let mut world = World::authoritative();
        let variant = |number: usize| format!("n={number}");
        let all: Vec<_> = (0..variants).map(variant).collect();
        let put: Vec<_> = all.iter().map(|variant| (variant.as_str(), Some("1"))).collect();
        world.put("plain", "1");
        let mut ids = Vec::new();
        for text in [MEMBER, OTHER] {
            world.vary(text, &put);
            for number in 0..selections * SUBSCRIBERS {
                let selector = parameters(&[("n", &(number % selections).to_string())]);
                let id = world.selecting(&selector, &[text, "plain"]);
                world.selected(id);
                ids.push(id);
            }
        }
        let made_anew = |store: &Store<u64>| store.selected;
        let before = made_anew(&world.cache.store);
        let woken = world.vary(MEMBER, &[(&variant(3), Some("2"))]);
        assert_eq!(made_anew(&world.cache.store) - before, selections as u64, "{variants} variants");
        assert_eq!(woken.len(), SUBSCRIBERS, "who selects it");
        let before = made_anew(&world.cache.store);
        assert_eq!(world.put("plain", "2").len(), ids.len() - SUBSCRIBERS);
        assert_eq!(made_anew(&world.cache.store), before);
        ids.into_iter().for_each(|id| _ = world.cache.close(id));
        assert_eq!(world.vary(MEMBER, &[(&variant(3), Some("3"))]), []);
        assert_eq!(made_anew(&world.cache.store), before, "nobody looks any more");
    }
}

proptest! {
    #[test]
    fn what_a_cache_selects_is_what_selection_one_by_one_says(
        draft in any::<bool>(),
        puts in prop::collection::vec((0..6_usize, any::<bool>()), 0..12),
        selector in 0..6_usize,
    ) {
        let forms = &FORMS[usize::from(draft)];
        let mut world = World::authoritative();
        let id = world.selecting(forms.selector(selector), &["a"]);
        let mut there = std::collections::BTreeSet::new();
        for (number, put) in puts {
            let mut edit = world.cache.edit(world.now);
            if put {
                there.insert(number);
                let resource = Resource::new(number.to_string().into(), number as u128, 0);
                edit.put_variant(&world.of, &name("a"), forms.variant(number), resource);
            } else {
                there.remove(&number);
                edit.remove_variant(&world.of, &name("a"), forms.variant(number));
            }
            let _ = edit.finish();
            let expected = forms.select(selector, there.iter().copied());
            let wanted = world.cache.wanted(id, &name("a")).map(|resource| resource.digest() as usize);
            prop_assert_eq!(wanted, expected.map(|(number, _)| number));
            world.selected(id);
            let wanted = world.cache.wanted(id, &name("a")).map(|resource| resource.digest() as usize);
            prop_assert_eq!(wanted, expected.map(|(number, _)| number), "once it was looked at");
            let overlaps = world.cache.totals().overlapping > 0;
            prop_assert!(overlaps || !expected.is_some_and(|(_, ambiguous)| ambiguous));
        }
    }
}
