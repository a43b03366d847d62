//! That a glob is empty takes its members from who holds any: then it is a removal, and is told at once otherwise.

use super::*;

const RELATIVES: [(&[&str], &str); 3] = [
    // Held by its own name, and the glob is asked for since it went.
    (&[MEMBER], GLOB),
    // Held by the glob, which is asked for again.
    (&[GLOB], GLOB),
    // Held by a wildcard.
    (&["*"], GLOB),
];

#[test]
fn rule_122_an_empty_glob_takes_no_member_before_removals_are_told() {
    for (held_by, asked) in RELATIVES {
        let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
        let id = world.subscriber(held_by);
        world.put(MEMBER, "1");
        assert_eq!(world.pull(id), [format!("{MEMBER}@1")], "{held_by:?}");
        world.remove(MEMBER);
        world.cache.subscribe(id, &interest(asked));
        assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0], "{held_by:?}");
        assert!(!world.cache.has_additions(id), "{held_by:?}: nobody waits for it");
        let mut told = world.pull(id);
        told.sort_unstable();
        assert_eq!(told, [format!("-{GLOB}"), format!("-{MEMBER}")], "{held_by:?}");
        assert!(!world.cache.has_work(id), "{held_by:?}");
    }
}

#[test]
fn rule_122_what_a_client_brought_along_of_an_empty_glob_it_holds() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.cache.resume(id, [(name(MEMBER), crate::Version::from("1"))]);
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    let mut told = world.pull(id);
    told.sort_unstable();
    assert_eq!(told, [format!("-{GLOB}"), format!("-{MEMBER}")]);
}

#[test]
fn rule_158_an_empty_glob_of_which_nothing_is_held_is_told_at_once() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB, "xdstp://x/T/other/1"]);
    world.put("xdstp://x/T/other/1", "1");
    world.pull(id);
    world.remove("xdstp://x/T/other/1");
    world.put(MEMBER, "1");
    world.pull(id);
    world.remove(MEMBER);
    world.pull(id);
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.pull_as(id, Removals::Defer).0, [format!("-{GLOB}")]);
}
