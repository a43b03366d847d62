//! A collection that is refused, and what of it others ask for by its name.

use super::*;

impl World {
    /// The errors of collections that stand, as a subscriber was told: `name:code`.
    fn refusals(&self, id: SubscriberId) -> Vec<String> {
        let mut told = Vec::new();
        self.cache.visit_refusals(id, &mut |name, error| told.push(format!("{name}:{}", error.code)));
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
        world.pull(id);
        assert_eq!(world.refusals(id), [""; 0], "before it is told");
        world.errors(id);
        for version in ["1", "2"] {
            world.put(member, version);
            for (id, refused) in [(id, true), (named, false)] {
                let (told, pulled) = world.pull_as(id, Removals::Include);
                assert_eq!((told, pulled.refused), (vec![format!("{member}@{version}")], refused));
                let refusals = if refused { vec![format!("{asked}:7")] } else { vec![] };
                assert_eq!((world.errors(id), world.refusals(id)), (vec![], refusals));
            }
            let later = world.subscriber(&[asked]);
            assert_eq!(world.cache.visit(later, &mut |_, _| ()).refused, 1);
            assert_eq!(world.pull(later), [format!("{member}@{version}")]);
            assert_eq!(world.errors(later), [format!("{asked}:7")]);
        }
        // A glob that does not exist has no members.
        if asked == GLOB {
            let other = world.subscriber(&["xdstp://x/T/e/*"]);
            world.pull(other);
            world.fail("xdstp://x/T/e/*", ResourceError::NOT_FOUND);
            world.put("xdstp://x/T/e/1", "1");
            assert_eq!(world.cache.errors().count(), 1);
        }
        // Who leaves the name under the collection is sent it once more.
        world.cache.subscribe(named, &interest(asked));
        world.pull(named);
        world.errors(named);
        world.cache.unsubscribe(named, &interest(member));
        let (told, pulled) = world.pull_as(named, Removals::Include);
        assert_eq!((told, pulled.refused), (vec![format!("{member}@2")], true));

        assert_eq!(world.recover(asked), []);
        assert_eq!((world.cache.errors().count(), world.refusals(id)), (0, vec![]));
        let of = world.cache.visit(id, &mut |_, _| ());
        assert_eq!((of.collections, of.refused), (1, 0), "it is not answered");
        world.put(member, "3");
        assert!(!world.pull_as(id, Removals::Include).1.refused);
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
