//! What a relay's cache evicts of its own accord.

use super::*;

fn world(capacity: usize) -> World {
    World::new(Options { authoritative: false, capacity: Some(capacity), ..Options::default() })
}

impl World {
    fn held(&self) -> Vec<String> {
        let mut names: Vec<_> = self.cache.resources().map(|stored| stored.name.to_string()).collect();
        names.sort();
        names
    }

    fn leave(&mut self, id: SubscriberId, text: &str) {
        self.cache.unsubscribe(id, &interest(text));
    }
}

#[test]
fn what_was_least_recently_wanted_or_changed_goes_first() {
    let mut world = world(2);
    let id = world.subscriber(&["a", "b", "c", "d"]);
    for text in ["a", "b", "c", "d"] {
        world.put(text, "1");
    }
    assert_eq!(world.held(), ["a", "b", "c", "d"], "all are wanted");
    for text in ["c", "a"] {
        world.leave(id, text);
    }
    assert_eq!(world.held(), ["b", "d"]);
    world.leave(id, "b");
    world.leave(id, "d");
    world.put("b", "2");
    world.put("e", "1");
    assert_eq!(world.held(), ["b", "e"], "b changed after d was left");
    assert_eq!(world.cache.totals().evicted, 3);
}

#[test]
fn what_was_evicted_is_unknown_and_a_later_subscriber_waits() {
    let mut world = world(0);
    world.put("a", "1");
    assert!(!world.cache.is_known(&world.of, &interest("a")));
    let id = world.subscriber(&["a", "*"]);
    assert_eq!(world.pull(id), [""; 0], "not told as removed");
    world.put("a", "1");
    assert_eq!(world.pull(id), ["a@1"]);
}

#[test]
fn an_answered_collection_goes_as_a_whole() {
    let mut world = world(2);
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    world.answered(GLOB);
    world.leave(id, GLOB);
    assert_eq!(world.held().len(), 2);
    let id = world.subscriber(&["a"]);
    world.put("a", "1");
    assert_eq!(world.held(), ["a"]);
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)));
    world.cache.close(id);
}

#[test]
fn an_answered_collection_goes_as_a_whole_after_a_restart_too() {
    let mut world = world(2);
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    world.answered(GLOB);
    world.cache.close(id);
    let known: Vec<_> = world.cache.snapshot(world.now).map(|known| known.map(|value| *value)).collect();
    world.cache = Cache::restore(world.cache.store.options.clone(), known, world.now);
    assert!(world.cache.is_known(&world.of, &interest(GLOB)));
    world.subscriber(&["a"]);
    world.put("a", "1");
    assert_eq!(world.held(), ["a"]);
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)));
}

#[test]
fn a_batch_evicts_when_all_of_it_is_in() {
    let mut world = world(1);
    let id = world.subscriber(&["b"]);
    let World { cache, of, now, .. } = &mut world;
    let batch = ["a", "b"].map(|text| (name(text), Resource::unversioned(1, 0)));
    assert_eq!(cache.upsert_raw_all(of, batch, *now, &mut Vec::new()).evicted, 1);
    assert_eq!(world.held(), ["b"]);
    world.cache.close(id);
}

#[test]
fn a_control_plane_deletes_nothing_of_its_own_accord() {
    let mut world = World::new(Options { capacity: Some(0), ..Options::default() });
    world.put("a", "1");
    world.cache.evict(&world.of, &interest("a"), world.now);
    assert_eq!(world.held(), ["a"]);
}

#[test]
fn nothing_of_a_cache_without_a_capacity_is_kept_in_order() {
    let mut world = World::relay();
    world.put("a", "1");
    assert!(world.cache.store.idle.pop().is_none());
}

#[test]
fn a_collection_that_somebody_wants_stays_answered_whoever_evicts_it() {
    let mut world = World::relay();
    for wanted in ["*", GLOB] {
        let id = world.subscriber(&[wanted]);
        world.put(MEMBER, "1");
        world.answered(wanted);
        world.pull(id);
        world.cache.evict(&world.of, &interest(wanted), world.now);
        assert!(world.cache.is_known(&world.of, &interest(wanted)), "{wanted}");
        world.cache.close(id);
        world.cache.evict(&world.of, &interest(wanted), world.now);
        assert!(!world.cache.is_known(&world.of, &interest(wanted)), "{wanted}: nobody wants it");
    }
}

#[test]
fn a_resource_stays_where_any_of_its_names_is_kept() {
    let mut world = World::relay();
    for (kept, stays) in [("a", true), ("alias", true), ("b", false)] {
        let resource = Resource::new("1".into(), 1, 0);
        let (aliases, woken) = ([name("alias")], &mut Vec::new());
        world.cache.upsert_raw_with_aliases(&world.of, &name("a"), aliases, resource, world.now, woken);
        world.cache.evict_unless(&world.of, &interest("a"), world.now, &|name| name.as_str() == kept);
        assert_eq!(world.cache.is_known(&world.of, &interest("a")), stays, "{kept}");
    }
}

#[test]
fn what_is_touched_counts_as_changed() {
    let mut world = world(2);
    world.put("a", "1");
    world.put("b", "1");
    let mut edit = world.cache.edit(world.now);
    edit.touch(&world.of, &name("a"));
    let _ = edit.finish();
    world.put("c", "1");
    assert_eq!(world.held(), ["a", "c"]);
}
