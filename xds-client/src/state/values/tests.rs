//! Values that are kept in a store that fails, goes, and is opened late.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;

use crate::federation::lock;
use crate::state::{
    Commit, Compare, Identities, KeptChange, KeptValue, KeptValues, Listing, Memory, Op, Revision, State, Store,
    StoreError, Watch,
};

const DAY: u64 = 24 * 3600;
const WELL: u8 = 0;
const FULL: u8 = 1;
const GONE: u8 = 2;

/// A store that is full or gone at times.
#[derive(Clone, Default)]
struct Disk {
    memory: Arc<Mutex<Memory>>,
    is: Arc<AtomicU8>,
}

impl Disk {
    fn memory(&self) -> Memory {
        lock(&self.memory).clone()
    }

    fn names(&self) -> Vec<String> {
        let entries = self.memory().list("xds-relay/v1/value/").unwrap().entries;
        entries.into_iter().map(|entry| entry.key.rsplit_once('/').unwrap().1.to_owned()).collect()
    }
}

impl Store for Disk {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.memory().list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.memory().watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        match self.is.load(Ordering::SeqCst) {
            FULL => Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into()),
            // There is another in its place.
            GONE => {
                self.is.store(WELL, Ordering::SeqCst);
                Err(StoreError::Gone)
            }
            _ => self.memory().commit(ops, compares),
        }
    }
}

/// A program that keeps values, and what it was given.
struct Program {
    state: State,
    values: Arc<KeptValues>,
    given: Arc<Mutex<BTreeMap<String, String>>>,
    /// Since it began, in seconds.
    at: u64,
}

impl Program {
    fn start(disk: &Disk, at: u64) -> Self {
        let (disk, identities) = (disk.clone(), Identities::new(vec![None], None, String::new()));
        let state = State::later(move || Ok(disk.clone()), identities, None, Instant::now(), wall(at));
        let given = Arc::<Mutex<BTreeMap<String, String>>>::default();
        let all = given.clone();
        let values = state.keep_values(0, &["kv"], "kv", move |kept| {
            let text = |value: &KeptValue| String::from_utf8_lossy(&value.value).into_owned();
            lock(&all).extend(kept.iter().map(|(key, value)| (key.clone(), text(value))));
        });
        Self { state, values, given, at }
    }

    fn put(&self, key: &str, value: &str) {
        self.values.change([(key.to_owned(), KeptChange::Put(KeptValue::new(value.to_owned(), "")))]);
    }

    fn keep(&mut self, seconds: u64) -> Result<usize, StoreError> {
        self.at += seconds;
        let now = Instant::now() + Duration::from_secs(self.at);
        self.state.keep(&[], now, wall(self.at)).map(|saved| saved.keys)
    }

    fn remove(&self, key: &str) {
        self.values.change([(key.to_owned(), KeptChange::Remove)]);
    }

    fn given(&self) -> Vec<String> {
        lock(&self.given).iter().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn wall(at: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + at)
}

#[test]
fn what_a_store_did_not_take_is_written_once_it_does() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    program.put("a", "1");
    program.keep(1).unwrap();
    disk.is.store(FULL, Ordering::SeqCst);
    program.put("b", "1");
    program.values.change([("a".to_owned(), KeptChange::Remove)]);
    assert!(program.keep(1).is_err());
    program.put("c", "1");
    assert!(program.keep(1).is_err());
    assert_eq!(disk.names(), ["a"]);
    disk.is.store(WELL, Ordering::SeqCst);
    program.keep(1).unwrap();
    program.keep(1).unwrap();
    assert_eq!(disk.names(), ["b", "c"]);
    assert_eq!(program.keep(1).unwrap(), 0, "nothing has changed");
}

#[test]
fn a_store_that_was_removed_is_written_anew_with_all_that_is_known() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    ["a", "b"].iter().for_each(|key| program.put(key, "1"));
    program.keep(1).unwrap();
    *lock(&disk.memory) = Memory::default();
    disk.is.store(GONE, Ordering::SeqCst);
    program.put("c", "1");
    assert!(program.keep(1).is_err());
    program.keep(11).unwrap();
    assert_eq!(disk.names(), ["a", "b", "c"]);
    assert_eq!(program.given(), [""; 0]);
}

#[test]
fn what_was_kept_stays_until_all_was_heard_and_then_what_is_not_there_goes() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    ["a", "b", "c"].iter().for_each(|key| program.put(key, "1"));
    program.keep(1).unwrap();
    let mut program = Program::start(&disk, 10);
    program.keep(1).unwrap();
    assert_eq!(program.given(), ["a=1", "b=1", "c=1"]);
    assert!(program.state.has_read(0) && !program.state.has_read(1));
    program.put("a", "2");
    program.keep(1).unwrap();
    assert_eq!(disk.names(), ["a", "b", "c"]);
    program.values.complete(|key| key != "b");
    program.keep(1).unwrap();
    assert_eq!(disk.names(), ["a", "c"]);
}

/// It was not open as all was heard, which nobody could compare with it.
#[test]
fn what_is_read_late_stays_unless_it_was_said_to_be_gone_and_is_given_all_the_same() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    ["a", "b", "c"].iter().for_each(|key| program.put(key, "1"));
    program.keep(1).unwrap();
    let mut program = Program::start(&disk, 10);
    program.put("a", "2");
    program.values.complete(|key| key == "a");
    assert!(!program.values.was_read());
    program.keep(1).unwrap();
    assert!(program.values.was_read());
    assert_eq!(
        (program.given(), disk.names()),
        (vec!["a=1".into(), "b=1".into(), "c=1".into()], names(&["a", "b", "c"]))
    );
    program.values.change([("c".to_owned(), KeptChange::Remove)]);
    program.keep(1).unwrap();
    assert_eq!(disk.names(), ["a", "b"]);
    // The same when it was lost, and is there again.
    let there = disk.memory();
    disk.is.store(GONE, Ordering::SeqCst);
    program.put("d", "1");
    assert!(program.keep(1).is_err());
    *lock(&disk.memory) = there;
    program.keep(11).unwrap();
    assert_eq!(disk.names(), ["a", "b", "d"]);
    // The first whole list that can be compared with it has the rest go.
    let mut program = Program::start(&disk, 30);
    program.keep(1).unwrap();
    assert_eq!(program.given(), ["a=2", "b=1", "d=1"]);
    program.values.complete(|key| key == "a");
    program.keep(1).unwrap();
    assert_eq!(disk.names(), ["a"]);
}

#[test]
fn what_went_before_it_was_read_is_not_given_and_goes() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    ["a", "b", "c"].iter().for_each(|key| program.put(key, "1"));
    program.keep(1).unwrap();
    let mut program = Program::start(&disk, 10);
    program.put("a", "2");
    program.values.complete(|_| true);
    ["a", "b"].iter().for_each(|key| program.remove(key));
    program.keep(1).unwrap();
    assert_eq!((program.given(), disk.names()), (names(&["c=1"]), names(&["c"])));
}

#[test]
fn what_comes_and_goes_is_not_remembered_without_end_whether_it_can_be_written_or_read_or_not() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    program.put("a", "1");
    program.keep(1).unwrap();
    disk.is.store(FULL, Ordering::SeqCst);
    for key in 0..1000 {
        program.put(&format!("{key}"), "1");
        program.remove(&format!("{key}"));
        program.remove(&format!("never {key}"));
    }
    program.remove("a");
    assert_eq!(program.values.unsaved(), ["a"]);

    disk.is.store(WELL, Ordering::SeqCst);
    let mut program = Program::start(&disk, 10);
    program.values.complete(|_| true);
    for key in 0..100_100 {
        program.remove(&format!("{key}"));
    }
    program.remove("a");
    assert_eq!(program.values.unsaved().len(), 100_000);
    program.keep(1).unwrap();
    // It went, which nobody knows any more: it is served of no value then.
    assert_eq!((program.given(), program.values.unsaved()), (vec![], vec![]));
}

#[test]
fn values_are_read_though_what_is_said_of_all_of_them_is_damaged_and_age_all_the_same() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    ["a", "b"].iter().for_each(|key| program.put(key, "1"));
    program.keep(1).unwrap();
    let owner = disk.memory().list("xds-relay/v1/owner/").unwrap().entries.remove(0);
    let _ = disk.memory().commit(&[Op::put(owner.key, "damaged")], &[]).unwrap();
    let mut program = Program::start(&disk, 10);
    program.keep(1).unwrap();
    assert_eq!((program.given(), program.state.damaged()), (names(&["a=1", "b=1"]), 1));
    assert_eq!(program.values.stale_since(), Some(1_700_000_001));
    let mut program = Program::start(&disk, 20);
    program.keep(1).unwrap();
    assert_eq!((program.given().len(), program.state.damaged()), (2, 0));
    let mut program = Program::start(&disk, 20 + 9 * DAY);
    program.keep(1).unwrap();
    assert_eq!((program.given(), disk.names()), (vec![], vec![]));
}

/// Of what was never whole nobody may say that it is all there was.
#[test]
fn that_all_was_heard_is_known_after_a_restart_even_of_nothing_and_not_before_it_is_written() {
    for keys in [&["a", "b"][..], &[]] {
        let disk = Disk::default();
        let mut program = Program::start(&disk, 0);
        keys.iter().for_each(|key| program.put(key, "1"));
        program.keep(1).unwrap();
        let mut program = Program::start(&disk, 10);
        program.keep(1).unwrap();
        assert!(!program.values.was_complete());
        program.values.complete(|_| true);
        let mut unwritten = Program::start(&disk, 20);
        unwritten.keep(1).unwrap();
        assert!(!unwritten.values.was_complete());
        program.keep(11).unwrap();
        for days in [1, 7, 13] {
            let mut program = Program::start(&disk, days * DAY);
            program.keep(1).unwrap();
            assert!(program.values.was_complete(), "{keys:?} after {days} days");
        }
    }
}

#[test]
fn what_is_much_is_all_once_all_of_it_is_written() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    let put = |key: usize| (format!("{key:05}"), KeptChange::Put(KeptValue::new("1", "")));
    program.values.change((0..30_000).map(put));
    program.values.complete(|_| true);
    let mut seen = Vec::new();
    for at in 1..3 {
        program.keep(1).unwrap();
        let mut next = Program::start(&disk, at);
        next.keep(0).unwrap();
        seen.push((next.given().len() == 30_000, next.values.was_complete()));
    }
    assert_eq!(seen, [(false, false), (true, true)]);
}

#[test]
fn what_nobody_has_a_use_for_is_forgotten_in_a_week_and_what_is_in_use_is_not() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    program.put("a", "1");
    program.keep(1).unwrap();
    // Nobody says that it is so, and it is in use.
    let mut at = 0;
    for _ in 0..5 {
        at += 5 * DAY;
        let mut program = Program::start(&disk, at);
        program.keep(1).unwrap();
        assert_eq!(program.given(), ["a=1"]);
        assert_eq!(program.values.stale_since(), Some(1_700_000_001), "as of when somebody did");
    }
    let mut program = Program::start(&disk, at + 9 * DAY);
    program.keep(1).unwrap();
    assert_eq!((program.given(), disk.names()), (vec![], vec![]));
}

#[test]
fn very_much_is_written_in_pieces() {
    let disk = Disk::default();
    let mut program = Program::start(&disk, 0);
    let put = |key: usize| (format!("{key:05}"), KeptChange::Put(KeptValue::new("1", "")));
    program.values.change((0..45_000).map(put));
    let written: Vec<_> = (0..4).map(|_| program.keep(1).unwrap()).collect();
    assert!(written.iter().all(|keys| *keys <= 20_010) && written[2] > 0 && written[3] == 0, "{written:?}");
    assert_eq!(disk.names().len(), 45_000);
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    Keep,
    Is(u8),
    Restart,
    Complete,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..6u8, 0..4u8).prop_map(|(key, value)| Step::Put(key, value)),
        3 => (0..6u8).prop_map(Step::Remove),
        4 => Just(Step::Keep),
        1 => (0..3u8).prop_map(Step::Is),
        1 => Just(Step::Restart),
        1 => Just(Step::Complete),
    ]
}

proptest! {
    /// Whatever fails, and whenever it is killed: a program is given what was so at some moment, and once all was written, what is.
    #[test]
    fn what_is_given_is_what_was_so(steps in prop::collection::vec(step(), 0..50)) {
        let disk = Disk::default();
        let mut program = Program::start(&disk, 0);
        let (mut is, mut at) = (BTreeMap::<String, String>::new(), 0);
        let mut was = vec![is.clone()];
        for step in steps {
            at += 11;
            match step {
                Step::Put(key, value) => {
                    program.put(&key.to_string(), &value.to_string());
                    is.insert(key.to_string(), value.to_string());
                }
                Step::Remove(key) => {
                    program.values.change([(key.to_string(), KeptChange::Remove)]);
                    is.remove(&key.to_string());
                }
                Step::Keep => drop(program.keep(11)),
                Step::Is(how) => {
                    if how == GONE {
                        *lock(&disk.memory) = Memory::default();
                        was.push(BTreeMap::new());
                    }
                    // Whoever has it open notices that it is gone.
                    if disk.is.load(Ordering::SeqCst) != GONE {
                        disk.is.store(how, Ordering::SeqCst);
                    }
                }
                Step::Restart => {
                    disk.is.store(WELL, Ordering::SeqCst);
                    program = Program::start(&disk, at);
                    program.keep(0).unwrap();
                    is = lock(&program.given).clone();
                    prop_assert!(was.contains(&is), "{is:?} of {was:?}");
                    was.clear();
                }
                Step::Complete => program.values.complete(|key| is.contains_key(key)),
            }
            was.push(is.clone());
        }
        let _ = disk.is.compare_exchange(FULL, WELL, Ordering::SeqCst, Ordering::SeqCst);
        for _ in 0..3 {
            let _ = program.keep(61);
        }
        let mut program = Program::start(&disk, at + 100);
        program.keep(0).unwrap();
        prop_assert_eq!(&*lock(&program.given), &is);
    }
}

#[test]
fn of_a_secret_that_is_not_kept_its_outline_is_and_nothing_else() {
    let (store, now, wall) = (Memory::default(), Instant::now(), SystemTime::now());
    let open = || {
        let identities = Identities::new(vec![None], None, String::new());
        State::open(store.clone(), identities, None, now, wall).unwrap()
    };
    let state = open();
    let values = state.keep_values(0, &["a"], "a", |_| panic!("nothing was kept"));
    let secret = |outline: &[&str]| {
        let outline = outline.iter().map(|line| (*line).to_owned()).collect();
        KeptChange::Put(KeptValue::new("hunter2", "rank").secret(true).outlined(outline))
    };
    values.change([("none".to_owned(), secret(&[])), ("some".to_owned(), secret(&["x"]))]);
    values.complete(|_| true);
    state.keep(&[], now, wall).unwrap();
    let entries = || store.list("").unwrap().entries;
    assert!(entries().iter().all(|entry| !entry.value.windows(7).any(|part| part == b"hunter2")));
    let (given, kept) = std::sync::mpsc::channel();
    let state = open();
    let values = state.keep_values(0, &["a"], "a", move |kept| given.send(kept).unwrap());
    let outline = KeptValue::new("", "rank").secret(true).outlined(vec!["x".to_owned()]);
    assert_eq!(kept.try_recv().unwrap(), [("some".to_owned(), KeptValue { is_outline: true, ..outline })]);
    // When it is heard again it is the same.
    let before = entries();
    values.change([("none".to_owned(), secret(&[])), ("some".to_owned(), secret(&["x"]))]);
    values.complete(|_| true);
    state.keep(&[], now, wall).unwrap();
    let value = |entries: Vec<crate::state::Entry>| {
        entries.into_iter().filter(|entry| entry.key.contains("/value/")).map(|entry| entry.value).collect::<Vec<_>>()
    };
    assert_eq!(value(entries()), value(before));
}
