//! The store fails: at any moment, for good or for a while.

use super::*;

/// A store that does so many commits, and then none.
#[derive(Clone)]
pub(super) struct Away {
    inner: Memory,
    pub(super) left: Arc<AtomicI64>,
}

impl Away {
    pub(super) fn after(inner: &Memory, commits: i64) -> Self {
        Self { inner: inner.clone(), left: Arc::new(AtomicI64::new(commits)) }
    }

    pub(super) fn is_back(&self) {
        self.left.store(i64::MAX, Ordering::Relaxed);
    }
}

impl Store for Away {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(StoreError::Gone);
        }
        self.inner.commit(ops, compares)
    }
}

/// Enough for several batches, with bodies in common with what was there before, and without some of those.
fn three() -> [Content; 3] {
    [0, 1, 2].map(|number: u8| content((0..250).map(|name| (name, vec![(name / 2) as u8 + number * 60]))))
}

fn saved_by(store: &Memory, contents: &[Content]) -> Vec<String> {
    let mut relay = Relay::start(Arc::new(store.clone()));
    contents.iter().for_each(|content| _ = relay.publish(content).unwrap());
    // The log has an entry more for each start.
    keys(store).into_iter().filter(|key| !key.contains("/log/")).collect()
}

#[test]
fn a_crash_between_any_two_commits_leaves_what_was_there_and_nothing_behind() {
    let [one, two, three] = three();
    let expected = saved_by(&Memory::default(), &[one.clone(), two.clone()]);
    let mut crashes = 0;
    for commits in 1.. {
        let store = Memory::default();
        saved_by(&store, std::slice::from_ref(&one));
        let away = Away::after(&store, commits);
        let mut relay = Relay::start(Arc::new(away));
        if relay.publish(&three).is_ok() {
            break;
        }
        crashes += 1;
        drop(relay);

        let mut relay = Relay::start(Arc::new(store.clone()));
        assert_eq!(relay.stored.control().stable(), Some(manifest(&one).release()));
        assert_eq!(relay.stored.damaged(), []);
        relay.check(&one);
        let whole = manifest(&three).release();
        let is_whole = relay.stored.has(whole);
        if is_whole {
            relay.check(&three);
            // It would go when it is old: whatever it alone has goes as if it was.
            relay.stored.releases.remove(&whole);
        }
        relay.publish(&two).unwrap();
        relay.check(&two);
        drop(relay);
        let mut left = saved_by(&store, std::slice::from_ref(&two));
        left.retain(|key| !is_whole || !key.ends_with(&whole.to_string()));
        assert_eq!(left, expected, "after {commits} commits");
    }
    assert!(crashes > 5, "{crashes}");
}

#[test]
fn a_save_that_failed_succeeds_when_the_store_is_back() {
    let [one, two, _] = three();
    let mut failures = 0;
    for commits in 0.. {
        let away = Away::after(&Memory::default(), i64::MAX);
        let mut relay = Relay::start(Arc::new(away.clone()));
        relay.publish(&one).unwrap();
        away.left.store(commits, Ordering::Relaxed);
        match relay.publish(&two) {
            Ok(_) => break,
            Err(StoredError::Store(_)) => failures += 1,
            Err(error) => panic!("{error}"),
        }
        away.is_back();
        assert_eq!(relay.publish(&two).unwrap(), Transition::Opened);
        [&one, &two].iter().for_each(|content| relay.check(content));
    }
    assert!(failures >= 4, "{failures}");
}

#[test]
fn what_takes_back_is_done_while_the_store_is_away_and_nothing_else_is() {
    let [one, two, _] = three();
    let away = Away::after(&Memory::default(), i64::MAX);
    let mut relay = Relay::start(Arc::new(away.clone()));
    relay.publish(&one).unwrap();
    relay.publish(&two).unwrap();
    let (first, second) = (manifest(&one).release(), manifest(&two).release());
    away.left.store(0, Ordering::Relaxed);
    for act in [Act::Stage { at: 1 }, Act::Publish { release: first, removes_much: false }] {
        assert!(matches!(relay.order(act), Err(StoredError::Store(_))));
    }
    assert_eq!(relay.stored.control().candidate().map(|candidate| candidate.release), Some(second));
    for (act, transition) in [
        (Act::Halt { release: second, then: OnHalt::Hold }, Transition::Halted),
        (Act::Rollback { to: None }, Transition::RolledBack),
        (Act::Freeze, Transition::Frozen),
    ] {
        let by =
            if matches!(act, Act::Halt { .. }) { By::Publisher(relay.publisher) } else { By::Person("ann".to_owned()) };
        let applied = relay.stored.apply(&Order::new(act, by, "", now()), &stages()).unwrap();
        assert_eq!((applied.transition, applied.is_kept), (transition, false));
    }
    assert!(matches!(relay.order(Act::Unfreeze), Err(StoredError::Store(_))));
    assert!(relay.stored.flush(&stages()).is_err());
    assert!(relay.stored.control().frozen().is_some());
    assert_eq!(relay.stored.control().refused(), [second]);

    // Somebody else was faster: what they did stands, and so does what was done here.
    let other = Away { left: Arc::new(AtomicI64::new(i64::MAX)), ..away.clone() };
    let mut other = Relay { stored: Stored::open(Arc::new(other), SCOPE).unwrap(), publisher: relay.publisher };
    other.order(Act::Stage { at: 1 }).unwrap();
    assert_eq!(other.stored.control().stable(), Some(second));
    away.is_back();
    assert!(relay.stored.flush(&stages()).unwrap());
    assert!(!relay.stored.flush(&stages()).unwrap());
    let control = Stored::open(Arc::new(away), SCOPE).unwrap().control().clone();
    assert_eq!(&control, relay.stored.control());
    assert!(control.frozen().is_some());
    assert_eq!(control.stable(), Some(second), "that is what the rollback without a name goes to now");
}

#[test]
fn so_much_waits_for_the_store_and_no_more() {
    let away = Away::after(&Memory::default(), i64::MAX);
    let mut relay = Relay::start(Arc::new(away.clone()));
    let contents: Vec<_> = (0..2).map(|number| content([(number, vec![1])])).collect();
    let releases: Vec<_> = contents.iter().map(|content| manifest(content).release()).collect();
    contents.iter().for_each(|content| _ = relay.publish(content).unwrap());
    away.left.store(0, Ordering::Relaxed);
    let done =
        (0..200).take_while(|at| relay.order(Act::Rollback { to: Some(releases[(at + 1) % 2]) }).is_ok()).count();
    assert_eq!(done, 64);
}
