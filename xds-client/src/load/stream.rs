//! The stream of load reports to one server, without I/O.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::Node;
use xds_transport::wire::load_report::{LoadStatsRequest, LoadStatsResponse, SEND_ALL_CLUSTERS};

use super::counts::{Key, Loads, Wanted};
use super::error::LoadStreamError;
use crate::backoff::Backoff;

/// The shortest interval: what a server asks for more often it is told this often, as gRPC does.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest: no process runs as long.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// What a message measures before what is left goes into another: servers take 4 MiB.
const MESSAGE_BYTES: usize = 1 << 20;

/// Decides what one server is told of the load, and when to open a stream to it: for who has a [`Transport`](crate::Transport)
/// of load reports, as [`Upstream`](crate::upstream::Upstream) is for resources.
///
/// Whoever drives it calls [`handle_timeout`](Self::handle_timeout) whenever it is nudged and at
/// [`poll_timeout`](Self::poll_timeout), then asks [`should_connect`](Self::should_connect), and
/// [`poll_transmit`](Self::poll_transmit) while there is a stream and room on it.
pub struct LoadStream {
    loads: Arc<Loads>,
    introduction: Bytes,
    backoff: Backoff,
    state: State,
}

enum State {
    /// There is none before then.
    Down(Option<Instant>),
    Connecting,
    Up {
        introduced: bool,
        asked: Option<Asked>,
    },
}

struct Asked {
    wanted: Wanted,
    interval: Duration,
    due: Instant,
    /// It was seen that it is: it waits for room on the stream, and not for time.
    waits_for_room: bool,
    /// A part of the report is out, up to this cluster.
    after: Option<Key>,
}

impl LoadStream {
    pub(super) fn new(loads: Arc<Loads>, node: &Bytes, backoff: Backoff) -> Self {
        let node = introduced(node);
        let introduction = LoadStatsRequest { node, ..LoadStatsRequest::default() }.encode_to_vec().into();
        Self { loads, introduction, backoff, state: State::Down(None) }
    }

    /// Whether a stream should be opened now. It says so once: answer with [`connected`](Self::connected) or
    /// [`disconnected`](Self::disconnected).
    pub fn should_connect(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.state, State::Down(retry_at) if retry_at.is_none_or(|at| at <= now));
        if is_due {
            self.state = State::Connecting;
        }
        is_due
    }

    /// A stream is open.
    pub fn connected(&mut self) {
        self.state = State::Up { introduced: false, asked: None };
    }

    /// The stream ended, or none came to be, for this reason. `random` is uniform over its range.
    pub fn disconnected(&mut self, now: Instant, reason: &str, random: u64) {
        self.state = State::Down(Some(now + self.backoff.next(random)));
        self.loads.set_trouble(Some(reason));
    }

    /// Takes in what the server asks for.
    ///
    /// # Errors
    /// When the stream must be closed.
    pub fn handle_message(&mut self, now: Instant, message: Bytes) -> Result<(), LoadStreamError> {
        let response = LoadStatsResponse::decode(message)?;
        let interval = interval(&response)?;
        let wanted = match response.send_all_clusters {
            true => Wanted::All,
            false => Wanted::These(response.clusters.into_iter().collect()),
        };
        self.backoff.reset();
        self.loads.set_trouble(None);
        let State::Up { asked, .. } = &mut self.state else { return Ok(()) };
        if asked.as_ref().is_none_or(|asked| asked.wanted != wanted || asked.interval != interval) {
            *asked = Some(Asked { wanted, interval, due: now + interval, waits_for_room: false, after: None });
        }
        Ok(())
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.loads.begin(now);
        if let State::Up { asked: Some(asked), .. } = &mut self.state {
            asked.waits_for_room = asked.due <= now;
        }
    }

    /// The next message, encoded: who the client is, or a report that is due, in which there may be nothing. What is in it is
    /// taken for said.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let State::Up { introduced, asked } = &mut self.state else { return None };
        if !std::mem::replace(introduced, true) {
            return Some(self.introduction.clone());
        }
        let asked = asked.as_mut().filter(|asked| asked.due <= now)?;
        let (cluster_stats, last) = self.loads.report(now, &asked.wanted, asked.after.take(), MESSAGE_BYTES);
        if last.is_none() {
            (asked.due, asked.waits_for_room) = (now + asked.interval, false);
        }
        asked.after = last;
        Some(LoadStatsRequest { cluster_stats, ..LoadStatsRequest::default() }.encode_to_vec().into())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and all after it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Down(retry_at) => *retry_at,
            State::Connecting => None,
            State::Up { asked, .. } => asked.as_ref().filter(|asked| !asked.waits_for_room).map(|asked| asked.due),
        }
    }
}

impl fmt::Debug for LoadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadStream").finish_non_exhaustive()
    }
}

/// A node that can be asked for all clusters.
fn introduced(node: &Bytes) -> Bytes {
    let mut node = Node::decode(node.clone()).unwrap_or_default();
    node.client_features.push(SEND_ALL_CLUSTERS.to_owned());
    node.encode_to_vec().into()
}

fn interval(response: &LoadStatsResponse) -> Result<Duration, LoadStreamError> {
    let said = response.load_reporting_interval.unwrap_or_default();
    let wrong = LoadStreamError::Interval { seconds: said.seconds, nanos: said.nanos };
    let (Ok(seconds), Ok(nanos @ 0..1_000_000_000)) = (u64::try_from(said.seconds), u32::try_from(said.nanos)) else {
        return Err(wrong);
    };
    Ok(Duration::new(seconds, nanos).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who drives it would come back at once, and again, for as long as the server does not read.
    #[test]
    fn r029_a_report_that_has_no_room_waits_for_no_moment() {
        let now = crate::upstream::now();
        let mut stream = LoadStream::new(Arc::default(), &Bytes::new(), Backoff::default());
        assert!(stream.should_connect(now));
        stream.connected();
        assert!(stream.poll_transmit(now).is_some());
        let asked = LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() };
        stream.handle_message(now, asked.encode_to_vec().into()).unwrap();
        let due = stream.poll_timeout().unwrap();
        stream.handle_timeout(due);
        assert_eq!(stream.poll_timeout(), None);
        // What it is asked for anew changes nothing of that.
        stream.handle_message(due, asked.encode_to_vec().into()).unwrap();
        assert_eq!(stream.poll_timeout(), None);
        let late = due + 10 * SHORTEST;
        stream.handle_timeout(late);
        assert!(stream.poll_transmit(late).is_some() && stream.poll_transmit(late).is_none());
        assert_eq!(stream.poll_timeout(), Some(late + SHORTEST));
    }

    /// The first message says who it is, with that it can be asked for all clusters, and nothing else does.
    #[test]
    fn r029_the_node_is_said_once_on_each_stream_with_what_it_can_do() {
        let now = crate::upstream::now();
        let node = Node { id: "me".into(), client_features: vec!["other".into()], ..Node::default() };
        let mut stream = LoadStream::new(Arc::default(), &node.encode_to_vec().into(), Backoff::default());
        for _ in 0..2 {
            assert!(stream.should_connect(now) && !stream.should_connect(now));
            stream.connected();
            let first = LoadStatsRequest::decode(stream.poll_transmit(now).unwrap()).unwrap();
            let node = Node::decode(first.node).unwrap();
            assert_eq!((&*node.id, first.cluster_stats.len()), ("me", 0));
            assert_eq!(node.client_features, ["other", SEND_ALL_CLUSTERS]);
            assert!(stream.poll_transmit(now).is_none() && stream.poll_timeout().is_none());
            let asked = LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() };
            stream.handle_message(now, asked.encode_to_vec().into()).unwrap();
            let due = stream.poll_timeout().unwrap();
            assert!(stream.poll_transmit(due - Duration::from_nanos(1)).is_none());
            let report = LoadStatsRequest::decode(stream.poll_transmit(due).unwrap()).unwrap();
            assert!(report.node.is_empty() && stream.poll_timeout() == Some(due + SHORTEST));
            stream.disconnected(now, "over", 0);
        }
        assert!(matches!(stream.handle_message(now, vec![0xff].into()), Err(LoadStreamError::Unreadable(_))));
    }
}
