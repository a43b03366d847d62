//! The stream of load reports to one server, without I/O.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::Node;
use xds_transport::wire::load_report::{ClusterStats, LoadStatsRequest, LoadStatsResponse, SEND_ALL_CLUSTERS};

use super::ask::{Ask, Wanted};
use super::counts::{Cursor, Loads};
use super::error::LoadStreamError;
use crate::backoff::Backoff;

/// The shortest interval: what a server asks for more often it is told this often, as gRPC does.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest: no process runs as long.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// What a message measures before what is left goes into another: servers take 4 MiB.
const MESSAGE_BYTES: usize = 1 << 20;
/// How long the last report may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Decides what one server is told of the load, and when to open a stream to it: for who has a [`Transport`](crate::Transport)
/// of load reports, as [`Upstream`](crate::upstream::Upstream) is for resources.
///
/// Whoever drives it calls [`handle_timeout`](Self::handle_timeout) whenever it is nudged and at
/// [`poll_timeout`](Self::poll_timeout), then asks [`should_connect`](Self::should_connect), and
/// [`poll_transmit`](Self::poll_transmit) while there is a stream and room on it. When nobody counts any more it
/// [closes](Self::close) it.
pub struct LoadStream {
    loads: Arc<Loads>,
    introduction: Bytes,
    backoff: Backoff,
    state: State,
    /// Nobody counts any more.
    is_closing: bool,
}

enum State {
    /// There is none before then.
    Down(Option<Instant>),
    Connecting,
    Up {
        introduced: bool,
        asked: Option<Box<Asked>>,
        /// What the last message said, until there is room for another.
        on_its_way: Option<OnItsWay>,
    },
}

struct Asked {
    wanted: Wanted,
    endpoints: bool,
    interval: Duration,
    due: Instant,
    /// It was seen that it is: it waits for room on the stream, and not for time.
    waits_for_room: bool,
    /// A part of the report is out, up to there.
    after: Option<Cursor>,
}

struct OnItsWay {
    /// When it was taken.
    at: Instant,
    reported: Vec<ClusterStats>,
}

impl LoadStream {
    pub(super) fn new(loads: Arc<Loads>, node: &Bytes, backoff: Backoff) -> Self {
        let node = introduced(node);
        let introduction = LoadStatsRequest { node, ..LoadStatsRequest::default() }.encode_to_vec().into();
        Self { loads, introduction, backoff, state: State::Down(None), is_closing: false }
    }

    /// Whether a stream should be opened now. It says so once: answer with [`connected`](Self::connected) or
    /// [`disconnected`](Self::disconnected).
    pub fn should_connect(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.state, State::Down(retry_at) if retry_at.is_none_or(|at| at <= now));
        let is_due = is_due && !self.is_closing;
        if is_due {
            self.state = State::Connecting;
        }
        is_due
    }

    /// A stream is open.
    pub fn connected(&mut self) {
        self.state = State::Up { introduced: false, asked: None, on_its_way: None };
    }

    /// The stream ended, or none came to be, for this reason. `random` is uniform over its range. What the last message said
    /// goes out again if there was no room for another since.
    pub fn disconnected(&mut self, now: Instant, reason: &str, random: u64) {
        let was = std::mem::replace(&mut self.state, State::Down(Some(now + self.backoff.next(random))));
        if let State::Up { on_its_way: Some(OnItsWay { at, reported }), .. } = was {
            self.loads.put_back(at, reported);
        }
        self.loads.set_trouble(Some(reason));
    }

    /// Nobody counts any more: what was not told yet is due now, if the server asked for it on a stream that there is. Whoever
    /// drives that sends what [`poll_transmit`](Self::poll_transmit) yields, ends its side, and waits for the server to end it,
    /// but no longer than until the moment that this gives. If it gives none nothing is to be told, and the stream is dropped.
    pub fn close(&mut self, now: Instant) -> Option<Instant> {
        self.is_closing = true;
        let State::Up { asked: Some(asked), .. } = &mut self.state else { return None };
        // From its beginning: what is out already is not told again, but what came since is.
        (asked.due, asked.after) = (now, None);
        Some(now + LAST_WORDS)
    }

    /// Takes in what the server asks for.
    ///
    /// # Errors
    /// When the stream must be closed.
    pub fn handle_message(&mut self, now: Instant, message: Bytes) -> Result<(), LoadStreamError> {
        let response = LoadStatsResponse::decode(message)?;
        let interval = interval(&response)?;
        let endpoints = response.report_endpoint_granularity;
        let wanted = match response.send_all_clusters {
            true => Wanted::All,
            false => Wanted::These(response.clusters.into_iter().collect()),
        };
        self.backoff.reset();
        self.loads.set_trouble(None);
        let State::Up { asked, .. } = &mut self.state else { return Ok(()) };
        if self.is_closing {
            return Ok(());
        }
        let is_same =
            |asked: &Asked| (&asked.wanted, asked.endpoints, asked.interval) == (&wanted, endpoints, interval);
        if !asked.as_deref().is_some_and(is_same) {
            let due = now + interval;
            *asked = Some(Box::new(Asked { wanted, endpoints, interval, due, waits_for_room: false, after: None }));
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

    /// The next message, encoded: who the client is, or a report that is due, in which there may be nothing. That there is room
    /// for it means that the stream took the one before: what was in that is taken for said.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let State::Up { introduced, asked, on_its_way } = &mut self.state else { return None };
        *on_its_way = None;
        if !std::mem::replace(introduced, true) {
            return Some(self.introduction.clone());
        }
        let due = asked.as_mut().filter(|asked| asked.due <= now)?;
        let ask = Ask {
            now,
            wanted: &due.wanted,
            endpoints: due.endpoints,
            only_news: self.is_closing,
            bytes: MESSAGE_BYTES,
        };
        let (reported, more) = self.loads.report(&ask, due.after.take());
        let is_last = more.is_none();
        due.after = more;
        if is_last {
            (due.due, due.waits_for_room) = (now + due.interval, false);
        }
        if is_last && self.is_closing {
            *asked = None;
            if reported.is_empty() {
                return None;
            }
        }
        *on_its_way = Some(OnItsWay { at: now, reported: reported.clone() });
        Some(LoadStatsRequest { cluster_stats: reported, ..LoadStatsRequest::default() }.encode_to_vec().into())
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
    use xds_transport::wire;

    use super::super::cluster::Key;
    use super::*;

    fn loads() -> Arc<Loads> {
        Arc::new(Loads::new("xds:1".into(), Arc::new(|_, _, _| {})))
    }

    /// Who drives it would come back at once, and again, for as long as the server does not read.
    #[test]
    fn r029_a_report_that_has_no_room_waits_for_no_moment() {
        let now = crate::upstream::now();
        let mut stream = LoadStream::new(loads(), &Bytes::new(), Backoff::default());
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
        let mut stream = LoadStream::new(loads(), &node.encode_to_vec().into(), Backoff::default());
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

    /// Nobody says that a report came: it counts as said when the transport takes more, and of a stream that ends before it goes
    /// out again.
    #[test]
    fn r029_what_a_stream_ended_before_it_was_taken_is_told_on_the_next() {
        let mut now = crate::upstream::now();
        let loads = loads();
        let mut stream = LoadStream::new(loads.clone(), &Bytes::new(), Backoff::default());
        let web = loads.cluster(Key { cluster: "web".into(), service: String::new() });
        stream.handle_timeout(now);
        let began = now;
        web.dropped("x");
        web.locality(&wire::Locality::default()).started(None);
        web.locality(&wire::Locality::default()).finished(true, &[("m", 2.0)], None);
        drop(web);
        let asked = LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() };
        for taken in [false, false, true] {
            assert!(stream.should_connect(now));
            stream.connected();
            assert!(stream.poll_transmit(now).is_some());
            stream.handle_message(now, asked.encode_to_vec().into()).unwrap();
            now += SHORTEST;
            let report = LoadStatsRequest::decode(stream.poll_transmit(now).unwrap()).unwrap();
            let [web] = &report.cluster_stats[..] else { panic!("{report:?}") };
            let interval = web.load_report_interval.unwrap();
            assert_eq!(interval.seconds, i64::try_from((now - began).as_secs()).unwrap());
            assert_eq!((web.total_dropped_requests, web.dropped_requests[0].dropped_count), (1, 1));
            let zone = &web.upstream_locality_stats[0];
            assert_eq!((zone.total_issued_requests, zone.total_successful_requests), (1, 1));
            assert_eq!(zone.load_metric_stats[0].total_metric_value, 2.0);
            if taken {
                assert!(stream.poll_transmit(now).is_none());
            }
            stream.disconnected(now, "over", 0);
            now += Duration::from_secs(300);
        }
        assert!(stream.should_connect(now));
        stream.connected();
        assert!(stream.poll_transmit(now).is_some());
        stream.handle_message(now, asked.encode_to_vec().into()).unwrap();
        let report = LoadStatsRequest::decode(stream.poll_transmit(now + SHORTEST).unwrap()).unwrap();
        assert_eq!(report.cluster_stats, []);
    }
}
