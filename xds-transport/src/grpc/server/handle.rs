//! A stream as others have it: to wake it, to look at it, to end it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

use atomic_waker::AtomicWaker;
use tonic::Status;

use crate::server::{ProtocolError, Stream};

/// Has a stream look at its source. Cheap to clone and to call, from any thread, under no lock.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    waker: AtomicWaker,
    /// Woken since the stream looked last: HTTP/2 polls a body far more often than there is something to say.
    due: AtomicBool,
}

impl Wake {
    /// The stream has something to pull.
    pub fn wake(&self) {
        self.0.due.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Register before asking whether it [is due](Self::take_due), or a wake in between is lost.
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.waker.register(waker);
    }

    pub(crate) fn take_due(&self) -> bool {
        self.0.due.swap(false, Ordering::AcqRel)
    }
}

/// A stream as others see it: for admin pages, and to end it.
#[derive(Clone, Debug)]
pub struct StreamHandle(pub(crate) Weak<dyn Shared>);

impl StreamHandle {
    /// Looks at the stream, unless it is over, or busy with a long request.
    pub fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        if let Some(shared) = self.0.upgrade() {
            shared.inspect(look);
        }
    }

    /// Ends the stream with UNAVAILABLE: the client reconnects, elsewhere if it can.
    pub fn end(&self, reason: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(Status::unavailable(reason));
        }
    }

    /// Ends the stream with RESOURCE_EXHAUSTED: what it asks for is too much.
    pub fn refuse(&self, reason: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(Status::resource_exhausted(reason));
        }
    }

    /// Ends the stream with PERMISSION_DENIED: its client may not have one.
    pub fn deny(&self, reason: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(Status::permission_denied(reason));
        }
    }
}

pub(crate) trait Shared: fmt::Debug + Send + Sync {
    fn inspect(&self, look: &mut dyn FnMut(&Stream));
    fn end(&self, status: Status);
    fn refuse(&self, error: &ProtocolError);
}
