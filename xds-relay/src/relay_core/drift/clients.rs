//! Clients that do not have what is served: it was not sent to them, though nothing that they were sent waits for an answer; or
//! they rejected it. What is on its way is neither.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xdstp_cache::TypeUrl;

use crate::lock::lock;
use crate::relay_core::client_look::{accepts, look, parts};
use crate::relay_core::core::RelayCore;
use crate::relay_core::stream_entry::StreamEntry;

/// How long it is from one look to the other: longer than one type of a stream waits for another (15 s, rule 134).
const BETWEEN: Duration = Duration::from_secs(20);

/// Clients that have something yet to be sent, by their streams, with how many responses they were sent until then.
type Behind = BTreeMap<(u64, TypeUrl), u64>;

/// Looks twice: who is behind both times, and was sent nothing in between, is stuck.
#[derive(Default)]
pub(super) struct ClientLooks {
    first: Option<(Instant, Behind)>,
}

impl ClientLooks {
    /// The first look.
    pub(super) fn begin(&mut self, core: &RelayCore, now: Instant) {
        if self.first.is_none() {
            self.first = Some((now, core.clients_behind().0));
        }
    }

    /// How many clients are behind, and how many rejected what they were sent, once that is known.
    pub(super) fn poll(&mut self, core: &RelayCore, now: Instant) -> Option<(usize, usize)> {
        let is_due = |(at, _): &mut (Instant, Behind)| now.saturating_duration_since(*at) >= BETWEEN;
        let (_, before) = self.first.take_if(is_due)?;
        let (behind, rejected) = core.clients_behind();
        let stuck = behind.iter().filter(|(of, sent)| before.get(*of) == Some(*sent));
        let clients: BTreeSet<_> = stuck.map(|((client, _), _)| *client).collect();
        Some((clients.len(), rejected))
    }
}

impl RelayCore {
    /// With how many clients rejected what they were sent last.
    fn clients_behind(&self) -> (Behind, usize) {
        let (mut behind, mut rejected) = (Behind::new(), 0);
        self.visit_streams(None, |id, stream| {
            rejected += usize::from(look_at(id, stream, &mut behind));
            true
        });
        (behind, rejected)
    }
}

/// Whether its client rejected something. It is behind where nothing that it was sent waits for its answer.
fn look_at(id: u64, stream: &StreamEntry, behind: &mut Behind) -> bool {
    // Who has not said yet who it is is served nothing.
    if lock(&stream.node).is_empty() {
        return false;
    }
    let (mut idle, mut rejects) = (BTreeMap::new(), false);
    look(stream, |stream| {
        for session in stream.sessions() {
            rejects |= session.tally.last_nack.is_some() && !accepts(&session);
            if session.unanswered_since.is_none() {
                idle.insert(session.type_url.clone(), session.tally.responses);
            }
        }
    });
    for (type_url, scope, part) in parts(stream) {
        if let Some(sent) = idle.get(&type_url).filter(|_| scope.has_work(part)) {
            behind.insert((id, type_url), *sent);
        }
    }
    rejects
}
