//! What a store does, by calls of etcd's that are waited for.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::client::Client;
use super::commit::{self, Fence};
use super::failure::Failure;
use super::history::History;
use super::link::Link;
use super::listing;
use super::options::EtcdOptions;
use super::range::KeyRange;
use super::thread::Thread;
use super::watching::Watching;
use crate::state::changes::{Changes, Watch};
use crate::state::store::{Commit, Compare, Entry, Limits, Listing, Op, Revision, StoreError};

/// How much is kept for who is slow: he lists again after more. One commit of the largest is less.
const MOST: usize = 16_384;
const MOST_BYTES: usize = 8 << 20;

/// One cluster, and the keys there that begin with a prefix.
#[derive(Debug)]
pub(super) struct Engine {
    thread: Arc<Thread>,
    pub(super) calls: Client,
    /// A connection of their own: watches share its window, and what is not read there would stop what is written.
    watches: Client,
    pub(super) prefix: String,
}

impl Engine {
    pub(super) fn start(options: EtcdOptions) -> Result<Self, StoreError> {
        let thread = Arc::new(Thread::start()?);
        let history = Arc::new(History::default());
        let (prefix, deadline) = (options.prefix.clone(), options.deadline);
        let client = |options| Client::new(Link::new(options, history.clone()), deadline);
        let calls = client(options.clone());
        Ok(Self { thread, calls, watches: client(options), prefix })
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let (client, range, cut) = (self.calls.clone(), self.range(prefix), self.prefix.len());
        self.run(async move { listing::list(&client, &range, cut).await })
    }

    pub(super) fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let (client, key, cut) = (self.calls.clone(), [&self.prefix, key].concat(), self.prefix.len());
        self.run(async move { listing::read(&client, key, cut).await })
    }

    pub(super) fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        let changes = Changes::at_most(MOST, MOST_BYTES, after);
        let (client, range, cut) = (self.watches.clone(), self.range(prefix), self.prefix.len());
        let (on, dropped) = oneshot::channel();
        let told = changes.clone();
        self.run(async move {
            let watching = Watching::begin(client, range, cut, after, told).await?;
            tokio::spawn(watching.go_on(dropped));
            Ok(())
        })?;
        changes.watch_fed(prefix, after, Feed { _on: on, _thread: self.thread.clone() })
    }

    pub(super) fn commit(&self, ops: &[Op], compares: &[Compare], fence: Option<&Fence>) -> Result<Commit, StoreError> {
        commit::check(self.limits(), ops, compares)?;
        let Some(txn) = commit::txn(&self.prefix, ops, compares, fence) else { return Ok(Commit::Conflict) };
        let client = self.calls.clone();
        let answer = self.run(async move { client.txn(&txn).await })?;
        commit::outcome(&answer, fence)
    }

    pub(super) fn limits(&self) -> Limits {
        commit::limits(&self.prefix)
    }

    /// Does something that ends, and waits for it.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.thread.run(work);
        done.unwrap_or_else(|| Err(Failure::Unsure("who spoke to it gave up".to_owned()))).map_err(Into::into)
    }

    /// Does something meanwhile.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.thread.spawn(work);
    }

    fn range(&self, prefix: &str) -> KeyRange {
        KeyRange::of(&[&self.prefix, prefix].concat())
    }
}

/// A watch goes on until this is dropped, and so does the thread.
#[derive(Debug)]
struct Feed {
    _on: oneshot::Sender<()>,
    _thread: Arc<Thread>,
}
