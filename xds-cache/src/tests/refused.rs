//! A collection that is refused, and what of it others ask for by its name.

use super::*;

const OTHER: &str = "xdstp://x/T/e/*";

impl World {
    /// What is to be told beside what is sent of a collection: `name:code`.
    fn refusal(&mut self, id: SubscriberId, of: &str) -> Vec<String> {
        let mut told = Vec::new();
        self.cache.pull_refusals(id, &[interest(of)], &mut |name, error| told.push(format!("{name}:{}", error.code)));
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

#[test]
fn rule_118_a_glob_that_was_complete_and_recovers_without_members_is_told_as_empty() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.answered(GLOB);
    world.pull(id);
    world.fail(GLOB, 7);
    world.pull(id);
    assert_eq!(world.errors(id), [format!("-{GLOB}:7")]);
    assert_eq!(world.recover(GLOB), [id]);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    assert_eq!(world.recover(GLOB), []);
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
        assert!(!world.cache.has_refusals(id) && !world.cache.refuses(&world.of), "{name}");
    }
    for (collection, code) in [(GLOB, 7), ("*", ResourceError::NOT_FOUND)] {
        world.fail(collection, code);
        assert!(world.pull_as(id, Removals::Include).1.refused, "{collection}");
        assert!(world.cache.has_refusals(id) && world.cache.refuses(&world.of), "{collection}");
        // Another in its place is one, too.
        world.fail(collection, 13);
        world.recover(collection);
        assert!(!world.cache.has_refusals(id), "{collection}");
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
