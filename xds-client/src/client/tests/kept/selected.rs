//! What is asked for with dynamic parameters (TP2), each way by itself, and what says how it is asked for.

use xds_matcher::draft::Subscription;
use xdstp_cache::{Selector, Variant};

use super::*;
use crate::client::tests::dpds::{DPDS, dpds, map};

#[test]
fn who_starts_while_every_server_is_away_has_what_was_asked_for_by_dpds() {
    let mut program = Program::new(Protocol::Delta);
    let name = xdstp("said", CDS, "x");
    let say = |program: &Program, version: &str, env: &str| {
        program.top().put(DPDS, &dpds("said"), version, &map(CDS, "env", env));
        program.world.network.settle();
    };
    for env in ["prod", "test"] {
        let variant = Variant::Constraints(format!("env={env}").parse().unwrap());
        program.top().put_variant(CDS, (&name, &variant), env, &message(&name, env));
    }
    say(&program, "1", "prod");
    let mut watch = program.world.watch(&name);
    assert_eq!(program.world.follow(&mut watch), [format!("put {name} prod")]);
    program.save();
    program.top().go_down("away");
    drop(watch);
    program.restart(Protocol::Delta);
    let mut watch = program.world.watch(&name);
    assert_eq!(
        program.world.follow(&mut watch),
        [format!("put {name} prod"), "ambient all: unreachable (away)".into()]
    );
    assert!(watch.is_stale());

    // It is not what counts once the server is back.
    program.top().come_up();
    say(&program, "2", "test");
    program.world.network.pass(60 * SECOND);
    assert_eq!(program.world.follow(&mut watch), ["cleared all".into(), format!("put {name} test")]);
    assert!(!watch.is_stale());
}

#[test]
fn what_was_asked_for_in_two_ways_is_there_in_each_and_in_no_other() {
    whatever(|mut program, protocol| {
        let name = xdstp("a", CDS, "x");
        for shard in ["1", "2"] {
            let variant = Variant::Constraints(format!("shard={shard} or exists(tag)").parse().unwrap());
            program.top().put_variant(CDS, (&name, &variant), shard, &message(&name, shard));
        }
        let watch = |program: &Program, shard: &str| {
            let watch = program.world.client.selecting([("shard", shard)]).watch(CDS, &name);
            program.world.network.settle();
            watch
        };
        let put = |shard: &str| format!("put {name} {shard}");
        let mut watches = ["1", "2"].map(|shard| watch(&program, shard));
        assert_eq!(watches.each_mut().map(heard), [[put("1")], [put("2")]], "{protocol:?}");
        program.save();
        program.top().go_down("away");
        drop(watches);
        program.restart(protocol);
        let mut watches = ["1", "2", "3"].map(|shard| watch(&program, shard));
        let [mut one, mut two, mut three] = watches.each_mut().map(heard);
        assert_eq!((one.remove(0), two.remove(0)), (put("1"), put("2")), "{protocol:?}");
        assert_eq!(three.remove(0), "failed all: unreachable (away)", "{protocol:?}");
        // What comes as it was kept, its variant too, is no news.
        program.top().come_up();
        program.world.network.pass(60 * SECOND);
        let told = watches.each_mut().map(heard);
        assert!(!told.iter().flatten().any(|told| told.starts_with("put")), "{protocol:?} {told:?}");
        assert!(watches.iter().take(2).all(|watch| !watch.is_stale()));
    });
}

/// Of the draft, whose variants have parameters.
#[test]
fn what_was_asked_for_with_constraints_is_there_as_the_variant_that_it_was() {
    let features = Features { draft_dynamic_parameters: true, ..KEEPS };
    let mut program = Program::of(Protocol::Delta, features);
    let name = xdstp("a", CDS, "x");
    let variant = Variant::Parameters([("shard", "3"), ("a, b", "{c}")].into_iter().collect());
    program.top().put_variant(CDS, (&name, &variant), "1", &message(&name, "1"));
    let by = |constraint: &str| Selector::from(Subscription::where_present(&constraint.parse().unwrap()).unwrap());
    let watch = |program: &Program| {
        let watch = program.world.client.selecting(by("shard in 0..5")).watch(CDS, &name);
        program.world.network.settle();
        watch
    };
    assert_eq!(heard(&mut watch(&program)), [format!("put {name} 1")]);
    let _held = watch(&program);
    program.save();
    program.top().go_down("away");
    program.restart(Protocol::Delta);
    let mut again = watch(&program);
    assert_eq!(heard(&mut again), [format!("put {name} 1"), "ambient all: unreachable (away)".into()]);
    // Others that would be served the same have not asked for it.
    let mut other = program.world.client.selecting(by("shard in 3..5")).watch(CDS, &name);
    program.world.network.settle();
    assert_eq!(heard(&mut other), ["failed all: unreachable (away)"]);
    program.top().come_up();
    program.world.network.pass(60 * SECOND);
    assert_eq!(heard(&mut again), ["cleared all"]);
}
