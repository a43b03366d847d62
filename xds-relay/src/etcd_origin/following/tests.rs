//! Who follows a store that is away at times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::SystemTime;

use xdstp_client::state::{Commit, Compare, Identities, Memory, State, Watch};

use super::*;
use crate::file_origin::{Descriptors, Served};
use crate::keyed_origin::testing::Heard;

const LONG: Duration = Duration::from_secs(60);

/// One that is away at times.
#[derive(Clone, Default)]
struct Flaky {
    store: Memory,
    is_away: Arc<AtomicBool>,
    /// Nobody may watch, and may do all else.
    is_unwatchable: Arc<AtomicBool>,
    /// Who asks waits for as long as this is locked.
    hangs: Arc<Mutex<()>>,
    /// When it was asked first.
    asked: Arc<Mutex<Option<Instant>>>,
}

impl Flaky {
    fn reached(&self) -> Result<&Memory, StoreError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(StoreError::Away("nobody there".to_owned())),
            false => Ok(&self.store),
        }
    }

    fn put(&self, name: &str) {
        let key = format!("res/envoy.config.cluster.v3.Cluster/{name}");
        let text = "{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster}";
        assert!(matches!(self.store.commit(&[Op::put(key, text)], &[]), Ok(Commit::Done(_))));
    }
}

impl Store for Flaky {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        lock(&self.asked).get_or_insert_with(Instant::now);
        drop(lock(&self.hangs));
        self.reached()?.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        match self.is_unwatchable.load(Ordering::SeqCst) {
            true => Err(StoreError::Away("no streams".to_owned())),
            false => self.reached()?.watch(prefix, after),
        }
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.reached()?.commit(ops, compares)
    }
}

fn follow(store: &Flaky) -> (Following, Receiver<Heard>) {
    follow_keeping(store, None)
}

fn follow_keeping(store: &Flaky, state: Option<&Arc<State>>) -> (Following, Receiver<Heard>) {
    let (told, heard) = channel();
    let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default()).of("kv", "/xds\n/");
    let keeper = state.map(|state| Keeper::new(state.clone(), 0, "kv", ["kv".to_owned()]));
    (Following::start(Arc::new(store.clone()), reader, keeper, told).unwrap(), heard)
}

/// What survives a restart.
fn open(disk: &Memory) -> Arc<State> {
    let identities = Identities::new(vec![None], None, String::new());
    Arc::new(State::open(disk.clone(), identities, None, Instant::now(), SystemTime::now()).unwrap())
}

fn until(heard: &Receiver<Heard>, expected: &Heard) {
    while heard.recv_timeout(LONG).unwrap() != *expected {}
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn who_is_away_at_first_is_tried_until_all_is_known_and_then_each_change_comes() {
    let store = Flaky::default();
    store.is_away.store(true, Ordering::SeqCst);
    store.put("a");
    let (following, heard) = follow(&store);
    let trouble = "etcd is away, and nothing is known: it is away: nobody there".to_owned();
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(trouble)));
    store.is_away.store(false, Ordering::SeqCst);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec!["a".to_owned()]));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(None));
    store.put("b");
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec!["a".to_owned(), "b".to_owned()]));
    // Its thread ends, and says nothing any more.
    drop(following);
    assert_eq!(heard.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn what_may_not_be_watched_is_listed_over_and_over_and_is_away_all_the_while() {
    let store = Flaky::default();
    store.is_unwatchable.store(true, Ordering::SeqCst);
    store.put("a");
    let (_following, heard) = follow(&store);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(names(&["a"])));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(None));
    let trouble = "etcd is away, and all stays as it is: it is away: no streams".to_owned();
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(trouble)));
    let mut all = vec!["a".to_owned()];
    for name in ["b", "c"] {
        store.put(name);
        all.push(name.to_owned());
        until_listed(&heard, &all);
    }
    store.is_unwatchable.store(false, Ordering::SeqCst);
    until(&heard, &Heard::Trouble(None));
}

/// Until these are told, and nothing of how it is.
fn until_listed(heard: &Receiver<Heard>, names: &[String]) {
    loop {
        match heard.recv_timeout(LONG).unwrap() {
            Heard::Names(told) if told == names => return,
            Heard::Names(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_value_that_is_refused_is_told_and_nothing_else() {
    let store = Flaky::default();
    assert!(store.commit(&[Op::put("res/odd", "x")], &[]).is_ok());
    let (_following, heard) = follow(&store);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec![]));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Refused(1));
    let words =
        "a value is refused: /xds\\n/res/odd: expected res/TYPE/NAME, such as res/envoy.config.cluster.v3.Cluster/web";
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(words.to_owned())));
}

#[test]
fn who_starts_while_it_is_away_serves_what_was_kept_and_then_what_is_there() {
    let (store, disk) = (Flaky::default(), Memory::default());
    store.put("a");
    store.put("b");
    let state = open(&disk);
    let (following, heard) = follow_keeping(&store, Some(&state));
    until(&heard, &Heard::Names(names(&["a", "b"])));
    state.keep(&[], Instant::now(), SystemTime::now()).unwrap();
    drop(following);

    store.is_away.store(true, Ordering::SeqCst);
    let state = open(&disk);
    let (_following, heard) = follow_keeping(&store, Some(&state));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Remembered(names(&["a", "b"])));
    let trouble = "etcd is away, and what it had before a restart is served: it is away: nobody there".to_owned();
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(trouble)));
    let gone = Op::delete("res/envoy.config.cluster.v3.Cluster/a");
    assert!(store.store.commit(&[gone], &[]).is_ok());
    store.is_away.store(false, Ordering::SeqCst);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(names(&["b"])));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(None));
    state.keep(&[], Instant::now(), SystemTime::now()).unwrap();
    let kept = disk.list("xds-relay/v1/value/").unwrap().entries;
    assert!(matches!(&*kept, [only] if only.key.ends_with("/b")), "{kept:?}");
}

#[test]
fn who_says_nothing_has_a_moment_before_what_was_kept_is_served() {
    let (store, disk) = (Flaky::default(), Memory::default());
    store.put("a");
    let state = open(&disk);
    let (following, heard) = follow_keeping(&store, Some(&state));
    until(&heard, &Heard::Names(names(&["a"])));
    state.keep(&[], Instant::now(), SystemTime::now()).unwrap();
    drop(following);

    let hangs = store.hangs.clone();
    let silence = lock(&hangs);
    let began = Instant::now();
    let (_following, heard) = follow_keeping(&store, Some(&open(&disk)));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Remembered(names(&["a"])));
    assert!(began.elapsed() >= GRACE);
    drop(silence);
    until(&heard, &Heard::Names(names(&["a"])));
}

#[test]
fn the_moment_begins_when_it_is_asked_which_is_once_what_was_kept_is_read() {
    let (store, disk) = (Flaky::default(), Memory::default());
    store.put("a");
    let state = open(&disk);
    let (following, heard) = follow_keeping(&store, Some(&state));
    until(&heard, &Heard::Names(names(&["a"])));
    state.keep(&[], Instant::now(), SystemTime::now()).unwrap();
    drop(following);

    *lock(&store.asked) = None;
    let hangs = store.hangs.clone();
    let silence = lock(&hangs);
    let identities = Identities::new(vec![None], None, String::new());
    let state = Arc::new(State::later(move || Ok(disk.clone()), identities, None, Instant::now(), SystemTime::now()));
    let (_following, heard) = follow_keeping(&store, Some(&state));
    // So long a disk takes to read it.
    assert_eq!(heard.recv_timeout(Duration::from_millis(500)), Err(RecvTimeoutError::Timeout));
    state.keep(&[], Instant::now(), SystemTime::now()).unwrap();
    until(&heard, &Heard::Remembered(names(&["a"])));
    assert!(lock(&store.asked).is_some_and(|asked| asked.elapsed() >= GRACE));
    drop(silence);
    until(&heard, &Heard::Names(names(&["a"])));
}
