//! The servers that an origin is reached at, and the streams to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use xds_transport::Protocol;
use xdstp_cache::Selector;

use crate::federation::dial::Dial;
use crate::federation::lock::lock;
use crate::federation::origin::Speaker;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::server::Server;
use crate::federation::speakers::Speakers;
use crate::federation::upstream::{Seated, Undialed, Upstream};

/// The servers of an origin, in order of preference.
pub(crate) struct Servers {
    all: Vec<OneServer>,
    /// What they are called.
    names: Arc<[Arc<str>]>,
    dial: Arc<dyn Dial>,
}

/// One of them, and the streams to it that scopes share.
pub(crate) struct OneServer {
    server: Arc<Server>,
    /// The streams that carry its `xdstp:` names, while anybody wants one: one for each selector.
    streams: Mutex<BTreeMap<Option<Arc<Selector>>, Weak<Upstream>>>,
    /// What the requests of that stream have room for, if that is a limit.
    room: Option<Arc<RequestRoom>>,
    /// What a request may have, in bytes.
    max_request_bytes: usize,
}

impl Servers {
    pub(crate) fn new(all: Vec<OneServer>, dial: Arc<dyn Dial>) -> Self {
        let names = all.iter().map(|one| one.server.name.as_str().into()).collect();
        Self { all, names, dial }
    }

    pub(crate) fn first(&self) -> Option<&OneServer> {
        self.all.first()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// What they are called.
    pub(crate) fn names(&self) -> &Arc<[Arc<str>]> {
        &self.names
    }

    /// Feeds a scope from the first, of which there is no other.
    pub(crate) fn feed_from_one(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        if let Some(one) = self.first() {
            scope.feed_from(Arc::new(one.seat(&*self.dial, scope, 0, speaker, Arc::default)));
        }
    }

    /// A seat for a scope at the stream of one of them.
    pub(crate) fn seat(
        &self,
        at: usize,
        scope: &Arc<Scope>,
        speaker: &Speaker,
        speakers: &Arc<Mutex<Speakers>>,
    ) -> Option<Seated> {
        let one = self.all.get(at)?;
        if at > 0 {
            tracing::info!(origin = %one.server.origin, server = %one.server.name, stream = %speaker.label,
                "asked, for those before it fail, and something is wanted that is not known");
            scope.has_room(at, one.room_of(&scope.key));
        }
        Some(one.seat(&*self.dial, scope, at, &|| speaker.clone(), || speakers.clone()))
    }
}

impl OneServer {
    pub(crate) fn new(server: Server, max_request_bytes: usize) -> Self {
        // Over delta what does not fit goes into the next request.
        let room = (server.protocol == Protocol::Sotw).then(|| RequestRoom::new(max_request_bytes));
        Self { server: Arc::new(server), streams: Mutex::default(), room, max_request_bytes }
    }

    /// What the requests have room for that name what a scope wants.
    pub(crate) fn room_of(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        let of_server = self.room.clone()?;
        Some(if scope.has_own_stream() { RequestRoom::new(self.max_request_bytes) } else { of_server })
    }

    fn seat(
        &self,
        dial: &dyn Dial,
        scope: &Arc<Scope>,
        at: usize,
        speaker: &dyn Fn() -> Speaker,
        speakers: impl Fn() -> Arc<Mutex<Speakers>>,
    ) -> Seated {
        let new = || Undialed::new(self.server.clone(), speaker(), speakers(), &scope.key);
        let upstream = match scope.key.has_own_stream() {
            true => new().dial(dial),
            false => self.shared(scope.key.selector(), new, dial),
        };
        upstream.seat(scope, at)
    }

    /// The stream that carries its `xdstp:` names for a selector. Of those who find none the first dials it, not under the lock.
    fn shared(
        &self,
        selector: Option<&Arc<Selector>>,
        new: impl FnOnce() -> Undialed,
        dial: &dyn Dial,
    ) -> Arc<Upstream> {
        let selector = selector.cloned();
        let known = lock(&self.streams).get(&selector).and_then(Weak::upgrade);
        if let Some(upstream) = known {
            return upstream;
        }
        let new = new();
        let known = {
            let mut streams = lock(&self.streams);
            let known = streams.get(&selector).and_then(Weak::upgrade);
            if known.is_none() {
                streams.retain(|_, stream| stream.strong_count() > 0);
                streams.insert(selector, Arc::downgrade(&new.upstream));
            }
            known
        };
        known.unwrap_or_else(|| new.dial(dial))
    }
}
