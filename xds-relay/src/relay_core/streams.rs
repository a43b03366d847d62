//! The streams a relay serves, as others than their own task see them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use slab::Slab;
use tonic::metadata::MetadataMap;
use xds_transport::Protocol;
use xds_transport::server::Stream;
use xdstp_cache::{SubscriberId, TypeUrl};

use crate::metrics::StreamGuard;
use crate::relay_core::loops::{LoopError, Seen, Side};
use crate::relay_core::quotas::{LimitError, Share};
use crate::federation::routes::Routes;
use crate::federation::scope::Scope;
use crate::federation::lock::lock;
use crate::relay_core::RelayCore;

/// How long an origin may be away before a client of which nothing is known is sent elsewhere.
const UNKNOWN_GRACE: Duration = Duration::from_secs(1);

/// A stream as its driver shows it: for admin pages, and to end it.
pub trait ServedStream: Send + Sync {
    /// Where the client is.
    fn peer(&self) -> &str;

    /// Looks at the stream, unless it is over, or busy for so long that nobody should wait for it.
    fn inspect(&self, look: &mut dyn FnMut(&Stream));

    /// Ends the stream: the client reconnects, elsewhere if it can.
    fn end(&self, reason: &str);

    /// Ends the stream because it asks for too much; a driver that leaves this out ends it as any.
    fn refuse(&self, reason: &str) {
        self.end(reason);
    }
}

/// A stream that may be opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Admitted {
    /// What to answer it with, before any response.
    pub metadata: MetadataMap,
    /// To be kept while it is open, if it is a relay's.
    pub seen: Option<Seen>,
    /// Its place among the streams that there may be: to be kept while it is open.
    pub place: Share,
}

/// Why a stream may not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// It comes from, or leads to, a relay that it must not.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// There are too many, or too many at once.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

pub(crate) struct StreamEntry {
    pub(crate) outside: Option<Arc<dyn ServedStream>>,
    pub(crate) protocol: Protocol,
    pub(crate) view: Arc<View>,
    _open: StreamGuard,
}

/// What an admin page may know of a stream while it is served.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) node_id: Mutex<String>,
    /// Its subscribers in each scope.
    pub(crate) parts: Mutex<Slab<(TypeUrl, Part)>>,
    /// Something was visited for it, so that it is being answered.
    pub(crate) served: AtomicBool,
    /// Why it must end, if it must: its own task finds out, in the middle of serving it.
    must_end: Mutex<Option<MustEnd>>,
}

enum MustEnd {
    Elsewhere(String),
    Refused(LimitError),
}

/// A subscriber of one scope.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) scope: Arc<Scope>,
    pub(crate) id: SubscriberId,
    /// Where it is among all parts of its stream.
    pub(crate) seat: usize,
    /// Some of what it said was not told as it came: a wildcard or glob may not have been answered by that.
    pub(crate) sets_aside: bool,
}

impl View {
    pub(crate) fn open(&self, scope: Arc<Scope>, type_url: &TypeUrl, waker: &Waker) -> Part {
        let id = scope.open(type_url, waker.clone());
        let mut parts = lock(&self.parts);
        let part = Part { scope, id, seat: parts.vacant_key(), sets_aside: false };
        parts.insert((type_url.clone(), part.clone()));
        part
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, part: &Part) {
        let left = lock(&self.parts).try_remove(part.seat);
        debug_assert!(left.is_some_and(|(_, left)| left.id == part.id && Arc::ptr_eq(&left.scope, &part.scope)));
        part.scope.close(type_url, part.id);
    }

    /// Has the stream ended by the next [`sweep`](RelayCore::sweep).
    pub(crate) fn end(&self, reason: impl Into<String>) {
        *lock(&self.must_end) = Some(MustEnd::Elsewhere(reason.into()));
    }

    /// The same, because there is too much that it asks for.
    pub(crate) fn refuse(&self, error: LimitError) {
        *lock(&self.must_end) = Some(MustEnd::Refused(error));
    }

    /// Why nothing can be said to the stream: what it wants is of origins that cannot be reached since before `since`,
    /// and nothing is known of any of it (rule 157).
    fn unknown(&self, since: Instant) -> Option<String> {
        if self.served.load(Ordering::Relaxed) {
            return None;
        }
        let parts = lock(&self.parts).clone();
        let mut reason = None;
        for (_, (_, part)) in &parts {
            reason = Some(part.scope.upstream()?.unreachable_since(since).filter(|_| !part.scope.has_work(part.id))?);
        }
        reason
            .map(|reason| format!("nothing is known of what was asked for, and its origin cannot be reached: {reason}"))
    }
}

impl RelayCore {
    /// Whether there may be a stream for who says this before any request (rule 159).
    ///
    /// # Errors
    /// It would close a loop of relays, what is said of them cannot be read, or there are too many streams.
    pub fn admit(&self, now: Instant, metadata: &MetadataMap) -> Result<Admitted, AdmitError> {
        let place = self.quotas.stream(now).inspect_err(|error| self.metrics.downstream_refused(error.key))?;
        let seen = self.relays.hear(Side::Downstream, metadata).inspect_err(|_| self.metrics.downstream_loop())?;
        Ok(Admitted { metadata: self.relays.say(Side::Downstream), seen, place })
    }

    /// Says of a call that is handed on to an origin, as it is, that it came by here (rule 159).
    ///
    /// # Errors
    /// It did so before.
    pub(crate) fn hand_on(&self, metadata: &mut MetadataMap) -> Result<(), LoopError> {
        self.relays.hand_on(metadata)
    }

    /// A new stream: what its driver shows of it is for admin pages. The result is what a
    /// [`Stream`] of that protocol pulls from; the waker says that there is something to pull.
    pub fn open_stream(
        self: &Arc<Self>,
        protocol: Protocol,
        waker: Waker,
        outside: Option<Arc<dyn ServedStream>>,
    ) -> Routes {
        let view = Arc::new(View::default());
        let _open = self.metrics.stream_opened(protocol);
        let entry = StreamEntry { outside, protocol, view: view.clone(), _open };
        let stream = self.insert_stream(entry);
        Routes::new(self.clone(), stream, waker, view)
    }

    /// Every open stream.
    pub fn streams(&self) -> Vec<Arc<dyn ServedStream>> {
        lock(&self.streams).values().filter_map(|stream| stream.outside.clone()).collect()
    }

    /// Ends the streams that ask for too much.
    pub(crate) fn end_greedy_streams(&self) {
        let greedy = |stream: &Arc<StreamEntry>| Some((stream.outside.clone()?, lock(&stream.view.must_end).take()?));
        let found: Vec<_> = lock(&self.streams).values().filter_map(greedy).collect();
        for (stream, must_end) in found {
            match must_end {
                MustEnd::Elsewhere(reason) => stream.end(&reason),
                MustEnd::Refused(error) => {
                    self.metrics.downstream_refused(error.key);
                    stream.refuse(&error.to_string());
                }
            }
        }
    }

    /// Ends the streams that nothing can be said to, so that their clients go to their next server (rule 157).
    pub(crate) fn end_unknown_streams(&self, now: Instant) {
        let Some(since) = now.checked_sub(UNKNOWN_GRACE) else { return };
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        for stream in streams {
            if let Some(reason) = stream.view.unknown(since) {
                stream.view.end(reason);
            }
        }
    }
}
