//! Batches of changes.

use super::*;

#[test]
fn a_subscriber_is_named_once_however_much_an_edit_changes() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*", "a", GLOB]);
    world.pull(id);
    let mut edit = world.cache.edit(world.now);
    for text in ["a", "b", MEMBER] {
        edit.put(&world.of, &name(text), Resource::unversioned(1, 0));
    }
    edit.remove(&world.of, &name("b"));
    edit.fail(&world.of, &name("a"), ResourceError::new(14, "why"));
    assert!(edit.finish().iter().eq([id]));
    let version = Resource::unversioned(1, ()).version;
    let told = [format!("a@{version}"), format!("{MEMBER}@{version}"), "-b".into()];
    assert_eq!(world.pull(id), told, "the newest state of each");
}

#[test]
fn who_an_edit_that_is_dropped_would_have_named_the_next_one_names() {
    let mut world = World::authoritative();
    let [told, other] = [world.subscriber(&["a"]), world.subscriber(&["b"])];
    world.pull(told);
    world.pull(other);
    let mut edit = world.cache.edit(world.now);
    edit.put(&world.of, &name("a"), Resource::unversioned(1, 0));
    drop(edit);
    assert!(world.cache.has_work(told), "what is changed is changed");
    let mut edit = world.cache.edit(world.now);
    edit.put(&world.of, &name("b"), Resource::unversioned(1, 0));
    assert!(edit.finish().into_iter().eq([told, other]));
    assert!(world.cache.edit(world.now).finish().is_empty());
}

#[test]
fn who_pulled_after_an_edit_was_dropped_is_named_once() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    world.pull(id);
    let mut edit = world.cache.edit(world.now);
    edit.put(&world.of, &name("a"), Resource::unversioned(1, 0));
    drop(edit);
    assert_eq!(world.pull(id).len(), 1);
    let mut edit = world.cache.edit(world.now);
    edit.put(&world.of, &name("a"), Resource::unversioned(2, 0));
    assert!(edit.finish().into_iter().eq([id]));
}

#[test]
fn an_edit_records_errors() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    world.pull(id);
    let mut edit = world.cache.edit(world.now);
    edit.fail(&world.of, &name("a"), ResourceError::new(7, "why"));
    assert!(edit.finish().into_iter().eq([id]));
    assert_eq!(world.cache.error(&world.of, &name("a")).map(|error| error.code), Some(7));
}

#[test]
fn only_an_error_beside_what_is_there_leaves_that_in_use() {
    for beside in [false, true] {
        let mut world = World::relay();
        let id = world.subscriber(&["a"]);
        world.put("a", "1");
        world.pull(id);
        let mut edit = world.cache.edit(world.now);
        let error = ResourceError::new(ResourceError::NOT_FOUND, "why");
        match beside {
            true => edit.fail_beside(&world.of, &name("a"), error),
            false => edit.fail_by_name(&world.of, &name("a"), error),
        }
        assert!(edit.finish().into_iter().eq([id]));
        assert_eq!(world.cache.resource(&world.of, &name("a")).is_some(), beside);
    }
}

#[test]
fn who_was_named_before_is_not_named_by_an_edit_that_reuses_the_list() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    world.pull(id);
    let mut edit = world.cache.edit(world.now);
    edit.put(&world.of, &name("a"), Resource::unversioned(1, 0));
    let told = edit.finish();
    assert!(told.iter().eq([id]));
    assert!(world.cache.edit_reusing(world.now, told).finish().is_empty());
}

#[test]
fn an_edit_forgets_what_is_not_kept() {
    let mut world = World::relay();
    world.put("a", "1");
    world.put("b", "1");
    let mut edit = world.cache.edit(world.now);
    for text in ["a", "b"] {
        edit.evict_unless(&world.of, &interest(text), &|kept| kept.as_str() == "a");
    }
    assert!(edit.finish().is_empty());
    assert_eq!(["a", "b"].map(|text| world.cache.is_known(&world.of, &interest(text))), [true, false]);
}

#[test]
fn an_error_that_is_told_to_nobody_leaves_nothing() {
    let mut world = World::new(Options { tombstones: 0, ..Options::default() });
    let mut edit = world.cache.edit(world.now);
    edit.fail_by_name(&world.of, &name(MEMBER), ResourceError::new(14, "why"));
    assert!(edit.finish().is_empty());
    assert!(world.cache.error(&world.of, &name(MEMBER)).is_none());
    assert_eq!((world.cache.store.types().len(), world.cache.store.lists().len()), (0, 0));
}

#[test]
fn the_error_that_a_control_plane_has_of_a_name_outlives_who_asked() {
    let mut world = World::authoritative();
    world.fail("a", 14);
    let id = world.subscriber(&["a"]);
    world.pull(id);
    world.cache.unsubscribe(id, &interest("a"));
    assert_eq!(world.cache.error(&world.of, &name("a")).map(|error| error.code), Some(14));
}

#[test]
fn rule_117_an_error_is_told_to_who_comes_to_the_glob_as_long_as_few_are() {
    let mut world = World::new(Options { authoritative: false, tombstones: 1, ..Options::default() });
    world.subscriber(&[MEMBER, OTHER]);
    let mut edit = world.cache.edit(world.now);
    for text in [MEMBER, OTHER] {
        edit.fail_by_name(&world.of, &name(text), ResourceError::new(7, "why"));
    }
    let _ = edit.finish();
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    let mut told = Vec::new();
    world.cache.pull_errors(id, Removals::Include, &mut |failed| {
        told.push(failed.name.to_string());
        ControlFlow::Continue(())
    });
    assert_eq!(told, [MEMBER]);
}
