//! Servers as an origin: dialed for what is wanted of it, and asked for it.

use std::sync::Arc;

use xds_transport::wire::parameters::{Locator, LocatorError};
use xds_transport::{Dialect, Protocol};
use xdstp_cache::Selector;

use crate::federation::fallback::Fallback;
use crate::federation::mixed::Mixed;
use crate::federation::of_origin::OfOrigin;
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::servers::{OneServer, Servers};

/// An origin that is a server, or several in order of preference that all have the same resources: a scope is fed by the first,
/// and by the next one while those before it fail and something is wanted that nothing is known of (gRFC A71). One stream to a
/// server carries the scopes of all authorities for who selects alike, of all origins that it is one of the servers of; each
/// other scope has its own.
pub struct ServerOrigin {
    servers: Arc<Servers>,
    protocol: Protocol,
    /// Its `xdstp:` names, too, go by the node.
    by_node: bool,
    /// What it means by TP2's fields.
    dialect: Dialect,
}

/// What an origin of servers is to the core.
pub struct ServerOriginSettings {
    /// What it is called.
    pub name: String,
    /// Its servers, in order of preference: one or more, each once.
    pub servers: Vec<Arc<OneServer>>,
    /// What they speak.
    pub protocol: Protocol,
    /// Its `xdstp:` names, too, go by the node.
    pub by_node: bool,
    /// Which form of TP2 they speak.
    pub dialect: Dialect,
}

impl ServerOrigin {
    /// Nothing is dialed before somebody wants something.
    pub fn new(settings: ServerOriginSettings) -> Self {
        let ServerOriginSettings { name, servers, protocol, by_node, dialect } = settings;
        let of_origin = OfOrigin { name, has_several: servers.len() > 1, mixed: Mixed::default() };
        let servers = Arc::new(Servers::new(servers, Arc::new(of_origin)));
        Self { servers, protocol, by_node, dialect }
    }
}

impl Origin for ServerOrigin {
    fn kind(&self) -> &'static str {
        self.protocol.as_str()
    }

    fn by_node(&self) -> ByNode {
        if self.by_node { ByNode::Everything } else { ByNode::OldStyleNames }
    }

    fn is_authoritative(&self) -> bool {
        false
    }

    fn is_sotw(&self) -> bool {
        self.protocol == Protocol::Sotw
    }

    fn selects(&self, selector: &Selector) -> Result<bool, String> {
        let locator = Locator::new("", selector.clone());
        locator.encode(self.dialect).map(|_| true).map_err(|error| match error {
            LocatorError::Constraints { error, .. } => error.to_string(),
            error => error.to_string(),
        })
    }

    /// That of the first: what it has no room for, the others have none for either.
    fn room(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        self.servers.first()?.room_of(scope)
    }

    fn mixed(&self) -> Vec<Arc<Scope>> {
        self.servers.of_origin().mixed.scopes()
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        match self.servers.count() {
            0 | 1 => self.servers.feed_from_one(scope, speaker),
            _ => Fallback::feed(self.servers.clone(), scope, speaker()),
        }
    }
}
