//! Many resources at once.

use super::*;
use crate::Outcomes;

fn snapshot(entries: &[(&str, &str)]) -> Vec<(ResourceName, Resource<u64>)> {
    let digest = |body: &str| body.bytes().fold(0, |sum, byte| sum * 256 + u128::from(byte));
    entries.iter().map(|(text, body)| (name(text), Resource::unversioned(digest(body), 0))).collect()
}

#[test]
fn a_snapshot_wakes_who_wants_what_differs_and_tells_nothing_else() {
    let mut world = World::authoritative();
    let World { cache, of, now, .. } = &mut world;
    cache.replace_raw(of, snapshot(&[("a", "1"), ("b", "1"), ("c", "1")]), *now, &mut Vec::new());
    let ids = ["a", "b", "c", "*"].map(|text| world.subscriber(&[text]));
    for id in ids {
        world.pull(id);
    }
    let [_, b, c, all] = ids;
    let mut woken = Vec::new();
    let World { cache, of, now, .. } = &mut world;
    let outcomes = cache.replace_raw(of, snapshot(&[("a", "1"), ("b", "2"), ("d", "1")]), *now, &mut woken);
    let expected = Outcomes { added: 1, changed: 1, unchanged: 1, removed: 1, ..Outcomes::default() };
    assert_eq!(outcomes, expected);
    woken.sort();
    assert_eq!(woken, [b, c, all]);
    assert_eq!(world.pull(c), ["-c"]);
    let told: Vec<_> = world.pull(all).iter().map(|word| word.split('@').next().unwrap().to_owned()).collect();
    assert_eq!(told, ["b", "d", "-c"]);
    let World { cache, of, now, .. } = &mut world;
    let mut woken = Vec::new();
    let again = cache.replace_raw(of, snapshot(&[("a", "1"), ("b", "2"), ("d", "1")]), *now, &mut woken);
    assert_eq!((again.unchanged, woken.len()), (3, 0), "rule 37");
}

#[test]
fn an_empty_snapshot_removes_everything_of_its_type_and_of_no_other() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let World { cache, of, now, .. } = &mut world;
    let other = TypeUrl::from("other");
    cache.upsert_raw(&other, &name("a"), Resource::unversioned(1, 0), *now, &mut Vec::new());
    assert_eq!(cache.replace_raw(of, [], *now, &mut Vec::new()).removed, 1);
    assert!(cache.resource(of, &name("a")).is_none() && cache.resource(&other, &name("a")).is_some());
}

#[test]
fn a_snapshot_leaves_errors_that_it_says_nothing_of() {
    let mut world = World::authoritative();
    for text in ["a", "b"] {
        world.fail(text, 14);
    }
    let World { cache, of, now, .. } = &mut world;
    cache.replace_raw(of, snapshot(&[("a", "1")]), *now, &mut Vec::new());
    assert_eq!(cache.errors().map(|(_, name, _)| name.to_string()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn new_content_at_an_old_version_is_counted() {
    let mut world = World::authoritative();
    for digest in [1, 2, 2, 3] {
        world.upsert("a", "1", digest);
    }
    assert_eq!(world.cache.totals().changed_at_same_version, 2);
}
