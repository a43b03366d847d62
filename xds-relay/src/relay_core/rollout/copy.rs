//! What this relay serves of releases that several have, in a store of its own: it is served again when this relay starts and the
//! store of all does not answer, or was put back to an earlier state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::state::{Store, StoreError};

use super::Releases;
use crate::lock::lock;
use crate::releases::{Item, Release, Stages, Stored, StoredError, Waiting, WaitingOrders};

/// How long a store is left alone that is full, or takes no more for another reason.
const AGAIN: Duration = Duration::from_secs(30);

/// What was served last, where nobody else writes. No lock of it is held by who takes the one of the releases' state, but the first.
pub(super) struct Copy {
    waiting: Mutex<WaitingOrders>,
    /// Whether what waits is there: it may be that nothing can be written.
    keeps_waiting: AtomicBool,
    pub(super) copied: Mutex<Copied>,
}

pub(super) struct Copied {
    store: Arc<dyn Store>,
    /// The scope as it is called there.
    scope: String,
    /// None after an error, until it is opened anew.
    stored: Option<Stored>,
    rests_until: Option<Instant>,
}

impl Copy {
    /// The copy in that store, and what waits there; without a copy what is elsewhere is served all the same.
    pub(super) fn open(store: Arc<dyn Store>, scope: &str) -> Option<(Self, Vec<Waiting>)> {
        let opened = WaitingOrders::open(store.clone(), scope);
        let opened =
            opened.inspect_err(|error| tracing::error!(scope, "no copy of its releases is kept here: {error}"));
        let (waiting, orders) = opened.ok()?;
        let mut copied = Copied { store, scope: scope.to_owned(), stored: None, rests_until: None };
        if let Err(error) = copied.stored() {
            tracing::error!(scope, "the copy of its releases cannot be read: {error}");
        }
        let (waiting, keeps_waiting) = (Mutex::new(waiting), AtomicBool::new(true));
        Some((Self { waiting, keeps_waiting, copied: Mutex::new(copied) }, orders))
    }

    /// Whether what waits was written here when it was to be last.
    pub(super) fn keeps_waiting(&self) -> bool {
        self.keeps_waiting.load(Ordering::Relaxed)
    }
}

impl Copied {
    /// What is there; what is damaged is begun anew.
    pub(super) fn stored(&mut self) -> Result<&mut Stored, StoredError> {
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => self.open()?,
        };
        Ok(self.stored.insert(stored))
    }

    fn open(&self) -> Result<Stored, StoredError> {
        let Self { store, scope, .. } = self;
        match Stored::open(store.clone(), scope) {
            Err(error @ (StoredError::Damaged { .. } | StoredError::Format { .. })) => {
                tracing::error!(scope, "the copy of its releases is begun anew: {error}");
                Stored::forget_releases(&**store, scope)?;
                Stored::open(store.clone(), scope)
            }
            opened => opened,
        }
    }
}

impl Releases {
    /// Keeps what waits for the store: who ordered it was told that it is done.
    pub(super) fn keep_waiting(&self) {
        let Some(copy) = &self.copy else { return };
        // Not what is older may be written last.
        let mut kept = lock(&copy.waiting);
        let waiting = lock(&self.state).stored.waiting().to_vec();
        let is_kept = kept.keep(&waiting).inspect_err(|error| {
            tracing::error!(scope = self.rollout.scope(), "what was ordered and waits is not kept here: {error}");
        });
        copy.keeps_waiting.store(is_kept.unwrap_or(false), Ordering::Relaxed);
    }

    /// Whether the copy has a release, as far as it can be read.
    pub(super) fn may_have_copied(&self, release: Release) -> bool {
        let copied = self.copy.as_ref().map(|copy| lock(&copy.copied));
        copied.is_some_and(|mut copied| copied.stored().map_or(true, |stored| stored.has(release)))
    }

    /// Keeps what is served, once it is; what cannot be kept is said, and tried again.
    pub(super) fn keep_copy(&self, now: Instant, wall: SystemTime) {
        let Some(copy) = &self.copy else { return };
        self.keep_waiting();
        let ((base, count, ordered), contents, reader) = {
            let state = lock(&self.state);
            let contents: Option<Vec<_>> =
                state.stored.control().named().map(|release| state.contents.get(&release).cloned()).collect();
            // Of a store that has nothing there is nothing to be copied: what is served is what there was.
            let is_known = !state.stored.is_recalled() && state.stored.base().stable().is_some();
            let Some(contents) = contents.filter(|_| is_known) else { return };
            let stored = &state.stored;
            let known = (stored.base().clone(), stored.count(), stored.ordered().clone());
            (known, contents, stored.reader())
        };
        let copied = &mut *lock(&copy.copied);
        if copied.rests_until.is_some_and(|until| now < until) {
            return;
        }
        let kept = copied.stored().and_then(|stored| {
            let has_all = contents.iter().all(|content| stored.has(content.manifest.release()));
            if (stored.base(), stored.count(), stored.ordered()) == (&base, count, &ordered) && has_all {
                return Ok(());
            }
            for content in contents {
                let bodies: HashMap<_, _> = content.bodies().collect();
                // What could not be read of it here is copied as it is.
                let body = |item: &Item| bodies.get(&item.body).cloned().or_else(|| reader.body(item.body).ok());
                stored.put_back(&content.manifest, self.origin.kind(), wall, &body)?;
            }
            stored.copy(&base, count, &ordered)
        });
        copied.rests_until = None;
        if let Err(error) = kept {
            tracing::error!(scope = self.rollout.scope(), "no copy of its releases is kept here: {error}");
            (copied.stored, copied.rests_until) = (None, Some(now + AGAIN));
        }
    }
}

/// The releases of a scope in a store that relays share; while that does not answer, what the copy says, and also if the store has an
/// earlier state of that. What was ordered before, and waits, is ordered again.
pub(super) fn read(
    store: Arc<dyn Store>,
    (scope, stages): (&str, &Stages),
    copy: Option<&Copy>,
    waiting: Vec<Waiting>,
    is_away: bool,
) -> Result<Stored, StoredError> {
    let mut copied = copy.map(|copy| lock(&copy.copied));
    let copied = copied.as_mut().and_then(|copied| copied.stored().ok());
    let mut stored = Stored::recalled(store.clone(), scope, copied.as_deref());
    let has_stable = stored.control().stable().is_some();
    let opened = (!is_away).then(|| {
        stored.refresh(stages)?;
        stored.order_again(waiting.clone(), stages)?;
        Ok(stored)
    });
    let why = match opened {
        Some(Err(StoredError::Store(error))) if error.may_pass() => error.to_string(),
        // A password, say, or a role: that may be mended while what is stable is served.
        Some(Err(StoredError::Store(error @ StoreError::Refused(_)))) if has_stable => error.to_string(),
        Some(opened) => return opened,
        None => "it did not answer".to_owned(),
    };
    // Some of it may have been read.
    let mut stored = Stored::recalled(store, scope, copied.as_deref());
    stored.order_again(waiting, stages)?;
    let serves = if stored.control().stable().is_some() { "the copy of this relay" } else { "nothing of it" };
    tracing::error!(scope, "its releases cannot be read, and until they are {serves} is served: {why}");
    Ok(stored)
}
