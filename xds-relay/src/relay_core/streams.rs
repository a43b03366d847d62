//! The streams a relay serves, as others than their own task see them.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use xds_transport::server::{Stream, Variant};
use xdstp_cache::{SubscriberId, TypeUrl};

use crate::config::Protocol;
use crate::metrics::StreamGuard;
use crate::relay_core::routes::Routes;
use crate::relay_core::scope::Scope;
use crate::relay_core::{RelayCore, lock};

/// A stream as its driver shows it: for admin pages, and to end it.
pub trait ServedStream: Send + Sync {
    /// Where the client is.
    fn peer(&self) -> &str;

    /// Looks at the stream, unless it is over.
    fn inspect(&self, look: &mut dyn FnMut(&Stream));

    /// Ends the stream: the client reconnects, elsewhere if it can.
    fn end(&self, reason: &str);
}

pub(crate) struct StreamEntry {
    pub(crate) outside: Option<Arc<dyn ServedStream>>,
    pub(crate) variant: Variant,
    pub(crate) view: Arc<View>,
    _open: StreamGuard,
}

/// What an admin page may know of a stream while it is served.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) node_id: Mutex<String>,
    /// Its subscribers in each scope.
    pub(crate) parts: Mutex<Vec<(TypeUrl, Part)>>,
    /// Why it must end, if it must: its own task finds out, in the middle of serving it.
    must_end: Mutex<Option<&'static str>>,
}

/// A subscriber of one scope.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) scope: Arc<Scope>,
    pub(crate) id: SubscriberId,
}

impl View {
    pub(crate) fn open(&self, scope: Arc<Scope>, type_url: &TypeUrl, waker: &Waker) -> Part {
        let id = scope.open(type_url, waker.clone());
        let part = Part { scope, id };
        lock(&self.parts).push((type_url.clone(), part.clone()));
        part
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, part: &Part) {
        lock(&self.parts).retain(|(_, open)| !(Arc::ptr_eq(&open.scope, &part.scope) && open.id == part.id));
        part.scope.close(type_url, part.id);
    }

    /// Has the stream ended by the next [`sweep`](RelayCore::sweep).
    pub(crate) fn end(&self, reason: &'static str) {
        *lock(&self.must_end) = Some(reason);
    }
}

impl RelayCore {
    /// A new stream: what its driver shows of it is for admin pages. The result is what a
    /// [`Stream`] of that variant pulls from; the waker says that there is something to pull.
    pub fn open_stream(
        self: &Arc<Self>,
        variant: Variant,
        waker: Waker,
        outside: Option<Arc<dyn ServedStream>>,
    ) -> Routes {
        let view = Arc::new(View::default());
        let _open = self.metrics.stream_opened(match variant {
            Variant::Delta => Protocol::Delta,
            Variant::Sotw => Protocol::Sotw,
        });
        let entry = StreamEntry { outside, variant, view: view.clone(), _open };
        let stream = self.insert_stream(entry);
        Routes::new(self.clone(), stream, waker, view)
    }

    /// Every open stream.
    pub fn streams(&self) -> Vec<Arc<dyn ServedStream>> {
        lock(&self.streams).values().filter_map(|stream| stream.outside.clone()).collect()
    }

    /// Ends the streams that ask for too much.
    pub(crate) fn end_greedy_streams(&self) {
        let greedy = |stream: &Arc<StreamEntry>| Some((stream.outside.clone()?, (*lock(&stream.view.must_end))?));
        let found: Vec<_> = lock(&self.streams).values().filter_map(greedy).collect();
        for (stream, reason) in found {
            stream.end(reason);
        }
    }
}
