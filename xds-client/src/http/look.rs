//! A document that is watched.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::fetch::Fetch;
use super::place::Target;
use super::reading::Reading;
use crate::federation::{DocumentError, OpenDocument};
use crate::upstream::random;

pub(super) struct Watched {
    document: OpenDocument,
    target: Target,
    fetch: Fetch,
    /// Not locked while it is asked for.
    reading: Mutex<Reading>,
}

impl Watched {
    pub(super) fn new(target: Target, document: OpenDocument, fetch: Fetch, reading: Reading) -> Self {
        Self { document, target, fetch, reading: Mutex::new(reading) }
    }

    /// When it is to be asked for next, if not at once.
    pub(super) fn due(&self) -> Option<Instant> {
        self.reading().due()
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due().is_none_or(|due| due <= now)
    }

    /// Whether somebody wants it still.
    pub(super) fn is_wanted(&self) -> bool {
        self.document.is_wanted()
    }

    /// Asks for it once, and tells what comes of that.
    pub(super) async fn ask(&self, now: impl FnOnce() -> Instant) {
        let stamp = self.reading().stamp().clone();
        let answer = self.fetch.ask(&self.target, &stamp).await;
        let now = now();
        let outcome = self.reading().answered(answer, now, random());
        // Under no lock: those are woken who watch, and whoever was the last may close it.
        if let Some(outcome) = outcome {
            outcome.tell(&self.document, now);
        }
    }

    /// It is not known what it holds.
    pub(super) fn fail(&self, reason: &str, now: Instant) {
        self.document.tell(Err(DocumentError::Unreadable(reason.to_owned())), now);
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
