//! A release that is one commit, with what it replaces and all that is said of it.

use std::sync::Mutex;

use super::away::Away;
use super::*;

/// Two stages that last for nothing.
fn no_stages() -> Stages {
    Stages::new([(); 2].map(|()| Stage { who: Who::Percent("100%".parse().unwrap()), hold: Duration::ZERO }))
}

/// Each has one thing that no other one has, and one that those near it have.
fn numbered(number: u8) -> Content {
    content([(0, vec![number]), (1, vec![number / 8]), (2, vec![0])])
}

fn all(store: &dyn Store) -> Vec<(String, Bytes)> {
    store.list("").unwrap().entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

/// What somebody else does to a store.
type Meddling = Box<dyn Fn(&Memory) + Send>;

/// What is written as each commit.
#[derive(Default)]
struct Written {
    inner: Memory,
    commits: Mutex<Vec<Vec<Op>>>,
    /// How often it was asked for a body.
    asked: AtomicI64,
    /// What is done before the next commit, once.
    before: Mutex<Option<Meddling>>,
}

impl Store for Written {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.asked.fetch_add(prefix.contains("/body/").into(), Ordering::Relaxed);
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        if let Some(before) = self.before.lock().unwrap().take() {
            before(&self.inner);
        }
        let done = self.inner.commit(ops, compares)?;
        if matches!(done, Commit::Done(_)) {
            self.commits.lock().unwrap().push(ops.to_vec());
        }
        Ok(done)
    }
}

/// Written as every version before wrote it, be it in one commit or in several.
#[test]
fn what_is_written_at_once_is_what_is_written_one_after_the_other() {
    let (one, other) = (Arc::new(Written::default()), Arc::new(Written::default()));
    let [mut at_once, mut by_steps] = [&one, &other].map(|store| Relay::start(store.clone()));
    for number in 0..60 {
        let content = numbered(number);
        let before = one.commits.lock().unwrap().len();
        let done = at_once.publish_by(&content, &no_stages(), true).unwrap();
        assert_eq!(one.commits.lock().unwrap().len() - before, 1);

        let release = by_steps.save(&content).unwrap();
        let mut expected = Vec::new();
        let mut order = |act| {
            let order = Order::new(act, By::Publisher(by_steps.publisher), "because", now());
            expected.push(by_steps.stored.apply(&order, &no_stages()).unwrap().transition);
        };
        order(Act::Publish { release, removes_much: false });
        if number > 0 {
            (0..2).for_each(|_| order(Act::Advance { release }));
            assert_eq!(expected, [Transition::Opened, Transition::InStage(1), Transition::Promoted]);
        }
        assert_eq!(done, expected);
        assert_eq!(at_once.stored.control(), by_steps.stored.control());
        assert_eq!(all(&one.inner), all(&other.inner), "{number}");
        at_once.check(&content);
    }
}

/// One that goes back to what is kept says so, and what is as it is says nothing.
#[test]
fn a_release_that_is_kept_is_published_by_one_commit_and_what_is_stable_by_none() {
    let store = Arc::new(Written::default());
    let mut relay = Relay::start(store.clone());
    for number in [1, 2, 1, 1] {
        let before = store.commits.lock().unwrap().len();
        let done = relay.publish_by(&numbered(number), &no_stages(), true).unwrap();
        let commits = store.commits.lock().unwrap()[before..].to_vec();
        let is_unchanged = done == [Transition::Unchanged];
        assert_eq!(commits.len(), usize::from(!is_unchanged), "{number}: {done:?}");
    }
    assert_eq!(relay.stored.control().stable(), Some(manifest(&numbered(1)).release()));
    assert_eq!(store.commits.lock().unwrap().last().unwrap().len(), 4, "the control value, and three that were done");
}

/// As much as fits is one commit, and what is more is content first, in pieces, and then the one value that names it.
#[test]
fn no_commit_is_too_large_and_none_names_what_is_not_there() {
    let large = |size: usize| content((0..3).map(|name| (name, vec![name as u8; size])));
    let many = |names: usize| content((0..names).map(|name| (name, name.to_be_bytes().to_vec())));
    let sizes = (10..120).step_by(3).map(many).chain([100 << 10, 300 << 10, 360 << 10, 800 << 10].map(large));
    let mut counts = Vec::new();
    for content in sizes {
        let store = Arc::new(Written::default());
        let mut relay = Relay::start(store.clone());
        relay.publish(&numbered(1)).unwrap();
        store.commits.lock().unwrap().clear();
        let done = relay.publish_by(&content, &no_stages(), true).unwrap();
        assert_eq!(done.last(), Some(&Transition::Promoted));
        relay.check(&content);
        let commits = std::mem::take(&mut *store.commits.lock().unwrap());
        for ops in &commits {
            let value = |op: &Op| if let Op::Put(_, value) = op { value.len() } else { 0 };
            let bytes: usize = ops.iter().map(|op| op.key().len() + value(op)).sum();
            assert!(ops.len() <= 100 && bytes <= 1 << 20, "{} ops, {bytes} bytes", ops.len());
        }
        let names_it = |ops: &[Op]| ops.iter().any(|op| op.key().ends_with("/ctl"));
        let (last, before) = commits.split_last().unwrap();
        assert!(names_it(last) && !before.iter().any(|ops| names_it(ops)));
        // All that was put is there, whatever else is in that commit.
        let puts: usize = commits.iter().map(Vec::len).sum();
        let is_all = puts <= 100 && content.values().map(Vec::len).sum::<usize>() < 1_000_000;
        assert_eq!(commits.len() == 1, is_all, "{puts} ops in {} commits", commits.len());
        counts.push(commits.len());
    }
    assert!(counts.contains(&1) && counts.iter().any(|count| *count > 2), "{counts:?}");
}

#[test]
fn who_orders_meanwhile_is_heard_before_a_release_goes_on() {
    let person = |act: Act| {
        move |store: &Memory| {
            let order = Order::new(act.clone(), By::Person("ann".to_owned()), "", now());
            Stored::open(Arc::new(store.clone()), SCOPE).unwrap().apply(&order, &no_stages()).unwrap();
        }
    };
    let take_over = |store: &Memory| {
        let order = Order::new(Act::TakeOver, By::Instance(Instance(2)), "", now());
        Stored::open(Arc::new(store.clone()), SCOPE).unwrap().apply(&order, &no_stages()).unwrap();
    };
    let first = manifest(&numbered(1)).release();
    let before: [(&str, Meddling); 3] = [
        ("it is frozen", Box::new(person(Act::Freeze))),
        ("another one is stable", Box::new(person(Act::Rollback { to: Some(first) }))),
        ("another one publishes", Box::new(take_over)),
    ];
    for (why, before) in before {
        let store = Arc::new(Written::default());
        let mut relay = Relay::start(store.clone());
        for number in [1, 2] {
            relay.publish_by(&numbered(number), &no_stages(), true).unwrap();
        }
        *store.before.lock().unwrap() = Some(before);
        let done = relay.publish_by(&numbered(3), &no_stages(), true);
        let there = Stored::open(store.clone(), SCOPE).unwrap();
        let third = manifest(&numbered(3)).release();
        match why {
            "it is frozen" => {
                assert_eq!(done.unwrap(), [Transition::Waits]);
                assert_eq!(there.control().candidate().map(|candidate| candidate.release), Some(third));
                assert_eq!(there.control().stable(), Some(manifest(&numbered(2)).release()));
            }
            "another one is stable" => {
                assert!(matches!(done, Err(StoredError::Contended)), "{done:?}");
                assert_eq!((there.control().stable(), there.has(third)), (Some(first), false));
                // Whoever orders has looked at that.
                let done = relay.publish_by(&numbered(3), &no_stages(), true).unwrap();
                assert_eq!(done.last(), Some(&Transition::Promoted));
            }
            _ => {
                assert!(matches!(done, Err(StoredError::Control(ControlError::NotThePublisher))), "{done:?}");
                assert!(!there.has(third) && there.control().candidate().is_none());
            }
        }
        assert_eq!(there.damaged(), []);
        let now = Stored::open(store, SCOPE).unwrap();
        assert_eq!(now.control(), relay.stored.control(), "{why}");
    }
}

/// What a person was told is done comes before what the origin has.
#[test]
fn what_waits_for_the_store_is_told_before_a_release_is() {
    let away = Away::after(&Memory::default(), i64::MAX);
    let mut relay = Relay::start(Arc::new(away.clone()));
    relay.publish_by(&numbered(1), &no_stages(), true).unwrap();
    away.left.store(0, Ordering::Relaxed);
    relay.order(Act::Freeze).unwrap();
    assert!(relay.publish_by(&numbered(2), &no_stages(), true).is_err());
    away.is_back();
    assert_eq!(relay.publish_by(&numbered(2), &no_stages(), true).unwrap(), [Transition::Waits]);
    let there = Stored::open(Arc::new(away), SCOPE).unwrap();
    assert_eq!(there.control(), relay.stored.control());
    let log: Vec<_> = there.log().unwrap().into_iter().map(|entry| (entry.number, entry.what)).collect();
    let what = ["took over", "promoted", "frozen", "waits"];
    assert_eq!(log, (0..).zip(what.map(str::to_owned)).collect::<Vec<_>>());
}

/// Whoever wrote it has not heard that it is there, takes it again, and removes nothing of it.
#[test]
fn what_was_written_and_nobody_heard_it_is_not_written_again() {
    struct Mute(Memory, AtomicI64);
    impl Store for Mute {
        fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            self.0.list(prefix)
        }
        fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
            self.0.watch(prefix, after)
        }
        fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
            let done = self.0.commit(ops, compares)?;
            let is_mute = self.1.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_mute { Err(StoreError::Unsure("it lost its voice".to_owned())) } else { Ok(done) }
        }
    }
    let store = Arc::new(Mute(Memory::default(), AtomicI64::new(0)));
    let mut relay = Relay::start(store.clone());
    for number in 0..30 {
        store.1.store(1, Ordering::Relaxed);
        let lost = relay.publish_by(&numbered(number), &no_stages(), true);
        assert!(matches!(lost, Err(StoredError::Store(StoreError::Unsure(_)))), "{lost:?}");
        let there = all(&store.0);
        assert_eq!(relay.publish_by(&numbered(number), &no_stages(), true).unwrap(), [Transition::Unchanged]);
        assert_eq!(all(&store.0), there);
        relay.check(&numbered(number));
    }
}

/// A store may tell the parts of a revision in any order.
#[test]
fn who_hears_of_a_release_knows_all_of_it_in_whatever_order_it_is_told() {
    for turned in 0..12 {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let mut relay = Relay::start(store.clone());
        relay.publish_by(&numbered(0), &no_stages(), true).unwrap();
        let mut other = Stored::open(store.clone(), SCOPE).unwrap();
        other.share(&no_stages());
        let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
        for number in 1..50 {
            let content = numbered(number);
            relay.publish_by(&content, &no_stages(), true).unwrap();
            let mut events = watch.next(Duration::ZERO).unwrap();
            assert!(events.iter().all(|event| event.revision == events[0].revision));
            let by = turned % events.len();
            events.rotate_left(by);
            if turned % 2 == 1 {
                events.reverse();
            }
            let (_, heard) = other.hear(&events, &no_stages());
            heard.unwrap();
            let release = manifest(&content).release();
            assert_eq!((other.control(), other.damaged()), (relay.stored.control(), &[][..]));
            assert_eq!(other.control().stable(), Some(release));
            let (of_other, bodies) = other.content(release, &|_| None).unwrap();
            assert_eq!((of_other, bodies.len()), (manifest(&content), 3));
            assert_eq!(other.releases(), relay.stored.releases());
        }
    }
}

/// What was damaged as it was heard is not damaged any more once it is there as it is to be.
#[test]
fn what_is_put_as_it_was_is_damaged_no_more() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut relay = Relay::start(store.clone());
    relay.publish(&numbered(0)).unwrap();
    let mut other = Stored::open(store.clone(), SCOPE).unwrap();
    other.share(&stages());
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    for kind in ["/part/", "/rel/"] {
        let entries = store.list("").unwrap().entries;
        let entry = entries.into_iter().find(|entry| entry.key.contains(kind)).unwrap();
        for (value, is_damaged) in [(Bytes::from_static(b"torn"), true), (entry.value.clone(), false)] {
            let _ = store.commit(&[Op::put(&*entry.key, value)], &[]).unwrap();
            other.hear(&watch.next(Duration::ZERO).unwrap(), &stages()).1.unwrap();
            assert_eq!(other.damaged().len(), usize::from(is_damaged), "{kind}");
        }
    }
}

/// Each body that goes is asked for once.
#[test]
fn what_is_to_go_is_looked_for_once_whatever_fits() {
    for (names, size) in [(95, 1), (1, 2 << 20)] {
        let store = Arc::new(Written::default());
        let mut relay = Relay::start(store.clone());
        // The first ones have many bodies each that nobody has later.
        for number in 0..20_u8 {
            let name = |name: usize| (name, vec![number, name as u8]);
            relay.publish_by(&content((0..40).map(name)), &no_stages(), true).unwrap();
        }
        store.asked.store(0, Ordering::Relaxed);
        let large = content((0..names).map(|name| (name, vec![name as u8; size])));
        relay.publish_by(&large, &no_stages(), true).unwrap();
        assert_eq!(store.asked.load(Ordering::Relaxed), 40, "{names} of {size}");
        relay.check(&large);
    }
    // It fits, and what goes does not.
    let store = Arc::new(Written::default());
    let mut relay = Relay::start(store.clone());
    for number in 0..20_u8 {
        let names = if number == 0 { 90 } else { 1 };
        let name = |name: usize| (name, vec![number, name as u8]);
        relay.publish_by(&content((0..names).map(name)), &no_stages(), true).unwrap();
    }
    store.asked.store(0, Ordering::Relaxed);
    relay.publish_by(&numbered(77), &no_stages(), true).unwrap();
    assert_eq!(store.asked.load(Ordering::Relaxed), 90);
}
