//! What is noted for who keeps it elsewhere.

use std::collections::BTreeMap;

use super::*;
use crate::Known;

fn noting() -> World {
    let mut world = World::relay();
    world.cache.note_changes(100);
    world
}

/// What was noted, and what is known of each.
fn noted(world: &mut World) -> BTreeMap<String, Vec<String>> {
    let mut noted = BTreeMap::new();
    while world.cache.has_noted() {
        for (of, interest) in world.cache.take_noted(2).unwrap() {
            let known = world.cache.known_of(&of, &interest, world.now).into_iter().map(|known| match known {
                Known::Present { resource, aliases, .. } => format!("{} {}", resource.version, aliases.len()),
                Known::Gone { glob, .. } => format!("gone from {glob}"),
                Known::Answered { extent, .. } => format!("{extent:?}"),
                Known::TypeVersion { version, .. } => format!("version {version}"),
                other => panic!("{other:?} is not said so"),
            });
            noted.insert(interest.to_string(), known.collect());
        }
    }
    noted
}

fn of(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    pairs.iter().map(|(name, known)| ((*name).into(), known.iter().map(|word| (*word).into()).collect())).collect()
}

#[test]
fn what_changes_is_noted_once_with_what_is_known_of_it_now() {
    let mut world = noting();
    let id = world.subscriber(&["*", GLOB, "a"]);
    assert_eq!(noted(&mut world), of(&[]), "who asks changes nothing");
    world.put("a", "1");
    world.put("a", "2");
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    assert_eq!(noted(&mut world), of(&[("a", &["2 0"]), (MEMBER, &["1 0"]), (OTHER, &["1 0"])]));
    world.put("a", "2");
    assert_eq!(noted(&mut world), of(&[]));
    world.remove("a");
    world.remove(OTHER);
    let gone = format!("gone from {GLOB}");
    assert_eq!(noted(&mut world), of(&[("a", &[]), (OTHER, &[&gone])]));
    world.answered("*");
    world.answered(GLOB);
    world.answered(GLOB);
    world.cache.set_type_version(&world.of, Some("7".into()));
    assert_eq!(noted(&mut world), of(&[("*", &["Complete", "version 7"]), (GLOB, &["Complete"])]));
    world.cache.close(id);
    assert_eq!(noted(&mut world), of(&[]));
    world.cache.evict(&world.of, &interest(GLOB), world.now);
    let noted = noted(&mut world);
    assert_eq!(noted.keys().collect::<Vec<_>>(), [GLOB, MEMBER]);
    assert_eq!(noted[GLOB], [""; 0]);
}

#[test]
fn that_an_answer_is_complete_is_noted_once() {
    let mut world = noting();
    world.subscriber(&[GLOB]);
    world.answered(GLOB);
    assert_eq!(noted(&mut world), of(&[(GLOB, &["Complete"])]));
    world.answered(GLOB);
    assert_eq!(noted(&mut world), of(&[]));
}

#[test]
fn what_loses_an_alias_is_noted_whatever_takes_it() {
    let takes: [fn(&mut World); 3] = [
        |world| _ = world.remove("alias"),
        |world| _ = world.put("alias", "1"),
        |world| _ = world.alias("b", &["alias"], "1"),
    ];
    for take in takes {
        let mut world = noting();
        let _id = world.subscriber(&["a", "b", "alias"]);
        world.alias("a", &["alias"], "1");
        assert_eq!(noted(&mut world)["a"], ["1 1"]);
        take(&mut world);
        assert_eq!(noted(&mut world)["a"], ["1 0"]);
    }
}

#[test]
fn what_is_evicted_before_its_change_is_taken_leaves_the_aliases_that_it_had_at_last() {
    let mut world = noting();
    let (of, now) = (world.of.clone(), world.now);
    let evict = |world: &mut World| {
        world.cache.evict(&of, &interest("a"), now);
        let taken = world.cache.take_evicted(&of, &"a".parse().unwrap());
        taken.map(|aliases| aliases.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    world.alias("a", &["b", "c"], "1");
    noted(&mut world);
    assert_eq!(evict(&mut world), None, "it was taken as it was");
    world.alias("a", &["b", "c"], "1");
    noted(&mut world);
    world.alias("a", &["b"], "1");
    assert_eq!(evict(&mut world), Some(vec!["b".to_owned()]));
    noted(&mut world);
    world.put("a", "1");
    world.remove("a");
    assert_eq!(evict(&mut world), None, "it was not evicted");
    world.put("a", "1");
    world.cache.note_all();
    assert_eq!(evict(&mut world), Some(vec![]), "all of it may be other than it was");
}

#[test]
fn of_too_many_only_that_is_noted() {
    let mut world = noting();
    for number in 0..101 {
        world.put(&number.to_string(), "1");
    }
    assert!(world.cache.has_noted());
    assert_eq!(world.cache.take_noted(1000), None);
    assert!(!world.cache.has_noted());
    world.put("a", "1");
    assert_eq!(world.cache.take_noted(1000).unwrap().len(), 1);
    world.cache.note_all();
    assert_eq!(world.cache.take_noted(1000), None);
    let mut edit = world.cache.edit(world.now);
    edit.note_all();
    let _ = edit.finish();
    assert_eq!(world.cache.take_noted(1000), None);
}

#[test]
fn what_nobody_keeps_is_not_noted() {
    let mut world = World::relay();
    world.put("a", "1");
    world.cache.note_all();
    assert!(!world.cache.has_noted());
    assert_eq!(world.cache.take_noted(1000), Some(vec![]));
}
