//! What a client knows, where it survives a restart of its program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use prost::Message;
use tokio::runtime::Handle;
use xds_transport::Protocol;
use xds_transport::wire::Node;

use super::brought::Brought;
use super::inner::Shared;
use super::one_server;
use super::origins::Known;
use crate::endpoint::Endpoint;
use crate::federation::Federation;
use crate::state::{Identities, Keeping, Saved, State, Store, StoreError};

/// How long it may take to write what is known, for who waits for that.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where.
pub(super) enum Place {
    Directory(PathBuf),
    Store(Arc<dyn Store>),
}

/// What is known is not written down.
#[derive(Clone, Debug, thiserror::Error)]
#[error("nothing is kept: {reason}")]
#[non_exhaustive]
pub struct NotKept {
    /// Why.
    pub reason: Arc<str>,
}

/// What is kept, and who does.
pub(super) struct Kept {
    state: Arc<State>,
    /// None where that is done by hand, or nobody could be found who does.
    keeping: Option<Keeping>,
}

impl Place {
    /// What is kept there. Whoever writes it reads it before: nobody waits for that.
    pub(super) fn state(self, identities: Identities) -> Arc<State> {
        Arc::new(match self {
            Self::Directory(directory) => State::in_directory(directory, identities, None),
            Self::Store(store) => State::read_later(store, identities),
        })
    }
}

impl Kept {
    /// What is known is written by hand.
    pub(super) fn by_hand(state: Arc<State>) -> Self {
        Self { state, keeping: None }
    }

    /// What is known is written every second.
    pub(super) fn every_second(state: Arc<State>, federation: &Arc<Federation>) -> Self {
        let (kept, federation) = (state.clone(), federation.clone());
        let keeping = Keeping::start(move |now, wall| kept.keep(&federation.scopes(), now, wall));
        let keeping = keeping.inspect_err(|error| tracing::error!("nothing is kept: {error}")).ok();
        Self { state, keeping }
    }

    pub(super) fn save(&self, federation: &Federation, now: Instant, wall: SystemTime) -> Result<Saved, StoreError> {
        self.state.keep(&federation.scopes(), now, wall)
    }

    pub(super) async fn flush(&self) -> Result<(), NotKept> {
        let not = |reason: &str| NotKept { reason: reason.into() };
        let keeping = self.keeping.as_ref().ok_or_else(|| not("nobody does"))?;
        let is_flushed = match Handle::try_current() {
            Ok(_) => tokio::time::timeout(PATIENCE, keeping.flush()).await.ok(),
            // Whoever waits may be elsewhere than the client's streams.
            Err(_) => keeping.flush_within(PATIENCE).await,
        };
        match is_flushed {
            None => return Err(not(&format!("the disk has not taken it within {} s", PATIENCE.as_secs()))),
            Some(false) => return Err(not("who does has failed, or is asked to by its own store")),
            Some(true) => {}
        }
        self.state.trouble().map_or(Ok(()), |trouble| Err(not(&trouble)))
    }
}

/// A client of one server, what it says is kept of in a directory.
pub(super) fn one_server(endpoint: Endpoint, brought: &Brought, directory: PathBuf) -> Shared {
    let node = Node::decode(endpoint.node.clone()).unwrap_or_default();
    let identities = identities(&one_server::known(&endpoint, brought.count()), &node, endpoint.protocol);
    let state = Arc::new(State::in_directory(directory, identities, None));
    let mut shared = one_server::shared(endpoint, brought, Some(state.clone()));
    shared.kept = Some(Kept::every_second(state, &shared.federation));
    shared
}

/// What tells what a client is told from what others are: its servers, how it asks, and who it says that it is.
pub(super) fn identities(lists: &[Vec<Known>], node: &Node, protocol: Protocol) -> Identities {
    let of_list = |servers: &Vec<Known>| {
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        // What a program has itself, it need not be told by anybody.
        (!names.is_empty()).then(|| names.join(" "))
    };
    // A new version of a program is the same program.
    let Node { id, cluster, metadata, locality, dynamic_parameters, .. } = node;
    let node = format!("{id:?} {cluster:?} {metadata:?} {locality:?} {dynamic_parameters:?} {}", protocol.as_str());
    Identities::new(lists.iter().map(of_list).collect(), None, node).with_selections()
}
