//! Why all of a type is not sent to who asks for all.

use super::*;

#[test]
fn rule_118_that_of_the_wildcard_takes_nothing_away_and_is_over_when_it_is_answered() {
    for code in [ResourceError::NOT_FOUND, 7, 14] {
        for mut world in [World::relay(), World::authoritative()] {
            let [all, other] = ["*", "a"].map(|text| world.subscriber(&[text]));
            let holds = world.subscriber(&["*"]);
            world.bring(holds, "b", "1");
            [all, other, holds].into_iter().for_each(|id| drop(world.pull(id)));
            let mut woken = world.fail("*", code);
            woken.sort();
            assert_eq!(woken, [all, holds]);
            for id in [all, holds] {
                assert_eq!(world.pull(id), [""; 0], "{code}");
                assert_eq!(world.errors(id), [format!("*:{code}")]);
                assert_eq!((world.pull(id), world.errors(id)), (vec![], vec![]), "once");
            }
            assert_eq!((world.pull(other), world.errors(other)), (vec![], vec![]));
            assert_eq!(world.fail("*", code), [], "it is known");
            // Whoever is served a resource by its name says nothing of the wildcard.
            world.put("a", "1");
            assert_eq!(world.pull(all), ["a@1"]);
            assert_eq!(world.cache.errors().count(), 1);
            let later = world.subscriber(&["*"]);
            assert_eq!((world.pull(later), world.errors(later)), (vec!["a@1".to_owned()], vec![format!("*:{code}")]));
            world.answered("*");
            assert_eq!(world.cache.errors().count(), 0);
        }
    }
}

#[test]
fn a_relay_keeps_that_of_a_wildcard_while_somebody_asks_for_all() {
    let mut world = World::relay();
    let _other = world.subscriber(&["a"]);
    world.fail("*", 7);
    assert_eq!(world.cache.errors().count(), 0);
    let all = world.subscriber(&["*"]);
    world.fail("*", 7);
    assert_eq!(world.cache.errors().count(), 1);
    world.cache.close(all);
    world.cache.evict(&world.of, &interest("*"), world.now);
    assert_eq!(world.cache.errors().count(), 0);
}

/// What is sent to who holds nothing need not wait for an answer that will not come.
#[test]
fn a_collection_that_is_refused_is_no_more_one_of_which_nothing_is_known() {
    const GLOB: &str = "xdstp://a/T/d/*";
    for asked in ["*", GLOB] {
        let mut world = World::relay();
        let id = world.subscriber(&[asked]);
        let unanswered = |world: &mut World| {
            let of = world.cache.visit(id, &mut |_, _| ());
            (of.collections, of.refused)
        };
        assert_eq!(unanswered(&mut world), (1, 0), "{asked}");
        world.fail(asked, 7);
        assert_eq!(unanswered(&mut world), (0, 1), "{asked}");
        world.answered(asked);
        assert_eq!(unanswered(&mut world), (0, 0), "{asked}");
    }
}
