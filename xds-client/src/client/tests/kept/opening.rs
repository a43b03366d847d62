//! A store takes as long as it takes: nobody waits for it who does not ask to.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use super::*;
use crate::state::{Commit, Compare, Keeping, Listing, Memory, Op, Revision, Saved, StoreError, Watch as Changes};

/// A store that is at hand, or fails, or hangs for as long as somebody has the other end of a channel.
#[derive(Clone, Default)]
struct Slow {
    inner: Memory,
    fails: bool,
    hangs: Arc<Mutex<Option<mpsc::Receiver<()>>>>,
    /// Who came.
    callers: Arc<Mutex<Vec<ThreadId>>>,
}

impl Store for Slow {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.callers.lock().unwrap().push(thread::current().id());
        let hangs = self.hangs.lock().unwrap().take();
        hangs.into_iter().for_each(|until| _ = until.recv());
        match self.fails {
            true => Err(io::Error::other("nobody is there").into()),
            false => self.inner.list(prefix),
        }
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Changes, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.inner.commit(ops, compares)
    }
}

fn keeping(store: &Slow) -> Client {
    let bootstrap = Bootstrap::new(Server::new("127.0.0.1:1", ChannelCreds::Insecure));
    Client::builder(bootstrap).store(store.clone()).build().unwrap()
}

#[tokio::test]
async fn who_makes_a_client_does_not_wait_for_its_store() {
    let store = Slow::default();
    let client = keeping(&store);
    client.flush().await.unwrap();
    let callers = store.callers.lock().unwrap();
    assert!(!callers.is_empty() && !callers.contains(&thread::current().id()));
    assert!(!store.inner.list("").unwrap().entries.is_empty(), "it was written");
}

#[tokio::test]
async fn why_a_store_cannot_be_read_is_said_by_who_flushes() {
    let client = keeping(&Slow { fails: true, ..Slow::default() });
    let error = client.flush().await.unwrap_err();
    assert_eq!(error.to_string(), "nothing is kept: nobody is there");
}

#[tokio::test(start_paused = true)]
async fn who_flushes_to_a_disk_that_hangs_is_told_so() {
    let (answers, hangs) = mpsc::channel::<()>();
    let store = Slow { hangs: Arc::new(Mutex::new(Some(hangs))), ..Slow::default() };
    let client = keeping(&store);
    let error = client.flush().await.unwrap_err();
    assert_eq!(error.to_string(), "nothing is kept: the disk has not taken it within 10 s");
    // Nor is it waited for at the end.
    drop(client);
    drop(answers);
}

#[test]
fn whoever_flushes_need_not_be_in_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Slow::default();
    let client = runtime.block_on(async { keeping(&store) });
    wait_for(client.flush()).unwrap();
    assert!(!store.inner.list("").unwrap().entries.is_empty());
}

#[test]
fn whoever_flushes_without_a_runtime_waits_no_longer_than_it_says() {
    let (answers, hangs) = mpsc::channel::<()>();
    let keeping = Keeping::start(move |_, _| {
        let _ = hangs.recv();
        Ok(Saved::default())
    });
    let keeping = keeping.unwrap();
    assert_eq!(wait_for(keeping.flush_within(Duration::from_millis(1))), None);
    drop(answers);
    assert_eq!(wait_for(keeping.flush_within(Duration::MAX)), Some(true));
}

/// Without any runtime.
fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
