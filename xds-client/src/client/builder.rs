//! From a bootstrap to a client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use thiserror::Error;
use tokio::runtime::Handle;
use xds_transport::client::{DEFAULT_MAX_REQUEST_SIZE, Silence, Stream};
use xds_transport::wire::Node;
use xds_transport::wire::parameters::LocatorError;
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::Selector;

use super::directory::{Directory, Lists};
use super::inner::Inner;
use super::metrics::{Counting, Metrics};
use super::origins::{Known, Origins, patience};
use super::reporters::{OpenLoadReports, Reporters};
use super::servers::{ByTransport, Servers, Transport};
use super::sweeper::Sweeper;
use super::{Client, IDLE, introduced};
use crate::backoff::Backoff;
use crate::bootstrap::{Bootstrap, ChannelCreds, Features, Server};
use crate::endpoint::Endpoint;
use crate::error::Error as WatchError;
use crate::federation::{Dial, Observer, Validators};
use crate::upstream::{Pool, chain};

/// What is said of a client before it is made: see [`Client::builder`].
pub struct Builder {
    bootstrap: Bootstrap,
    protocol: Protocol,
    rules: Arc<TypeRules>,
    backoff: Backoff,
    idle: Duration,
    agent: (String, String),
    transport: Option<Arc<dyn Transport>>,
    selecting: (Dialect, Selector),
    observer: Arc<dyn Observer>,
    max_message_size: Option<usize>,
}

/// There is no client to be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Nothing drives its streams.
    #[error("a client is made within a tokio runtime, which drives its streams: there is none")]
    NoRuntime,
}

impl Builder {
    pub(super) fn new(bootstrap: Bootstrap) -> Self {
        Self {
            bootstrap,
            protocol: Protocol::Delta,
            rules: Arc::new(TypeRules::envoy()),
            backoff: Backoff::default(),
            idle: IDLE,
            agent: (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            transport: None,
            selecting: (Dialect::Final, Selector::default()),
            observer: Arc::new(()),
            max_message_size: None,
        }
    }

    /// Speaks this protocol with the servers: delta otherwise, as which gRPC's servers may speak SotW only.
    #[must_use]
    pub fn protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// Asks for everything with these parameters or constraints (TP2), of servers that speak this dialect.
    ///
    /// # Errors
    /// When the dialect cannot say them.
    pub fn selecting(self, dialect: Dialect, selector: Selector) -> Result<Self, LocatorError> {
        Stream::new(self.protocol, Bytes::new(), self.rules.clone()).selecting(dialect, selector.clone())?;
        Ok(Self { selecting: (dialect, selector), ..self })
    }

    /// Follows these rules about types: those of Envoy's otherwise.
    #[must_use]
    pub fn type_rules(self, rules: Arc<TypeRules>) -> Self {
        Self { rules, ..self }
    }

    /// Waits like this between attempts.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Keeps streams open for about this long when nobody watches anything of them: a minute otherwise.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// What the program is called, for the servers.
    #[must_use]
    pub fn user_agent(self, name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { agent: (name.into(), version.into()), ..self }
    }

    /// Takes responses of up to this many bytes: 64 MiB otherwise. A server that sends a larger one is answered by the end of the
    /// stream, and asked again.
    #[must_use]
    pub fn max_message_size(self, bytes: usize) -> Self {
        Self { max_message_size: Some(bytes), ..self }
    }

    /// Tells this what happens, so that it is counted.
    #[must_use]
    pub fn metrics(self, metrics: Arc<dyn Metrics>) -> Self {
        Self { observer: Arc::new(Counting(metrics)), ..self }
    }

    /// Speaks with the servers by this, in place of gRPC.
    #[must_use]
    pub fn transport(self, transport: impl Transport) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// The client.
    ///
    /// # Errors
    /// Outside of a tokio runtime, unless it has a transport of its own.
    pub fn build(self) -> Result<Client, BuildError> {
        let node = introduced(self.bootstrap.node(), (&self.agent.0, &self.agent.1));
        let (id, encoded) = (node.id.as_str().into(), Bytes::from(node.encode_to_vec()));
        let made = match &self.transport {
            Some(transport) => self.by_transport(transport.clone()),
            None => self.by_grpc(&node, Handle::try_current().map_err(|_| BuildError::NoRuntime)?),
        };
        let Made { lists, known, servers, dial, reports } = made;
        let reporters = Reporters::new(servers, reports, encoded.clone(), self.backoff);
        let validators = Arc::<Validators>::default();
        let origins = Origins {
            protocol: self.protocol,
            rules: self.rules,
            dial,
            node: encoded.clone(),
            validators: validators.clone(),
            authorities: lists.authorities(),
            observer: self.observer,
            max_request_bytes: DEFAULT_MAX_REQUEST_SIZE,
        };
        let federation = origins.federation(&known);
        let sweeper = self.transport.is_none().then(|| Sweeper::start(&federation, self.idle));
        let directory = Directory::of_bootstrap(self.bootstrap, lists);
        Ok(Client(Arc::new(Inner {
            federation,
            directory,
            validators,
            node: id,
            encoded_node: encoded,
            sweeper: sweeper.flatten(),
            reporters,
        })))
    }

    fn by_transport(&self, transport: Arc<dyn Transport>) -> Made {
        let (mut all, mut known) = (Vec::new(), Vec::new());
        let lists = Lists::of(&self.bootstrap, |servers| {
            all.push(servers.to_vec());
            known.push(servers.iter().map(Known::of).collect());
            Ok(known.len() - 1)
        });
        Made::by(ByTransport { servers: all.clone(), transport }, lists, known, all)
    }

    fn by_grpc(&self, node: &Node, runtime: Handle) -> Made {
        let (mut pools, mut known, mut all) = (Vec::new(), Vec::new(), Vec::new());
        // One server has one connection, whatever others stand beside it in a list.
        let mut shared: HashMap<Server, Pool> = HashMap::new();
        let lists = Lists::of(&self.bootstrap, |servers| {
            let mut of_list = Vec::new();
            for server in servers {
                let pool = match shared.entry(server.clone()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(self.pool(server, node)?),
                };
                of_list.push(pool.clone());
            }
            pools.push(of_list);
            all.push(servers.to_vec());
            known.push(servers.iter().map(Known::of).collect());
            Ok(known.len() - 1)
        });
        Made::by(Servers { pools, runtime }, lists, known, all)
    }

    fn pool(&self, server: &Server, node: &Node) -> Result<Pool, WatchError> {
        let unusable = |error: crate::endpoint::ServerError| WatchError::Unusable {
            server: server.uri().into(),
            reason: chain(&error).into(),
        };
        let endpoint = Endpoint::of_server(server).map_err(unusable)?;
        let endpoint = endpoint.with_protocol(self.protocol).with_node(node);
        let endpoint = endpoint.with_type_rules(self.rules.clone()).with_backoff(self.backoff.clone());
        let (dialect, selector) = self.selecting.clone();
        let endpoint = endpoint
            .selecting(dialect, selector)
            .map_err(|error| WatchError::Unusable { server: server.uri().into(), reason: error.to_string().into() })?;
        let endpoint = match self.max_message_size {
            Some(bytes) => endpoint.with_max_message_size(bytes),
            None => endpoint,
        };
        let silence = Silence::IsAbsenceAfter(patience(server.features()));
        Ok(Pool::new(endpoint.with_silence(silence).following_redirects()))
    }
}

/// The lists of servers, what each of them is called and does, and how these are dialed.
struct Made {
    lists: Lists,
    known: Vec<Vec<Known>>,
    servers: Vec<Vec<Server>>,
    dial: Arc<dyn Dial>,
    reports: Arc<dyn OpenLoadReports>,
}

impl Made {
    fn by(by: impl Dial + OpenLoadReports, lists: Lists, known: Vec<Vec<Known>>, servers: Vec<Vec<Server>>) -> Self {
        let by = Arc::new(by);
        Self { lists, known, servers, dial: by.clone(), reports: by }
    }
}

/// A client of one server.
pub(super) fn of_endpoint(endpoint: Endpoint) -> Arc<Inner> {
    let uri = endpoint.uri();
    let node = Node::decode(endpoint.node.clone()).map(|node| node.id).unwrap_or_default();
    let encoded_node = endpoint.node.clone();
    let validators = Arc::<Validators>::default();
    let runtime = Handle::try_current().ok();
    let found = if runtime.is_some() {
        Ok(0)
    } else {
        let reason = "there is no tokio runtime to drive a stream".into();
        Err(WatchError::Unusable { server: uri.as_str().into(), reason })
    };
    // It stands for the endpoint: how that is connected to is no matter of a bootstrap.
    let servers = vec![vec![Server::new(uri.as_str(), ChannelCreds::Insecure)]];
    let known = vec![vec![Known { name: uri, features: Features::default() }]];
    let (lists, rules, backoff) = (Lists::one(found), endpoint.rules.clone(), endpoint.backoff.clone());
    let (protocol, max_request_bytes) = (endpoint.protocol, endpoint.max_request_size);
    let Made { lists, known, servers, dial, reports } = match runtime {
        Some(runtime) => {
            let pools = vec![vec![Pool::new(endpoint.following_redirects())]];
            Made::by(Servers { pools, runtime }, lists, known, servers)
        }
        None => {
            let transport = Arc::new(super::servers::None);
            Made::by(ByTransport { servers: Vec::new(), transport }, lists, known, servers)
        }
    };
    let origins = Origins {
        protocol,
        rules,
        node: encoded_node.clone(),
        validators: validators.clone(),
        authorities: lists.authorities(),
        observer: Arc::new(()),
        max_request_bytes,
        dial,
    };
    let federation = origins.federation(&known);
    let reporters = Reporters::new(servers, reports, encoded_node.clone(), backoff);
    let sweeper = Sweeper::start(&federation, IDLE);
    let directory = Directory::of_all(lists);
    Arc::new(Inner { federation, directory, validators, node: node.into(), encoded_node, sweeper, reporters })
}
