//! What every stream of a server shares.

use std::sync::Arc;
use std::time::Duration;

use xdstp_uri::MAX_LEN;

use crate::dialect::Dialect;
use crate::rate::RateLimit;
use crate::types::TypeRules;

/// What every stream of a server shares.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The rules of the resource types.
    pub rules: Arc<TypeRules>,
    /// `control_plane.identifier` of every response (rule 139).
    pub identifier: String,
    /// How many types one stream may ask for.
    pub types_per_stream: usize,
    /// How many names one stream may ask for, of all types together, and how many it may bring versions of. No list of one
    /// request may be longer.
    pub names_per_stream: usize,
    /// How long a name may be, in bytes, and a type URL or a version: at most 64 KiB. A longer name is answered as the name of
    /// nothing (rule 109), the others end the stream.
    pub name_bytes: usize,
    /// How long a node may be, in bytes.
    pub node_bytes: usize,
    /// How many requests one stream may send, beside one for each response. Without a limit, what bounds it is that
    /// requests are handled one by one.
    pub requests: Option<RateLimit>,
    /// Whether a TTL is sent over SotW to clients that understand it. Envoy does, but over SotW it does not take its
    /// heartbeats for what they are, and has crashed when endpoints expired (rules 113, 114).
    pub ttl_in_sotw: bool,
    /// How long the removal of clusters and endpoints waits for listeners and routes, on streams that ask for any: of a
    /// source that does not hear of one change at once, as a relay from its origin, what stops using them may come later
    /// (rule 122). And a gRPC client asks for the cluster that it goes to only once it has the route. Zero by default.
    pub removals_wait: Duration,
    /// Which form of TP2 the clients speak, those that speak any.
    pub dialect: Dialect,
    /// With how many sets of dynamic parameters or constraints one stream may ask. A set that is sent for two types counts
    /// twice: each is a subscriber. A set may be as long as a name.
    pub selectors_per_stream: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: Arc::new(TypeRules::envoy()),
            identifier: String::new(),
            types_per_stream: 64,
            names_per_stream: 1_000_000,
            name_bytes: MAX_LEN,
            node_bytes: 64 << 10,
            requests: None,
            ttl_in_sotw: false,
            removals_wait: Duration::ZERO,
            dialect: Dialect::Final,
            selectors_per_stream: 100,
        }
    }
}
