//! A client of one server, which is asked for everything.

use std::sync::Arc;

use prost::Message;
use tokio::runtime::Handle;
use xds_transport::Dialect;
use xds_transport::wire::Node;

use super::IDLE;
use super::brought::Brought;
use super::directory::{Directory, Lists};
use super::inner::Shared;
use super::origins::{Known, Origins};
use super::reporters::{OpenLoadReports, Reporters};
use super::servers::{self, ByTransport, Servers};
use super::sweeper::Sweeper;
use crate::bootstrap::{ChannelCreds, Features, Server};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::federation::{Dial, LastKnownGood, Position, Validators};
use crate::upstream::Pool;

/// What was brought comes before the server: it has no servers.
pub(super) fn shared(endpoint: Endpoint, brought: &Brought, last_known_good: Option<Arc<dyn LastKnownGood>>) -> Shared {
    let position = brought.count();
    let servers = known(&endpoint, position);
    let encoded_node = endpoint.node.clone();
    let node: Arc<str> = Node::decode(encoded_node.clone()).map(|node| node.id).unwrap_or_default().into();
    let validators = Arc::<Validators>::default();
    let runtime = Handle::try_current().ok();
    let found = if runtime.is_some() {
        Ok(position)
    } else {
        let reason = "there is no tokio runtime to drive a stream".into();
        Err(Error::Unusable { server: endpoint.uri().into(), node: node.clone(), reason })
    };
    let lists = Lists::one(found);
    // It stands for the endpoint: how that is connected to is no matter of a bootstrap.
    let of_reports = last_of(position, Server::new(endpoint.uri(), ChannelCreds::Insecure));
    let backoff = endpoint.backoff.clone();
    let (protocol, rules, max_request_bytes) = (endpoint.protocol, endpoint.rules.clone(), endpoint.max_request_size);
    let (dial, reports) = match runtime {
        Some(runtime) => by(Servers { pools: last_of(position, Pool::new(endpoint.following_redirects())), runtime }),
        None => by(ByTransport { servers: Vec::new(), transport: Arc::new(servers::None) }),
    };
    let origins = Origins {
        protocol,
        rules,
        node: encoded_node.clone(),
        validators: validators.clone(),
        authorities: lists.authorities(),
        observer: Arc::new(()),
        max_request_bytes,
        last_known_good,
        dial,
    };
    let federation = origins.federation(brought, &servers, servers.len());
    let sweeper = Sweeper::start(&federation, IDLE);
    Shared {
        federation,
        directory: Directory::of_all(lists),
        documents: brought.documents(),
        servers,
        validators,
        reporters: Reporters::new(of_reports, reports, encoded_node.clone(), backoff, None),
        node,
        encoded_node,
        client_scope: String::new(),
        sweeper,
        #[cfg(feature = "state")]
        kept: None,
    }
}

fn by(by: impl Dial + OpenLoadReports + 'static) -> (Arc<dyn Dial>, Arc<dyn OpenLoadReports>) {
    let by = Arc::new(by);
    (by.clone(), by)
}

/// The server, as far as it is told from others, at its position.
pub(super) fn known(endpoint: &Endpoint, position: usize) -> Vec<Vec<Known>> {
    let draft_dynamic_parameters = endpoint.dialect == Dialect::Draft;
    let features = Features { draft_dynamic_parameters, ..Features::default() };
    let first = Position { origin: position, server: 0 };
    last_of(position, Known { name: endpoint.uri(), features, first })
}

fn last_of<T>(position: usize, server: T) -> Vec<Vec<T>> {
    let mut lists: Vec<_> = (0..position).map(|_| Vec::new()).collect();
    lists.push(vec![server]);
    lists
}
