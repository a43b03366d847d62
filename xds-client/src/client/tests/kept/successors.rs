//! A scope that nobody uses goes, and another of the same names comes: what the first had noted is older.

use super::*;

const AFTER: u32 = 605;

/// Who watched it lets go, and the scope is dropped before what it noted was written.
fn sweep(program: &Program, watch: Watch<Cluster>) {
    drop(watch);
    program.world.network.settle();
    program.world.client.sweep(program.world.network.now());
}

#[test]
fn what_a_scope_noted_that_is_dropped_does_not_age_what_its_successor_has() {
    whatever(|program, protocol| {
        let name = xdstp("a", CDS, "x");
        program.world.put(CDS, &name, "1");
        let watch = program.world.watch(&name);
        program.save();
        sweep(&program, watch);
        let _again = program.world.watch(&name);
        program.save();
        program.world.network.pass(AFTER * SECOND);
        program.save();
        assert!(program.keeps(&name), "{protocol:?}");
    });
}

#[test]
fn what_a_scope_that_is_dropped_was_told_is_gone_is_there_again_for_its_successor() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut program = Program::of(protocol, DROPS);
        let [name, other] = ["x", "y"].map(str::to_owned);
        [&name, &other].into_iter().for_each(|name| program.world.put(CDS, name, "1"));
        let (watch, beside) = (program.world.watch(&name), program.world.watch(&other));
        program.save();
        program.top().remove(CDS, &name);
        program.world.network.settle();
        drop(beside);
        sweep(&program, watch);
        program.world.put(CDS, &name, "2");
        let watch = program.world.watch(&name);
        program.save();
        program.top().go_down("away");
        drop(watch);
        program.restart(protocol);
        let mut watch = program.world.watch(&name);
        assert_eq!(heard(&mut watch).first(), Some(&format!("put {name} 2")), "{protocol:?}");
    }
}
