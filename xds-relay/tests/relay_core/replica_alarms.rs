//! What relays that have their releases in one store tell where something is wrong with that.

use xds_relay::releases::{Act, Stages};
use xds_relay::state::{Op, Store as _};

use crate::support::replicas::Replicas;

#[test]
fn a_control_value_that_cannot_be_used_is_told_until_there_is_one_that_can() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "other"));
    relays.advance(5);
    let told = |relays: &Replicas, relay: usize| {
        let gauges = relays.world.relays[relay].core.gauges().releases["old-style"];
        (gauges.damaged, gauges.store_up)
    };
    let store = relays.store.lock().unwrap().clone();
    let is_control = |entry: &xds_relay::state::Entry| entry.key.ends_with("/ctl");
    let good = store.list("").unwrap().entries.into_iter().find(is_control).unwrap();
    let _ = store.commit(&[Op::put(&*good.key, "torn")], &[]).unwrap();
    relays.advance(20);
    for relay in [0, 1] {
        assert_eq!(told(&relays, relay), (1, false), "{relay}");
        let damaged = relays.world.relays[relay].core.released().scopes.remove(0).damaged;
        assert_eq!(damaged, [format!("{}: it is cut off", good.key)]);
    }
    assert_eq!(relays.held(clients), ["a@1"; 2], "what was known holds on");
    // One that does not hear, and reads it.
    relays.compact(0);
    relays.advance(1);
    assert_eq!(told(&relays, 0), (1, false));
    let _ = store.commit(&[Op::put(&*good.key, good.value)], &[]).unwrap();
    relays.advance(2);
    for relay in [0, 1] {
        assert_eq!(told(&relays, relay), (0, true), "{relay}");
        assert!(relays.world.relays[relay].core.released().scopes[0].damaged.is_empty());
    }
}

/// One has got a new configuration, and another one has not.
#[test]
fn relays_of_other_stages_are_told() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    relays.advance(5);
    let told = |relays: &Replicas| {
        [0, 1].map(|relay| {
            let core = &relays.world.relays[relay].core;
            let gauge = core.gauges().releases["old-style"].other_stages;
            assert_eq!(core.released().scopes[0].other_stages, gauge);
            gauge
        })
    };
    assert_eq!(told(&relays), [false; 2]);
    let publisher = relays.publisher();
    let other = 1 - publisher;
    let before = relays.store.lock().unwrap().list("").unwrap().revision;
    relays.roll_out_by(Stages::default(), other);
    relays.advance(2);
    assert!(told(&relays)[other], "what is there was written by the other one");
    assert_eq!(relays.store.lock().unwrap().list("").unwrap().revision, before, "nothing is written to say that");
    // Whoever writes says it, be it to the one that publishes.
    relays.order(other, Act::Freeze).unwrap();
    relays.advance(1);
    assert_eq!([told(&relays)[publisher], told(&relays)[other]], [true, false]);
    relays.order(publisher, Act::Unfreeze).unwrap();
    relays.advance(1);
    assert_eq!([told(&relays)[publisher], told(&relays)[other]], [false, true]);
    relays.roll_out_by(Stages::default(), publisher);
    relays.set(&["a@1"]);
    relays.advance(10);
    assert_eq!(told(&relays), [false; 2], "whoever publishes now said so");
}
