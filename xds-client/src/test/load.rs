//! Load reports to a server.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire;
use xds_transport::wire::load_report::{LoadStatsRequest, LoadStatsResponse};

use super::server::{Server, State};
use crate::load::LoadStream;

/// What a server knows of load.
#[derive(Default)]
pub(super) struct Taken {
    /// What it asks for, and how often that changed.
    asks: Option<Bytes>,
    changes: usize,
    reports: Vec<LoadStatsRequest>,
    streams: usize,
}

/// A stream of load reports.
pub(super) struct Link {
    pub(super) server: String,
    nudged: Weak<AtomicBool>,
    stream: LoadStream,
    open: Option<Open>,
}

#[derive(Default)]
struct Open {
    /// The client said who it is.
    introduced: bool,
    /// What it was told of what it is asked for.
    told: usize,
}

impl Server {
    /// It asks who reports load for these clusters, or for all if it names none, this often.
    pub fn ask_for_load(&self, clusters: &[&str], interval: Duration) {
        let seconds = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(interval.subsec_nanos()).unwrap_or_default();
        self.answer_load(&LoadStatsResponse {
            clusters: clusters.iter().map(|&name| name.to_owned()).collect(),
            send_all_clusters: clusters.is_empty(),
            load_reporting_interval: Some(wire::Duration { seconds, nanos }),
            ..LoadStatsResponse::default()
        });
    }

    /// The same, in its own words.
    pub fn answer_load(&self, response: &LoadStatsResponse) {
        self.change(|state, _| {
            state.load.asks = Some(response.encode_to_vec().into());
            state.load.changes += 1;
        });
        self.network.settle();
    }

    /// What was reported since this was looked at last, but for who says so.
    pub fn take_load_reports(&self) -> Vec<LoadStatsRequest> {
        self.change(|state, _| std::mem::take(&mut state.load.reports))
    }

    /// How many streams of load reports it has.
    pub fn load_streams(&self) -> usize {
        self.change(|state, _| state.load.streams)
    }
}

/// Whether anything happened.
pub(super) fn drive(links: &mut Vec<Link>, now: Instant, servers: &mut BTreeMap<String, State>) -> bool {
    let mut happened = false;
    links.retain_mut(|link| {
        let server = servers.entry(link.server.clone()).or_insert_with(State::new);
        let is_over = link.nudged.strong_count() == 0;
        if is_over {
            link.close(now, server);
            server.load.streams -= usize::from(link.open.is_some());
            happened = true;
        } else {
            happened |= link.drive(now, server);
        }
        !is_over
    });
    happened
}

impl Link {
    pub(super) fn new(server: &str, nudged: Weak<AtomicBool>, stream: LoadStream) -> Self {
        Self { server: server.to_owned(), nudged, stream, open: None }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.stream.poll_timeout()
    }

    /// Whoever counted is gone: what was counted last is told at once.
    fn close(&mut self, now: Instant, server: &mut State) {
        if self.stream.close(now).is_some() {
            self.exchange(now, server);
        }
    }

    /// The server ends the stream, if there is one.
    pub(super) fn cut(&mut self, now: Instant, server: &mut State) -> bool {
        let was_open = self.open.take().is_some();
        if was_open {
            server.load.streams -= 1;
            // Without jitter.
            self.stream.disconnected(now, &server.reason, u64::MAX);
        }
        was_open
    }

    fn drive(&mut self, now: Instant, server: &mut State) -> bool {
        let mut happened = self.nudged.upgrade().is_some_and(|nudged| nudged.swap(false, Ordering::Relaxed));
        if !server.up {
            happened |= self.cut(now, server);
        }
        self.stream.handle_timeout(now);
        if self.stream.should_connect(now) {
            happened = true;
            if server.up {
                server.load.streams += 1;
                self.stream.connected();
                self.open = Some(Open::default());
            } else {
                self.stream.disconnected(now, &server.reason, u64::MAX);
            }
        }
        happened | self.exchange(now, server)
    }

    fn exchange(&mut self, now: Instant, server: &mut State) -> bool {
        let Some(open) = &mut self.open else { return false };
        let mut happened = false;
        while let Some(message) = self.stream.poll_transmit(now) {
            happened = true;
            if std::mem::replace(&mut open.introduced, true) {
                server.load.reports.push(LoadStatsRequest::decode(message).unwrap_or_default());
            }
        }
        let Some(asks) = server.load.asks.clone().filter(|_| !server.silent && open.told < server.load.changes) else {
            return happened;
        };
        open.told = server.load.changes;
        if let Err(error) = self.stream.handle_message(now, asks) {
            self.open = None;
            server.load.streams -= 1;
            self.stream.disconnected(now, &error.to_string(), u64::MAX);
        }
        true
    }
}
