//! One stream to a server: who it speaks for, and the scopes that it feeds.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use bytes::Bytes;

use crate::federation::dial::{Dial, Dialed, Position};
use crate::federation::feed::Feed;
use crate::federation::lock::lock;
use crate::federation::of_origin::OfOrigin;
use crate::federation::origin::Speaker;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::scopes::{Scopes, Seat};
use crate::federation::server::{Server, StreamState};
use crate::federation::speakers::Speakers;
use crate::federation::supply::{Status, Supply};
use crate::upstream::Consumer;

/// A stream that is open, or waits to be, for as long as a scope has a seat there.
pub(crate) struct Upstream {
    /// The node group it speaks for, or `xdstp`.
    label: String,
    scopes: Arc<Scopes>,
    speakers: Arc<Mutex<Speakers>>,
    state: Arc<Mutex<StreamState>>,
    position: Position,
    /// As whom it was opened.
    node: Bytes,
    /// How it was.
    again: OnceLock<Arc<dyn Dial>>,
    dialed: OnceLock<Box<dyn Dialed>>,
}

/// A scope's seat there.
pub(crate) struct Seated {
    upstream: Arc<Upstream>,
    seat: Seat,
}

/// A stream that scopes may have seats at, and that is not opened yet.
pub(crate) struct Undialed {
    pub(crate) upstream: Arc<Upstream>,
    feed: Feed,
}

impl Upstream {
    /// What a scope comes over it by, of whose servers it is one. It has something to ask from the start.
    pub(crate) fn seat(self: Arc<Self>, scope: &Arc<Scope>, server: usize, of_origin: &Arc<OfOrigin>) -> Seated {
        let seat = self.scopes.insert(scope, server, of_origin);
        Seated { upstream: self, seat }
    }

    fn nudge(&self) {
        if let Some(dialed) = self.dialed.get() {
            dialed.nudge();
        }
    }
}

impl Drop for Upstream {
    /// The stream ends, and asks for nothing any more.
    fn drop(&mut self) {
        for (seat, scope) in self.scopes.leaving() {
            scope.iter().for_each(|scope| scope.has_left(seat.key()));
        }
    }
}

impl Undialed {
    /// To a server, for scopes such as that of the key; `speakers` are those who may speak for it.
    pub(crate) fn new(
        server: Arc<Server>,
        Speaker { label, node }: Speaker,
        speakers: Arc<Mutex<Speakers>>,
        key: &ScopeKey,
    ) -> Self {
        let position = server.position;
        let scopes = Arc::new(Scopes::default());
        let state = Arc::<Mutex<StreamState>>::default();
        let by_node = matches!(key.of_all(), ScopeKey::Group(..));
        let selector = key.selector().cloned();
        let feed = Feed::new(label.clone(), by_node, selector, server, scopes.clone(), state.clone(), speakers.clone());
        let (again, dialed) = (OnceLock::new(), OnceLock::new());
        let upstream = Arc::new(Upstream { label, scopes, speakers, state, position, node, again, dialed });
        Self { upstream, feed }
    }

    /// Not to be done under a lock: how a server is dialed, is anybody's code. Whoever does has something to ask then, and so who has
    /// a seat here by that time need not say so again.
    pub(crate) fn dial(self, dial: &Arc<dyn Dial>) -> Arc<Upstream> {
        let Self { upstream, feed } = self;
        let _ = upstream.again.set(dial.clone());
        let _ = upstream.dialed.set(dial.dial(upstream.position, upstream.node.clone(), Box::new(feed)));
        upstream
    }
}

impl Supply for Seated {
    fn ask(&self) {
        self.upstream.scopes.ask(self.seat);
        self.upstream.nudge();
    }

    fn label(&self) -> &str {
        &self.upstream.label
    }

    fn status(&self) -> Status {
        let state = lock(&self.upstream.state);
        Status {
            connected: state.answered,
            relays: state.relays.as_ref().map(ToString::to_string),
            last_error: state.last_error.clone(),
            retry_at: state.retry_at,
            hint: state.hint,
            servers: Vec::new(),
        }
    }

    fn unreachable_since(&self, since: Instant) -> Option<String> {
        let state = lock(&self.upstream.state);
        let lost = state.is_lost() && state.lost_since.is_some_and(|lost| lost <= since);
        lost.then(|| state.last_error.clone().unwrap_or_else(|| "it ended the stream".into()))
    }

    fn dial_beside(&self, consumer: Box<dyn Consumer>) -> Option<Box<dyn Dialed>> {
        let Upstream { again, speakers, position, node, .. } = &*self.upstream;
        let speaker = lock(speakers).speaker();
        Some(again.get()?.dial(*position, speaker.unwrap_or_else(|| node.clone()), consumer))
    }

    fn join(&self, routes: u64, node: Bytes) {
        lock(&self.upstream.speakers).join(routes, node);
    }

    fn leave(&self, routes: u64) {
        lock(&self.upstream.speakers).leave(routes);
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        if self.upstream.scopes.leave(self.seat) {
            self.upstream.nudge();
        }
    }
}

#[cfg(test)]
mod tests;
