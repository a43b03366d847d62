//! A server as an origin: dialed for what is wanted of it, and asked for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use xds_transport::wire::parameters::{Locator, LocatorError};
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::Selector;

use crate::federation::alike::Alike;
use crate::federation::dial::Dial;
use crate::federation::interner::Interner;
use crate::federation::lock::lock;
use crate::federation::loop_guard::LoopGuard;
use crate::federation::mixed::Mixed;
use crate::federation::observer::Observer;
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::realm::Realm;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::server::Server;
use crate::federation::upstream::Upstream;

/// An origin that is a server: one stream carries the scopes of all authorities for who selects alike, each other scope has its own.
pub struct ServerOrigin {
    server: Arc<Server>,
    /// Its `xdstp:` names, too, go by the node.
    by_node: bool,
    dial: Arc<dyn Dial>,
    /// What it means by TP2's fields.
    dialect: Dialect,
    /// The streams that carry its `xdstp:` names, while anybody wants one: one for each selector.
    streams: Mutex<BTreeMap<Option<Arc<Selector>>, Weak<Upstream>>>,
    /// What a request may have, in bytes, and what those of that stream have room for.
    max_request_bytes: usize,
    room: Option<Arc<RequestRoom>>,
}

/// What a server is to the core.
pub struct ServerSettings {
    /// What it is called.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// What is known of types.
    pub rules: Arc<TypeRules>,
    /// Which names are its own.
    pub realm: Realm,
    /// Its `xdstp:` names, too, go by the node.
    pub by_node: bool,
    /// Which form of TP2 it speaks.
    pub dialect: Dialect,
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

impl ServerOrigin {
    /// Nothing is dialed before somebody wants something.
    pub fn new(settings: ServerSettings) -> Self {
        let ServerSettings { name, protocol, rules, realm, silent_hint, loops, observer, interner, .. } = settings;
        let ServerSettings { by_node, dialect, max_request_bytes, dial, .. } = settings;
        let (mixed, alike) = (Mixed::default(), Alike::default());
        let server = Server { name, protocol, rules, realm, loops, mixed, interner, alike, observer, silent_hint };
        // Over delta what does not fit goes into the next request.
        let room = (protocol == Protocol::Sotw).then(|| RequestRoom::new(max_request_bytes));
        Self { server: Arc::new(server), by_node, dial, dialect, streams: Mutex::default(), max_request_bytes, room }
    }
}

impl Origin for ServerOrigin {
    fn kind(&self) -> &'static str {
        self.server.protocol.as_str()
    }

    fn by_node(&self) -> ByNode {
        if self.by_node { ByNode::Everything } else { ByNode::OldStyleNames }
    }

    fn is_authoritative(&self) -> bool {
        false
    }

    fn is_sotw(&self) -> bool {
        self.server.protocol == Protocol::Sotw
    }

    fn selects(&self, selector: &Selector) -> Result<bool, String> {
        let locator = Locator::new("", selector.clone());
        locator.encode(self.dialect).map(|_| true).map_err(|error| match error {
            LocatorError::Constraints { error, .. } => error.to_string(),
            error => error.to_string(),
        })
    }

    fn room(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        let of_origin = self.room.clone()?;
        Some(if scope.has_own_stream() { RequestRoom::new(self.max_request_bytes) } else { of_origin })
    }

    fn mixed(&self) -> Vec<Arc<Scope>> {
        self.server.mixed.scopes()
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        let dial = || {
            let Speaker { label, node } = speaker();
            Upstream::dial(&*self.dial, self.server.clone(), label, node, &scope.key)
        };
        let upstream = if !scope.key.has_own_stream() {
            let mut streams = lock(&self.streams);
            let selector = scope.key.selector().cloned();
            let upstream = streams.get(&selector).and_then(Weak::upgrade).unwrap_or_else(dial);
            streams.retain(|_, stream| stream.strong_count() > 0);
            streams.insert(selector, Arc::downgrade(&upstream));
            upstream
        } else {
            dial()
        };
        scope.feed_from(upstream.seat(scope));
    }
}
