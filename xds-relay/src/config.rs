//! What a relay is told to do: where it listens, which origins it has, who may share what.
//!
//! The file format is YAML; `examples/relay.yaml` in the repository shows every field. Nothing unknown is accepted, and
//! an error names file, line, column and field ([`ConfigError`]).

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use xds_transport::Dialect;
use xdstp_uri::ResourceName;

use crate::text_file::{self, Unread};
use crate::yaml;

mod address;
mod aggregation;
mod bootstrap;
mod cidr;
mod client_limits;
mod clients;
mod drift;
mod environment;
mod error;
mod etcd;
mod example_mesh;
mod fields;
mod files;
mod follow;
mod glob;
mod kubernetes;
mod limits;
mod listening;
mod log_filter;
mod made;
mod methods;
mod name_pattern;
mod node;
mod node_field;
mod node_parameters;
mod orders;
mod origin_kind;
mod own_address;
mod read;
mod rollout;
mod rules;
mod schema;
mod state;
mod statsd;
mod tls;
mod traces;
mod values;
mod written;

pub(crate) use self::client_limits::{ClientLimit, part};
#[cfg(feature = "file-origin")]
pub(crate) use self::environment::Filled;
pub(crate) use self::environment::fill_in;
pub(crate) use self::limits::LIMITS;
pub use self::{
    address::{Address, ServerAddress},
    aggregation::{Aggregation, Unmatched},
    bootstrap::{Bootstrap, BootstrapNote},
    cidr::Cidr,
    client_limits::ClientLimits,
    clients::{ClientMatch, ClientRule},
    drift::Drift,
    error::ConfigError,
    etcd::{Etcd, EtcdUser},
    example_mesh::{EXAMPLE, ExampleMesh},
    files::FileReading,
    follow::{Collection, Follow},
    glob::{Glob, PatternError},
    kubernetes::{Kubernetes, KubernetesKind},
    limits::Limits,
    log_filter::{LogFilter, LogFilterError},
    made::InvalidConfig,
    methods::Methods,
    name_pattern::NamePattern,
    node_field::{NodeField, NodeFieldError},
    orders::Orders,
    origin_kind::OriginKind,
    rollout::Rollout,
    state::{KnownIn, ReadyWhen, Secrets, State},
    statsd::Statsd,
    tls::{ListenTls, OriginTls},
    traces::Traces,
};

/// A relay's configuration: one that was read is checked, one that is [made](Self::new) can be [validated](Self::validate).
///
/// ```
/// use xds_relay::Config;
///
/// let config = Config::parse(
///     "relay.yaml",
///     "
///     origins:
///       - name: control-plane
///         server: 127.0.0.1:18010
///         authorities: [example.com]
///     share_by: [cluster, locality.zone]
///     linger: 1m
///     ",
/// )?;
/// assert_eq!(config.listen.to_string(), "127.0.0.1:18000");
/// assert_eq!(config.default_origin, "control-plane");
/// # Ok::<(), xds_relay::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Where xDS is served. Port 0 lets the system choose.
    pub listen: Address,
    /// How clients are spoken to: in clear text, if there is none.
    pub tls: Option<ListenTls>,
    /// Who may ask for what: the first rule that matches a client decides, and who none matches is refused. Without rules all
    /// may ask for everything.
    pub clients: Option<Vec<ClientRule>>,
    /// Where the admin pages are; `None` where the file says `admin: none`.
    pub admin: Option<Address>,
    /// How the admin pages are spoken to: in clear text, if there is none.
    pub admin_tls: Option<ListenTls>,
    /// A file of bearer tokens, one of which a request for an admin page must carry.
    pub admin_token: Option<PathBuf>,
    /// A file of bearer tokens, one of which a request that changes something there must carry: what is logged, whether the relay says
    /// that it is ready, asking an origin anew. Without it nobody may where there is an `admin_token` or a `client_ca`.
    pub admin_write_token: Option<PathBuf>,
    /// The names that the admin pages answer to, beside addresses; without ports.
    pub admin_hosts: Vec<String>,
    /// Whether who is let in may ask what all clients have (CSDS).
    pub client_status: bool,
    /// Who the relay is on upstream streams that carry `xdstp:` names.
    pub node: Node,
    /// At least one; names are unique, and so is each authority over all of them.
    pub origins: Vec<Origin>,
    /// The name of the origin of every name that no origin lists the authority of, old-style names included.
    pub default_origin: String,
    /// What nodes must agree in to share old-style resources, never empty: one that lacks any of it shares with no other
    /// node. `None`: every distinct node is a group of its own.
    pub share_by: Option<Vec<NodeField>>,
    /// By which rules requests share old-style resources; `share_by` is for those that no rule is for, then.
    pub aggregation: Option<Aggregation>,
    /// Where it is kept what origins said last, if anywhere.
    pub state: Option<State>,
    /// Of which scopes what is new is served to some first; where there are any, there is a `state`.
    pub rollout: Vec<Rollout>,
    /// Where orders are taken that change what clients are served; `None` where the file says `orders: none`, or there is no
    /// [`rollout`](Self::rollout).
    pub orders: Option<Orders>,
    /// When the relay says that it is ready.
    pub ready_when: ReadyWhen,
    /// Which form of TP2 the clients speak that send dynamic parameters.
    pub dynamic_parameters: Dialect,
    /// Which parts of a client's node are its dynamic parameters, by their keys, where it sends none with a name. None is the
    /// locality as a whole, which is three texts.
    pub node_parameters: BTreeMap<String, NodeField>,
    /// What a stream is told of which nothing is known while its origin cannot be reached.
    pub unknown: Unknown,
    /// How long a name that nobody wants any more stays subscribed upstream.
    pub linger: Duration,
    /// How long a relay that shuts down says so, and serves all the same, before it ends its streams: until whoever sends clients
    /// to it has noticed.
    pub drain_delay: Duration,
    /// Within what time its streams are ended then.
    pub drain: Duration,
    /// Bounds on what peers may do.
    pub limits: Limits,
    /// How often it is looked, without being asked for, whether what is served is what origins have.
    pub drift: Option<Drift>,
    /// Where metrics are sent, beside being looked at.
    pub statsd: Option<Statsd>,
    /// Where the lives of updates are told, if anywhere.
    pub traces: Option<Traces>,
    /// What is logged, where the program has that follow.
    pub log: LogFilter,
}

/// Who the relay is towards its origins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// `Node.id`.
    pub id: String,
    /// `Node.cluster`.
    pub cluster: String,
    /// `Node.locality`; empty fields are not set.
    pub locality: Locality,
    /// `Node.metadata`, free-form.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

/// Where a node runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locality {
    /// The region.
    pub region: String,
    /// The zone within the region.
    pub zone: String,
    /// The part of the zone.
    pub sub_zone: String,
}

/// Where the relay gets resources.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// Names it in logs, metrics and `default_origin`.
    pub name: String,
    /// The authorities whose `xdstp:` names come from here, without escapes; the empty authority is one, too.
    pub authorities: Vec<String>,
    /// What it is.
    pub kind: OriginKind,
    /// How it is spoken to: in clear text, if there is none.
    pub tls: Option<OriginTls>,
    /// The file of the bearer token that calls to it carry (gRFC A97), over TLS only; it is read for each stream.
    pub token: Option<PathBuf>,
    /// By which methods it is asked.
    pub methods: Methods,
    /// Which streams to it carry `xdstp:` names.
    pub xdstp: XdstpStreams,
    /// In which form of TP2 it is asked with dynamic parameters.
    pub dynamic_parameters: Dialect,
    /// How long a connection to it may be quiet before it is pinged; at least 10 s.
    pub keepalive: Duration,
    /// How many streams share a connection to it, at most.
    pub streams_per_connection: NonZeroUsize,
    /// What it is told in the metadata of every node that asks it, a client's or the relay's own, in place of what that says under the same
    /// keys.
    pub node_metadata: serde_json::Map<String, serde_json::Value>,
    /// What the relay asks for itself to know all that there is, for releases of it.
    pub follow: Option<Follow>,
}

/// What a stream is told of which nothing at all is known while its origin cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// It ends as unavailable after a short grace, so that a client with a second server turns to that (gRFC A71).
    #[default]
    End,
    /// Nothing, until the origin is back.
    Wait,
}

/// Which streams to an origin carry `xdstp:` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XdstpStreams {
    /// One of the relay's own, with its own node: what comes is shared by all clients.
    #[default]
    Shared,
    /// Each node group's, beside its old-style names: for an origin that looks at the node, or at the whole of a stream.
    /// Node groups share nothing then.
    ByNode,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            id: "xds-relay".to_owned(),
            cluster: "relays".to_owned(),
            locality: Locality::default(),
            metadata: serde_json::Map::new(),
        }
    }
}

const DEFAULT_LISTEN: Address = loopback(18000);
const DEFAULT_ADMIN: Address = loopback(18001);

const fn loopback(port: u16) -> Address {
    Address::Tcp(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)))
}

const DEFAULT_LINGER: Duration = Duration::from_secs(30);
/// What a gRPC server bears by default; it ends connections that ping more often (gRFC A8).
const DEFAULT_KEEPALIVE: Duration = Duration::from_secs(5 * 60);
/// What servers of HTTP/2 are asked to bear at the least (RFC 9113, 6.5.2).
const DEFAULT_STREAMS_PER_CONNECTION: NonZeroUsize = NonZeroUsize::new(100).unwrap();
const DEFAULT_DRAIN_DELAY: Duration = Duration::ZERO;
const DEFAULT_DRAIN: Duration = Duration::from_secs(10);

impl Config {
    /// Reads and checks a file; see [`Config::parse`].
    ///
    /// # Errors
    /// The file cannot be read, is a directory, a FIFO or a device, or [`Config::parse`] refuses it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = text_file::read(path).map_err(|error| match error {
            Unread::File(reason) => ConfigError::Unreadable { file: path.to_owned(), reason },
            Unread::Text(error) => ConfigError::in_document(path, error),
        })?;
        Self::parse(path, &text)
    }

    /// Checks the text of a configuration. `file` is what errors name, and the directory it is in is what relative paths
    /// start from. The directories and files named in it must exist. `${NAME}` in a value is what the environment has under
    /// that name, and `${NAME:-default}` that or the default; `$${` stands for `${`.
    ///
    /// # Errors
    /// What is wrong first, and where. What is from the environment is not told.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<Self, ConfigError> {
        Self::parse_in(&|name| std::env::var(name), file.as_ref(), text)
    }

    /// The same in an environment.
    fn parse_in(
        variable: &dyn Fn(&str) -> Result<String, std::env::VarError>,
        file: &Path,
        text: &str,
    ) -> Result<Self, ConfigError> {
        let mut filled = Vec::new();
        yaml::parse(text)
            .and_then(|root| {
                let mut root = root.unwrap_or_else(yaml::Node::empty);
                if let Some(first) = fill_in(&mut root, variable, &mut filled).into_iter().next() {
                    return Err(first);
                }
                read::config(&root, file.parent().unwrap_or(Path::new("")))
            })
            .map_err(|error| ConfigError::in_document(file, environment::hide(error, &filled)))
    }

    /// The origin of this name.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.origins.iter().find(|origin| origin.name == name)
    }

    /// What errors call a field of one of its origins.
    pub(crate) fn field_of(&self, origin: &Origin, field: &str) -> String {
        let index = self.origins.iter().position(|other| other.name == origin.name).unwrap_or_default();
        format!("origins[{index}].{field}")
    }

    /// Authority → the name of its origin.
    #[must_use]
    pub fn authorities(&self) -> BTreeMap<&str, &str> {
        self.origins
            .iter()
            .flat_map(|origin| origin.authorities.iter().map(|authority| (authority.as_str(), origin.name.as_str())))
            .collect()
    }
}

impl ExampleMesh {
    /// The configuration that serves them.
    ///
    /// # Errors
    /// The unpacked file was changed or removed in the meantime.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::load(self.directory().join("relay.yaml"))
    }
}

/// An authority as a parsed name holds it: the configuration spells it without escapes.
pub(crate) fn canonical_authority(authority: &str) -> String {
    let escaped = authority.replace('%', "%25").replace('/', "%2F").replace('?', "%3F").replace('#', "%23");
    let name = ResourceName::parse(&format!("xdstp://{escaped}/T")).ok();
    name.and_then(|name| name.authority().map(str::to_owned)).unwrap_or_else(|| authority.to_owned())
}
