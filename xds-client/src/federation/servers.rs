//! The servers that an origin is reached at, and the streams to them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use xds_transport::{Protocol, TypeRules};
use xdstp_cache::Selector;

use crate::federation::alike::Alike;
use crate::federation::dial::{Dial, Position};
use crate::federation::interner::Interner;
use crate::federation::lock::lock;
use crate::federation::loop_guard::LoopGuard;
use crate::federation::observer::Observer;
use crate::federation::of_origin::OfOrigin;
use crate::federation::origin::Speaker;
use crate::federation::realm::Authorities;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::server::Server;
use crate::federation::speakers::Speakers;
use crate::federation::upstream::{Seated, Undialed, Upstream};

/// The servers of an origin, in order of preference.
pub(crate) struct Servers {
    all: Vec<Arc<OneServer>>,
    /// What they are called.
    names: Arc<[Arc<str>]>,
    of_origin: Arc<OfOrigin>,
}

/// A server, and the streams to it that scopes share, of all origins that it is one of the servers of: there is one for each
/// selector, in whatever lists it stands.
pub struct OneServer {
    server: Arc<Server>,
    dial: Arc<dyn Dial>,
    /// The streams that carry its `xdstp:` names, while anybody wants one: one for each selector.
    streams: Mutex<BTreeMap<Option<Arc<Selector>>, Weak<Upstream>>>,
    /// What the requests of that stream have room for, if that is a limit.
    room: Option<Arc<RequestRoom>>,
    /// What a request may have, in bytes.
    max_request_bytes: usize,
}

/// What a server is to the core.
pub struct ServerSettings {
    /// What lines and counts go by: the origin that it is of, or else itself, where it is of several.
    pub origin: String,
    /// What it is called.
    pub name: String,
    /// Where it is dialed, of all positions that it is at.
    pub position: Position,
    /// What it speaks.
    pub protocol: Protocol,
    /// What is known of types.
    pub rules: Arc<TypeRules>,
    /// Which names are whose.
    pub authorities: Arc<Authorities>,
    /// How much a request to it may have.
    pub max_request_bytes: usize,
    /// What an operator should look at where it has a stream and requests, and says nothing for long.
    pub silent_hint: &'static str,
    /// How it is reached.
    pub dial: Arc<dyn Dial>,
    /// What is said of relays.
    pub loops: Arc<dyn LoopGuard>,
    /// Who counts.
    pub observer: Arc<dyn Observer>,
    /// The one of its federation.
    pub interner: Arc<Interner>,
}

impl Servers {
    pub(crate) fn new(all: Vec<Arc<OneServer>>, of_origin: Arc<OfOrigin>) -> Self {
        let names = all.iter().map(|one| one.server.name.as_str().into()).collect();
        Self { all, names, of_origin }
    }

    pub(crate) fn first(&self) -> Option<&OneServer> {
        self.all.first().map(|first| &**first)
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// What they are called.
    pub(crate) fn names(&self) -> &Arc<[Arc<str>]> {
        &self.names
    }

    /// What scopes of the origin have in common at each of them.
    pub(crate) fn of_origin(&self) -> &OfOrigin {
        &self.of_origin
    }

    /// Feeds a scope from the first, of which there is no other.
    pub(crate) fn feed_from_one(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        if let Some(one) = self.first() {
            let upstream = one.upstream(&scope.key, speaker, Arc::default);
            scope.feed_from(Arc::new(upstream.seat(scope, 0, &self.of_origin)));
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
            tracing::info!(origin = %self.of_origin.name, server = %one.server.name, stream = %speaker.label,
                "asked, for those before it fail, and something is wanted that is not known");
            scope.has_room(at, one.room_of(&scope.key));
        }
        let upstream = one.upstream(&scope.key, &|| speaker.clone(), || speakers.clone());
        Some(upstream.seat(scope, at, &self.of_origin))
    }
}

impl OneServer {
    /// Nothing is dialed before somebody wants something of it.
    pub fn new(settings: ServerSettings) -> Arc<Self> {
        let ServerSettings { dial, max_request_bytes, protocol, .. } = settings;
        let server = Server {
            origin: settings.origin,
            name: settings.name,
            position: settings.position,
            protocol,
            rules: settings.rules,
            authorities: settings.authorities,
            loops: settings.loops,
            interner: settings.interner,
            alike: Alike::default(),
            observer: settings.observer,
            silent_hint: settings.silent_hint,
            replaces: AtomicBool::default(),
        };
        // Over delta what does not fit goes into the next request.
        let room = (protocol == Protocol::Sotw).then(|| RequestRoom::new(max_request_bytes));
        Arc::new(Self { server: Arc::new(server), dial, streams: Mutex::default(), room, max_request_bytes })
    }

    /// What the requests have room for that name what a scope wants.
    pub(crate) fn room_of(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        let of_server = self.room.clone()?;
        Some(if scope.has_own_stream() { RequestRoom::new(self.max_request_bytes) } else { of_server })
    }

    /// The stream that carries a scope.
    fn upstream(
        &self,
        scope: &ScopeKey,
        speaker: &dyn Fn() -> Speaker,
        speakers: impl Fn() -> Arc<Mutex<Speakers>>,
    ) -> Arc<Upstream> {
        let new = || Undialed::new(self.server.clone(), speaker(), speakers(), scope);
        match scope.has_own_stream() {
            true => new().dial(&self.dial),
            false => self.shared(scope.selector(), new),
        }
    }

    /// The stream that carries its `xdstp:` names for a selector. Of those who find none the first dials it, not under the lock.
    fn shared(&self, selector: Option<&Arc<Selector>>, new: impl FnOnce() -> Undialed) -> Arc<Upstream> {
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
        known.unwrap_or_else(|| new.dial(&self.dial))
    }
}
