//! The streams that a relay serves: which there may be, and which must end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;
use xds_transport::Protocol;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::{RequestRoom, Routes, Share, View};

use crate::config::{ClientLimit, ClientLimits};
use crate::lock::lock;
use crate::relay_core::by_size::BySize;
use crate::relay_core::client_use::ClientUse;
use crate::relay_core::core::RelayCore;
use crate::relay_core::identity::Identity;
use crate::relay_core::loops::{LoopError, Seen, Side};
use crate::relay_core::quotas::LimitError;
use crate::relay_core::served_client::ServedClient;
use crate::relay_core::stream_entry::{MustEnd, ServedStream, StreamEntry};

/// How long an origin may be away before a client of which nothing is known is sent elsewhere.
const UNKNOWN_GRACE: Duration = Duration::from_secs(1);

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

impl RelayCore {
    /// Whether there may be a stream for who says this before any request (rule 159).
    ///
    /// # Errors
    /// It would close a loop of relays, what is said of them cannot be read, or there are too many streams.
    pub fn admit(&self, now: Instant, metadata: &MetadataMap) -> Result<Admitted, AdmitError> {
        let place = self.admit_call(now)?;
        let seen = self.relays.hear(Side::Downstream, metadata).inspect_err(|_| self.metrics.downstream_loop())?;
        Ok(Admitted { metadata: self.relays.say(Side::Downstream), seen, place })
    }

    /// A place for one more stream, of whatever kind but load reports.
    ///
    /// # Errors
    /// There are too many, or too many at once.
    pub(crate) fn admit_call(&self, now: Instant) -> Result<Share, LimitError> {
        self.quotas.stream(now).inspect_err(|error| self.metrics.downstream_refused(error.key))
    }

    /// Whether a client may have one more stream: of load reports, or any other. Where there are rules it is under one, by its position
    /// and what it allows; what that does not limit its part of what all clients may have does. It counts until the result is dropped.
    ///
    /// # Errors
    /// It has as many as one client may have, or opens too many at once.
    pub fn admit_client(
        &self,
        client: (Identity, bool),
        under: Option<(usize, ClientLimits)>,
        now: Instant,
    ) -> Result<ClientUse, LimitError> {
        let opened = self.client_uses.open(client, under, now);
        opened.map_err(|error| {
            self.count_of_client(under.map(|under| under.0), error.key);
            LimitError::from(error)
        })
    }

    /// How much of something one client may have, where all may have so much of it, if that is limited.
    pub(crate) fn part_of_one_client(&self, all: usize) -> Option<usize> {
        self.client_uses.part_of(all)
    }

    /// A client met a limit of its own, by its path: that of its rule, or its part of what all may have.
    pub(crate) fn count_of_client(&self, rule: Option<usize>, path: &'static str) {
        match rule.filter(|_| ClientLimit::of_path(path).is_some()) {
            Some(rule) => self.metrics.client_refused(rule, path),
            None => self.metrics.downstream_refused("one_client"),
        }
    }

    /// How many streams of load reports there are.
    pub(crate) fn load_report_streams(&self) -> usize {
        self.quotas.load_reports()
    }

    /// Whether there may be one more stream of load reports, which there is until the result is dropped.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn admit_load_report(&self) -> Result<Share, LimitError> {
        self.quotas.load_report().inspect_err(|error| self.metrics.downstream_refused(error.key))
    }

    /// Says of a call that is handed on to an origin, as it is, that it came by here (rule 159).
    ///
    /// # Errors
    /// It did so before.
    pub(crate) fn hand_on(&self, metadata: &mut MetadataMap) -> Result<(), LoopError> {
        self.relays.hand_on(metadata)
    }

    /// A new stream: what its driver shows of it is for admin pages. The result is what a
    /// [`Stream`](xds_transport::server::Stream) of that protocol pulls from; the waker says that there is something to pull.
    pub fn open_stream(
        self: &Arc<Self>,
        protocol: Protocol,
        waker: Waker,
        outside: Option<Arc<dyn ServedStream>>,
    ) -> Routes {
        let view = Arc::new(View::default());
        let open = self.metrics.stream_opened(protocol);
        let entry = Arc::new(StreamEntry::new(outside, protocol, view.clone(), waker.clone(), open));
        let number = self.federation.number_routes();
        lock(&self.streams).insert(number, entry.clone());
        let client = ServedClient::new(self.clone(), number, entry);
        Routes::new(self.federation.clone(), number, Box::new(client), waker, view)
    }

    /// Every open stream.
    pub fn streams(&self) -> Vec<Arc<dyn ServedStream>> {
        lock(&self.streams).values().filter_map(|stream| stream.outside.clone()).collect()
    }

    /// Ends the streams that ask for too much.
    pub(crate) fn end_greedy_streams(&self) {
        let greedy = |stream: &Arc<StreamEntry>| Some((stream.outside.clone()?, stream.take_end()?));
        let found: Vec<_> = lock(&self.streams).values().filter_map(greedy).collect();
        for (stream, must_end) in found {
            match must_end {
                MustEnd::Elsewhere(reason) => stream.end(&reason),
                MustEnd::Refused(error) => {
                    self.metrics.downstream_refused(error.key);
                    stream.refuse(&LimitError::from(error).to_string());
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
                stream.end(reason);
            }
        }
    }

    /// Ends streams of the clients that ask for most in requests that have so much room, until what they leave is as much as is lacking: of
    /// each client the largest first.
    pub(crate) fn end_largest(&self, room: &Arc<RequestRoom>, type_url: &TypeUrl, mut lacking: usize) {
        let streams = lock(&self.streams).clone();
        let sized = streams.into_iter().map(|(number, stream)| (stream.view.size_in(room, type_url), number, stream));
        let mut clients = BTreeMap::<_, Vec<_>>::new();
        for (size, number, stream) in sized.filter(|(size, ..)| *size > 0) {
            clients.entry(stream.counted_with(number)).or_default().push((size, stream));
        }
        let mut by_size = BySize::of(clients.into_values(), |streams| streams.iter().map(|(size, _)| size).sum());
        let exactly = |streams: &Vec<(usize, Arc<StreamEntry>)>| match streams.as_slice() {
            [(size, _)] => *size,
            streams => View::size_of_all(streams.iter().map(|(_, stream)| &*stream.view), room, type_url),
        };
        while let Some(mut streams) = by_size.pop(exactly).filter(|_| lacking > 0) {
            streams.sort_by_key(|(size, _)| Reverse(*size));
            for (size, stream) in streams {
                if lacking == 0 {
                    break;
                }
                lacking = lacking.saturating_sub(size);
                stream.refuse(room.error());
            }
        }
    }
}
