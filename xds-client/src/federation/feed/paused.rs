//! Types whose stream ended while those of others go on: as if the origin were away, for them.

use std::time::{Duration, Instant};

use xdstp_cache::TypeUrl;

use super::Feed;
use crate::federation::lock::lock;

/// An origin may have nothing to say to who returns with all it has. A stream that does not last is over sooner, with the longest wait
/// before it.
const STEADY: Duration = Duration::from_secs(60);
/// The same of one that nobody answered: some servers do only with the first response, and a proxy may wait for one that is not there.
const UNANSWERED: Duration = Duration::from_secs(300);

/// What an operator should look at.
const PAUSED: &str =
    "the stream of a type ended, and was not answered since: what is here of it is served, and the log says why";

impl Feed {
    /// The stream of one type is over: what is here of it is served, and what others say ends no answer for it.
    pub(super) fn pause_type(&mut self, now: Instant, type_url: &TypeUrl, why: &str) {
        let words = format!("the stream of {type_url} ended: {why}");
        if self.says(&words, now) {
            tracing::info!(origin = %self.server.origin, stream = %self.label, "{words}");
        } else {
            tracing::debug!(origin = %self.server.origin, stream = %self.label, "{words}");
        }
        self.markers.forget_type(type_url);
        let settled = self.settling.pause_type(type_url);
        self.settle(settled, now);
        self.scopes.all().iter().for_each(|(seat, scope)| scope.type_lost(seat.server, type_url));
        self.paused.insert(type_url.clone(), now + UNANSWERED);
        lock(&self.state).hint = Some(PAUSED);
    }

    /// The next stream is answered: it may last.
    pub(super) fn type_lasts(&mut self, now: Instant, type_url: &TypeUrl) {
        self.paused.get_mut(type_url).into_iter().for_each(|at| *at = now + STEADY);
    }

    /// It is answered, or the next one lasts.
    pub(super) fn resume_type(&mut self, type_url: &TypeUrl) {
        if self.paused.remove(type_url).is_none() {
            return;
        }
        // Of some of them it may say nothing.
        self.scopes.all().iter().for_each(|(_, scope)| scope.ask());
        if self.paused.is_empty() {
            lock(&self.state).hint.take_if(|hint| *hint == PAUSED);
        }
    }

    pub(super) fn resume_steady(&mut self, now: Instant) {
        let steady: Vec<_> = self.paused.iter().filter(|(_, at)| **at <= now).map(|(of, _)| of.clone()).collect();
        steady.iter().for_each(|type_url| self.resume_type(type_url));
    }
}
