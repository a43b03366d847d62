//! A server as an origin: dialed for what is wanted of it, and asked for it.

use std::sync::{Arc, Mutex, Weak};

use xds_transport::Protocol;

use crate::federation::dial::Dial;
use crate::federation::lock::lock;
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::server::Server;
use crate::federation::upstream::Upstream;

/// An origin that is a server: one stream carries the scopes of all authorities, each other scope has its own.
pub(crate) struct ServerOrigin {
    server: Arc<Server>,
    /// Its `xdstp:` names, too, go by the node.
    by_node: bool,
    dial: Arc<dyn Dial>,
    /// The stream that carries its `xdstp:` names, while anybody wants one.
    stream: Mutex<Weak<Upstream>>,
    /// What a request may have, in bytes, and what those of that stream have room for.
    max_request_bytes: usize,
    room: Option<Arc<RequestRoom>>,
}

impl ServerOrigin {
    /// Nothing is dialed before somebody wants something. A request to it may have `max_request_bytes`.
    pub(crate) fn new(server: Server, by_node: bool, dial: Arc<dyn Dial>, max_request_bytes: usize) -> Self {
        // Over delta what does not fit goes into the next request.
        let room = (server.protocol == Protocol::Sotw).then(|| RequestRoom::new(max_request_bytes));
        Self { server: Arc::new(server), by_node, dial, stream: Mutex::default(), max_request_bytes, room }
    }
}

impl Origin for ServerOrigin {
    fn name(&self) -> &str {
        &self.server.name
    }

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
        let upstream = if matches!(scope.key, ScopeKey::Authority(_)) {
            let mut shared = lock(&self.stream);
            let upstream = shared.upgrade().unwrap_or_else(dial);
            *shared = Arc::downgrade(&upstream);
            upstream
        } else {
            dial()
        };
        scope.feed_from(upstream.seat(scope));
    }
}
