//! A collection that is refused, and what of it others ask for by its name.

use super::*;

const OTHER: &str = "xdstp://x/T/e/*";

impl World {
    /// What is to be told beside what is sent of a collection: `name:code`.
    fn refusal(&mut self, id: SubscriberId, of: &str) -> Vec<String> {
        let mut told = Vec::new();
        self.cache
            .pull_refusals(id, Some(&[interest(of)]), &mut |name, error| told.push(format!("{name}:{}", error.code)));
        told
    }

    fn recover(&mut self, text: &str) -> Vec<SubscriberId> {
        let mut edit = self.cache.edit(self.now);
        edit.recover(&self.of, &interest(text));
        edit.finish().into_iter().collect()
    }
}

/// Who asks for a member by its name is served that, which says nothing of the glob: whoever has it by the glob is told so again.
#[test]
fn rule_118_in_a_relay_a_collection_is_refused_whatever_of_it_others_ask_for_until_it_recovers() {
    for (asked, member) in [(GLOB, MEMBER), ("*", "a")] {
        let mut world = World::relay();
        let [id, named] = [asked, member].map(|text| world.subscriber(&[text]));
        [id, named].into_iter().for_each(|id| drop(world.pull(id)));
        world.fail(asked, 7);
        assert!(world.pull_as(id, Removals::Include).1.refused);
        world.errors(id);
        for version in ["1", "2"] {
            world.put(member, version);
            for (id, refused) in [(id, true), (named, false)] {
                assert_eq!(world.pull(id), [format!("{member}@{version}")]);
                let refusal = if refused { vec![format!("{asked}:7")] } else { vec![] };
                assert_eq!((world.errors(id), world.refusal(id, asked)), (vec![], refusal));
            }
            let later = world.subscriber(&[asked]);
            assert_eq!(world.cache.visit(later, &mut |_, _| ()).refused, 1);
            assert_eq!(world.pull(later), [format!("{member}@{version}")]);
            assert_eq!(world.errors(later), [format!("{asked}:7")]);
        }
        // A glob that does not exist has no members.
        if asked == GLOB {
            let other = world.subscriber(&[OTHER]);
            world.pull(other);
            world.fail(OTHER, ResourceError::NOT_FOUND);
            world.put("xdstp://x/T/e/1", "1");
            assert_eq!(world.cache.errors().count(), 1);
            world.fail(OTHER, ResourceError::NOT_FOUND);
            assert_eq!(world.refusal(other, OTHER), [""; 0]);
        }
        // Who leaves the name under the collection is sent it once more.
        world.cache.subscribe(named, &interest(asked));
        world.pull(named);
        world.errors(named);
        world.cache.unsubscribe(named, &interest(member));
        assert_eq!(world.pull(named), [format!("{member}@2")]);
        assert_eq!(world.refusal(named, asked), [format!("{asked}:7")]);
        // What is renewed is told once, beside what is sent.
        world.fail(asked, 13);
        world.put(member, "3");
        assert_eq!(world.pull(named), [format!("{member}@3")]);
        assert_eq!(world.refusal(named, asked), [format!("{asked}:13")]);
        assert_eq!(world.errors(named), [""; 0]);
        world.pull(id);
        world.errors(id);

        assert_eq!(world.recover(asked), []);
        assert_eq!(world.refusal(id, asked), [""; 0]);
        let of = world.cache.visit(id, &mut |_, _| ());
        assert_eq!((of.collections, of.refused), (1, 0), "it is not answered");
        world.put(member, "4");
        assert_eq!((world.pull(id), world.errors(id)), (vec![format!("{member}@4")], vec![]));
    }
}

/// Neither that it is sent again says that there is nothing of it, nor what it was answered before it was refused.
#[test]
fn rule_118_a_glob_that_was_complete_and_is_refused_is_told_as_empty_once_it_is_answered_anew() {
    let mut world = World::relay();
    let [id, other] = [GLOB, OTHER].map(|glob| world.subscriber(&[glob]));
    for (id, glob) in [(id, GLOB), (other, OTHER)] {
        world.answered(glob);
        world.pull(id);
        world.fail(glob, 7);
        world.pull(id);
        assert_eq!(world.errors(id), [format!("-{glob}:7")]);
    }
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    assert_eq!(world.recover(GLOB), []);
    assert_eq!(world.recover(OTHER), []);
    assert_eq!((world.pull(other), world.errors(other)), (vec![], vec![]));
}

/// A relay is told nothing of what is refused, what is new and what is gone: who brings along what another told him keeps it.
#[test]
fn rule_150_what_was_complete_and_is_refused_since_says_of_nothing_that_it_is_gone() {
    for (collection, [here, there]) in [(GLOB, [MEMBER, "xdstp://x/T/d/2"]), ("*", ["a", "z"])] {
        for code in [7, 14] {
            let mut world = World::relay();
            let first = world.subscriber(&[collection]);
            world.put(here, "1");
            world.answered(collection);
            world.pull(first);
            world.fail(collection, code);
            let id = world.subscriber(&[collection]);
            world.cache.resume(id, vec![(name(here), "1".into()), (name(there), "1".into())]);
            assert_eq!(world.pull(id), [""; 0], "{collection}");
            assert_eq!(world.cache.visit(id, &mut |_, _| ()).refused, 1, "{collection}");
            assert_eq!(world.errors(id), [format!("{collection}:{code}")]);
            world.answered(collection);
            assert_eq!(world.pull(id), [format!("-{there}")]);
        }
    }
}

/// Who asks for something by its name is told why that is not sent, and no collection.
#[test]
fn rule_117_an_error_of_one_name_or_that_there_is_no_such_glob_refuses_no_collection() {
    let mut world = World::relay();
    let id = world.subscriber(&["a", MEMBER, GLOB, "*"]);
    world.pull(id);
    for (name, code) in [("a", 7), (MEMBER, 14), (GLOB, ResourceError::NOT_FOUND)] {
        world.fail(name, code);
        assert!(!world.pull_as(id, Removals::Include).1.refused, "{name}");
        assert!(world.cache.refusals(id) == 0 && !world.cache.refuses(&world.of), "{name}");
    }
    for (collection, code) in [(GLOB, 7), ("*", ResourceError::NOT_FOUND)] {
        world.fail(collection, code);
        assert!(world.pull_as(id, Removals::Include).1.refused, "{collection}");
        assert!(world.cache.refusals(id) > 0 && world.cache.refuses(&world.of), "{collection}");
        // Another in its place is one, too.
        world.fail(collection, 13);
        world.recover(collection);
        assert!(world.cache.refusals(id) == 0, "{collection}");
    }
}

/// What was known of it before its origin was lost is no reason to wait for more.
#[test]
fn rule_151_a_collection_that_was_answered_and_is_refused_since_is_refused() {
    for collection in [GLOB, "*"] {
        let mut world = World::relay();
        let id = world.subscriber(&[collection]);
        world.answered(collection);
        world.cache.origin_lost();
        assert_eq!(world.cache.visit(id, &mut |_, _| ()).incomplete, 1);
        world.fail(collection, 7);
        let of = world.cache.visit(id, &mut |_, _| ());
        assert_eq!((of.refused, of.incomplete), (1, 0), "{collection}");
    }
}
