//! What is made of servers that say what no etcd says, or what it says seldom.

mod script;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tonic::Status;

use tokio::sync::oneshot;

use self::script::{Script, Scripted, Then};
use super::client::Client;
use super::link::Link;
use super::listing;
use super::messages::{Header, KeyEvent, KeyValue, RangeRequest, RangeResponse, TxnResponse, WatchResponse};
use super::range::KeyRange;
use super::thread::Thread;
use super::watching::Watching;
use super::{Etcd, EtcdOptions};
use crate::state::changes::Changes;
use crate::state::store::{Commit, Op, Store, StoreError};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(500);

fn at(revision: i64) -> Option<Header> {
    Some(Header { cluster_id: 1, revision, raft_term: 2 })
}

fn kv(key: &str, value: usize) -> KeyValue {
    KeyValue { key: format!("p/{key}").into_bytes(), mod_revision: 5, value: vec![0; value] }
}

/// One at revision 10 that has nothing, and whose watches are told nothing.
fn quiet() -> Script {
    let created = || WatchResponse { header: at(10), created: true, ..WatchResponse::default() };
    Script {
        range: Arc::new(|_| Ok(RangeResponse { header: at(10), ..RangeResponse::default() })),
        late: Arc::new(|_| false),
        txn: Arc::new(|_| Some(Ok(TxnResponse { header: at(11), succeeded: true, responses: Vec::new() }))),
        watch: Arc::new(move |_| (vec![created()], Then::Stays)),
        watches: Arc::default(),
    }
}

fn store(server: &Scripted, deadline: Duration) -> Etcd {
    let options = EtcdOptions::new([format!("http://{}", server.address)], "p/").unwrap();
    Etcd::open(options.with_deadline(deadline)).unwrap()
}

fn client(server: &Scripted, deadline: Duration) -> Client {
    let options = EtcdOptions::new([format!("http://{}", server.address)], "p/").unwrap();
    Client::new(Link::new(options, Arc::default()), deadline)
}

/// Whether that is what is asked of whoever is connected to.
fn is_probe(asked: &RangeRequest) -> bool {
    asked.keys_only && asked.revision == 0
}

fn compacted() -> Status {
    Status::out_of_range("etcdserver: mvcc: required revision has been compacted")
}

#[test]
fn who_speaks_something_else_is_away() {
    for said in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0; 64], b""] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            while let Ok((mut io, _)) = listener.accept() {
                let _ = io.read(&mut [0; 16]).and_then(|_| io.write_all(said));
            }
        });
        let options = EtcdOptions::new([format!("http://{address}")], "p/").unwrap();
        let store = Etcd::open(options.with_deadline(SHORT)).unwrap();
        assert!(matches!(store.list(""), Err(StoreError::Away(_))), "{said:?}");
        assert!(matches!(store.watch("", 1), Err(StoreError::Away(_))), "{said:?}");
    }
}

#[test]
fn pages_that_do_not_go_on_are_no_listing() {
    let endless = |_: RangeRequest| Ok(RangeResponse { header: at(10), kvs: vec![kv("a", 1)], more: true });
    let server = Scripted::serve(Script { range: Arc::new(endless), ..quiet() });
    assert!(matches!(store(&server, LONG).list(""), Err(StoreError::Corrupt(_))));
}

#[test]
fn what_is_compacted_while_it_is_listed_is_listed_anew() {
    let pages = Arc::new(AtomicUsize::new(0));
    let asked = pages.clone();
    let range = move |request: RangeRequest| match request {
        request if is_probe(&request) => Ok(RangeResponse { header: at(10), ..RangeResponse::default() }),
        RangeRequest { revision: 0, .. } => Ok(RangeResponse { header: at(10), kvs: vec![kv("a", 1)], more: true }),
        _ if asked.fetch_add(1, Ordering::SeqCst) < 2 => Err(compacted()),
        _ => Ok(RangeResponse { header: at(12), kvs: vec![kv("b", 1)], more: false }),
    };
    let server = Scripted::serve(Script { range: Arc::new(range), ..quiet() });
    let listing = store(&server, LONG).list("").unwrap();
    assert_eq!((listing.entries.len(), listing.revision), (2, 10));
    // Where that has no end, it is said.
    pages.store(usize::MAX / 2, Ordering::SeqCst);
    let endless = |request: RangeRequest| match request.revision {
        0 => Ok(RangeResponse { header: at(10), kvs: vec![kv("a", 1)], more: true }),
        _ => Err(compacted()),
    };
    let server = Scripted::serve(Script { range: Arc::new(endless), ..quiet() });
    assert!(matches!(store(&server, LONG).list(""), Err(StoreError::Away(_))));
}

#[test]
fn what_is_too_large_for_one_answer_comes_in_more() {
    let range = |request: RangeRequest| {
        let from = request.key.iter().filter(|byte| **byte == b'a').count();
        let (first, count) = (from, usize::try_from(request.limit).unwrap().min(16 - from));
        // Each key is one longer than the one before; what is asked for next is after it.
        let kvs: Vec<_> = (first..first + count).map(|number| kv(&"a".repeat(number + 1), 4 << 20)).collect();
        let kvs = if request.keys_only { Vec::new() } else { kvs };
        Ok(RangeResponse { header: at(10), more: first + count < 16, kvs })
    };
    let server = Scripted::serve(Script { range: Arc::new(range), ..quiet() });
    assert_eq!(store(&server, LONG).list("").unwrap().entries.len(), 16);
}

#[test]
fn what_does_not_come_in_time_comes_in_more_pages() {
    let asked = Arc::new(AtomicUsize::new(0));
    let whole = asked.clone();
    let range = move |request: RangeRequest| {
        let from = request.key.iter().filter(|byte| **byte == b'a').count();
        let count = usize::try_from(request.limit).unwrap().min(16 - from);
        let kvs: Vec<_> = (from..from + count).map(|number| kv(&"a".repeat(number + 1), 1)).collect();
        whole.fetch_add(1, Ordering::SeqCst);
        Ok(RangeResponse { header: at(10), more: from + count < 16, kvs })
    };
    // As it is where values are large, and a line is slow.
    let late = |request: &RangeRequest| !request.keys_only && request.limit > 4;
    let server = Scripted::serve(Script { range: Arc::new(range), late: Arc::new(late), ..quiet() });
    let client = client(&server, LONG).hurried(Duration::from_millis(200));
    let thread = Thread::start().unwrap();
    let listing = thread.run(async move { listing::list(&client, &KeyRange::of("p/"), 2).await });
    assert_eq!(listing.unwrap().unwrap().entries.len(), 16);
    assert!(asked.load(Ordering::SeqCst) >= 4);
}

#[test]
fn who_reads_one_key_is_told_nothing_of_what_begins_with_it() {
    let range = |request: RangeRequest| {
        let kvs = match (&*request.key, &*request.range_end) {
            (b"p/a", b"") => vec![kv("a", 3)],
            _ if is_probe(&request) => Vec::new(),
            _ => vec![kv("b", 3)],
        };
        Ok(RangeResponse { header: at(10), kvs, more: false })
    };
    let server = Scripted::serve(Script { range: Arc::new(range), ..quiet() });
    let store = store(&server, LONG);
    let there = store.read("a").unwrap().unwrap();
    assert_eq!((&*there.key, there.value.len(), there.revision), ("a", 3, 5));
    assert!(matches!(store.read("x"), Err(StoreError::Corrupt(_))));
    let server = Scripted::serve(quiet());
    assert_eq!(self::store(&server, LONG).read("a").unwrap(), None);
}

#[test]
fn a_commit_is_tried_again_only_where_it_was_surely_not_done() {
    let tries = Arc::new(AtomicUsize::new(0));
    let done_at_last = |said: Option<Status>| {
        tries.store(0, Ordering::SeqCst);
        let tries = tries.clone();
        let txn = move |_| match tries.fetch_add(1, Ordering::SeqCst) {
            0 => said.clone().map(Err),
            _ => Some(Ok(TxnResponse { header: at(11), succeeded: true, responses: Vec::new() })),
        };
        let server = Scripted::serve(Script { txn: Arc::new(txn), ..quiet() });
        store(&server, Duration::from_secs(2)).commit(&[Op::put("a", "1")], &[])
    };
    for nothing in ["no leader", "too many requests", "invalid auth token"] {
        let code = if nothing == "invalid auth token" { Status::unauthenticated } else { Status::unavailable };
        let done = done_at_last(Some(code(format!("etcdserver: {nothing}"))));
        assert!(matches!(done, Ok(Commit::Done(11))), "{nothing}: {done:?}");
    }
    let timed_out = Status::unavailable("etcdserver: request timed out");
    let too_large = Status::out_of_range("decoded message length too large");
    for unsure in [Some(timed_out), Some(Status::internal("h2 broke")), Some(too_large), None] {
        let done = done_at_last(unsure.clone());
        assert!(matches!(done, Err(StoreError::Unsure(_))), "{unsure:?}: {done:?}");
        assert_eq!(tries.load(Ordering::SeqCst), 1);
    }
    let full = Status::resource_exhausted("etcdserver: mvcc: database space exceeded");
    assert!(matches!(done_at_last(Some(full)), Err(StoreError::Refused(_))));
}

fn told(key: &str, mod_revision: i64) -> WatchResponse {
    let kv = KeyValue { mod_revision, ..kv(key, 1) };
    WatchResponse { header: at(20), events: vec![KeyEvent { kind: 0, kv: Some(kv) }], ..WatchResponse::default() }
}

/// A watch from revision 10 on a server that answers it like this, each time that it is begun.
fn watched(
    answers: impl Fn(i64) -> (Vec<WatchResponse>, Then) + Send + Sync + 'static,
) -> Vec<Result<u64, StoreError>> {
    let watch = move |create: super::messages::WatchCreateRequest| {
        let created = WatchResponse { header: at(20), created: true, ..WatchResponse::default() };
        let (mut all, then) = answers(create.start_revision);
        all.insert(0, created);
        (all, then)
    };
    // Of a key it is known when it was put.
    let range = |asked: RangeRequest| {
        let put = KeyValue { key: asked.key, mod_revision: asked.revision, value: Vec::new() };
        let kvs = if asked.range_end.is_empty() { vec![put] } else { Vec::new() };
        Ok(RangeResponse { header: at(20), kvs, more: false })
    };
    let server = Scripted::serve(Script { watch: Arc::new(watch), range: Arc::new(range), ..quiet() });
    // It may be over before it is there.
    let mut watch = match store(&server, LONG).watch("", 10) {
        Ok(watch) => watch,
        Err(error) => return vec![Err(error)],
    };
    let mut all = Vec::new();
    while all.len() < 3 {
        match watch.next(LONG) {
            Ok(events) => all.extend(events.into_iter().map(|event| Ok(event.revision))),
            Err(error) => {
                all.push(Err(error));
                break;
            }
        }
    }
    all
}

#[test]
fn a_watch_that_is_cut_off_goes_on_from_what_was_told_last() {
    let revisions = watched(|start| match start {
        10 => (vec![told("a", 10), told("a", 11)], Then::Ends),
        11 => (vec![told("a", 11), told("b", 12), told("c", 13)], Then::Stays),
        other => panic!("it was told until {other}"),
    });
    assert_eq!(revisions.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [11, 12, 13]);
}

#[test]
fn a_watch_that_is_told_that_it_is_compacted_or_nonsense_is_over() {
    let canceled = || WatchResponse { canceled: true, compact_revision: 15, ..WatchResponse::default() };
    for last in [canceled(), told("a", 9), WatchResponse { events: vec![KeyEvent::default()], ..told("a", 1) }] {
        let revisions = watched(move |_| (vec![told("a", 11), last.clone()], Then::Stays));
        assert!(matches!(revisions.last(), Some(Err(StoreError::Compacted))), "{revisions:?}");
    }
}

/// A watch from revision 10 on that is given up at once where all else is answered: it is begun well once, and then ended.
fn lost(script: Script) -> (crate::state::Watch, oneshot::Sender<()>, Scripted, Thread) {
    let begun = AtomicUsize::new(0);
    let watch = move |_| {
        let header = at(10);
        match begun.fetch_add(1, Ordering::SeqCst) {
            0 => (vec![WatchResponse { header, created: true, ..WatchResponse::default() }], Then::Ends),
            _ => (vec![WatchResponse { header, canceled: true, ..WatchResponse::default() }], Then::Ends),
        }
    };
    let server = Scripted::serve(Script { watch: Arc::new(watch), ..script });
    let (patient, client) = (client(&server, LONG), client(&server, Duration::from_millis(200)));
    let (changes, thread) = (Changes::since(10), Thread::start().unwrap());
    let (on, dropped) = oneshot::channel();
    let told = changes.clone();
    let begun = thread.run(async move {
        let mut watching = Watching::begin(patient, KeyRange::of("p/"), 2, 10, told).await?;
        (watching.client, watching.lost_after) = (client, Duration::ZERO);
        tokio::spawn(watching.go_on(dropped));
        Ok::<_, super::failure::Failure>(())
    });
    begun.unwrap().unwrap();
    (changes.watch("", 10).unwrap(), on, server, thread)
}

#[test]
fn a_watch_that_cannot_be_begun_again_is_over_where_all_else_is_answered() {
    let (mut watch, _on, _server, _thread) = lost(quiet());
    assert!(matches!(watch.next(LONG), Err(StoreError::Compacted)));
}

#[test]
fn a_watch_waits_for_who_answers_nothing() {
    let asked = Arc::new(AtomicUsize::new(0));
    let all = asked.clone();
    // Who is connected to, and who watches, asks; all that is asked later is not answered.
    let late = move |_: &RangeRequest| all.fetch_add(1, Ordering::SeqCst) >= 2;
    let (mut watch, _on, _server, _thread) = lost(Script { late: Arc::new(late), ..quiet() });
    let since = Instant::now();
    while asked.load(Ordering::SeqCst) < 6 {
        assert_eq!(watch.next(Duration::from_millis(10)).unwrap(), []);
        assert!(since.elapsed() < LONG);
    }
}

#[test]
fn a_watch_is_over_where_a_key_is_no_text_which_only_a_listing_says() {
    let mut odd = told("b", 12);
    odd.events[0].kv.as_mut().unwrap().key = b"p/\xff".to_vec();
    let revisions = watched(move |_| (vec![told("a", 11), odd.clone()], Then::Stays));
    assert!(matches!(revisions.last(), Some(Err(StoreError::Compacted))), "{revisions:?}");
}

#[test]
fn a_watch_is_over_where_the_revision_went_back() {
    let now = Arc::new(AtomicU64::new(20));
    let (revision, cut) = (now.clone(), now.clone());
    let range = move |request: RangeRequest| {
        let now = i64::try_from(revision.load(Ordering::SeqCst)).unwrap();
        match request.revision > now {
            true => Err(Status::out_of_range("etcdserver: mvcc: required revision is a future revision")),
            false => Ok(RangeResponse { header: at(now), ..RangeResponse::default() }),
        }
    };
    let watch = move |_| {
        cut.store(5, Ordering::SeqCst);
        let created = WatchResponse { header: at(20), created: true, ..WatchResponse::default() };
        (vec![created], Then::Ends)
    };
    let server = Scripted::serve(Script { watch: Arc::new(watch), range: Arc::new(range), ..quiet() });
    let store = store(&server, LONG);
    // It may have gone back before the watch is there.
    let told = store.watch("", 20).and_then(|mut watch| watch.next(LONG).map(drop));
    assert!(matches!(told, Err(StoreError::Compacted)), "{told:?}");
    assert!(matches!(store.watch("", 20), Err(StoreError::Compacted)));
    assert_eq!(store.list("").unwrap().revision, 5);
}

#[test]
fn a_watch_outlives_its_store_and_ends_when_nobody_watches() {
    let script = quiet();
    let watches = script.watches.clone();
    let server = Scripted::serve(script);
    let watch = store(&server, LONG).watch("", 10).unwrap();
    assert_eq!(watches.load(Ordering::SeqCst), 1);
    drop(watch);
    let since = Instant::now();
    while watches.load(Ordering::SeqCst) > 0 {
        assert!(since.elapsed() < LONG);
        thread::yield_now();
    }
}
