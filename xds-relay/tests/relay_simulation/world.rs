//! The types, names and bodies of every history, and who serves them.

use prost::Message;
use xds_transport::Frame;
use xds_transport::TypeRules;
use xds_transport::server::Variant;
use xdstp_cache::{Interest, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::random::Random;

const TYPES: [&str; 3] = [
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "envoy.config.route.v3.RouteConfiguration",
];
/// Old-style names, and ids of either authority.
const NAMES: [&str; 6] = ["a", "b", "x d/1", "x d/2", "y d/1", "y d/1?k=1"];
const GLOBS: [&str; 3] = ["x d/*", "y d/*", "y d/*?k=1"];

/// Clients, and the node group of each.
pub(crate) const GROUPS: [usize; 3] = [0, 0, 1];
/// The first serves old-style names and the authority `x`, the other `y`.
pub(crate) const ORIGINS: usize = 2;

/// One of these fills a response.
const LARGE: usize = 256 * 1024;

/// A number for a type.
pub(crate) type Of = usize;

/// What differs between histories, all drawn from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What each origin speaks.
    pub(crate) up: [Variant; ORIGINS],
    /// What each client speaks.
    pub(crate) down: [Variant; GROUPS.len()],
    /// Clients understand wrapped resources in SotW (rule 110).
    pub(crate) wrapped: bool,
    /// Versions are texts of the origin, or else hashes of the content.
    pub(crate) own_versions: bool,
    /// The longest that a message is on its way, in ms.
    pub(crate) latency: u64,
    /// Resources are so large that an answer comes in several responses.
    pub(crate) large: bool,
}

impl Setup {
    pub(crate) fn random(random: &mut Random) -> Self {
        let both = [Variant::Sotw, Variant::Delta];
        Self {
            up: std::array::from_fn(|_| random.pick(&both)),
            down: std::array::from_fn(|_| random.pick(&both)),
            wrapped: random.one_in(2),
            own_versions: random.one_in(2),
            latency: random.pick(&[1, 20, 200]),
            large: random.one_in(4),
        }
    }
}

pub(crate) struct Kind {
    pub(crate) url: TypeUrl,
    pub(crate) full_state: bool,
    pub(crate) names: Vec<ResourceName>,
    /// Names, globs, and last the wildcard.
    pub(crate) interests: Vec<Interest>,
}

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) kinds: Vec<Kind>,
}

/// What serves a name: an origin, and for old-style names what it has for one node group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) origin: usize,
    pub(crate) group: Option<usize>,
}

impl World {
    pub(crate) const KINDS: usize = TYPES.len();
    pub(crate) const NAMES: usize = NAMES.len();
    pub(crate) const INTERESTS: usize = NAMES.len() + GLOBS.len() + 1;

    pub(crate) fn new(setup: Setup) -> Self {
        let rules = TypeRules::envoy();
        let kind = |message: &&str| {
            let url = TypeUrl::from(format!("type.googleapis.com/{message}"));
            let name = |text: &&str| {
                let text = match text.split_once(' ') {
                    Some((authority, id)) => format!("xdstp://{authority}/{message}/{id}"),
                    None => (*text).to_owned(),
                };
                ResourceName::parse(&text).unwrap()
            };
            let names: Vec<_> = NAMES.iter().map(name).collect();
            let mut interests: Vec<_> =
                names.iter().cloned().chain(GLOBS.iter().map(name)).map(Interest::from).collect();
            interests.push(Interest::Wildcard);
            Kind { full_state: rules.of(&url).full_state_in_sotw, url, names, interests }
        };
        Self { setup, kinds: TYPES.iter().map(kind).collect() }
    }

    pub(crate) fn of(&self, type_url: &str) -> Option<Of> {
        self.kinds.iter().position(|kind| kind.url.as_str() == type_url)
    }

    /// Whether a client can be told that a name of this place is gone: SotW cannot say it of most types (rule 67).
    pub(crate) fn says_absence(&self, of: Of, place: Place, client: usize) -> bool {
        let delta = |variant| variant == Variant::Delta;
        self.kinds[of].full_state || delta(self.setup.up[place.origin]) && delta(self.setup.down[client])
    }

    /// Whether a client learns that something it asks for is not there. A SotW origin is silent about that, but for full
    /// states, and a relay takes silence for no answer (rule 150); what a SotW client concludes is its own affair.
    pub(crate) fn answers_what_is_not_there(&self, of: Of, place: Place, client: usize) -> bool {
        self.kinds[of].full_state
            || self.setup.up[place.origin] == Variant::Delta
            || self.setup.down[client] == Variant::Sotw
    }

    /// Whether a resource keeps its version on its way to a client (rule 146).
    pub(crate) fn keeps_version(&self, place: Place, client: usize) -> bool {
        let delta = |variant| variant == Variant::Delta;
        delta(self.setup.up[place.origin]) && (delta(self.setup.down[client]) || self.setup.wrapped)
    }

    pub(crate) fn resource(&self, of: Of, name: &ResourceName, body: &Body) -> Resource<Frame> {
        let padding = if self.setup.large { vec![0; LARGE] } else { Vec::new() };
        let body = Body { name: name.as_str().into(), padding, ..body.clone() };
        let frame = Frame::of_message(&self.kinds[of].url, &body.encode_to_vec());
        frame.into_resource(self.setup.own_versions.then(|| Version::from(format!("v{}", body.serial))))
    }
}

/// Who serves a name to a node group.
pub(crate) fn place_of(name: &ResourceName, group: usize) -> Place {
    match name.authority() {
        Some("y") => Place { origin: 1, group: None },
        Some(_) => Place { origin: 0, group: None },
        None => Place { origin: 0, group: Some(group) },
    }
}

/// Whether an interest covers a name; a wildcard is everything to a client, and the old-style names to an origin.
pub(crate) fn covers(interest: &Interest, name: &ResourceName, client: bool) -> bool {
    match interest {
        Interest::Wildcard => client || name.authority().is_none(),
        Interest::Name(asked) => name.answers(asked),
    }
}

/// A payload: what differs between any two that are ever put anywhere.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Body {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "1000")]
    pub(crate) serial: u64,
    /// The node group it is for, plus one.
    #[prost(uint64, tag = "1001")]
    pub(crate) group: u64,
    /// Clients refuse it.
    #[prost(bool, tag = "1002")]
    pub(crate) bad: bool,
    #[prost(bytes = "vec", tag = "1003")]
    pub(crate) padding: Vec<u8>,
}

impl Body {
    /// The one in an encoded `Any`.
    pub(crate) fn of_any(any: &[u8]) -> Self {
        let body = Self::decode(xds_transport::wire::Any::decode(any).unwrap().value).unwrap();
        Self { padding: Vec::new(), ..body }
    }
}

/// What a transcript shows of a payload: its name, and a number for its body.
pub(crate) fn read(payload: &[u8]) -> (String, u8) {
    let body = Body::decode(payload).unwrap();
    (body.name, body.serial as u8)
}
