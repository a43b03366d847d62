//! What relays that have their releases in one store tell where something is wrong with that.

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
