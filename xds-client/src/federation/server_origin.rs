//! Servers as an origin: dialed for what is wanted of it, and asked for it.

use std::sync::Arc;

use xds_transport::wire::parameters::{Locator, LocatorError};
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::Selector;

use crate::federation::alike::Alike;
use crate::federation::dial::{Dial, Position};
use crate::federation::fallback::Fallback;
use crate::federation::interner::Interner;
use crate::federation::loop_guard::LoopGuard;
use crate::federation::mixed::Mixed;
use crate::federation::observer::Observer;
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::realm::Realm;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::server::Server;
use crate::federation::servers::{OneServer, Servers};

/// An origin that is a server, or several in order of preference that all have the same resources: a scope is fed by the first,
/// and by the next one while those before it fail and something is wanted that nothing is known of (gRFC A71). One stream to a
/// server carries the scopes of all authorities for who selects alike, each other scope has its own.
pub struct ServerOrigin {
    servers: Arc<Servers>,
    protocol: Protocol,
    /// Its `xdstp:` names, too, go by the node.
    by_node: bool,
    /// What it means by TP2's fields.
    dialect: Dialect,
    mixed: Arc<Mixed>,
}

/// What a server is to the core.
pub struct ServerSettings {
    /// What it is called.
    pub name: String,
    /// What each of its servers is called, in order of preference: one or more.
    pub servers: Vec<String>,
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
        let ServerSettings { protocol, by_node, dialect, max_request_bytes, .. } = settings;
        let (mixed, realm) = (Arc::<Mixed>::default(), settings.realm);
        let has_peers = settings.servers.len() > 1;
        let server = |(at, name): (usize, String)| {
            let server = Server {
                origin: settings.name.clone(),
                name,
                position: Position { origin: realm.origin, server: at },
                has_peers,
                protocol,
                rules: settings.rules.clone(),
                realm: realm.clone(),
                loops: settings.loops.clone(),
                mixed: mixed.clone(),
                interner: settings.interner.clone(),
                alike: Alike::default(),
                observer: settings.observer.clone(),
                silent_hint: settings.silent_hint,
            };
            OneServer::new(server, max_request_bytes)
        };
        let all = settings.servers.into_iter().enumerate().map(server).collect();
        let servers = Arc::new(Servers::new(all, settings.dial));
        Self { servers, protocol, by_node, dialect, mixed }
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
        self.mixed.scopes()
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        match self.servers.count() {
            0 | 1 => self.servers.feed_from_one(scope, speaker),
            _ => Fallback::feed(self.servers.clone(), scope, speaker()),
        }
    }
}
