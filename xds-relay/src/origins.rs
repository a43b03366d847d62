//! The origins of a running relay: streams to control planes, and directories of files.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use xds_transport::RateLimit;
use xds_transport::client::Silence;
use xdstp_client::Endpoint;
use xdstp_client::federation::Quota;
use xdstp_client::token::{TokenError, TokenFile};
use xdstp_client::upstream::{Consumer, Driver, Pool};

use crate::causes::with_causes;
use crate::config::{Config, Methods, Origin, OriginKind, ServerAddress};
use crate::error::Error;
use crate::lock::lock;
use crate::relay_core::{Dial, Dialed, Position, RelayCore};

#[cfg(feature = "file-origin")]
mod files;

/// The origins of files, of etcd and of Kubernetes of a running relay, and the control planes that are followed, watched while this
/// lives.
pub(crate) struct Origins {
    #[cfg(feature = "file-origin")]
    files: files::FileOrigins,
    #[cfg(feature = "file-origin")]
    _etcd: Vec<crate::etcd_origin::Following>,
    #[cfg(feature = "file-origin")]
    _kubernetes: Vec<crate::kubernetes_origin::Following>,
    #[cfg(feature = "file-origin")]
    _servers: Vec<crate::followed_server::Following>,
}

#[cfg(feature = "file-origin")]
impl Origins {
    /// # Errors
    /// What is needed to read them is not good. That files are bad is told [later](Self::are_released).
    pub(crate) fn read(config: &Config, core: &Arc<RelayCore>) -> Result<Self, Error> {
        let files = files::FileOrigins::read(config, core)?;
        let etcd = crate::etcd_origin::follow_all(config, core)?;
        let kubernetes = crate::kubernetes_origin::follow_all(config, core)?;
        let servers = crate::followed_server::follow_all(config, core)?;
        Ok(Self { files, _etcd: etcd, _kubernetes: kubernetes, _servers: servers })
    }

    /// Whether the files of an origin were bad as the relay started, or there were none.
    pub(crate) fn are_unknown(&self, origin: &str) -> bool {
        self.files.are_unknown(origin)
    }

    /// Goes on without files that are bad: of each such origin something is released, and served.
    ///
    /// # Errors
    /// What is wrong with the first of which nothing is.
    pub(crate) fn are_released(&self) -> Result<(), Error> {
        self.files.are_released()
    }
}

#[cfg(not(feature = "file-origin"))]
impl Origins {
    pub(crate) fn read(config: &Config, _: &Arc<RelayCore>) -> Result<Self, Error> {
        refuse_files(config).map(|()| Self {})
    }

    pub(crate) fn are_unknown(&self, _: &str) -> bool {
        false
    }

    pub(crate) fn are_released(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An origin of files, of which nothing can be read.
///
/// # Errors
/// There is one.
#[cfg(not(feature = "file-origin"))]
pub(crate) fn refuse_files(config: &Config) -> Result<(), Error> {
    let needs_types = |origin: &&Origin| origin.kind.files().is_some() || origin.is_followed();
    match config.origins.iter().find(needs_types) {
        None => Ok(()),
        Some(origin) => {
            let reason = "this program was built without the feature `file-origin`".to_owned();
            Err(Error::Origin { origin: origin.name.clone(), reason })
        }
    }
}

/// However many clients come at once, one stream asks for what they want: origins bear less than so many requests.
const REQUESTS: RateLimit = RateLimit { burst: 100, every: Duration::from_millis(10) };

/// The connections to the servers of a configuration, over gRPC. Clones have the same.
#[derive(Clone)]
pub(crate) struct Connections {
    /// By the positions of the origins, and of each origin's servers: more may come, and none goes.
    origins: Arc<Mutex<Vec<Vec<Pool>>>>,
    /// Those for load reports to the default origin: who does not read there holds up no resources.
    reports: Arc<[Pool]>,
    default_origin: usize,
    /// For how many of them there is room, beside what is each pool's own.
    room: Arc<Quota>,
}

impl Connections {
    /// As many as are wanted.
    ///
    /// # Errors
    /// An address that no connection can be made to, whoever listens there.
    #[cfg(test)]
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        Self::within(config, usize::MAX)
    }

    /// At most so many, beside what is each server's own, and its own for load reports.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn within(config: &Config, most: usize) -> Result<Self, Error> {
        let room = Quota::new("connections to origins", "connections to origins (ulimit -n of the relay)", most);
        let pool = |endpoint: Endpoint| Pool::new(endpoint.with_room(room.clone()));
        let pools = |origin: &Origin| Ok(endpoints(config, origin)?.into_iter().map(pool).collect());
        let default_origin = config.origins.iter().position(|origin| origin.name == config.default_origin);
        let reports = default_origin.and_then(|at| config.origins.get(at)).map(pools).transpose()?;
        let reports = reports.unwrap_or_else(Vec::new).into();
        let origins = config.origins.iter().map(pools).collect::<Result<_, Error>>()?;
        let origins = Arc::new(Mutex::new(origins));
        Ok(Self { origins, reports, default_origin: default_origin.unwrap_or_default(), room })
    }

    /// At most so many from now on. Those there are stay.
    pub(crate) fn bound(&self, most: usize) {
        self.room.set_most(most);
    }

    /// For how many there is room.
    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.room.most()
    }

    /// Those for load reports, to each server of the default origin.
    pub(crate) fn reports(&self) -> Arc<[Pool]> {
        self.reports.clone()
    }

    /// Those to an origin at the next position.
    pub(crate) fn add(&self, endpoints: Vec<Endpoint>) {
        let pools = endpoints.into_iter().map(|endpoint| Pool::new(endpoint.with_room(self.room.clone())));
        lock(&self.origins).push(pools.collect());
    }

    /// Has those to an origin lead to as many others, of the same servers (see [`Pool::lead_to`]) or of others in their place (see
    /// [`Pool::lead_elsewhere`]).
    pub(crate) fn lead_to(&self, origin: usize, endpoints: &[Endpoint], elsewhere: bool) {
        let pools = lock(&self.origins).get(origin).cloned().unwrap_or_default();
        let pools = pools.iter().zip(endpoints);
        let reports = self.reports.iter().zip(endpoints).filter(|_| origin == self.default_origin);
        pools.chain(reports).for_each(|(pool, endpoint)| {
            let endpoint = endpoint.clone().with_room(self.room.clone());
            if elsewhere { pool.lead_elsewhere(endpoint) } else { pool.lead_to(endpoint) }
        });
    }
}

/// How to reach the servers of an origin, if it has any: all alike.
///
/// # Errors
/// As [`Connections::within`].
pub(crate) fn endpoints(config: &Config, origin: &Origin) -> Result<Vec<Endpoint>, Error> {
    let OriginKind::Server { servers, protocol } = &origin.kind else { return Ok(Vec::new()) };
    let tls = origin.tls.as_ref().map(|tls| crate::tls::towards(tls, &config.field_of(origin, "tls"))).transpose()?;
    let token = token(config, origin)?;
    let endpoint = |(index, server): (usize, &ServerAddress)| {
        let field = if servers.len() == 1 { "server".to_owned() } else { format!("servers[{index}]") };
        let endpoint = Endpoint::new(&server.to_string()).map_err(|error| bad(config, origin, &field, &error))?;
        let endpoint = match &tls {
            Some(tls) => endpoint.with_tls(tls.clone()),
            None => endpoint,
        };
        match &token {
            Some(token) => endpoint.with_token(token.clone()).map_err(|error| bad(config, origin, "token", &error)),
            None => Ok(endpoint),
        }
    };
    let settled = |endpoint: Endpoint| {
        // What is said of a name is told to others.
        let endpoint = endpoint.with_dialect(origin.dynamic_parameters).with_silence(Silence::IsNoAnswer);
        let endpoint = endpoint.with_protocol(*protocol).with_keepalive(origin.keepalive);
        let endpoint = match origin.methods {
            Methods::Ads => endpoint,
            Methods::PerType => endpoint.with_per_type_methods(),
        };
        let endpoint = endpoint.with_streams_per_connection(origin.streams_per_connection);
        let endpoint = endpoint.with_max_request_size(config.limits.max_upstream_request_bytes);
        let endpoint = endpoint.with_request_limit(REQUESTS);
        endpoint.with_max_message_size(config.limits.max_response_bytes)
    };
    servers.iter().enumerate().map(|server| endpoint(server).map(settled)).collect()
}

/// What calls to an origin carry.
fn token(config: &Config, origin: &Origin) -> Result<Option<TokenFile>, Error> {
    let Some(file) = &origin.token else { return Ok(None) };
    let token = TokenFile::new(file);
    match token.check() {
        // There may be another by the time it is needed.
        Ok(()) | Err(TokenError::Expired { .. }) => Ok(Some(token)),
        Err(error) => Err(bad(config, origin, "token", &error)),
    }
}

fn bad(config: &Config, origin: &Origin, field: &str, error: &dyn std::error::Error) -> Error {
    Error::Field { field: config.field_of(origin, field), reason: with_causes(error) }
}

impl Dial for Connections {
    fn dial(&self, server: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let wake = Arc::new(Notify::new());
        let pool = lock(&self.origins).get(server.origin).and_then(|pools| pools.get(server.server)).cloned();
        let driver = pool.map(|pool| pool.spawn(node, consumer, wake.clone()));
        Box::new(Driven { wake, _driver: driver })
    }
}

/// A stream that ends with this.
struct Driven {
    wake: Arc<Notify>,
    _driver: Option<Driver>,
}

impl Dialed for Driven {
    fn nudge(&self) {
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod endpoints {
    use super::*;

    #[test]
    fn rule_137_an_origin_is_pinged_as_often_as_its_configuration_says() {
        let text = "origins: [{ name: a, server: 'a:1' }, { name: b, server: 'b:1', keepalive: 30s }]";
        let config = Config::parse("relay.yaml", text).unwrap();
        let keepalive = |origin| endpoints(&config, origin).unwrap()[0].keepalive().as_secs();
        assert_eq!(config.origins.iter().map(keepalive).collect::<Vec<_>>(), [300, 30]);
    }
}

#[cfg(all(test, feature = "file-origin"))]
mod tests {
    use super::*;
    use crate::file_origin::{Descriptors, load_embedded};

    #[test]
    fn what_a_file_says_beside_a_resource_is_served_beside_it() {
        let text = r#"
resources:
- name: a
  version: v7
  ttl: 60s
  aliases: [b]
  resource: {"@type": x/envoy.config.cluster.v3.Cluster, name: a}
- {"@type": x/envoy.config.cluster.v3.Cluster, name: c}
- resource_name: {name: d, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  resource: {"@type": x/envoy.config.cluster.v3.Cluster, name: d}
"#;
        let read = load_embedded(&[("a.yaml", text)], &Descriptors::built_in().unwrap()).unwrap();
        let served = crate::file_origin::held(&read);
        let [(_, _, wrapped), (_, _, plain), (_, _, variant)] = served.as_slice() else { panic!("{served:?}") };
        assert_eq!(wrapped.version.as_str(), "v7");
        assert_eq!((wrapped.value.ttl(), wrapped.value.expires()), (Some(Duration::from_secs(60)), None));
        assert_eq!(wrapped.value.aliases().collect::<Vec<_>>(), ["b".parse().unwrap()]);
        assert_eq!((plain.value.ttl(), plain.value.wrapper().len(), plain.value.variant()), (None, 0, None));
        assert_eq!(variant.value.variant().map(ToString::to_string).as_deref(), Some("env=prod"));
    }
}
