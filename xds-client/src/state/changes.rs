//! The last changes of a store, for who watches it in this process.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::federation::lock;
use crate::state::store::{Event, Op, Revision, StoreError};

/// How much is kept for who is slow: he lists again after more.
const MOST: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

/// The last changes.
#[derive(Debug)]
pub(crate) struct Changes {
    log: Mutex<Log>,
    came: Condvar,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Log {
    events: VecDeque<Event>,
    bytes: usize,
    /// All that was done after this is in `events`.
    after: Revision,
}

impl Changes {
    /// None after this revision.
    pub(crate) fn since(after: Revision) -> Arc<Self> {
        Self::at_most(MOST, MOST_BYTES, after)
    }

    /// The same, of which no more is kept than so many, and so many bytes.
    pub(crate) fn at_most(most: usize, most_bytes: usize, after: Revision) -> Arc<Self> {
        let log = Mutex::new(Log { events: VecDeque::new(), bytes: 0, after });
        Arc::new(Self { log, came: Condvar::new(), most, most_bytes })
    }

    /// All that is known is that anything may have been done: who watches is to list again.
    #[cfg(feature = "etcd")]
    pub(crate) fn forget(&self) {
        *lock(&self.log) = Log { events: VecDeque::new(), bytes: 0, after: Revision::MAX };
        self.came.notify_all();
    }

    /// To be called in the order of revisions.
    pub(crate) fn record(&self, revision: Revision, ops: &[Op]) {
        let mut log = lock(&self.log);
        for op in ops {
            log.bytes += op.size();
            log.events.push_back(Event { revision, op: op.clone() });
        }
        let too_many = |log: &Log| log.events.len() > self.most || log.bytes > self.most_bytes;
        // Of a revision all is there, or nothing.
        while let Some(oldest) = log.events.front().map(|event| event.revision)
            && (too_many(&log) || oldest <= log.after)
            && let Some(gone) = log.events.pop_front()
        {
            log.bytes -= gone.op.size();
            log.after = oldest;
        }
        drop(log);
        self.came.notify_all();
    }

    pub(crate) fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        if after < lock(&self.log).after {
            return Err(StoreError::Compacted);
        }
        Ok(Watch { changes: self.clone(), prefix: prefix.to_owned(), after, _feed: None })
    }

    /// The same for who alone is told of them, by somebody who does so until this `feed` is dropped.
    #[cfg(feature = "etcd")]
    pub(crate) fn watch_fed(
        self: &Arc<Self>,
        prefix: &str,
        after: Revision,
        feed: impl Send + Sync + fmt::Debug + 'static,
    ) -> Result<Watch, StoreError> {
        Ok(Watch { _feed: Some(Box::new(feed)), ..self.watch(prefix, after)? })
    }
}

/// What is done to the keys under a prefix, as it is done.
#[derive(Debug)]
pub struct Watch {
    changes: Arc<Changes>,
    prefix: String,
    after: Revision,
    _feed: Option<Box<dyn Feed>>,
}

/// What is kept for as long as somebody watches.
trait Feed: Send + Sync + fmt::Debug {}

impl<T: Send + Sync + fmt::Debug> Feed for T {}

impl Watch {
    /// What was done since the last call, whole revisions: waits for that at most so long, and then there is nothing.
    ///
    /// # Errors
    /// [`Compacted`](StoreError::Compacted): too much was done since, and what is there is to be listed again.
    pub fn next(&mut self, wait: Duration) -> Result<Vec<Event>, StoreError> {
        let mut log = lock(&self.changes.log);
        let mut waited = false;
        loop {
            if self.after < log.after {
                return Err(StoreError::Compacted);
            }
            let after = self.after;
            let is_mine = |event: &&Event| event.revision > after && event.op.key().starts_with(&self.prefix);
            let events: Vec<_> = log.events.iter().filter(is_mine).cloned().collect();
            self.after = log.events.back().map_or(log.after, |event| event.revision).max(self.after);
            if waited || !events.is_empty() {
                return Ok(events);
            }
            let (back, over) = self.changes.came.wait_timeout(log, wait).unwrap_or_else(PoisonError::into_inner);
            (log, waited) = (back, over.timed_out());
        }
    }
}
