//! A wildcard or glob that was not answered in time says nothing: it takes nothing of what is known, nor has it that that is so.

use super::*;

#[test]
fn what_a_wildcard_had_is_stale_while_a_server_says_nothing_of_it() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("*");
        program.save();
        drop(watch);
        program.top().be_silent(true);
        program.restart(protocol);
        let (mut watch, _other) = (program.world.watch("*"), program.world.watch_raw(EDS, "e"));
        speak(&program.top(), protocol, "e");
        program.world.network.pass(100 * SECOND);
        program.save();
        let said = heard(&mut watch);
        assert!(
            said.contains(&"put x 1".to_owned()) && !said.contains(&"removed x".to_owned()),
            "{protocol:?}: {said:?}"
        );
        assert!(watch.is_stale(), "{protocol:?}: nobody said that it is so");
        assert!(program.keeps("x"));
    });
}

#[test]
fn what_another_server_had_stays_where_the_one_that_counts_says_nothing_of_its_wildcard() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut program = Program::at(protocol, KEEPS, &[TOP, SECOND_SERVER]);
        program.world.put(CDS, "x", "1");
        let mut watch = program.world.watch("*");
        program.world.network.pass(SECOND);
        assert!(heard(&mut watch).contains(&"put x 1".to_owned()));
        program.save();
        let second = program.world.network.server(SECOND_SERVER);
        second.be_silent(true);
        program.top().go_down("away");
        let _other = program.world.watch_raw(EDS, "e");
        program.world.network.pass(100 * SECOND);
        speak(&second, protocol, "e");
        program.world.network.pass(100 * SECOND);
        program.save();
        assert!(!heard(&mut watch).contains(&"removed x".to_owned()), "{protocol:?}");
        assert!(program.keeps("x"), "{protocol:?}");
        second.go_down("away");
        drop(watch);
        program.restart(protocol);
        let mut again = program.world.watch("*");
        program.world.network.pass(SECOND);
        assert!(heard(&mut again).contains(&"put x 1".to_owned()), "{protocol:?}");
    }
}
