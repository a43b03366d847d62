//! What a relay is made of: a configuration, and what a program brings that it is part of.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::Route;
use http::Request;
use prometheus::Registry;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tower_layer::Layer;
use tower_service::Service;
use xds_transport::TypeRules;
use xdstp_client::federation;

use crate::admin_access::{AdminAccess, LetIn};
use crate::certificates::Certificates;
use crate::client_rules::{ClientRules, Rules};
use crate::config::{self, Config, LogFilter, OriginKind, XdstpStreams};
use crate::descriptors::Bounds;
use crate::error::Error;
use crate::exported::export;
use crate::incoming::Next;
use crate::logging::{Logging, SetLog};
use crate::metrics::Metrics;
use crate::orders::Orders;
use crate::origins::{Connections, Origins};
use crate::pages::Pages;
use crate::reached::Reached;
use crate::relay_core::{ByRules, EveryNode, NodeGrouping, RelayCore, ShareBy};
use crate::releaser;
use crate::reload::{Listening, Parts, ReadOnce, Reloader, Reloads, Spoken};
use crate::serve::{Guards, Layered, Relay};
use crate::shared_known;
use crate::socket::Listener;
use crate::state::{self, State};
use crate::tls::{self, With};
use crate::traces::Traces;

/// A relay that is being put together, within a program: with [origins](Self::origin) of its own, its own rule for [who
/// shares](Self::grouping), its own [listener](Self::listener), and [layers](Self::layer) around all calls.
///
/// ```
/// use std::{net::Ipv4Addr, sync::Arc, time::Instant};
///
/// use tokio::{net::TcpListener, sync::oneshot};
/// use xds_relay::relay_core::{ByNode, Origin, Scope, Speaker};
/// use xds_relay::{Config, Relay, config};
/// use xds_transport::Frame;
/// use xdstp_client::{Client, Endpoint, Event};
///
/// const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
///
/// /// Knows one cluster.
/// struct Inventory;
///
/// impl Origin for Inventory {
///     fn kind(&self) -> &'static str { "inventory" }
///     fn by_node(&self) -> ByNode { ByNode::Nothing }
///     fn is_authoritative(&self) -> bool { true }
///
///     fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
///         // Field 1 of a cluster is its name.
///         let web = Frame::of_message(&CLUSTERS.into(), b"\x0a\x03web").into_resource(None);
///         scope.replace(&[(CLUSTERS.into(), "web".parse().unwrap(), web)], Instant::now());
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = Config::new([config::Origin::embedded("inventory")]);
/// config.admin = None;
/// let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
/// let relay = Relay::builder(config).origin("inventory", Inventory).listener(listener).bind().await?;
/// let address = relay.listen_address()?.to_string();
/// let (stop, stopped) = oneshot::channel::<()>();
/// let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
///
/// let client = Client::connect(Endpoint::new(&address)?);
/// let mut watch = client.watch(CLUSTERS, "web");
/// let Event::Put { name, .. } = watch.changed().await else { panic!("it is there") };
/// assert_eq!(name.as_str(), "web");
/// # drop((watch, client));
///
/// drop(stop);
/// running.await??;
/// # Ok(())
/// # }
/// ```
#[must_use = "a relay is there once it is bound"]
pub struct RelayBuilder {
    config: Config,
    origins: BTreeMap<String, Arc<dyn federation::Origin>>,
    grouping: Option<Box<dyn NodeGrouping>>,
    listener: Option<TcpListener>,
    admin_listener: Option<TcpListener>,
    tls: Option<ServerConfig>,
    state: Option<Arc<State>>,
    layers: Vec<Layered>,
    registry: Option<Registry>,
    log: Option<SetLog>,
}

/// Runs a relay until `shutdown` resolves and its streams are drained.
///
/// # Errors
/// An address is taken, a file is bad, or a server fails.
pub async fn run(config: Config, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    Relay::bind(config).await?.run(shutdown).await
}

impl Relay {
    /// A relay of this configuration, with what is said of it from now on.
    pub fn builder(config: Config) -> RelayBuilder {
        let (origins, layers) = (BTreeMap::new(), Vec::new());
        let (grouping, listener, admin_listener, tls, state) = (None, None, None, None, None);
        let (registry, log) = (None, None);
        RelayBuilder { config, origins, grouping, listener, admin_listener, tls, state, layers, registry, log }
    }

    /// Takes the addresses of the configuration and reads its files. Origins are dialed when
    /// somebody wants something of them.
    ///
    /// # Errors
    /// An address is taken or not of this machine, or a file is bad.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        Self::builder(config).bind().await
    }
}

impl RelayBuilder {
    /// An origin that the configuration calls [embedded](config::OriginKind::Embedded), under its name there. The last one
    /// of a name counts.
    pub fn origin(mut self, name: impl Into<String>, origin: impl federation::Origin) -> Self {
        self.origins.insert(name.into(), Arc::new(origin));
        self
    }

    /// A rule of one's own for who may share old-style resources, in place of those of the configuration.
    pub fn grouping(mut self, grouping: impl NodeGrouping) -> Self {
        self.grouping = Some(Box::new(grouping));
        self
    }

    /// Where xDS is served, in place of the configuration's `listen`.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Where the admin pages are, in place of the configuration's `admin`.
    pub fn admin_listener(mut self, listener: TcpListener) -> Self {
        self.admin_listener = Some(listener);
        self
    }

    /// How clients are spoken to, in place of the configuration's `tls`: with a verifier or certificates of one's own. ALPN is set to
    /// what the relay speaks, and a session of who showed a certificate is not kept, so that it is verified each time; what a `ticketer` gives
    /// out is its own. The [certificate](xds_transport::grpc::server::ClientCertificate) that a client showed is among the
    /// extensions of its requests, without those that vouch for it.
    pub fn tls(mut self, tls: ServerConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What survives a restart, in place of the configuration's `state`: kept by an engine of one's own. Its
    /// [identities](state::identities) are those of this configuration and of the rule for who may share.
    ///
    /// ```
    /// use std::time::{Instant, SystemTime};
    ///
    /// use xds_relay::relay_core::EveryNode;
    /// use xds_relay::state::{self, Memory, State};
    /// use xds_relay::{Config, Relay, config::Origin};
    ///
    /// let config = Config::new([Origin::server("control-plane", "http://127.0.0.1:18010".parse()?)]);
    /// let identities = state::identities(&config, &EveryNode);
    /// let state = State::open(Memory::default(), identities, state::keys(&config)?, Instant::now(), SystemTime::now())?;
    /// let relay = Relay::builder(config).state(state);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(Arc::new(state));
        self
    }

    /// What every call goes through, discovery, load reports and health alike, and not the admin pages. The last one added is
    /// the first that a call meets.
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode, middleware};
    /// use xds_relay::{Config, Relay, config::Origin};
    ///
    /// let config = Config::new([Origin::server("control-plane", "http://127.0.0.1:18010".parse()?)]);
    /// let relay = Relay::builder(config).layer(middleware::from_fn(async |request: Request, next: middleware::Next| {
    ///     match request.headers().contains_key("authorization") {
    ///         true => Ok(next.run(request).await),
    ///         false => Err(StatusCode::UNAUTHORIZED),
    ///     }
    /// }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<Route, Service = S> + Clone + Send + Sync + 'static,
        S: Service<
                Request<Body>,
                Response: IntoResponse + 'static,
                Error: Into<Infallible> + 'static,
                Future: Send + 'static,
            > + Clone
            + Send
            + Sync
            + 'static,
    {
        self.layers.push(Box::new(move |router| router.layer(layer)));
        self
    }

    /// Where its metrics are, too, as on the admin pages, for as long as it runs. A registry has room for one relay.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// What is logged follows the configuration's `log`, and what is said on the admin pages: this has it change. It is not called for
    /// what the configuration says at first.
    pub fn log(mut self, set: impl Fn(&LogFilter) + Send + Sync + 'static) -> Self {
        self.log = Some(Box::new(set));
        self
    }

    /// Takes the addresses that no listener was given for, and reads the files of the configuration. Servers are dialed when
    /// somebody wants something of them.
    ///
    /// # Errors
    /// The configuration cannot be run; an address is taken or not of this machine; a file is bad; an embedded origin is
    /// missing or [not ready](federation::Origin::ready), or one was brought that the configuration does not name; the registry
    /// has the metrics of another relay.
    pub async fn bind(self) -> Result<Relay, Error> {
        let Self { mut config, origins, grouping, listener, admin_listener, tls, state, layers, registry, log } = self;
        // Before they are read: what is written in between is noticed.
        let (as_given, read_once) = (config.clone(), ReadOnce::of(&config));
        if let Some(listener) = &listener {
            config.listen = listener.local_addr()?.into();
        }
        if let Some(listener) = &admin_listener {
            config.admin = Some(listener.local_addr()?.into());
        }
        config.validate()?;
        only_embedded(&config, &origins)?;
        let grouping = match grouping {
            Some(grouping) => grouping,
            None => configured(&config)?,
        };
        let types = TypeRules::envoy();
        let metrics = Arc::new(Metrics::new(types.services().map(|(type_url, _)| type_url.as_str())));
        let bounds = Bounds::of(&config);
        let connections = Connections::within(&config, bounds.upward)?;
        let state = match state {
            Some(state) => Some(state),
            None => state::open(&config, &*grouping)?,
        };
        if let Some(state) = &state {
            state::read(state).await;
        }
        let shared = shared_known::open(&config, state.as_ref()).await?;
        let core = RelayCore::embedding(&config, origins, grouping, Box::new(connections.clone()), metrics, state);
        bounds.say(&config);
        core.bound(bounds.groups, bounds.load_report_streams);
        core.set_what_is_read_at_use(&config);
        // Relays name each other by it when they find a loop.
        tracing::info!(instance = %core.instance(), "starting");
        shared.map_or(Ok(()), |shared| shared_known::go_on(shared, &core))?;
        let origins = Origins::read(&config, &core)?;
        let traces = Traces::begin(&config, &core)?;
        // Of what is followed nothing is known before it has answered, and who asks waits; of what is brought that may be otherwise.
        // What is bad is told once it is known whether anything of it is released.
        let is_waited_for =
            |name: &str| origins.are_unknown(name) || config.origin(name).is_some_and(config::Origin::is_followed);
        if let Some((origin, reason)) = core.not_ready_of(|_, name| !is_waited_for(name)) {
            return Err(Error::Origin { origin, reason });
        }
        releaser::roll_out(&config, &core).await?;
        origins.are_released()?;
        let tls = match tls {
            Some(tls) => Some(tls::Downstream::of(tls)),
            None => config.tls.as_ref().map(|files| tls::Downstream::load(files, With::Clients)).transpose()?,
        };
        let admin_tls = config.admin_tls.as_ref().map(|files| tls::Downstream::load(files, With::Admin)).transpose()?;
        let (tls, admin_tls) = (tls.map(Arc::new), admin_tls.map(Arc::new));
        let rules = ClientRules::new(Rules::load(&config)?);
        Rules::warn(&config);
        let access = AdminAccess::new(LetIn::to_admin(&config)?, config.admin_hosts.clone());
        let next = Next::default();
        // One that was brought is the program's own, wherever the configuration says that clients are served.
        let listening = listener.is_none().then(|| Listening::new(next.clone()));
        let listener = match listener {
            Some(listener) => Listener::Tcp(listener),
            None => Listener::listen(&config.listen, "listen")?,
        };
        let admin = match (admin_listener, &config.admin) {
            (Some(listener), _) => Some(Listener::Tcp(listener)),
            (None, Some(address)) => Some(Listener::listen(address, "admin")?),
            (None, None) => None,
        };
        let orders = Orders::bind(&config)?;
        let logging = Arc::new(Logging::new(config.log.clone(), log));
        let reloads = Arc::<Reloads>::default();
        let reached = Arc::new(Reached::new(&config));
        let certificates = Arc::<Certificates>::default();
        let pages = Pages::new(
            &config,
            core.clone(),
            reached.clone(),
            logging.clone(),
            reloads.clone(),
            certificates.clone(),
            orders.as_ref().map(Orders::address).transpose()?,
        );
        let pages = Arc::new(pages);
        if let Some(registry) = registry {
            export(&pages, &registry)?;
        }
        let order_guards = orders.as_ref().map(|orders| orders.guards.clone());
        let of_orders = order_guards.as_ref().and_then(|guards| guards.tls.clone());
        let spoken = Spoken { clients: tls.clone(), admin: admin_tls.clone(), orders: of_orders };
        let parts = Parts {
            core: core.clone(),
            rules: rules.clone(),
            access: access.clone(),
            orders: order_guards.as_ref().map(|guards| guards.access.clone()),
            spoken,
            listening,
            connections: connections.clone(),
            reached,
            logging,
            reloads,
            read_once,
        };
        let reloader = Reloader::new(as_given, parts);
        let guards = Guards { tls, rules, admin_tls, access, orders: order_guards, certificates };
        Ok(Relay {
            config,
            listener,
            next,
            guards,
            admin,
            orders,
            layers,
            core,
            pages,
            reloader,
            connections,
            _origins: origins,
            traces,
        })
    }
}

/// Whether all origins that were brought are those that the configuration calls so.
fn only_embedded(config: &Config, origins: &BTreeMap<String, Arc<dyn federation::Origin>>) -> Result<(), Error> {
    let is_embedded = |name: &str| config.origin(name).is_some_and(|origin| origin.kind == OriginKind::Embedded);
    match origins.keys().find(|name| !is_embedded(name)) {
        None => Ok(()),
        Some(name) => {
            let reason = "the configuration has no embedded origin of this name".to_owned();
            Err(Error::Origin { origin: name.clone(), reason })
        }
    }
}

/// Who shares what by the configuration.
fn configured(config: &Config) -> Result<Box<dyn NodeGrouping>, Error> {
    if config.share_by.is_none() && config.aggregation.is_none() && asks_for_nodes(config) {
        tracing::info!(
            "no share_by and no aggregation: every distinct node is a group of its own and shares no old-style resources"
        );
    }
    let otherwise: Box<dyn NodeGrouping> = match &config.share_by {
        Some(fields) => Box::new(ShareBy::new(fields.clone())),
        None => Box::new(EveryNode),
    };
    let Some(aggregation) = &config.aggregation else { return Ok(otherwise) };
    let rules = aggregation.load().map_err(Error::Aggregation)?;
    rules.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(Box::new(ByRules::new(rules, aggregation.unmatched, otherwise)))
}

/// Whether an origin is asked for each node group apart: what comes from files is shared in any case.
fn asks_for_nodes(config: &Config) -> bool {
    let is_server = |origin: &config::Origin| origin.kind.servers().is_some();
    let by_node = config.origins.iter().any(|origin| is_server(origin) && origin.xdstp == XdstpStreams::ByNode);
    by_node || config.origin(&config.default_origin).is_some_and(is_server)
}

#[cfg(test)]
mod tests;
