//! The relay's own decisions, without I/O: which scope a name belongs to, which origin feeds it, who
//! the node is upstream. Sockets come in through [`Dial`] and [`RelayCore::open_stream`].

mod alike;
mod changes;
mod client_node;
mod demand;
mod failing;
mod feed;
mod interner;
mod loops;
mod markers;
mod mixed;
mod node_group;
mod parts;
mod places;
mod quotas;
mod relay_path;
mod request_room;
mod routes;
mod scope;
mod scope_key;
mod scopes;
mod settling;
mod streams;
mod subscriber;
mod upstream;
mod view;
mod weak_table;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{NodeError, Settings, Tally};
use xds_transport::wire::Node;
use xds_transport::{Frame, RateLimit};
use xdstp_cache::{Resource, TypeUrl};
use xdstp_uri::ResourceName;

use self::alike::Alike;
pub use self::client_node::ClientNode;
use self::interner::Interner;
use self::loops::Relays;
pub use self::loops::{LoopError, Seen};
use self::mixed::Mixed;
pub use self::node_group::{EveryNode, NodeGroup, NodeGrouping, ShareBy};
use self::quotas::Quotas;
pub use self::quotas::{LimitError, Share};
use self::relay_path::Token;
use self::request_room::RequestRoom;
pub use self::routes::Routes;
use self::scope::Scope;
use self::scope_key::ScopeKey;
use self::streams::StreamEntry;
pub use self::streams::{AdmitError, Admitted, ServedStream};
pub use self::upstream::{Dial, Dialed};
use self::upstream::{OriginInfo, Realm, Upstream};
use crate::check::FileContent;
use crate::config::{Config, Limits, OriginKind, Protocol, Unknown, XdstpStreams, canonical_authority};
use crate::metrics::Metrics;
use crate::struct_json::to_struct;

/// How long a removal waits for the listener or route that its origin may tell of a moment later, and for the client to
/// ask for what it goes to.
const REMOVALS_WAIT: Duration = Duration::from_secs(1);

/// How many scopes that nobody uses are kept for what they remember.
const MAX_RESTING: usize = 1024;

/// A resource of an origin of files, ready to be served.
pub type FromFile = (TypeUrl, ResourceName, Resource<Frame>);

/// A relay: scopes, the origins that feed them, and the streams served from them.
pub struct RelayCore {
    origins: Vec<Origin>,
    /// Position of the origin of each authority.
    authorities: Arc<HashMap<String, usize>>,
    default_origin: usize,
    grouping: Box<dyn NodeGrouping>,
    dial: Box<dyn Dial>,
    /// The relay's own node, encoded: who it is on streams of `xdstp:` names.
    node: Bytes,
    linger: Duration,
    unknown: Unknown,
    limits: Limits,
    settings: Settings,
    relays: Arc<Relays>,
    interner: Arc<Interner>,
    quotas: Quotas,
    scopes: Mutex<BTreeMap<ScopeKey, Arc<Scope>>>,
    streams: Mutex<BTreeMap<u64, Arc<StreamEntry>>>,
    next_stream: AtomicU64,
    metrics: Arc<Metrics>,
    counted: Mutex<HashMap<TypeUrl, Counted>>,
}

struct Origin {
    info: Arc<OriginInfo>,
    from: Supply,
    /// Its `xdstp:` names, too, go by the node.
    by_node: bool,
}

enum Supply {
    /// The stream that carries its `xdstp:` names, while anybody wants one, and what its requests have room for.
    Server { stream: Mutex<Weak<Upstream>>, room: Option<Arc<RequestRoom>> },
    /// Its content, and since when; `None` until it was read.
    Files(Mutex<Option<(Arc<Vec<FromFile>>, Instant)>>),
}

/// Where a name is served from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// The scope of its authority.
    Authority { authority: &'a str, origin: usize },
    /// The scope of the node's group at an origin.
    Group { origin: usize },
}

impl Place<'_> {
    fn origin(self) -> usize {
        match self {
            Self::Authority { origin, .. } | Self::Group { origin } => origin,
        }
    }
}

/// What streams that are over did, and how much of everything the metrics were told already.
#[derive(Default)]
struct Counted {
    closed: Tally,
    told: Tally,
}

impl RelayCore {
    /// A relay for a configuration. Nothing is dialed before somebody wants something.
    pub fn new(
        config: &Config,
        grouping: Box<dyn NodeGrouping>,
        dial: Box<dyn Dial>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let mut authorities = HashMap::new();
        for (index, origin) in config.origins.iter().enumerate() {
            for authority in &origin.authorities {
                authorities.insert(canonical_authority(authority), index);
            }
        }
        let authorities = Arc::new(authorities);
        let default_origin = config.origins.iter().position(|origin| origin.name == config.default_origin).unwrap_or(0);
        let mut settings = Settings::default();
        settings.identifier.clone_from(&config.node.id);
        settings.removals_wait = REMOVALS_WAIT;
        let Limits { types_per_stream, names_per_stream, name_bytes, node_bytes, .. } = config.limits;
        (settings.types_per_stream, settings.names_per_stream) = (types_per_stream, names_per_stream);
        (settings.name_bytes, settings.node_bytes) = (name_bytes, node_bytes);
        let requests_per_second = config.limits.requests_per_second;
        let every = Duration::from_secs(1) / requests_per_second.max(1);
        settings.requests = Some(RateLimit { burst: requests_per_second, every });
        quotas::KEYS.into_iter().for_each(|key| metrics.declare_limit(key));
        let relays = Relays::new(Token::draw());
        let interner = Arc::<Interner>::default();
        let mut origins = Vec::new();
        for (index, origin) in config.origins.iter().enumerate() {
            let (protocol, from) = match &origin.kind {
                OriginKind::Server { protocol, .. } => {
                    metrics.declare_origin(&origin.name);
                    let room = (*protocol == Protocol::Sotw)
                        .then(|| RequestRoom::new(config.limits.max_upstream_request_bytes));
                    (*protocol, Supply::Server { stream: Mutex::default(), room })
                }
                OriginKind::Files { .. } => (Protocol::Delta, Supply::Files(Mutex::default())),
            };
            let realm = Realm { origin: index, default_origin, authorities: authorities.clone() };
            let (name, rules) = (origin.name.clone(), settings.rules.clone());
            let (relays, interner, metrics) = (relays.clone(), interner.clone(), metrics.clone());
            let (mixed, alike) = (Mixed::default(), Alike::default());
            let info = Arc::new(OriginInfo { name, protocol, rules, realm, relays, mixed, interner, alike, metrics });
            let by_node = origin.xdstp == XdstpStreams::ByNode && matches!(from, Supply::Server { .. });
            origins.push(Origin { info, from, by_node });
        }
        Arc::new(Self {
            origins,
            authorities,
            default_origin,
            grouping,
            dial,
            node: own_node(config),
            linger: config.linger,
            unknown: config.unknown,
            limits: config.limits,
            settings,
            relays,
            interner,
            quotas: Quotas::new(&config.limits),
            scopes: Mutex::default(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            metrics,
            counted: Mutex::default(),
        })
    }

    /// The content of an origin of files changed: every scope it feeds changes with it.
    pub fn set_files(&self, origin: usize, mut resources: Vec<FromFile>, now: Instant) {
        let Some(Origin { from: Supply::Files(files), .. }) = self.origins.get(origin) else { return };
        // Rule 122: what is stored first may be sent first.
        resources.sort_by_key(|(type_url, ..)| self.settings.rules.of(type_url).rank);
        let resources = Arc::new(resources);
        // A scope made after this line is filled with the new content, one made before is replaced below.
        *lock(files) = Some((resources.clone(), now));
        let fed: Vec<_> = lock(&self.scopes).values().filter(|scope| scope.origin == origin).cloned().collect();
        for scope in fed {
            scope.replace(&part_for(&scope.key, &resources), now);
        }
    }

    /// Drops scopes that nobody uses and nothing is subscribed for, and ends streams that ask for too
    /// much, or that nothing can be said to: to be called every second or so.
    pub fn sweep(&self, now: Instant) {
        if self.unknown == Unknown::End {
            self.end_unknown_streams(now);
        }
        self.make_room(now);
        self.end_greedy_streams();
        let mut scopes = lock(&self.scopes);
        // Streams get scopes under this lock only: whoever is counted once is the map itself.
        let unused = scopes.iter().filter(|(_, scope)| Arc::strong_count(scope) == 1 && scope.is_idle());
        let unused: Vec<_> = unused.map(|(key, scope)| (scope.rest(now), key.clone())).collect();
        let (mut gone, mut resting): (Vec<_>, Vec<_>) = unused.into_iter().partition(|(since, _)| since.is_none());
        // Of too many, those that have rested longest go.
        resting.sort_unstable();
        resting.truncate(resting.len().saturating_sub(MAX_RESTING));
        gone.append(&mut resting);
        let dropped: Vec<_> = gone.iter().filter_map(|(_, key)| scopes.remove(key)).collect();
        drop(scopes);
        drop(dropped);
        self.interner.sweep();
    }

    /// What origins of files hold.
    pub fn file_contents(&self) -> Vec<FileContent> {
        let content = |origin: &Origin| match &origin.from {
            Supply::Server { .. } => None,
            Supply::Files(files) => {
                let files = lock(files).as_ref().map(|(files, _)| files.clone()).unwrap_or_default();
                Some(FileContent::new(&origin.info.name, files.iter().map(|(type_url, ..)| type_url.as_str())))
            }
        };
        self.origins.iter().filter_map(content).collect()
    }

    /// What this relay goes by among relays, for as long as it runs: 16 hex digits.
    pub fn instance(&self) -> String {
        self.relays.own().to_string()
    }

    /// What every stream of the relay shares.
    pub fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// What clients may use up.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether an origin speaks SotW.
    fn is_sotw(&self, origin: usize) -> bool {
        self.origins.get(origin).is_some_and(|origin| origin.info.protocol == Protocol::Sotw)
    }

    /// The scopes of authorities of an origin that may have names of others.
    fn mixed(&self, origin: usize) -> Vec<Arc<Scope>> {
        self.origins.get(origin).map(|origin| origin.info.mixed.scopes()).unwrap_or_default()
    }

    /// Where names of an authority, or without it old-style names, are served from.
    fn place<'a>(&self, authority: Option<&'a str>) -> Place<'a> {
        let Some(authority) = authority else { return Place::Group { origin: self.default_origin } };
        let origin = self.authorities.get(authority).copied().unwrap_or(self.default_origin);
        match self.origins.get(origin) {
            Some(Origin { by_node: true, .. }) => Place::Group { origin },
            _ => Place::Authority { authority, origin },
        }
    }

    fn authority_scope(&self, authority: &str, origin: usize) -> Result<Arc<Scope>, LimitError> {
        self.scope(ScopeKey::Authority(authority.to_owned()), origin, &|| ("xdstp".to_owned(), self.node.clone()))
    }

    /// Who a client is, and which group it belongs to (rule 154).
    fn identify(&self, node: &Bytes) -> Result<(ClientNode, NodeGroup), NodeError> {
        let node = ClientNode::decode(node.clone())?;
        let group = self.grouping.group(&node)?;
        Ok((node, group))
    }

    /// The scope of a group at an origin; the stream's node may speak for it from now on.
    fn group_scope(
        &self,
        origin: usize,
        group: &NodeGroup,
        node: &Bytes,
        stream: u64,
    ) -> Result<Arc<Scope>, LimitError> {
        if self.is_files(origin) {
            // Files answer every node alike.
            return self.scope(ScopeKey::EveryNode, origin, &|| (String::new(), Bytes::new()));
        }
        let (label, node) = (group.label().to_owned(), node_group::towards_origin(node));
        let scope = self.scope(ScopeKey::Group(origin, group.clone()), origin, &|| (label.clone(), node.clone()))?;
        if let Some(upstream) = scope.upstream() {
            lock(&upstream.speakers).join(stream, node);
        }
        Ok(scope)
    }

    fn private_scope(&self, stream: u64, origin: usize, node: &Bytes) -> Arc<Scope> {
        let room = self.request_room(&ScopeKey::Private(stream), origin);
        let slice = self.limits.names_per_turn;
        let scope = Arc::new(Scope::streamed(ScopeKey::Private(stream), origin, Duration::ZERO, room, slice));
        let label = format!("stream {stream}");
        self.feed(&scope, &|| (label.clone(), node_group::towards_origin(node)));
        scope
    }

    fn is_files(&self, origin: usize) -> bool {
        matches!(self.origins.get(origin), Some(Origin { from: Supply::Files(_), .. }))
    }

    /// The scope of a key, made and fed if there is none; `speaker` is who speaks for it upstream.
    fn scope(
        &self,
        key: ScopeKey,
        origin: usize,
        speaker: &dyn Fn() -> (String, Bytes),
    ) -> Result<Arc<Scope>, LimitError> {
        let mut scopes = lock(&self.scopes);
        if let Some(scope) = scopes.get(&key) {
            if scope.upstream().is_none() && !self.is_files(origin) {
                self.feed(scope, speaker);
            }
            return Ok(scope.clone());
        }
        let share = match &key {
            ScopeKey::Authority(_) => Some(self.quotas.authorities.take()?),
            ScopeKey::Group(..) => Some(self.quotas.groups.take()?),
            ScopeKey::EveryNode | ScopeKey::Private(_) => None,
        };
        let slice = self.limits.names_per_turn;
        let scope = if self.is_files(origin) {
            Scope::of_files(key.clone(), origin, slice)
        } else {
            Scope::streamed(key.clone(), origin, self.linger, self.request_room(&key, origin), slice)
        };
        let scope = Arc::new(scope.counted(share));
        self.feed(&scope, speaker);
        scopes.insert(key, scope.clone());
        Ok(scope)
    }

    /// What requests for a scope have room for, where that is a limit.
    fn request_room(&self, key: &ScopeKey, origin: usize) -> Option<Arc<RequestRoom>> {
        let Supply::Server { room, .. } = &self.origins.get(origin)?.from else { return None };
        let of_origin = room.clone()?;
        Some(if key.has_own_stream() { RequestRoom::new(self.limits.max_upstream_request_bytes) } else { of_origin })
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> (String, Bytes)) {
        let Some(origin) = self.origins.get(scope.origin) else { return };
        let dial = || {
            let (label, node) = speaker();
            Upstream::dial(&*self.dial, origin.info.clone(), label, node, &scope.key)
        };
        match &origin.from {
            Supply::Files(files) => {
                if let Some((resources, read_at)) = lock(files).clone() {
                    scope.replace(&part_for(&scope.key, &resources), read_at);
                }
            }
            Supply::Server { stream, .. } if matches!(scope.key, ScopeKey::Authority(_)) => {
                let mut shared = lock(stream);
                let upstream = shared.upgrade().unwrap_or_else(dial);
                *shared = Arc::downgrade(&upstream);
                scope.feed_from(upstream);
            }
            Supply::Server { .. } => {
                scope.feed_from(dial());
            }
        }
    }

    /// A stream's session is over.
    fn count(&self, type_url: &TypeUrl, tally: &Tally) {
        let mut counted = lock(&self.counted);
        let counted_as = counted_as(&counted, type_url);
        counted.entry(counted_as).or_default().closed.add(tally);
    }

    fn insert_stream(&self, entry: StreamEntry) -> u64 {
        let stream = self.next_stream.fetch_add(1, Ordering::Relaxed);
        lock(&self.streams).insert(stream, Arc::new(entry));
        stream
    }

    fn forget_stream(&self, stream: u64) {
        lock(&self.streams).remove(&stream);
    }
}

/// What of an origin's files belongs to a scope.
fn part_for(key: &ScopeKey, resources: &[FromFile]) -> Vec<FromFile> {
    let belongs = |name: &ResourceName| match key {
        ScopeKey::Authority(authority) => name.authority() == Some(authority.as_str()),
        _ => name.is_opaque(),
    };
    resources.iter().filter(|(_, name, _)| belongs(name)).cloned().collect()
}

fn own_node(config: &Config) -> Bytes {
    use xds_transport::wire::Locality;
    let crate::config::Node { id, cluster, locality, metadata, .. } = &config.node;
    let (region, zone, sub_zone) = (locality.region.clone(), locality.zone.clone(), locality.sub_zone.clone());
    let node = Node {
        id: id.clone(),
        cluster: cluster.clone(),
        locality: Some(Locality { region, zone, sub_zone }).filter(|locality| *locality != Locality::default()),
        metadata: (!metadata.is_empty()).then(|| to_struct(metadata)),
        user_agent_name: "xds-relay".to_owned(),
        user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Node::default()
    };
    node_group::towards_origin(&Bytes::from(node.encode_to_vec()))
}

/// Types are named by clients: those beyond a bound are counted together.
fn counted_as(counted: &HashMap<TypeUrl, Counted>, type_url: &TypeUrl) -> TypeUrl {
    const MOST: usize = 256;
    let full = counted.len() >= MOST && !counted.contains_key(type_url);
    if full { TypeUrl::from("") } else { type_url.clone() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
