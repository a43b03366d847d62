//! What the response body and the request task of one stream share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use tokio::task::AbortHandle;
use tonic::Status;

use crate::grpc::server::handle::{Shared, Wake};
use crate::server::{ProtocolError, Source, Stream};

/// What the response body and the request task of one stream share.
pub(crate) struct StreamState<S> {
    inner: Mutex<Inner<S>>,
    /// What it is to end with: others say so, and do not wait for what it is busy with.
    ended: Mutex<Option<Ended>>,
    /// Who reads its requests.
    reading: OnceLock<AbortHandle>,
    pub(crate) wake: Wake,
    pub(crate) apart: Apart,
}

pub(crate) struct Inner<S> {
    pub(crate) stream: Stream,
    /// `None` before the first and after the last moment.
    pub(crate) source: Option<S>,
    /// The client sends no more: the stream is over once there is nothing to say.
    pub(crate) half_closed: bool,
}

enum Ended {
    With(Status),
    /// Of which its source has not heard.
    Because(ProtocolError),
}

impl<S> StreamState<S> {
    pub(crate) fn new(inner: Inner<S>, wake: Wake) -> Self {
        let (ended, reading) = (Mutex::default(), OnceLock::new());
        Self { inner: Mutex::new(inner), ended, reading, wake, apart: Apart::default() }
    }

    /// Its requests are read by this task, until it is to end.
    pub(crate) fn is_read_by(&self, task: AbortHandle) {
        let _ = self.reading.set(task);
        // It may have been said before.
        if self.lock_ended().is_some() {
            self.read_no_more();
        }
    }

    /// What is kept of a request that is not whole is kept for nobody. The response may be stuck for as long as its client likes.
    fn read_no_more(&self) {
        if let Some(reading) = self.reading.get() {
            reading.abort();
        }
    }

    fn lock_ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is held for one call of the machine, never across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn half_close(&self) {
        let mut inner = self.lock();
        inner.half_closed = true;
        inner.stream.half_closed();
        drop(inner);
        self.wake.wake();
    }

    /// What the stream ends with, its source told.
    pub(crate) fn refusal(&self, error: &ProtocolError) -> Status
    where
        S: Source,
    {
        match &mut self.lock().source {
            Some(source) => ended(error, source),
            None => Status::ok(""),
        }
    }

    pub(crate) fn end_with(&self, status: Status) {
        self.finish(Ended::With(status));
    }

    fn finish(&self, end: Ended) {
        self.lock_ended().get_or_insert(end);
        self.read_no_more();
        self.wake.wake();
    }

    /// Whether it is to end.
    pub(crate) fn must_end(&self) -> bool {
        self.lock_ended().is_some()
    }

    /// What it is to end with, if it is: once.
    pub(crate) fn take_end(&self, source: Option<&mut S>) -> Option<Status>
    where
        S: Source,
    {
        let end = self.lock_ended().take()?;
        Some(match (end, source) {
            (Ended::With(status), _) => status,
            (Ended::Because(error), Some(source)) => ended(&error, source),
            // It is over.
            (Ended::Because(_), None) => Status::ok(""),
        })
    }
}

/// What a stream ends with, its source told.
fn ended(error: &ProtocolError, source: &mut impl Source) -> Status {
    source.ends(error);
    status_of(error, source)
}

impl<S> fmt::Debug for StreamState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamState").finish_non_exhaustive()
    }
}

impl<S: Source + Send + 'static> Shared for StreamState<S> {
    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        loop {
            match self.inner.try_lock() {
                Ok(inner) => return look(&inner.stream),
                Err(TryLockError::Poisoned(poisoned)) => return look(&poisoned.get_ref().stream),
                Err(TryLockError::WouldBlock) if self.apart.is_busy() => return,
                // For one call of the machine.
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
    }

    fn end(&self, status: Status) {
        self.end_with(status);
    }

    fn refuse(&self, error: &ProtocolError) {
        self.finish(Ended::Because(error.clone()));
    }
}

/// Whether something of a stream is done apart. Its lock is held for as long.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    pub(crate) busy: AtomicBool,
    pub(crate) abandoned: AtomicBool,
}

impl Apart {
    /// Whether the stream is to be looked at later: it is woken then.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }
}

/// What a client is told of an error, in its source's words.
pub(crate) fn status_of(error: &ProtocolError, source: &impl Source) -> Status {
    Status::new(tonic::Code::from_i32(error.code()), source.words(error))
}
