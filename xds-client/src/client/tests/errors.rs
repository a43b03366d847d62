use super::*;
use crate::ResourceStatus as Status;

#[test]
fn r046_a_server_that_is_not_there_is_told_and_tried_again_and_no_name_times_out_meanwhile() {
    let world = World::new();
    world.top().go_down("connection refused");
    let mut watch = world.watch("x");
    assert_eq!(heard(&mut watch), ["failed all: unreachable (connection refused)"]);
    assert_eq!(watch.status(), Some(Status::Requested));
    // S46, and the clock of R52 does not run.
    world.network.pass(Duration::from_secs(600));
    assert!(heard(&mut watch).is_empty());
    world.top().come_up();
    world.top().be_silent(true);
    world.network.pass(Duration::from_secs(60));
    assert_eq!(heard(&mut watch).last().unwrap(), "failed x: timeout, an absence");
    world.top().be_silent(false);
    world.put(CDS, "x", "1");
    assert_eq!(heard(&mut watch).last().unwrap(), "put x 1");
}

#[test]
fn r050_the_reason_the_server_and_the_node_are_said() {
    let world = World::new();
    world.top().go_down("no route");
    let mut watch = world.watch("x");
    let Some(Event::Failed { name: None, error }) = watch.try_next() else { panic!("nothing") };
    assert_eq!(error.to_string(), "no stream to top:1 (as node \"me\"): no route");
    assert_eq!(error.clone(), error);
}

#[test]
fn r051_who_comes_while_no_server_can_be_reached_is_told_at_once_after_what_there_is() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.top().go_down("gone");
        world.network.settle();
        // R48: a stream that was answered may end.
        assert!(heard(&mut watch).is_empty());
        world.network.pass(Duration::from_secs(10));
        assert_eq!(heard(&mut watch), ["ambient all: unreachable (gone)"]);
        assert_eq!(heard(&mut world.watch("x")), ["put x 1", "ambient all: unreachable (gone)"]);
        assert_eq!(heard(&mut world.watch("y")), ["failed all: unreachable (gone)"]);
        world.top().come_up();
        world.put(CDS, "z", "1");
        let _other = world.watch("z");
        world.network.pass(Duration::from_secs(60));
        assert_eq!(heard(&mut watch), ["cleared all"]);
    }
}

#[test]
fn r047_who_watches_what_another_server_has_hears_nothing_of_it() {
    let world = World::new();
    let name = xdstp("other", CDS, "x");
    let mut watch = world.watch(&name);
    heard(&mut watch);
    world.top().go_down("gone");
    let mut of_top = world.watch("x");
    assert_eq!(heard(&mut of_top), ["failed all: unreachable (gone)"]);
    assert!(heard(&mut watch).is_empty());
}

#[test]
fn r051_what_is_wrong_with_the_resource_is_told_again_when_a_server_is_back() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, DROPS);
        ["x", "y"].iter().for_each(|name| world.put(CDS, name, "1"));
        let (mut watch, _other) = (world.watch("x"), world.watch("y"));
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.top().remove(CDS, "x");
        world.network.settle();
        assert_eq!(heard(&mut watch), ["failed x: absent"], "{protocol:?}");
        world.top().go_down("gone");
        world.network.pass(Duration::from_secs(10));
        assert_eq!(heard(&mut watch), ["failed all: unreachable (gone)"], "{protocol:?}");
        world.top().come_up();
        world.network.pass(Duration::from_secs(60));
        assert_eq!(heard(&mut watch), ["failed x: absent"], "{protocol:?}");
    }
}

#[test]
fn r060_where_the_timer_is_no_absence_it_takes_longer_and_says_so() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, WAITS);
        world.top().be_silent(true);
        let mut watch = world.watch("x");
        world.network.pass(PATIENCE);
        assert!(heard(&mut watch).is_empty());
        world.network.pass(PATIENCE);
        assert_eq!(heard(&mut watch), ["failed x: timeout"]);
        assert_eq!(watch.status(), Some(Status::Timeout));
    }
}

#[test]
fn r061_what_a_server_says_in_place_of_a_resource() {
    let (not_found, denied, unavailable) = (5, 7, 14);
    for (features, keeps) in [(KEEPS, true), (DROPS, false)] {
        let codes =
            [not_found, denied, unavailable, 13].map(|code| [Protocol::Delta, Protocol::Sotw].map(|of| (code, of)));
        for (code, protocol) in codes.into_iter().flatten() {
            let told = if code == not_found { "absent".to_owned() } else { format!("refused ({code}, because)") };
            let world = World::of(protocol, features);
            world.top().fail(EDS, "y", code, "because");
            let mut missing = world.watch_raw(EDS, "y");
            assert_eq!(heard(&mut missing), [format!("failed y: {told}")]);

            world.put(EDS, "x", "1");
            let mut held = world.watch_raw(EDS, "x");
            assert_eq!(heard(&mut held), ["put x 1"]);
            world.top().fail(EDS, "x", code, "because");
            world.network.settle();
            let is_data = matches!(code, 5 | 7);
            let how = if keeps || !is_data { "ambient" } else { "failed" };
            assert_eq!(heard(&mut held), [format!("{how} x: {told}")], "{features:?}");
            // It is said once, and remembered.
            world.network.pass(PATIENCE * 4);
            assert!(heard(&mut held).is_empty() && heard(&mut missing).is_empty());
            assert_eq!([held.status(), missing.status()], [Some(Status::ReceivedError); 2], "{protocol:?} {code}");
            world.put(EDS, "x", "2");
            assert_eq!(heard(&mut held), ["put x 2"]);
        }
    }
}

/// That a collection does not exist is the end of what it has; no other error takes anything away.
#[test]
fn r061_what_a_server_says_in_place_of_a_collection() {
    for code in [5, 7, 14] {
        let world = World::new();
        let [glob, member] = ["dir/*", "dir/x"].map(|id| xdstp("a", CDS, id));
        world.put(CDS, &member, "1");
        let mut watch = world.watch(&glob);
        world.network.pass(Duration::from_secs(1));
        assert_eq!(heard(&mut watch), [format!("put {member} 1"), "answered".into()]);
        world.top().fail(CDS, &glob, code, "because");
        world.network.settle();
        let told = match code {
            5 => [format!("removed {member}"), format!("failed {glob}: absent")].to_vec(),
            _ => [format!("ambient {glob}: refused ({code}, because)")].to_vec(),
        };
        assert_eq!(heard(&mut watch), told);
        world.put(CDS, &member, "2");
        assert_eq!(heard(&mut watch)[0], format!("put {member} 2"));
        // It is over for who comes then, too.
        assert_eq!(heard(&mut world.watch(&glob)), [format!("put {member} 2"), "answered".into()]);
    }
}

#[test]
fn r061_what_a_server_says_in_place_of_a_collection_takes_no_member_from_who_asked_for_that() {
    for features in [KEEPS, DROPS] {
        let world = World::of(Protocol::Delta, features);
        let [glob, member] = ["dir/*", "dir/x"].map(|id| xdstp("a", CDS, id));
        world.put(CDS, &member, "1");
        let (_all, mut one) = (world.watch(&glob), world.watch(&member));
        assert_eq!(heard(&mut one), [format!("put {member} 1")]);
        world.top().fail(CDS, &glob, 7, "because");
        world.network.settle();
        assert!(heard(&mut one).is_empty());
        world.put(CDS, &member, "2");
        assert_eq!(heard(&mut one), [format!("put {member} 2")]);
    }
}

/// What a stream ends with, whatever code that has, is of no resource; and no error has a code to pass on but that of TP3.
#[test]
fn r064_no_error_has_a_code_but_what_a_server_says_of_a_resource() {
    let world = World::new();
    world.top().go_down("status: PermissionDenied, 7");
    let mut watch = world.watch("x");
    let Some(Event::Failed { name: None, error: Error::Unreachable { reason, .. } }) = watch.try_next() else {
        panic!("not what a stream ended with")
    };
    assert_eq!(reason.to_string(), "status: PermissionDenied, 7");
    world.top().fail(CDS, "x", 7, "because");
    world.top().come_up();
    world.network.pass(PATIENCE);
    let told = std::iter::from_fn(|| watch.try_next()).last();
    assert!(matches!(told, Some(Event::Failed { name: Some(_), error: Error::Refused { code: 7, .. } })), "{told:?}");
}

#[test]
fn s044_the_same_error_is_told_once_and_another_one_again() {
    let world = World::new();
    world.put(CDS, "x", "bad");
    let (mut watch, mut other) = (world.watch("x"), world.watch("y"));
    assert_eq!(heard(&mut watch).len(), 1);
    heard(&mut other);
    // S45: whatever else comes.
    world.put(CDS, "y", "bad");
    assert_eq!((heard(&mut watch).len(), heard(&mut other).len()), (0, 1));
    world.put(CDS, "x", "bad too");
    assert_eq!(heard(&mut watch), ["failed x: invalid at \"bad too\" (bad too is bad)"]);
}

#[test]
fn r057_a_server_that_fails_on_data_errors_takes_what_is_refused_away() {
    let world = World::of(Protocol::Delta, DROPS);
    world.put(CDS, "x", "1");
    let mut watch = world.watch("x");
    assert_eq!(heard(&mut watch), ["put x 1"]);
    world.put(CDS, "x", "bad");
    assert_eq!(heard(&mut watch), ["failed x: invalid at \"bad\" (bad is bad)"]);
    assert_eq!(heard(&mut world.watch("x")), ["failed x: invalid at \"bad\" (bad is bad)"]);
}

#[test]
fn the_five_are_five_different_things() {
    let world = World::new();
    let heard_of = |prepare: &dyn Fn(&World), name: &str| {
        prepare(&world);
        let mut watch = world.watch(name);
        world.network.pass(PATIENCE);
        heard(&mut watch).remove(0)
    };
    let told = [
        heard_of(&|_| {}, "gone"),
        heard_of(&|world| world.put(CDS, "invalid", "bad"), "invalid"),
        heard_of(&|world| world.top().fail(CDS, "refused", 7, "no"), "refused"),
        heard_of(&|world| world.top().be_silent(true), "silent"),
        heard_of(&|world| world.network.server(OTHER).go_down("away"), &xdstp("other", CDS, "x")),
    ];
    let expected = [
        "failed gone: absent",
        "failed invalid: invalid at \"bad\" (bad is bad)",
        "failed refused: refused (7, no)",
        "failed silent: timeout, an absence",
        "failed all: unreachable (away)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn r037_a_resource_of_another_type_is_refused_by_name_and_what_there_was_stays() {
    everywhere(|world, type_url, name| {
        world.put(type_url, name, "1");
        let mut watch = world.watch_raw(type_url, name);
        assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
        world.top().put_as(type_url, name, "2", ("type.googleapis.com/a.v3.Other", &message(name, "2")));
        world.network.settle();
        let refused = world.top().take_refused();
        assert!(refused.len() == 1 && refused[0].contains("a resource of type"), "{refused:?}");
        let told = heard(&mut watch);
        assert!(told.iter().all(|told| told.starts_with("ambient")), "{told:?}");
        world.put(type_url, name, "3");
        assert_eq!(heard(&mut watch), [format!("put {name} 3")]);
    });
}

#[test]
fn r041_over_sotw_who_watched_names_and_then_none_does_not_ask_for_everything() {
    let world = World::of(Protocol::Sotw, KEEPS);
    world.put(CDS, "x", "1");
    world.put(CDS, "y", "1");
    let (named, all) = (world.watch("x"), world.watch_raw(EDS, "z"));
    world.top().take_asked();
    drop(named);
    let mut all_clusters = world.watch_raw(CDS, "*");
    let mut told = heard(&mut all_clusters);
    told.sort();
    assert!(told.contains(&"put x 1".into()) && told.contains(&"put y 1".into()), "{told:?}");
    let asked = world.top().take_asked();
    assert!(asked.iter().all(|names| !names.is_empty()) && asked.contains(&"*".to_owned()), "{asked:?}");
    drop(all);
}

/// What who watches bytes has, who watches by a type may not be able to read: it is not what he goes on with.
#[test]
fn r056_who_could_not_read_what_there_was_has_nothing_that_an_error_leaves_in_use() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "bad");
        let mut raw = world.watch_raw(CDS, "x");
        assert_eq!(heard(&mut raw), ["put x bad"]);
        let mut typed = world.watch("x");
        assert_eq!(heard(&mut typed), ["failed x: invalid at \"bad\" (bad is bad)"]);
        world.put(CDS, "x", "bad too");
        assert_eq!(heard(&mut typed), ["failed x: invalid at \"bad too\" (bad too is bad)"]);
        assert_eq!(heard(&mut raw), ["ambient x: invalid at \"bad too\" (bad too is bad)"]);
        world.top().go_down("away");
        world.network.pass(Duration::from_secs(200));
        assert_eq!(heard(&mut typed), ["failed all: unreachable (away)"]);
        world.top().come_up();
        world.network.pass(Duration::from_secs(200));
        assert!(!heard(&mut typed).iter().any(|told| told.starts_with("cleared")), "there is nothing still");
        world.put(CDS, "x", "1");
        world.put(CDS, "x", "bad");
        assert_eq!(heard(&mut typed), ["put x 1", "ambient x: invalid at \"bad\" (bad is bad)"]);
    }
}
