//! Turns of streams that have much to do. A few of them are looked at at a time, and who waits is in a line: others, who have little,
//! do not wait behind all of them.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many at a time, in the order in which they come.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Semaphore>);

/// A turn that comes. Whoever has asked for it is to be polled until it has come, as everybody waits behind him.
pub(crate) type Turn = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Turns {
    pub(crate) fn new(at_a_time: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_a_time.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// How many nobody has at the moment.
    pub(crate) fn left(&self) -> usize {
        self.0.available_permits()
    }

    pub(crate) fn next(&self) -> Turn {
        let all = self.0.clone();
        Box::pin(async move { all.acquire_owned().await.ok() })
    }
}
