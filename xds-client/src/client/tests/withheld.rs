//! A wildcard or a glob that its server refuses as a whole.

use super::*;

fn glob() -> String {
    xdstp("a", CDS, "d/*")
}

/// What is asked for, and a resource of it.
fn cases() -> impl Iterator<Item = (Protocol, String, String)> {
    let of = |protocol| [(protocol, "*".to_owned(), "x".to_owned()), (protocol, glob(), xdstp("a", CDS, "d/x"))];
    [Protocol::Delta, Protocol::Sotw].into_iter().flat_map(of)
}

#[test]
fn r061_a_collection_that_is_refused_is_heard_as_that_and_is_not_answered() {
    for (protocol, asked, _) in cases() {
        let world = World::of(protocol, KEEPS);
        world.top().fail(CDS, &asked, 7, "ask by name");
        let mut watch = world.watch(&asked);
        world.network.pass(Duration::from_secs(60));
        let mut told = heard(&mut watch);
        // This server has its full state, which is empty, before it has its errors.
        told.retain(|told| protocol == Protocol::Delta || told != "answered");
        assert_eq!(told, [format!("failed {asked}: refused (7, ask by name)")], "{protocol:?}");
        // Who comes later hears it, too.
        assert_eq!(heard(&mut world.watch(&asked))[0], format!("failed {asked}: refused (7, ask by name)"));
    }
}

#[test]
fn r057_what_is_held_of_a_collection_that_is_refused_stays_in_use() {
    for (protocol, asked, member) in cases() {
        for features in [KEEPS, DROPS] {
            let world = World::of(protocol, features);
            world.put(CDS, &member, "1");
            let mut watch = world.watch(&asked);
            world.network.pass(Duration::from_secs(20));
            assert_eq!(heard(&mut watch), [format!("put {member} 1"), "answered".into()], "{protocol:?}");
            world.top().fail(CDS, &asked, 7, "no more");
            world.network.pass(Duration::from_secs(60));
            assert_eq!(heard(&mut watch), [format!("ambient {asked}: refused (7, no more)")], "{protocol:?}");
            let mut later = heard(&mut world.watch(&asked));
            later.retain(|heard| heard != "answered");
            assert_eq!(later, [format!("put {member} 1"), format!("ambient {asked}: refused (7, no more)")]);
        }
    }
}
