//! What the origin has something of that is of no use: it is not known whether it is there.

use std::ops::ControlFlow;

use super::world::World;
use super::{interest, invariants, name};
use crate::{Cause, Options, Removals, ResourceError, SubscriberId};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";
const OTHER: &str = "xdstp://x/T/d/2";
/// By itself and in its collections.
const ASKED: [(&str, &str); 4] = [("a", "a"), ("*", "a"), (MEMBER, MEMBER), (GLOB, MEMBER)];

impl World {
    fn unreadable(&mut self, text: &str) {
        let error = ResourceError::new(ResourceError::INVALID_ARGUMENT, "why").found_by(Cause::Unreadable);
        let mut edit = self.cache.edit(self.now);
        edit.fail(&self.of.clone(), &name(text), error);
        let _ = edit.finish();
        invariants::check(&self.cache);
    }

    /// The errors that it is told: `-name` where that is a removal, too.
    fn failed(&mut self, id: SubscriberId) -> Vec<String> {
        let mut told = Vec::new();
        self.cache.pull_errors(id, Removals::Include, &mut |failed| {
            told.push(format!("{}{}", if failed.removed { "-" } else { "" }, failed.name));
            ControlFlow::Continue(())
        });
        told
    }

    fn all(&mut self, id: SubscriberId) -> Vec<String> {
        let mut said = self.pull(id);
        said.extend(self.failed(id));
        invariants::check(&self.cache);
        said
    }
}

fn worlds() -> [World; 2] {
    let mut late = World::new(Options { filled: false, ..Options::default() });
    late.unreadable("a");
    late.unreadable(MEMBER);
    let mut edit = late.cache.edit(late.now);
    edit.fill();
    let _ = edit.finish();
    let mut world = World::authoritative();
    world.unreadable("a");
    world.unreadable(MEMBER);
    [world, late]
}

/// Wildcards are told of no errors of names.
fn error_of(asked: &str, name: &str) -> Vec<String> {
    if asked == "*" { Vec::new() } else { vec![name.to_owned()] }
}

#[test]
fn rule_150_who_asks_for_what_is_unreadable_is_told_why_and_never_that_it_is_gone() {
    for (asked, name) in ASKED {
        for mut world in worlds() {
            let id = world.subscriber(&[asked]);
            assert_eq!(world.all(id), error_of(asked, name), "{asked}");
            let of = world.cache.visit(id, &mut |_, _| ());
            assert_eq!(of.names + of.incomplete, 1, "a full state would say that it is gone: {asked}");
            assert!(!world.cache.is_absent(id, &super::name(name)), "{asked}");
            // Again (rule 48).
            world.cache.subscribe(id, &interest(asked));
            assert_eq!(world.all(id), error_of(asked, name), "{asked}");

            world.put(name, "1");
            assert_eq!(world.all(id), [format!("{name}@1")]);
            assert!(!world.cache.visit(id, &mut |_, _| ()).any());
        }
    }
}

#[test]
fn rule_150_who_holds_what_is_unreadable_keeps_it_until_it_is_known_to_be_gone() {
    for (asked, held) in ASKED {
        for mut world in worlds() {
            world.put("b", "1");
            let id = world.subscriber(&[asked, "b"]);
            world.cache.resume(id, [(name(held), "0".into()), (name("b"), "1".into())]);
            assert_eq!(world.all(id), error_of(asked, held), "{asked}");
            world.remove(held);
            let said = world.all(id);
            assert!(said.contains(&format!("-{held}")) && !said.contains(&"-b".to_owned()), "{asked}: {said:?}");
            assert!(!world.cache.visit(id, &mut |_, _| ()).any());

            let id = world.subscriber(&[asked]);
            world.unreadable(held);
            world.cache.resume(id, [(name(held), "1".into())]);
            world.all(id);
            world.put(held, "1");
            // By its name it is sent it once more.
            let said = world.all(id);
            assert!(said.is_empty() || said == [format!("{held}@1")], "{asked}: {said:?}");
        }
    }
}

/// That there is nothing of a glob takes all that is held of it.
#[test]
fn rule_99_a_glob_is_empty_once_nothing_in_it_is_unreadable() {
    for mut world in worlds() {
        let [id, holds] = [(); 2].map(|()| world.subscriber(&[GLOB]));
        world.cache.resume(holds, [(name(MEMBER), "1".into()), (name(OTHER), "1".into())]);
        assert_eq!(world.all(id), [MEMBER]);
        assert_eq!(world.all(holds), [format!("-{OTHER}"), MEMBER.to_owned()]);
        world.remove(MEMBER);
        for id in [id, holds] {
            let said = world.all(id);
            assert!(said.contains(&format!("-{GLOB}")) || said.contains(&format!("-{MEMBER}")), "{said:?}");
        }
    }
}

/// What was answered as absent is asked for by others.
#[test]
fn what_was_absent_and_is_unreadable_since_is_not_told_to_be_gone() {
    let mut world = World::authoritative();
    let early = world.subscriber(&["a", GLOB]);
    assert_eq!(world.all(early), ["-a".to_owned(), format!("-{GLOB}")]);
    world.unreadable("a");
    world.unreadable(MEMBER);
    assert_eq!(world.all(early), ["a", MEMBER]);
    let late = world.subscriber(&["a", GLOB]);
    assert_eq!(world.all(late), ["a", MEMBER]);
    assert_eq!(world.cache.visit(late, &mut |_, _| ()).names, 1);
    // Another error in its place says what it says.
    world.fail("a", ResourceError::NOT_FOUND);
    assert_eq!(world.all(late), ["-a"]);
}
