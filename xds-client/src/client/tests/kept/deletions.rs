//! What a server says is gone, and a program uses on; and what is gone by another name.

use super::*;
use crate::ResourceStatus;

/// `x`, which is asked for as `y`, too, was kept.
fn by_alias(features: Features) -> Program {
    let program = Program::of(Protocol::Delta, features);
    program.top().put_by_alias(CDS, ("x", "y"), "1", &message("x", "1"));
    program.world.network.settle();
    program
}

/// The same, and the program begins anew while every server is away: what it has of these names.
fn begins_anew(program: &mut Program, names: &[&str]) -> Vec<Option<String>> {
    program.save();
    program.top().go_down("away");
    program.restart(Protocol::Delta);
    let mut watches: Vec<_> = names.iter().map(|name| program.world.watch(name)).collect();
    program.world.network.pass(SECOND);
    watches.iter_mut().map(|watch| heard(watch).into_iter().find(|said| said.starts_with("put"))).collect()
}

#[test]
fn what_is_used_on_though_it_is_deleted_is_there_after_a_restart_whenever_its_server_says_so() {
    whatever(|mut program, protocol| {
        for name in ["x", "y"] {
            program.world.put(CDS, name, "1");
        }
        let [mut watch, other] = ["x", "y"].map(|name| program.world.watch(name));
        program.save();
        program.top().remove(CDS, "x");
        program.world.network.settle();
        assert_eq!(heard(&mut watch), ["put x 1", "ambient x: absent"], "{protocol:?}");
        program.save();
        drop((watch, other));
        // It says so at once, after a while, or when it is back.
        for wait in [0, 2, 20] {
            match wait {
                0 => {}
                2 => program.top().be_silent(true),
                _ => program.top().go_down("away"),
            }
            program.restart(protocol);
            let [mut watch, other] = ["x", "y"].map(|name| program.world.watch(name));
            program.world.network.pass(wait * SECOND);
            program.top().be_silent(false);
            program.top().end_streams();
            program.top().come_up();
            program.world.network.pass(100 * SECOND);
            let mut said = heard(&mut watch);
            said.retain(|said| said.contains(" x"));
            assert_eq!(said.first().map(String::as_str), Some("put x 1"), "{protocol:?} {wait}: {said:?}");
            assert!(!said.iter().any(|said| said.starts_with("failed")), "{protocol:?} {wait}: {said:?}");
            if protocol == Protocol::Delta {
                assert_eq!(said.last().map(String::as_str), Some("ambient x: absent"), "{wait}: {said:?}");
                assert_eq!(watch.status(), Some(ResourceStatus::DoesNotExist));
                assert!(!watch.is_stale(), "its server has spoken: {wait}");
            }
            program.save();
            assert!(program.keeps("x"), "{protocol:?} {wait}");
            drop((watch, other));
        }
    });
}

#[test]
fn what_is_used_on_is_there_after_a_restart_though_everything_is_watched_beside() {
    for everything_first in [true, false] {
        let mut program = Program::new(Protocol::Delta);
        let watches = |program: &Program| {
            let names = if everything_first { ["*", "x"] } else { ["x", "*"] };
            let mut watches = names.map(|name| program.world.client.watch(CDS, name));
            if !everything_first {
                watches.reverse();
            }
            program.world.network.settle();
            watches
        };
        program.world.put(CDS, "x", "1");
        let before = watches(&program);
        program.top().remove(CDS, "x");
        program.world.network.settle();
        program.save();
        drop(before);
        program.restart(Protocol::Delta);
        let [_, mut watch] = watches(&program);
        program.world.network.pass(SECOND);
        assert_eq!(heard(&mut watch), ["put x 1", "ambient x: absent"], "{everything_first}");
    }
}

#[test]
fn what_nobody_uses_on_is_gone_after_a_restart_when_its_server_says_so() {
    let mut program = Program::of(Protocol::Delta, DROPS);
    program.world.put(CDS, "x", "1");
    let watch = program.world.watch("x");
    program.save();
    drop(watch);
    program.top().remove(CDS, "x");
    program.restart(Protocol::Delta);
    let mut watch = program.world.watch("x");
    program.world.network.pass(SECOND);
    assert_eq!(heard(&mut watch), ["failed x: absent"]);
    program.save();
    assert!(!program.keeps("x"));
}

#[test]
fn an_alias_that_is_gone_does_not_lead_anywhere_after_a_restart() {
    let mut program = by_alias(DROPS);
    let watches = ["x", "y"].map(|name| program.world.watch(name));
    program.save();
    say_gone(&program, &["y"]);
    drop(watches);
    let put = || Some("put x 1".to_owned());
    assert_eq!(begins_anew(&mut program, &["x", "y"]), [put(), None]);
}

#[test]
fn what_was_wanted_by_an_alias_that_is_gone_alone_is_gone_after_a_restart() {
    let mut program = by_alias(DROPS);
    let watch = program.world.watch("y");
    program.save();
    say_gone(&program, &["y"]);
    drop(watch);
    assert_eq!(begins_anew(&mut program, &["x", "y"]), [None, None]);
}

/// What was asked for as `y` is another by now, which is left before that is written, or is written first and gone by that name.
#[test]
fn an_alias_that_became_anothers_does_not_lead_to_the_first_after_a_restart() {
    for is_written in [false, true] {
        let mut program = by_alias(DROPS);
        let watch = program.world.watch("y");
        program.save();
        drop(watch);
        program.world.network.settle();
        program.save();
        program.world.put(CDS, "x", "2");
        program.top().put_by_alias(CDS, ("z", "y"), "1", &message("z", "1"));
        let watches = ["z", "y"].map(|name| program.world.watch(name));
        if is_written {
            program.save();
            say_gone(&program, &["y"]);
        }
        drop(watches);
        program.world.network.settle();
        let [x, z] = [Some("put x 1".to_owned()), is_written.then(|| "put z 1".to_owned())];
        assert_eq!(begins_anew(&mut program, &["x", "y", "z"]), [x, None, z], "{is_written}");
    }
}

#[test]
fn what_stands_aside_does_not_come_by_an_alias_that_is_gone() {
    for wanted in [&["y"][..], &["x", "y"]] {
        let mut program = by_alias(DROPS);
        let watches = ["x", "y"].map(|name| program.world.watch(name));
        program.save();
        drop(watches);
        program.top().be_silent(true);
        program.restart(Protocol::Delta);
        let mut watches: Vec<_> = wanted.iter().map(|name| program.world.watch(name)).collect();
        say_gone(&program, &["y"]);
        program.world.network.pass(14 * SECOND);
        program.save();
        assert_eq!(heard(watches.last_mut().unwrap()), ["failed y: absent"], "{wanted:?}");
        let is_there = wanted.len() > 1;
        if is_there {
            assert_eq!(heard(&mut watches[0]), ["put x 1"]);
        }
        drop(watches);
        // Of its own name nobody said anything.
        let put = Some("put x 1".to_owned());
        assert_eq!(begins_anew(&mut program, &["x", "y"]), [put, None], "{wanted:?}");
    }
}
