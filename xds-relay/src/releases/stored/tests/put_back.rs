//! A store that is put back to an earlier state.

use std::sync::atomic::AtomicBool;

use super::*;

/// One that may not answer.
#[derive(Clone, Default)]
struct Silent {
    inner: Memory,
    is_silent: Arc<AtomicBool>,
}

impl Store for Silent {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        if self.is_silent.load(Ordering::Relaxed) {
            return Err(StoreError::Away("it is silent".to_owned()));
        }
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.inner.commit(ops, compares)
    }
}

pub(super) fn control_there(store: &dyn Store) -> Bytes {
    store.list(&Keyspace::of(SCOPE).control()).unwrap().entries.remove(0).value
}

pub(super) fn put_control(store: &dyn Store, value: Bytes) {
    let _ = store.commit(&[Op::put(Keyspace::of(SCOPE).control(), value)], &[]).unwrap();
}

#[test]
fn what_is_known_is_given_up_only_for_what_can_be_read() {
    let store = Silent::default();
    let mut relay = Relay::start(Arc::new(store.clone()));
    relay.publish(&content([(1, vec![1])])).unwrap();
    let before = control_there(&store);
    relay.order(Act::Freeze).unwrap();
    let (known, count) = (relay.stored.base().clone(), relay.stored.count());
    put_control(&store, before);
    relay.stored.refresh(&stages()).unwrap();
    assert!(relay.stored.went_back());
    store.is_silent.store(true, Ordering::Relaxed);
    assert!(relay.stored.give_in(&stages()).is_err());
    assert!(relay.stored.went_back());
    assert_eq!((relay.stored.base(), relay.stored.count()), (&known, count));
    store.is_silent.store(false, Ordering::Relaxed);
    let refused = relay.order(Act::Unfreeze);
    assert!(matches!(refused, Err(StoredError::PutBack)), "{refused:?}");
    relay.stored.give_in(&stages()).unwrap();
    assert!(!relay.stored.went_back() && relay.stored.control().frozen().is_none());

    // Where there is nothing, nothing is stable.
    let _ = store.commit(&[Op::delete(Keyspace::of(SCOPE).control())], &[]).unwrap();
    relay.stored.refresh(&stages()).unwrap();
    assert!(relay.stored.went_back() && relay.stored.base().stable().is_some());
    relay.stored.give_in(&stages()).unwrap();
    assert_eq!((relay.stored.base(), relay.stored.control()), (&Control::default(), &Control::default()));
}

/// Who does not know that it was unfrozen since cannot say that nothing is to be done.
#[test]
fn what_is_so_already_is_ordered_for_whoever_knows_more() {
    let store = Memory::default();
    let mut knows_more = Relay::start(Arc::new(store.clone()));
    knows_more.publish(&content([(1, vec![1])])).unwrap();
    let before = control_there(&store);
    knows_more.order(Act::Freeze).unwrap();
    let mut knows_less = Relay::start(Arc::new(store.clone()));
    knows_more.order(Act::Unfreeze).unwrap();
    put_control(&store, before);

    let freeze = Order::new(Act::Freeze, By::Person("bob".to_owned()), "because", now());
    assert!(!knows_less.stored.apply(&freeze, &stages()).unwrap().is_kept, "others may know more");
    let refused = knows_less.order(Act::Unfreeze);
    assert!(matches!(refused, Err(StoredError::PutBack)), "{refused:?}");
    knows_more.stored.refresh(&stages()).unwrap();
    assert!(knows_more.stored.went_back() && knows_more.stored.control().frozen().is_none());
    knows_more.stored.put_control_back(&stages()).unwrap();
    knows_less.stored.refresh(&stages()).unwrap();
    assert!(knows_less.stored.control().frozen().is_some(), "it was ordered last");
    knows_less.stored.flush(&stages()).unwrap();
    knows_more.stored.refresh(&stages()).unwrap();
    assert!(knows_more.stored.control().frozen().is_some());
}

/// It is noticed as a release is written.
#[test]
fn nothing_is_published_into_a_store_that_was_just_put_back() {
    let store = Memory::default();
    let mut relay = Relay::start(Arc::new(store.clone()));
    relay.publish(&content([(1, vec![1])])).unwrap();
    let before = control_there(&store);
    relay.order(Act::Freeze).unwrap();
    put_control(&store, before);
    let there = keys(&store);
    let done = relay.publish(&content([(1, vec![2])]));
    assert!(matches!(done, Err(StoredError::PutBack)), "{done:?}");
    assert_eq!(keys(&store), there);
    assert!(relay.stored.went_back());
}

/// It writes before it hears of it, and what it writes counts as all that was done until then.
#[test]
fn who_publishes_can_read_what_others_put_back_meanwhile() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut relay = Relay::start(store.clone());
    relay.publish(&content([(1, vec![1])])).unwrap();
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    let mut other = Stored::open(store.clone(), SCOPE).unwrap();
    let lost = content([(1, vec![7])]);
    let body = |item: &Item| lost.get(&item.name).map(|body| frame(body).any().clone());
    other.put_back(&manifest(&lost), "test", now(), &body).unwrap();
    relay.publish(&content([(1, vec![2])])).unwrap();
    let to = manifest(&lost).release();
    let roll_back = Order::new(Act::Rollback { to: Some(to) }, By::Person("ann".to_owned()), "", now());
    other.refresh(&stages()).unwrap();
    other.apply(&roll_back, &stages()).unwrap();
    relay.stored.hear(&watch.next(Duration::ZERO).unwrap(), &stages()).1.unwrap();
    assert_eq!(relay.stored.control().stable(), Some(to));
    let read = relay.stored.content(to, &|_| None).map(|(manifest, _)| manifest);
    assert_eq!(read.unwrap(), manifest(&lost));
}

#[test]
fn a_bad_control_value_that_is_gone_is_told_no_more() {
    for writes in [false, true] {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let mut stored = Stored::open(store.clone(), SCOPE).unwrap();
        put_control(&*store, "torn".into());
        assert!(stored.refresh(&stages()).is_err());
        assert!(stored.bad_control().is_some());
        let _ = store.commit(&[Op::delete(Keyspace::of(SCOPE).control())], &[]).unwrap();
        if writes {
            let take_over = Order::new(Act::TakeOver, By::Instance(Instance(1)), "", now());
            stored.apply(&take_over, &stages()).unwrap();
        } else {
            stored.refresh(&stages()).unwrap();
        }
        assert_eq!(stored.bad_control(), None, "{writes}");
    }
}
