//! From a bootstrap to a client.

mod documents;

use std::collections::HashMap;
#[cfg(feature = "state")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use thiserror::Error;
use tokio::runtime::Handle;
use xds_transport::client::{DEFAULT_MAX_REQUEST_SIZE, Silence, Stream};
use xds_transport::wire::Any;
use xds_transport::wire::Node;
use xds_transport::wire::SelectorsByType;
use xds_transport::wire::parameters::LocatorError;
use xds_transport::{Dialect, Protocol, TypeRules};
use xdstp_cache::Selector;

use super::beside::Beside;
use super::brought::Brought;
use super::counting::Counting;
use super::directory::{Directory, Lists};
use super::inner::{Inner, Shared};
#[cfg(feature = "state")]
use super::kept::{Kept, Place, identities};
use super::metrics::Metrics;
use super::origins::{Known, Origins, patience};
use super::reporters::{OpenLoadReports, Reporters};
use super::servers::{ByTransport, Servers, Transport};
use super::sweeper::Sweeper;
use super::{Client, IDLE, introduced};
use crate::backoff::Backoff;
use crate::bootstrap::{Bootstrap, Server};
use crate::endpoint::Endpoint;
use crate::error::Error as WatchError;
#[cfg(feature = "state")]
use crate::federation::LastKnownGood;
use crate::federation::{Dial, Observer, Origin, Reason, Validated, Validators};
#[cfg(feature = "state")]
use crate::state::Store;
use crate::upstream::{Pool, chain};

/// What is said of a client before it is made: see [`Client::builder`].
pub struct Builder {
    bootstrap: Bootstrap,
    protocol: Protocol,
    rules: Arc<TypeRules>,
    backoff: Backoff,
    idle: Duration,
    agent: (String, String),
    features: Vec<String>,
    client_scope: String,
    transport: Option<Arc<dyn Transport>>,
    brought: Brought,
    federates: bool,
    selecting: Selector,
    observer: Arc<dyn Observer>,
    metrics: Option<Arc<dyn Metrics>>,
    max_message_size: Option<usize>,
    #[cfg(feature = "state")]
    kept: Option<Place>,
}

/// There is no client to be had.
#[derive(Clone, Debug, Error)]
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
            backoff: Backoff::grpc(),
            idle: IDLE,
            agent: (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            features: Vec::new(),
            client_scope: String::new(),
            transport: None,
            brought: Brought::default(),
            federates: true,
            selecting: Selector::default(),
            observer: Arc::new(()),
            metrics: None,
            max_message_size: None,
            #[cfg(feature = "state")]
            kept: None,
        }
    }

    /// Speaks this protocol with the servers: delta otherwise, as which gRPC's servers may speak SotW only.
    #[must_use]
    pub fn protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// Asks for everything with these parameters or constraints (TP2), which count before those of the bootstrap and of
    /// DPDS, key by key: see [`Client::selecting`]. Servers speak the draft of TP2 if this dialect is that, or if the bootstrap
    /// says so of them.
    ///
    /// # Errors
    /// When the dialect cannot say them.
    pub fn selecting(self, dialect: Dialect, selector: Selector) -> Result<Self, LocatorError> {
        Stream::new(self.protocol, Bytes::new(), self.rules.clone()).selecting(dialect, selector.clone())?;
        let bootstrap = match dialect {
            Dialect::Draft => self.bootstrap.speaking_draft(),
            _ => self.bootstrap,
        };
        Ok(Self { bootstrap, selecting: selector, ..self })
    }

    /// Asks the servers at the top of the bootstrap for everything, whatever the authority of its name, as clients do that do not know
    /// of gRFC A47: its authorities, and what is [brought](Self::origin) for some, are passed over.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::{Client, Event, test::Network};
    ///
    /// const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    /// let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    /// let network = Network::new(Instant::now());
    /// let bootstrap = Bootstrap::new(server("top:1")).with_authority("a", Authority::default().with_server(server("a:1")));
    /// let client = Client::builder(bootstrap).without_federation().transport(network.clone()).build()?;
    /// let name = "xdstp://a/envoy.config.cluster.v3.Cluster/web";
    /// network.server("top:1").put(CLUSTERS, name, "1", b"");
    ///
    /// let mut watch = client.watch(CLUSTERS, name);
    /// network.settle();
    /// assert!(matches!(watch.try_next(), Some(Event::Put { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_federation(self) -> Self {
        Self { federates: false, ..self }
    }

    /// Follows these rules about types: those of Envoy's otherwise.
    #[must_use]
    pub fn type_rules(self, rules: Arc<TypeRules>) -> Self {
        Self { rules, ..self }
    }

    /// Waits like this between attempts: as [gRPC](Backoff::grpc) does otherwise.
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

    /// Says to the servers what the program can do, beside what its client can: `envoy.lb.does_not_support_overprovisioning`, if it
    /// balances load and does not overprovision (gRFC A27).
    #[must_use]
    pub fn client_feature(mut self, feature: impl Into<String>) -> Self {
        self.features.push(feature.into());
        self
    }

    /// What the client is for, as [its status](Client::status) tells it: the target of a channel, or `#server` (gRFC A71).
    #[must_use]
    pub fn client_scope(self, scope: impl Into<String>) -> Self {
        Self { client_scope: scope.into(), ..self }
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
        Self { observer: Arc::new(Counting::new(metrics.clone())), metrics: Some(metrics), ..self }
    }

    /// Speaks with the servers by this, in place of gRPC.
    #[must_use]
    pub fn transport(self, transport: impl Transport) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// Has the names of an authority from this origin, whether the bootstrap has the authority or not: no server is asked for them.
    /// An authority is written as the bootstrap has it, and the last origin of one counts.
    ///
    /// What an [authoritative](Origin::is_authoritative) one does not have is [absent](crate::Error::Absent) at once, or, until
    /// it is filled, waited for. What the program [reads](crate::Resource) it reads as it comes: of what is of no use a watch says
    /// so, and what was there before stays in use. A watch's [server](crate::Watch::server) is what [kind](Origin::kind) it is.
    /// It may set what concerns security, has no load reported to, and nothing of it is kept over a restart.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Instant;
    ///
    /// use xds_transport::{Frame, TypeRules};
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::federation::SnapshotOrigin;
    /// use xdstp_client::{Client, Event, test::Network};
    ///
    /// const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    /// let name = "xdstp://here/envoy.config.cluster.v3.Cluster/web";
    /// let origin = Arc::new(SnapshotOrigin::new("inventory", TypeRules::envoy().into()));
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// # let network = Network::new(Instant::now());
    /// let client = Client::builder(bootstrap).origin("here", origin.clone());
    /// # let client = client.transport(network);
    /// let client = client.build()?;
    ///
    /// let mut watch = client.watch(CLUSTERS, name);
    /// assert!(watch.try_next().is_none());
    /// // Field 1 of a cluster is its name.
    /// let message = [&[0x0a, u8::try_from(name.len())?], name.as_bytes()].concat();
    /// let web = Frame::of_message(&CLUSTERS.into(), &message).into_resource(Some("1".into()));
    /// origin.set(vec![(CLUSTERS.into(), name.parse()?, web)], Instant::now());
    /// assert!(matches!(watch.try_next(), Some(Event::Put { version, .. }) if version.as_str() == "1"));
    /// origin.set(Vec::new(), Instant::now());
    /// assert!(matches!(watch.try_next(), Some(Event::Failed { error, .. }) if error.is_absence()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn origin(mut self, authority: impl Into<String>, origin: impl Origin) -> Self {
        self.brought.by_authority.insert(authority.into(), Arc::new(origin));
        self
    }

    /// Has old-style names from this origin, and names of the bootstrap's authorities that have no servers of their own: in place
    /// of the servers at its top, of which none is asked. Otherwise as [`origin`](Self::origin).
    #[must_use]
    pub fn default_origin(mut self, origin: impl Origin) -> Self {
        self.brought.default = Some(Arc::new(origin));
        self
    }

    /// Keeps what servers said in this directory, and yields it after a restart while they cannot be reached or are silent for half
    /// a second: [stale](crate::Watch::is_stale), until they have answered. Secrets (SDS) are not kept, nor is what is asked for
    /// with parameters. Whatever is wrong with the directory is logged, and the client goes on without.
    ///
    /// A program that uses on what its server deleted (not `fail_on_data_errors`) does so after a restart, too.
    ///
    /// ```no_run
    /// use xdstp_client::{Client, bootstrap::Bootstrap};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder(Bootstrap::from_env()?).state("/var/lib/program/xds").build()?;
    /// # client.flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "state")]
    #[must_use]
    pub fn state(self, directory: impl Into<PathBuf>) -> Self {
        Self { kept: Some(Place::Directory(directory.into())), ..self }
    }

    /// The same, kept in a store of another kind. It is read in the background, by whoever writes it: what is watched meanwhile is
    /// served from it once it was. One that cannot be is logged, tried again every ten seconds, and what [`Client::flush`] says.
    #[cfg(feature = "state")]
    #[must_use]
    pub fn store(self, store: impl Store) -> Self {
        Self { kept: Some(Place::Store(Arc::new(store))), ..self }
    }

    /// The client.
    ///
    /// # Errors
    /// Outside of a tokio runtime, unless it has a transport of its own.
    pub fn build(self) -> Result<Client, BuildError> {
        let node = introduced(self.bootstrap.node(), (&self.agent.0, &self.agent.1), &self.features);
        let (id, encoded) = (node.id.as_str().into(), Bytes::from(node.encode_to_vec()));
        let made = match &self.transport {
            Some(transport) => self.by_transport(transport.clone()),
            None => self.by_grpc(&node, Handle::try_current().map_err(|_| BuildError::NoRuntime)?),
        };
        let Made { lists, known, servers, twins, dial, reports } = made;
        let reporters = Reporters::new(servers, reports, encoded.clone(), self.backoff, self.metrics);
        #[cfg(feature = "state")]
        let state =
            self.kept.map(|place| place.state(identities(known.get(..twins).unwrap_or(&known), &node, self.protocol)));
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
            #[cfg(feature = "state")]
            last_known_good: state.clone().map(|state| state as Arc<dyn LastKnownGood>),
            #[cfg(not(feature = "state"))]
            last_known_good: None,
        };
        let federation = origins.federation(&self.brought, &known, twins);
        #[cfg(feature = "state")]
        let kept = state.map(|state| match self.transport {
            Some(_) => Kept::by_hand(state),
            None => Kept::every_second(state, &federation),
        });
        let sweeper = self.transport.is_none().then(|| Sweeper::start(&federation, self.idle));
        let directory = match self.federates {
            true => Directory::of_bootstrap(self.bootstrap, lists),
            false => Directory::of_top(&self.bootstrap, lists),
        };
        for dpds in directory.dpds() {
            validators.insert(dpds.type_url.clone(), read_selectors);
        }
        let (node, sweeper) = (id, sweeper.flatten());
        let shared = Shared {
            federation,
            directory,
            documents: self.brought.documents(),
            servers: known,
            validators,
            node,
            encoded_node: encoded,
            client_scope: self.client_scope,
            sweeper,
            reporters,
            #[cfg(feature = "state")]
            kept,
        };
        Ok(Client(Arc::new(Inner { shared: Arc::new(shared), own: self.selecting, beside: Beside::default() })))
    }

    fn by_transport(&self, transport: Arc<dyn Transport>) -> Made {
        // What a program brings has no server.
        let mut all = vec![Vec::new(); self.brought.count()];
        let lists = self.lists(|servers| {
            all.push(servers.to_vec());
            Ok(all.len() - 1)
        });
        let (lists, twins) = (lists.with_twins(self.brought.count()..all.len()), all.len());
        all.extend_from_within(self.brought.count()..);
        Made::by(ByTransport { servers: all.clone(), transport }, (lists, twins), all)
    }

    fn by_grpc(&self, node: &Node, runtime: Handle) -> Made {
        let brought = self.brought.count();
        let (mut pools, mut all) = (vec![Vec::new(); brought], vec![Vec::new(); brought]);
        // One server has one connection, whatever others stand beside it in a list.
        let mut shared: HashMap<Server, Result<Pool, WatchError>> = HashMap::new();
        let lists = self.lists(|servers| {
            let mut usable = Vec::new();
            let mut unusable = Vec::new();
            for server in servers {
                let pool = shared.entry(server.clone()).or_insert_with(|| self.pool(server, node));
                match pool {
                    Ok(pool) => usable.push((pool.clone(), server.clone())),
                    Err(error) => unusable.push(error.clone()),
                }
            }
            if let (true, Some(error)) = (usable.is_empty(), unusable.first()) {
                return Err(error.clone());
            }
            // Others of the list are asked in their place.
            unusable.iter().for_each(|error| tracing::warn!("a server is passed over: {error}"));
            let (of_list, servers) = usable.into_iter().unzip();
            pools.push(of_list);
            all.push(servers);
            Ok(all.len() - 1)
        });
        let (lists, twins) = (lists.with_twins(brought..all.len()), all.len());
        pools.extend_from_within(brought..);
        all.extend_from_within(brought..);
        Made::by(Servers { pools, runtime }, (lists, twins), all)
    }

    fn lists(&self, origin: impl FnMut(&[Server]) -> Result<usize, WatchError>) -> Lists {
        match self.federates {
            true => Lists::of(&self.bootstrap, &self.brought, origin),
            false => Lists::of_top(&self.bootstrap, &self.brought, origin),
        }
    }

    fn pool(&self, server: &Server, node: &Node) -> Result<Pool, WatchError> {
        let unusable = |error: crate::endpoint::ServerError| WatchError::Unusable {
            server: server.uri().into(),
            node: node.id.as_str().into(),
            reason: chain(&error).into(),
        };
        let endpoint = Endpoint::of_server_unread(server).map_err(unusable)?;
        let endpoint = endpoint.with_protocol(self.protocol).with_node(node);
        let endpoint = endpoint.with_type_rules(self.rules.clone()).with_backoff(self.backoff.clone());
        let endpoint = match server.features().draft_dynamic_parameters {
            true => endpoint.with_dialect(Dialect::Draft),
            false => endpoint,
        };
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
    /// From here on all lists are there once more, for what sources say that stand beside names (TP1).
    twins: usize,
    dial: Arc<dyn Dial>,
    reports: Arc<dyn OpenLoadReports>,
}

impl Made {
    fn by(by: impl Dial + OpenLoadReports, (lists, twins): (Lists, usize), servers: Vec<Vec<Server>>) -> Self {
        let (by, known) = (Arc::new(by), Known::of_lists(&servers, twins));
        Self { lists, known, servers, twins, dial: by.clone(), reports: by }
    }
}

/// What DPDS says, before it is acknowledged.
fn read_selectors(any: &Any) -> Result<Validated, Reason> {
    Ok(Arc::new(SelectorsByType::decode(&any.value)?))
}
