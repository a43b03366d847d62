use super::*;

#[test]
fn s001_to_s004_a_watch_hears_of_what_it_watches_and_of_nothing_else() {
    everywhere(|world, type_url, name| {
        let mut watch = world.watch_raw(type_url, name);
        // Over delta: that it is not there yet.
        heard(&mut watch);
        world.put(type_url, &format!("{name}y"), "1");
        assert!(heard(&mut watch).is_empty());
        world.put(type_url, name, "1");
        assert_eq!(heard(&mut watch).pop().unwrap(), format!("put {name} 1"));
        world.put(type_url, &format!("{name}y"), "2");
        assert!(heard(&mut watch).is_empty());
        drop(watch);
        world.put(type_url, name, "2");
    });
}

#[test]
fn s005_to_s008_two_watches_of_a_name_both_hear_of_it_and_one_does_when_the_other_is_dropped() {
    everywhere(|world, type_url, name| {
        world.put(type_url, name, "1");
        let (mut one, mut other) = (world.watch_raw(type_url, name), world.watch_raw(type_url, name));
        for watch in [&mut one, &mut other] {
            assert_eq!(heard(watch), [format!("put {name} 1")]);
        }
        drop(one);
        world.put(type_url, name, "1");
        assert!(heard(&mut other).is_empty(), "as it was");
        world.put(type_url, name, "2");
        assert_eq!(heard(&mut other), [format!("put {name} 2")]);
    });
}

#[test]
fn s009_to_s012_three_watches_of_two_names_and_one_response() {
    for (protocol, type_url) in
        [Protocol::Delta, Protocol::Sotw].iter().flat_map(|of| TYPES.map(|type_url| (of, type_url)))
    {
        let world = World::of(*protocol, KEEPS);
        let names = ["x".to_owned(), xdstp("a", type_url, "x")];
        names.iter().for_each(|name| world.put(type_url, name, "1"));
        let mut watches = [0, 0, 1].map(|at| (world.client.watch(type_url, &names[at]), &names[at]));
        world.network.settle();
        for (watch, name) in &mut watches {
            assert_eq!(heard(watch), [format!("put {name} 1")]);
        }
        assert_eq!((world.network.dialed(), world.top().opened()), (1, 1), "one stream for all of it");
    }
}

#[test]
fn s013_to_s016_who_comes_late_is_served_at_once_and_nobody_is_asked() {
    everywhere(|world, type_url, name| {
        world.put(type_url, name, "1");
        let _first = world.watch_raw(type_url, name);
        assert!(!world.top().take_asked().is_empty());
        let mut late = world.client.watch(type_url, name);
        assert_eq!(heard(&mut late), [format!("put {name} 1")]);
        world.network.settle();
        assert!(world.top().take_asked().is_empty());
    });
}

#[test]
fn s017_to_s020_a_name_that_a_server_says_nothing_of_is_told_so_after_a_while_and_may_come_late() {
    everywhere(|world, type_url, name| {
        world.top().be_silent(true);
        let mut watch = world.watch_raw(type_url, name);
        world.network.pass(PATIENCE - Duration::from_millis(1));
        assert!(heard(&mut watch).is_empty());
        world.network.pass(Duration::from_millis(1));
        assert_eq!(heard(&mut watch), [format!("failed {name}: timeout, an absence")]);
        assert_eq!(watch.status(), Some(crate::ResourceStatus::DoesNotExist));
        world.top().be_silent(false);
        world.put(type_url, name, "1");
        assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
    });
}

#[test]
fn s021_to_s024_what_comes_in_time_is_not_told_to_be_missing() {
    everywhere(|world, type_url, name| {
        world.put(type_url, name, "1");
        let mut watch = world.watch_raw(type_url, name);
        world.network.pass(PATIENCE * 2);
        assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
    });
}

#[test]
fn s025_to_s028_what_is_refused_is_told_to_who_watches_and_to_who_comes_late() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "bad");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["failed x: invalid at \"bad\" (bad is bad)"]);
        assert_eq!(heard(&mut world.watch("x")), ["failed x: invalid at \"bad\" (bad is bad)"]);
        assert_eq!(world.top().take_refused(), ["x: bad is bad"]);
        assert_eq!(watch.status(), Some(crate::ResourceStatus::Nacked));
    }
}

#[test]
fn s029_to_s032_of_two_the_good_one_is_used() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let (mut good, mut bad) = (world.client.watch_as::<Cluster>("x"), world.client.watch_as::<Cluster>("y"));
        world.top().put(CDS, "x", "1", &message("x", "1"));
        world.top().put(CDS, "y", "bad", &message("y", "bad"));
        world.network.settle();
        assert_eq!(heard(&mut good), ["put x 1"]);
        assert_eq!(heard(&mut bad), ["failed y: invalid at \"bad\" (bad is bad)"]);
        assert_eq!(world.top().take_refused(), ["y: bad is bad"]);
    }
}

#[test]
fn s033_and_s034_what_is_removed_is_told_to_who_watches_it_and_what_there_was_is_kept_or_not() {
    for (features, told) in [(KEEPS, "ambient x: absent"), (DROPS, "failed x: absent")] {
        for (protocol, type_url) in [(Protocol::Delta, CDS), (Protocol::Sotw, CDS), (Protocol::Sotw, LDS)] {
            let world = World::of(protocol, features);
            world.put(type_url, "x", "1");
            world.put(type_url, "y", "1");
            let (mut watch, mut other) = (world.watch_raw(type_url, "x"), world.watch_raw(type_url, "y"));
            heard(&mut watch);
            heard(&mut other);
            world.top().remove(type_url, "x");
            world.network.settle();
            assert_eq!(heard(&mut watch), [told], "{protocol:?}");
            world.put(type_url, "y", "2");
            assert_eq!((heard(&mut watch).len(), heard(&mut other)), (0, vec!["put y 2".to_owned()]));
            let late = heard(&mut world.watch_raw(type_url, "x"));
            let kept = if features == KEEPS { vec!["put x 1", told] } else { vec![told] };
            assert_eq!(late, kept);
            world.put(type_url, "x", "1");
            assert_eq!(heard(&mut watch), ["put x 1"]);
        }
    }
}

#[test]
fn s035_and_s036_a_name_that_a_response_lacks_is_waited_for() {
    for type_url in [LDS, CDS] {
        let world = World::of(Protocol::Sotw, KEEPS);
        world.put(type_url, "x", "1");
        let (mut there, mut missing) = (world.watch_raw(type_url, "x"), world.watch_raw(type_url, "y"));
        assert_eq!(heard(&mut there), ["put x 1"]);
        assert!(heard(&mut missing).is_empty());
        world.put(type_url, "y", "1");
        assert_eq!(heard(&mut missing), ["put y 1"]);
    }
}

#[test]
fn s038_a_bad_version_over_a_good_one_leaves_that_with_a_warning_for_all() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.put(CDS, "x", "bad");
        let warned = "ambient x: invalid at \"bad\" (bad is bad)";
        assert_eq!(heard(&mut watch), [warned]);
        assert_eq!(heard(&mut world.watch("x")), ["put x 1", warned]);
        assert_eq!(watch.status(), Some(crate::ResourceStatus::Nacked));
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut watch), ["put x 2"]);
        assert_eq!(watch.status(), Some(crate::ResourceStatus::Acked));
    }
}

#[test]
fn s039_a_type_of_the_program_is_read_once_for_each_version() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    static READ: AtomicUsize = AtomicUsize::new(0);

    struct Counted;

    impl Resource for Counted {
        fn type_url() -> String {
            EDS.into()
        }

        fn decode(_: Bytes) -> Result<Self, Reason> {
            READ.fetch_add(1, Ordering::Relaxed);
            Ok(Self)
        }
    }

    let world = World::new();
    let mut watches: Vec<Watch<Counted>> = (0..9).map(|_| world.client.watch_as("x")).collect();
    for version in ["1", "2"] {
        world.put(EDS, "x", version);
        let values: Vec<_> = watches.iter_mut().filter_map(Watch::try_next).collect();
        let value = |event: &Event<std::sync::Arc<Counted>>| match event {
            Event::Put { resource, .. } => std::sync::Arc::as_ptr(resource),
            event => panic!("{}", words(event)),
        };
        let first = value(&values[0]);
        assert!(values.len() == 9 && values.iter().all(|event| value(event) == first), "all have the same");
    }
    assert_eq!(READ.load(Ordering::Relaxed), 2);
}

#[test]
fn r042_a_slow_reader_sees_the_newest_and_nothing_of_what_was_between() {
    let world = World::new();
    let mut watch = world.watch("x");
    for version in ["1", "2", "bad", "3"] {
        world.put(CDS, "x", version);
    }
    assert_eq!(heard(&mut watch), ["put x 3"]);
}

#[test]
fn r079_what_a_refusal_took_away_comes_again_though_it_is_as_it_was() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, DROPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"], "{protocol:?}");
        world.put(CDS, "x", "bad");
        assert_eq!(heard(&mut watch).len(), 1);
        world.top().go_down("a restart");
        world.network.settle();
        world.top().put(CDS, "x", "1", &message("x", "1"));
        world.top().come_up();
        world.network.pass(Duration::from_secs(5));
        assert_eq!(heard(&mut watch).last().map(String::as_str), Some("put x 1"), "{protocol:?}");
    }
}

#[test]
fn r080_a_collection_hears_of_its_members_and_that_it_was_answered() {
    let world = World::new();
    let (glob, member) = (xdstp("a", CDS, "g/*"), |id| xdstp("a", CDS, &format!("g/{id}")));
    world.put(CDS, &member("1"), "1");
    let (mut watch, mut empty) = (world.watch(&glob), world.watch(&xdstp("a", CDS, "none/*")));
    world.network.pass(Duration::from_secs(1));
    assert_eq!(heard(&mut watch), [format!("put {} 1", member("1")), "answered".into()]);
    assert_eq!(heard(&mut empty), ["answered"]);
    world.put(CDS, &member("2"), "bad");
    assert_eq!(heard(&mut watch), [format!("failed {}: invalid at \"bad\" (bad is bad)", member("2"))]);
    world.top().remove(CDS, &member("1"));
    world.network.settle();
    assert_eq!(heard(&mut watch), [format!("removed {}", member("1"))]);
    assert_eq!(watch.status(), None);
}

#[test]
fn r080_a_wildcard_beside_authorities_on_one_stream() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let name = xdstp("a", CDS, "x");
        world.put(CDS, &name, "1");
        world.put(CDS, "old", "1");
        let mut own = world.watch_raw(CDS, &name);
        let mut all = world.watch_raw(CDS, "*");
        world.network.pass(Duration::from_secs(1));
        assert_eq!(heard(&mut own), [format!("put {name} 1")], "{protocol:?}");
        let told = heard(&mut all);
        assert!(told.contains(&"put old 1".to_owned()) && told.contains(&"answered".to_owned()), "{told:?}");
        world.put(CDS, &name, "2");
        assert_eq!(heard(&mut own), [format!("put {name} 2")], "{protocol:?}");
    }
}

#[test]
fn r079_what_had_its_time_is_gone_and_not_kept() {
    let world = World::new();
    world.top().put_for(CDS, "x", "1", &message("x", "1"), Duration::from_secs(60));
    let mut watch = world.watch("x");
    assert_eq!(heard(&mut watch), ["put x 1"]);
    world.top().be_silent(true);
    world.network.pass(Duration::from_secs(59));
    assert!(heard(&mut watch).is_empty());
    world.network.pass(Duration::from_secs(1));
    assert_eq!(heard(&mut watch), ["failed x: absent"]);
}

#[test]
fn rule_105_who_watches_an_alias_sees_the_resource_it_stands_for() {
    let world = World::new();
    for (name, alias) in [("x", "z"), (&*xdstp("a", CDS, "x"), &*xdstp("b", CDS, "z"))] {
        world.top().put_by_alias(CDS, (name, alias), "1", &message(name, "1"));
        let mut watch = world.watch(alias);
        assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
        world.top().put_by_alias(CDS, (name, alias), "2", &message(name, "2"));
        world.network.settle();
        assert_eq!(heard(&mut watch), [format!("put {name} 2")]);
    }
}

#[test]
fn a_watch_that_replaces_another_at_once_has_what_that_had_and_nobody_is_asked() {
    let world = World::new();
    world.put(CDS, "x", "1");
    let watch = world.watch("x");
    world.top().take_asked();
    drop(watch);
    let mut again = world.client.watch_as::<Cluster>("x");
    assert_eq!(heard(&mut again), ["put x 1"]);
    world.network.settle();
    assert!(world.top().take_asked().is_empty());
}
