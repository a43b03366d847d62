//! What a subscriber is told from another source.

use super::*;

/// For who says itself what became of a name meanwhile.
#[test]
fn what_was_brought_along_is_told_whatever_its_version_once_somebody_counts_on_it() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    world.cache.resume(id, [(name("a"), "1".into()), (name("b"), "1".into())]);
    assert!(world.cache.will_tell(id, &name("a")) && !world.cache.will_tell(id, &name("c")));
    for text in ["a", "b"] {
        world.put(text, "1");
    }
    assert_eq!(world.pull(id), ["a@1"]);
    assert!(!world.cache.will_tell(id, &name("a")), "it was");
}

#[test]
fn what_was_told_as_gone_elsewhere_is_not_told_by_whatever_interest() {
    for interests in [&["*"][..], &[GLOB], &[MEMBER], &[MEMBER, GLOB, "*"]] {
        for pulled in [false, true] {
            let mut world =
                World::new(Options { authoritative: false, wildcard_covers_xdstp: true, ..Options::default() });
            let id = world.subscriber(interests);
            for text in [MEMBER, OTHER] {
                world.put(text, "1");
            }
            world.pull(id);
            for text in [MEMBER, OTHER] {
                world.remove(text);
            }
            if pulled {
                world.pull_as(id, Removals::Defer);
            }
            world.cache.told_gone(id, &name(MEMBER));
            let other: &[_] = if interests == [MEMBER] { &[] } else { &[format!("-{OTHER}")] };
            assert_eq!(world.pull(id), other, "{interests:?} {pulled}");
            assert!(!world.cache.has_work(id));
            world.put(MEMBER, "1");
            assert_eq!(world.pull(id), [format!("{MEMBER}@1")], "{interests:?} {pulled}");
            world.remove(MEMBER);
            assert_eq!(world.pull(id), [format!("-{MEMBER}")], "{interests:?} {pulled}");
        }
    }
}

#[test]
fn what_was_told_as_gone_elsewhere_and_is_there_or_not_known_stays_so() {
    let mut world = World::relay();
    let id = world.subscriber(&[MEMBER, "a"]);
    world.cache.resume(id, [(name("a"), "1".into())]);
    world.put(MEMBER, "1");
    for text in [MEMBER, "a"] {
        world.cache.told_gone(id, &name(text));
    }
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    assert!(!world.cache.is_absent(id, &name("a")));
    world.put("a", "1");
    assert_eq!(world.pull(id), ["a@1"], "it does not hold it any more");
}

/// The error of what is gone is told with it, and says more than that it is gone.
#[test]
fn what_failed_is_told_though_it_was_told_as_gone_elsewhere() {
    for interests in [&[MEMBER][..], &[GLOB]] {
        for pulled in [false, true] {
            let mut world = World::relay();
            let id = world.subscriber(interests);
            for text in [MEMBER, OTHER] {
                world.put(text, "1");
            }
            world.pull(id);
            // That the other one goes is still to be told.
            world.remove(OTHER);
            if pulled {
                world.pull_as(id, Removals::Defer);
            }
            world.fail(MEMBER, ResourceError::NOT_FOUND);
            world.cache.told_gone(id, &name(MEMBER));
            world.pull(id);
            let mut failed = Vec::new();
            world.cache.pull_errors(id, Removals::Include, &mut |error| {
                failed.push((error.name.to_string(), error.error.code));
                ControlFlow::Continue(())
            });
            assert_eq!(failed, [(MEMBER.to_owned(), ResourceError::NOT_FOUND)], "{interests:?} {pulled}");
        }
    }
}
