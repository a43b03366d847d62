//! A stream that a relay serves, as others than its own task see it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use prost::Message as _;
use xds_transport::Protocol;
use xds_transport::server::Stream;
use xds_transport::wire::Node;
use xdstp_client::federation::{OverLimit, View};

use crate::config::ClientRule;
use crate::lock::lock;
use crate::metrics::StreamGuard;
use crate::relay_core::client_use::ClientUse;
use crate::relay_core::rollout::ClientName;
use crate::releases::Release;

/// A stream as its driver shows it: for admin pages, and to end it.
pub trait ServedStream: Send + Sync {
    /// Where the client is.
    fn peer(&self) -> &str;

    /// What the client may ask for; anything, where this is left out.
    fn rule(&self) -> Option<Arc<ClientRule>> {
        None
    }

    /// Whether there is one: asked for each name.
    fn is_limited(&self) -> bool {
        self.rule().is_some()
    }

    /// What its client uses up over all of its streams, where that is counted.
    fn client_use(&self) -> Option<&ClientUse> {
        None
    }

    /// Finds the [rule](Self::rule) of the client again, where rules change while streams are open.
    ///
    /// # Errors
    /// None is for it any more: what it is to be told.
    fn judge(&self) -> Result<(), String> {
        Ok(())
    }

    /// Looks at the stream, unless it is over, or busy for so long that nobody should wait for it.
    fn inspect(&self, look: &mut dyn FnMut(&Stream));

    /// Ends the stream: the client reconnects, elsewhere if it can.
    fn end(&self, reason: &str);

    /// Ends the stream because it asks for too much; a driver that leaves this out ends it as any.
    fn refuse(&self, reason: &str) {
        self.end(reason);
    }

    /// Ends the stream because its client may not have one; a driver that leaves this out ends it as any.
    fn deny(&self, reason: &str) {
        self.end(reason);
    }
}

pub(crate) struct StreamEntry {
    pub(crate) outside: Option<Arc<dyn ServedStream>>,
    pub(crate) protocol: Protocol,
    pub(crate) view: Arc<View>,
    /// What its client says of itself, encoded; empty before that.
    pub(crate) node: Mutex<Bytes>,
    /// The id in that.
    node_id: Mutex<Arc<str>>,
    pub(crate) opened: Instant,
    /// Why it must end, if it must: its own task finds out, in the middle of serving it.
    must_end: Mutex<Ending>,
    /// Which releases it is served, none before the first, by where they are among those of the relay.
    pub(crate) releases: Mutex<BTreeMap<usize, Option<Release>>>,
    /// How often another rule counted for its client.
    judged: AtomicU64,
    /// Has its own task look at it.
    waker: Waker,
    _open: StreamGuard,
}

/// Whose use of something is one, where many use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CountedWith {
    Client(u64),
    /// That of this stream alone.
    Nobody(u64),
}

#[derive(Default)]
enum Ending {
    #[default]
    No,
    Must(MustEnd),
    /// It was told so: that it takes its time to end is no second reason.
    Told,
}

pub(crate) enum MustEnd {
    Elsewhere(String),
    Refused(OverLimit),
}

impl StreamEntry {
    /// A stream that counts as open for as long as this is there.
    pub(crate) fn new(
        outside: Option<Arc<dyn ServedStream>>,
        protocol: Protocol,
        view: Arc<View>,
        waker: Waker,
        open: StreamGuard,
    ) -> Self {
        let (node, opened, must_end) = (Mutex::default(), Instant::now(), Mutex::default());
        let (node_id, releases, judged) = (Mutex::new(Arc::from("")), Mutex::default(), AtomicU64::default());
        Self { outside, protocol, view, node, node_id, opened, must_end, releases, judged, waker, _open: open }
    }

    /// What its client may ask for, if not anything.
    pub(crate) fn rule(&self) -> Option<Arc<ClientRule>> {
        self.outside.as_ref()?.rule()
    }

    /// Whether its client may not ask for anything.
    pub(crate) fn is_limited(&self) -> bool {
        self.outside.as_ref().is_some_and(|outside| outside.is_limited())
    }

    /// What its client uses up, where that is counted.
    pub(crate) fn client_use(&self) -> Option<&ClientUse> {
        self.outside.as_ref()?.client_use()
    }

    /// Who is counted together with whom, where this is the stream of a number: all streams of one client, and each that may be anybody's.
    pub(crate) fn counted_with(&self, number: u64) -> CountedWith {
        let of_one = self.client_use().filter(|client| !client.identity().is_this_machine());
        of_one.map_or(CountedWith::Nobody(number), |client| CountedWith::Client(client.number()))
    }

    /// Another rule counts for its client: its own task looks at all that is asked for, which it may have been about to be.
    pub(crate) fn is_judged(&self) {
        // After the rule was replaced: who sees this sees that.
        self.judged.fetch_add(1, Ordering::Release);
        self.waker.wake_by_ref();
    }

    /// How often that was so.
    pub(crate) fn judged(&self) -> u64 {
        self.judged.load(Ordering::Acquire)
    }

    /// Its client says who it is.
    pub(crate) fn identify(&self, node: &Bytes, id: &str) {
        *lock(&self.node_id) = id.into();
        lock(&self.node).clone_from(node);
    }

    /// Who its client is; the number is that of the stream.
    pub(crate) fn client(&self, number: u64) -> ClientName {
        let id = lock(&self.node_id).clone();
        if id.is_empty() { ClientName::Stream(number) } else { ClientName::Node(id) }
    }

    /// Whether its client has said who it is.
    pub(crate) fn has_node(&self) -> bool {
        !lock(&self.node).is_empty()
    }

    /// What its client says of itself.
    pub(crate) fn node(&self) -> Node {
        let encoded = lock(&self.node).clone();
        Node::decode(encoded).unwrap_or_default()
    }

    /// Has the stream ended by the next [`sweep`](crate::relay_core::RelayCore::sweep).
    pub(crate) fn end(&self, reason: impl Into<String>) {
        self.must_end(MustEnd::Elsewhere(reason.into()));
    }

    /// The same, because there is too much that it asks for.
    pub(crate) fn refuse(&self, error: OverLimit) {
        self.must_end(MustEnd::Refused(error));
    }

    /// Why it must end, once.
    pub(crate) fn take_end(&self) -> Option<MustEnd> {
        let ending = &mut *lock(&self.must_end);
        match mem::take(ending) {
            Ending::No => None,
            Ending::Told => {
                *ending = Ending::Told;
                None
            }
            Ending::Must(why) => {
                *ending = Ending::Told;
                Some(why)
            }
        }
    }

    fn must_end(&self, why: MustEnd) {
        let ending = &mut *lock(&self.must_end);
        if !matches!(ending, Ending::Told) {
            *ending = Ending::Must(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn a_stream_that_takes_its_time_to_end_is_ended_once() {
        let metrics = Metrics::new([]);
        let open = metrics.stream_opened(Protocol::Delta);
        let entry = StreamEntry::new(None, Protocol::Delta, Arc::default(), Waker::noop().clone(), open);
        assert!(entry.take_end().is_none());
        entry.end("first");
        entry.end("second");
        assert!(matches!(entry.take_end(), Some(MustEnd::Elsewhere(why)) if why == "second"));
        entry.end("third");
        assert!(entry.take_end().is_none());
    }
}
