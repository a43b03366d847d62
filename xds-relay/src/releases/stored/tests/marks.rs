//! An order about what was looked at, where others do something meanwhile, or the store is away.

use super::*;

fn ann(act: Act) -> Order {
    Order::new(act, By::Person("ann".to_owned()), "because", now())
}

#[test]
fn what_another_relay_did_since_is_a_change_and_what_it_told_is_known() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut relay = Relay::start(store.clone());
    relay.publish(&content([(1, vec![1])])).unwrap();
    let mut other = Stored::open(store, SCOPE).unwrap();
    let seen = other.mark();
    assert_eq!(relay.stored.mark(), seen, "both tell the same");
    other.apply_at(&ann(Act::Freeze), &seen, &stages()).unwrap();
    // This one has not heard of it yet: it is so all the same.
    for act in [Act::Unfreeze, Act::Freeze, Act::Rollback { to: None }] {
        let error = relay.stored.apply_at(&ann(act), &seen, &stages()).unwrap_err();
        assert!(matches!(&error, StoredError::Changed { is } if *is == other.mark()), "{error}");
    }
    // Somebody saw it there, and orders here.
    let mut behind = Stored::open(relay.stored.store.clone(), SCOPE).unwrap();
    let at = behind.mark();
    relay.stored.apply_at(&ann(Act::Unfreeze), &at, &stages()).unwrap();
    let now = relay.stored.mark();
    behind.apply_at(&ann(Act::Freeze), &now, &stages()).unwrap();
    assert!(behind.control().frozen().is_some());
}

#[test]
fn a_mark_is_of_one_state_in_the_store_or_not() {
    let store = Memory::default();
    let mut relay = Relay::start(Arc::new(store.clone()));
    relay.publish(&content([(1, vec![1])])).unwrap();
    relay.publish(&content([(2, vec![1])])).unwrap();
    let before = relay.stored.mark();
    let away = || Arc::new(away::Away::after(&store, 0));
    let mut marks = vec![before.clone()];
    for act in [Act::Freeze, Act::Rollback { to: None }, Act::Hold] {
        let mut here = Stored::open(away(), SCOPE).unwrap();
        assert_eq!(here.mark(), before);
        let applied = here.apply_at(&ann(act.clone()), &before, &stages()).unwrap();
        assert!(!applied.is_kept);
        let error = here.apply_at(&ann(act), &before, &stages()).unwrap_err();
        assert!(matches!(error, StoredError::Changed { .. }), "{error}");
        assert_eq!(here.unsaved(), 1);
        marks.push(here.mark());
    }
    marks.sort();
    marks.dedup();
    assert_eq!(marks.len(), 4, "{marks:?}");
}
