//! What people order in a store that was put back to an earlier state, and what was ordered before that.

use super::put_back::{control_there, put_control};
use super::*;
use crate::releases::records::ControlRecord;
use crate::releases::sealed::{seal, unseal};
use crate::releases::stored::merged::Became;

/// A relay that knows all, and the control value that is put back.
struct PutBack {
    relay: Relay,
    store: Memory,
    before: Bytes,
}

/// By a person, each at another second.
fn ordered(act: Act, second: u64) -> Order {
    Order::new(act, By::Person("ann".to_owned()), "because", now() + Duration::from_secs(second))
}

impl PutBack {
    /// Of a relay with one release that is stable, after these orders.
    fn after(orders: impl IntoIterator<Item = Order>) -> Self {
        let store = Memory::default();
        let mut relay = Relay::start(Arc::new(store.clone()));
        relay.publish(&content([(1, vec![1])])).unwrap();
        let mut put_back = Self { relay, store, before: Bytes::new() };
        put_back.orders(orders);
        put_back.before = control_there(&put_back.store);
        put_back
    }

    /// What the store does not know when it is put back.
    fn orders(&mut self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            assert!(self.relay.stored.apply(&order, &stages()).unwrap().is_kept);
        }
    }

    /// Whoever starts then is ordered this, and then the relay notices.
    fn put_back(&mut self, orders: impl IntoIterator<Item = Order>) -> Vec<(Order, Became)> {
        put_control(&self.store, self.before.clone());
        let mut new = Stored::open(Arc::new(self.store.clone()), SCOPE).unwrap();
        for order in orders {
            assert!(new.apply(&order, &stages()).unwrap().is_kept);
        }
        self.relay.stored.refresh(&stages()).unwrap();
        assert!(self.relay.stored.went_back());
        self.relay.stored.put_control_back(&stages()).unwrap()
    }

    /// A version of the program writes the control value that knows nothing of what was ordered.
    fn is_written_by_an_old_version(&mut self) {
        let key = Keyspace::of(SCOPE).control();
        let mut record: ControlRecord = unseal(&key, &control_there(&self.store)).unwrap();
        (record.ordered, record.changes) = (Vec::new(), record.changes + 1);
        put_control(&self.store, seal(&key, &record));
        self.relay.stored.refresh(&stages()).unwrap();
    }

    fn is_frozen(&self) -> bool {
        self.relay.stored.base().frozen().is_some()
    }
}

#[test]
fn what_was_frozen_and_not_since_is_not_frozen_by_a_store_that_is_older_than_all_that_is_remembered() {
    let freeze = ordered(Act::Freeze, 1);
    let mut relays = PutBack::after([freeze.clone()]);
    relays.orders((1..41).flat_map(|at| [ordered(Act::Unfreeze, 2 * at), ordered(Act::Freeze, 2 * at + 1)]));
    relays.orders([ordered(Act::Unfreeze, 100)]);
    let told = relays.put_back([]);
    assert!(!relays.is_frozen());
    assert_eq!(told, [(freeze, Became::Doubtful)]);
}

#[test]
fn what_was_frozen_and_not_since_is_not_frozen_where_an_old_version_forgot_what_was_ordered() {
    for is_forgotten_before in [true, false] {
        let freeze = ordered(Act::Freeze, 1);
        let mut relays = PutBack::after([freeze.clone()]);
        if is_forgotten_before {
            relays.is_written_by_an_old_version();
            relays.before = control_there(&relays.store);
        }
        relays.orders([ordered(Act::Unfreeze, 2)]);
        if !is_forgotten_before {
            relays.is_written_by_an_old_version();
        }
        relays.orders([ordered(Act::Freeze, 3), ordered(Act::Unfreeze, 4)]);
        let told = relays.put_back([]);
        assert!(!relays.is_frozen(), "{is_forgotten_before}");
        assert_eq!(told, [(freeze, Became::Doubtful)], "{is_forgotten_before}");
    }
}

/// It begins to be remembered with the first write.
#[test]
fn what_is_ordered_in_a_store_that_an_old_version_wrote_last_holds() {
    let mut relays = PutBack::after([]);
    relays.is_written_by_an_old_version();
    relays.before = control_there(&relays.store);
    relays.orders([ordered(Act::Freeze, 1), ordered(Act::Unfreeze, 2)]);
    let freeze = ordered(Act::Freeze, 3);
    assert_eq!(relays.put_back([freeze.clone()]), [(freeze, Became::Holds)]);
    assert!(relays.is_frozen());
}

/// What is the candidate in the store was promoted since.
#[test]
fn what_is_rolled_back_in_the_store_is_though_it_is_stable_by_now() {
    for names in [true, false] {
        let mut relays = PutBack::after([]);
        let first = relays.relay.stored.base().stable();
        assert_eq!(relays.relay.publish(&content([(1, vec![2])])).unwrap(), Transition::Opened);
        relays.before = control_there(&relays.store);
        relays.orders([ordered(Act::Stage { at: 1 }, 1)]);
        let bad = relays.relay.stored.base().stable();
        assert!(bad.is_some() && bad != first);
        relays.orders([ordered(Act::Freeze, 3), ordered(Act::Unfreeze, 4)]);
        let rollback = ordered(Act::Rollback { to: first.filter(|_| names) }, 2);
        let told = relays.put_back([rollback.clone()]);
        assert_eq!(told, [(rollback, Became::Holds)], "{names}");
        let control = relays.relay.stored.base();
        assert_eq!((control.stable(), control.refused().last().copied()), (first, bad), "{names}");
    }
}

#[test]
fn what_nothing_is_done_for_is_told() {
    let mut relays = PutBack::after([ordered(Act::Freeze, 1)]);
    relays.orders([ordered(Act::Unfreeze, 2), ordered(Act::Freeze, 3)]);
    let unfreeze = ordered(Act::Unfreeze, 4);
    assert_eq!(relays.put_back([unfreeze.clone()]), [(unfreeze, Became::Nothing)]);
    assert!(relays.is_frozen());

    // Of a candidate that is none here any more.
    for act in [Act::Stage { at: 1 }, Act::Hold, Act::Rollback { to: None }] {
        let mut relays = PutBack::after([]);
        assert_eq!(relays.relay.publish(&content([(1, vec![2])])).unwrap(), Transition::Opened);
        relays.before = control_there(&relays.store);
        relays.orders([ordered(Act::Stage { at: 1 }, 1)]);
        assert_eq!(relays.relay.publish(&content([(1, vec![3])])).unwrap(), Transition::Opened);
        relays.orders([ordered(Act::Stage { at: 1 }, 2)]);
        let known = relays.relay.stored.base().clone();
        let order = ordered(act, 3);
        assert_eq!(relays.put_back([order.clone()]), [(order, Became::Nothing)]);
        assert_eq!(*relays.relay.stored.base(), known);
    }

    // What was taken back there is not missing here.
    let mut relays = PutBack::after([]);
    relays.orders([1, 3].into_iter().flat_map(|at| [ordered(Act::Freeze, at), ordered(Act::Unfreeze, at + 1)]));
    assert_eq!(relays.put_back([ordered(Act::Freeze, 5), ordered(Act::Unfreeze, 6)]), []);
    assert!(!relays.is_frozen());
}

#[test]
fn what_was_ordered_is_told_to_hold_once_that_is_written() {
    let mut relays = PutBack::after([]);
    relays.orders([ordered(Act::Freeze, 1), ordered(Act::Unfreeze, 2)]);
    put_control(&relays.store, relays.before.clone());
    let mut new = Stored::open(Arc::new(relays.store.clone()), SCOPE).unwrap();
    let freeze = ordered(Act::Freeze, 3);
    assert!(new.apply(&freeze, &stages()).unwrap().is_kept);
    let known = &mut relays.relay.stored;
    known.refresh(&stages()).unwrap();
    put_control(&relays.store, control_there(&relays.store));
    let contended = known.put_control_back(&stages());
    assert!(matches!(contended, Err(StoredError::Contended)), "{contended:?}");
    known.refresh(&stages()).unwrap();
    assert_eq!(known.put_control_back(&stages()).unwrap(), [(freeze, Became::Holds)]);
}
