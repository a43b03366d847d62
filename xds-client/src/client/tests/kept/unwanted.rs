//! What is kept and nobody asks for any more.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn a_name_that_nobody_asked_for_in_a_week_is_not_kept_whatever_else_is_asked_for() {
    whatever(|mut program, protocol| {
        for name in ["x", "y"] {
            program.world.put(CDS, name, "1");
        }
        let watches = ["x", "y"].map(|name| program.world.watch(name));
        program.save();
        drop(watches);
        for day in 1..=8 {
            program.world.network.pass(DAY);
            program.restart(protocol);
            assert_eq!(program.keeps("x"), day < 7, "{protocol:?}: on day {day}");
            let _y = program.world.watch("y");
            program.world.network.pass(SECOND);
            program.save();
        }
        program.top().go_down("away");
        program.restart(protocol);
        let [mut x, mut y] = ["x", "y"].map(|name| program.world.watch(name));
        assert_eq!(heard(&mut x), ["failed all: unreachable (away)"], "{protocol:?}");
        assert_eq!(heard(&mut y).first().map(String::as_str), Some("put y 1"), "{protocol:?}");
    });
}

#[test]
fn what_is_asked_for_in_a_run_of_weeks_is_kept_as_long_as_it_runs() {
    let mut program = Program::new(Protocol::Delta);
    program.world.put(CDS, "x", "1");
    let watch = program.world.watch("x");
    program.save();
    drop(watch);
    program.restart(Protocol::Delta);
    let watch = program.world.watch("x");
    for _ in 0..30 {
        program.world.network.pass(DAY);
        program.save();
    }
    program.top().go_down("away");
    drop(watch);
    program.restart(Protocol::Delta);
    assert_eq!(heard(&mut program.world.watch("x")).first().map(String::as_str), Some("put x 1"));
}

#[test]
fn who_lets_go_of_what_was_kept_while_its_server_is_away_has_nobody_asked_and_it_kept() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.save();
        program.top().go_down("away");
        drop(watch);
        program.restart(protocol);
        let opened = program.top().opened();
        assert_eq!(heard(&mut program.world.watch("x")).first().map(String::as_str), Some("put x 1"));
        // The first look sees that nobody is left, and the second that nobody came.
        for _ in 0..2 {
            program.world.client.sweep(program.world.network.now());
            program.world.network.pass(200 * SECOND);
            program.save();
        }
        program.top().come_up();
        program.world.network.pass(200 * SECOND);
        assert_eq!(program.top().opened(), opened, "{protocol:?}: nobody is asked for nothing");
        program.top().go_down("away");
        program.restart(protocol);
        let mut again = program.world.watch("x");
        assert_eq!(heard(&mut again).first().map(String::as_str), Some("put x 1"), "{protocol:?}");
    });
}
