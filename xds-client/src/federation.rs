//! The federation core: which scope a name belongs to, which origin feeds it, what must be asked for, what lingers, what is
//! known. Without I/O; time is an argument. A relay stands on it, and so can a program.
//!
//! A [`Federation`] is a map of [`Scope`]s and the [`Origin`]s that feed them. [`Routes`] are one subscriber's interest over as
//! many scopes as its names need. This module knows nothing else of the crate that it is in but how a stream to a server is
//! [consumed](crate::upstream::Consumer). What it needs from outside comes in by:
//!
//! - [`Origin`], what feeds scopes: a server ([`ServerOrigin`]), which is reached by [`Dial`], a [`SnapshotOrigin`], or anything
//!   else that has content. Between a scope and an origin that must be asked stands a [`Supply`].
//! - [`Documents`], who reads what is at locators that are no names (`file:`), and tells an [`OpenDocument`] of it.
//! - [`Client`], whom routes serve: which group its node is of, and what its limits are called.
//! - [`Observer`], who counts what comes from servers.
//! - [`LastKnownGood`], where it is kept what scopes know, if anywhere.
//! - [`LoopGuard`], what is said of relays with streams to servers. A trait, and not the relay's own paths: a program that said
//!   such a thing would be taken for a relay.
//! - [`Limits`], of [`Quota`]s. Whose configuration sets them, only their keys say.
//!
//! ```
//! use std::{ops::ControlFlow, sync::Arc, task::Waker, time::{Duration, Instant}};
//!
//! use bytes::Bytes;
//! use xds_transport::server::{NodeError, Source};
//! use xds_transport::{Frame, TypeRules};
//! use xdstp_cache::{Pull, Removals};
//! use xdstp_client::federation::*;
//!
//! /// All share all.
//! struct Anybody;
//!
//! impl Client for Anybody {
//!     fn identify(&self, _: &Bytes) -> Result<NodeGroup, NodeError> {
//!         Ok(NodeGroup::new(Vec::new(), "everybody".into()))
//!     }
//!
//!     fn refused(&self, error: &OverLimit) -> String {
//!         error.to_string()
//!     }
//! }
//!
//! const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
//! // Field 1 of a cluster is its name.
//! let web = Frame::of_message(&CLUSTERS.into(), b"\x0a\x03web").into_resource(None);
//! let origin = SnapshotOrigin::new("example", TypeRules::envoy().into());
//! origin.set(vec![(CLUSTERS.into(), "web".parse()?, web)], Instant::now());
//! let limits = Limits {
//!     groups: Quota::new("groups", "node groups", 10),
//!     authorities: Quota::new("authorities", "authorities", 10),
//!     names: Quota::new("names", "names", 1000),
//!     authorities_per_stream: 10,
//!     names_per_turn: 100,
//!     lingering: Quota::new("lingering_names", "lingering names", 1000),
//! };
//! let federation = Federation::new(Settings {
//!     origins: vec![Arc::new(origin)],
//!     authorities: Arc::new(Authorities::new([].into(), 0)),
//!     node: Bytes::new(),
//!     linger: Duration::from_secs(30),
//!     limits,
//!     interner: Arc::default(),
//!     last_known_good: None,
//! });
//!
//! let (number, waker) = (federation.number_routes(), Waker::noop().clone());
//! let mut routes = Routes::new(federation, number, Box::new(Anybody), waker, Arc::default());
//! routes.identify(&Bytes::new())?;
//! let subscriber = routes.open(&CLUSTERS.into());
//! routes.subscribe(subscriber, &xdstp_cache::Interest::Wildcard);
//! let mut names = Vec::new();
//! routes.pull(subscriber, Removals::Include, &mut |pull| {
//!     if let Pull::Put { name, .. } = pull {
//!         names.push(name.to_string());
//!     }
//!     ControlFlow::Continue(())
//! });
//! assert_eq!(names, ["web"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod changes;
mod choice;
mod client;
mod core;
mod crowd;
mod demand;
mod denied;
mod dial;
mod document;
mod document_origin;
mod document_part;
mod failing;
mod fallback;
#[cfg(test)]
pub(crate) mod faults;
mod feed;
mod interner;
mod judged;
mod last_known_good;
mod leading;
mod listed;
mod lock;
mod loop_guard;
mod markers;
mod mixed;
mod moved;
mod node_group;
mod observer;
mod of_origin;
mod origin;
mod part;
mod parts;
mod place;
mod places;
mod realm;
mod request_room;
mod routes;
mod scope;
mod scope_key;
mod scopes;
mod server;
mod server_origin;
mod servers;
mod settling;
mod share;
mod snapshot_origin;
mod speakers;
pub(crate) mod states;
mod subscriber;
mod supply;
mod telling;
mod terms;
mod timings;
mod turns;
mod upstream;
mod validated;
mod validators;
mod weak_table;

pub use self::client::{Client, OfGroup};
pub use self::core::{Federation, Limits, Settings};
pub use self::dial::{Dial, Dialed, Position};
pub use self::document::{DocumentError, Documents, OpenDocument};
pub(crate) use self::document_origin::DocumentOrigin;
pub use self::interner::Interner;
pub use self::last_known_good::{LastKnownGood, Recollection};
pub(crate) use self::listed::{Entry, Listed};
#[cfg(feature = "state")]
pub(crate) use self::lock::lock;
pub use self::loop_guard::{Behind, LoopGuard};
pub use self::markers::is_marker;
pub use self::node_group::{NodeGroup, towards_origin};
pub use self::observer::{Observer, Reached};
pub use self::origin::{ByNode, Held, Origin, Speaker, Unreadable};
pub use self::part::{Part, View};
pub use self::realm::Authorities;
pub use self::request_room::RequestRoom;
pub use self::routes::Routes;
pub use self::scope::Scope;
pub use self::scope::look::Look;
pub use self::scope::unsaved::{Knows, Lack, Unsaved};
pub(crate) use self::scope::{Heard, News, Shown};
pub use self::scope_key::ScopeKey;
pub use self::server_origin::{ServerOrigin, ServerOriginSettings};
pub use self::servers::{OneServer, ServerSettings};
pub use self::share::{OverLimit, Quota, Share};
pub use self::snapshot_origin::SnapshotOrigin;
pub use self::states::{Rules, Status as ResourceStatus};
pub use self::supply::{ServerState, ServerStatus, Status, Supply};
pub use self::terms::{ServerTerms, Terms, Trouble};
pub use self::timings::Timings;
pub use self::validated::{Reason, Validated};
pub use self::validators::Validators;
pub(crate) use self::validators::{Redirect, Trust, guarded};

#[cfg(test)]
mod tests;
