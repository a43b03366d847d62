//! The origins of a relay, as its configuration names them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use xds_transport::{Protocol, TypeRules};
use xdstp_client::federation::{
    Authorities, ByNode, Dial, Interner, OneServer, Origin, Position, Scope, ServerOrigin, ServerOriginSettings,
    ServerSettings, SnapshotOrigin, Speaker,
};

use crate::config::{self, Config, OriginKind, ServerAddress, XdstpStreams, canonical_authority};
use crate::metrics::Metrics;
use crate::relay_core::followed_origin::FollowedOrigin;
use crate::relay_core::loops::{Relays, Upwards};
use crate::relay_core::node_metadata::with_metadata;

const SILENT_HINT: &str = "the origin does not answer: one that looks at the node, or waits for requests of every type on \
                           one stream, needs `xdstp: by_node`";

/// The origins of a configuration, before they are dialed or read.
pub(crate) struct Configured {
    /// In the order of the configuration.
    pub(crate) all: Vec<Arc<dyn Origin>>,
    /// Those of files, of etcd and of Kubernetes, by position, for whoever reads them.
    pub(crate) files: BTreeMap<usize, Arc<SnapshotOrigin>>,
    /// Servers that are followed, likewise.
    pub(crate) followed: BTreeMap<usize, Arc<FollowedOrigin>>,
    pub(crate) authorities: Arc<Authorities>,
}

/// An embedded origin that nobody brought: nothing is known of what it has.
pub(crate) struct Missing;

impl Origin for Missing {
    fn kind(&self) -> &'static str {
        "missing"
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    fn is_authoritative(&self) -> bool {
        false
    }

    fn ready(&self) -> Result<(), String> {
        Err("it is embedded, and nobody brought it".to_owned())
    }

    fn feed(&self, _: &Arc<Scope>, _: &dyn Fn() -> Speaker) {}
}

/// What all of them have.
pub(crate) struct Common {
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) relays: Arc<Relays>,
    pub(crate) interner: Arc<Interner>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dial: Arc<dyn Dial>,
    /// Those that are not made here, by name.
    pub(crate) embedded: BTreeMap<String, Arc<dyn Origin>>,
}

impl Configured {
    pub(crate) fn of(config: &Config, common: &Common) -> Self {
        let authorities = Arc::new(authorities(config));
        let (mut all, mut files) = (Vec::<Arc<dyn Origin>>::new(), BTreeMap::new());
        let mut followed = BTreeMap::new();
        for (position, origin) in config.origins.iter().enumerate() {
            match &origin.kind {
                OriginKind::Server { servers, protocol } => {
                    let at = (position, &authorities);
                    let server = Arc::new(server(config, origin, (servers, *protocol), at, common));
                    match &origin.follow {
                        Some(follow) => {
                            let origin = Arc::new(FollowedOrigin::new(server, follow.clone()));
                            followed.insert(position, origin.clone());
                            all.push(origin);
                        }
                        None => all.push(server),
                    }
                }
                OriginKind::Files { .. } => {
                    let origin = Arc::new(SnapshotOrigin::new("files", common.rules.clone()));
                    files.insert(position, origin.clone());
                    all.push(origin);
                }
                OriginKind::Etcd { .. } => {
                    let origin = Arc::new(SnapshotOrigin::new("etcd", common.rules.clone()));
                    files.insert(position, origin.clone());
                    all.push(origin);
                }
                OriginKind::Kubernetes { .. } => {
                    let origin = Arc::new(SnapshotOrigin::new("kubernetes", common.rules.clone()));
                    files.insert(position, origin.clone());
                    all.push(origin);
                }
                OriginKind::Embedded => {
                    all.push(common.embedded.get(&origin.name).cloned().unwrap_or_else(|| Arc::new(Missing)));
                }
            }
        }
        Self { all, files, followed, authorities }
    }
}

/// Each origin of a configuration has servers of its own: what one is asked as, and under which name it is counted, is the
/// origin's.
fn server(
    config: &Config,
    origin: &config::Origin,
    (servers, protocol): (&[ServerAddress], Protocol),
    (position, authorities): (usize, &Arc<Authorities>),
    common: &Common,
) -> ServerOrigin {
    let servers: Vec<_> = servers.iter().map(ServerAddress::target).collect();
    common.metrics.declare_origin(&origin.name);
    if servers.len() > 1 {
        servers.iter().for_each(|server| common.metrics.declare_server(&origin.name, server));
    }
    let dial = with_metadata(&common.dial, &origin.node_metadata);
    let one = |(at, name)| {
        OneServer::new(ServerSettings {
            origin: origin.name.clone(),
            name,
            position: Position { origin: position, server: at },
            protocol,
            rules: common.rules.clone(),
            authorities: authorities.clone(),
            max_request_bytes: config.limits.max_upstream_request_bytes,
            silent_hint: SILENT_HINT,
            dial: dial.clone(),
            loops: Arc::new(Upwards(common.relays.clone())),
            observer: common.metrics.clone(),
            interner: common.interner.clone(),
        })
    };
    ServerOrigin::new(ServerOriginSettings {
        name: origin.name.clone(),
        servers: servers.into_iter().enumerate().map(one).collect(),
        protocol,
        by_node: origin.xdstp == XdstpStreams::ByNode,
        dialect: origin.dynamic_parameters,
    })
}

/// An origin that comes later, at a position that nobody had: none where that is no server.
pub(crate) fn server_at(
    config: &Config,
    origin: &config::Origin,
    position: usize,
    authorities: &Arc<Authorities>,
    common: &Common,
) -> Option<Arc<dyn Origin>> {
    let OriginKind::Server { servers, protocol } = &origin.kind else { return None };
    Some(Arc::new(server(config, origin, (servers, *protocol), (position, authorities), common)))
}

/// The position of the origin of each authority, in canonical spelling.
pub(crate) fn origins_of(config: &Config, position: impl Fn(&str) -> Option<usize>) -> HashMap<String, usize> {
    let mut origins = HashMap::new();
    for origin in &config.origins {
        let Some(position) = position(&origin.name) else { continue };
        origins.extend(origin.authorities.iter().map(|authority| (canonical_authority(authority), position)));
    }
    origins
}

fn authorities(config: &Config) -> Authorities {
    let origins = origins_of(config, |name| config.origins.iter().position(|origin| origin.name == name));
    let default_origin = config.origins.iter().position(|origin| origin.name == config.default_origin).unwrap_or(0);
    Authorities::new(origins, default_origin)
}
