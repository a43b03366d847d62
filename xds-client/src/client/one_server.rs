//! A client of one server, which is asked for everything.

use std::sync::Arc;

use prost::Message;
use tokio::runtime::Handle;
use xds_transport::Dialect;
use xds_transport::wire::Node;

use super::IDLE;
use super::directory::{Directory, Lists};
use super::inner::Shared;
use super::origins::{Known, Origins};
use super::servers::{self, ByTransport, Servers};
use super::sweeper::Sweeper;
use crate::bootstrap::Features;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::federation::{LastKnownGood, Validators};
use crate::upstream::Pool;

pub(super) fn shared(endpoint: Endpoint, last_known_good: Option<Arc<dyn LastKnownGood>>) -> Shared {
    let servers = vec![vec![known(&endpoint)]];
    let encoded_node = endpoint.node.clone();
    let validators = Arc::<Validators>::default();
    let runtime = Handle::try_current().ok();
    let found = if runtime.is_some() {
        Ok(0)
    } else {
        let reason = "there is no tokio runtime to drive a stream".into();
        Err(Error::Unusable { server: endpoint.uri().into(), reason })
    };
    let lists = Lists::one(found);
    let origins = Origins {
        protocol: endpoint.protocol,
        rules: endpoint.rules.clone(),
        node: encoded_node.clone(),
        validators: validators.clone(),
        authorities: lists.authorities(),
        observer: Arc::new(()),
        max_request_bytes: endpoint.max_request_size,
        last_known_good,
        dial: match runtime {
            Some(runtime) => {
                Arc::new(Servers { pools: vec![vec![Pool::new(endpoint.following_redirects())]], runtime })
            }
            None => Arc::new(ByTransport { servers: Vec::new(), transport: Arc::new(servers::None) }),
        },
    };
    let federation = origins.federation(&servers);
    let sweeper = Sweeper::start(&federation, IDLE);
    Shared {
        federation,
        directory: Directory::of_all(lists),
        servers,
        validators,
        node: Node::decode(encoded_node.clone()).map(|node| node.id).unwrap_or_default().into(),
        encoded_node,
        client_scope: String::new(),
        sweeper,
        #[cfg(feature = "state")]
        kept: None,
    }
}

/// The server, as far as it is told from others.
pub(super) fn known(endpoint: &Endpoint) -> Known {
    let draft_dynamic_parameters = endpoint.dialect == Dialect::Draft;
    Known { name: endpoint.uri(), features: Features { draft_dynamic_parameters, ..Features::default() } }
}
