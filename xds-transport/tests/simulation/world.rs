//! The types, names and bodies of every history.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::{Frame, TypeRule, TypeRules};
use xdstp_cache::{Interest, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::random::Random;
use crate::variants::Form;

const TYPES: [&str; 6] = [
    "envoy.config.cluster.v3.Cluster",
    ENDPOINTS,
    "envoy.config.listener.v3.Listener",
    "envoy.config.route.v3.RouteConfiguration",
    "envoy.config.route.v3.ScopedRouteConfiguration",
    "example.Opaque",
];
const ENDPOINTS: &str = "envoy.config.endpoint.v3.ClusterLoadAssignment";
/// What follows authority and type.
const XDSTP: [&str; 4] = ["d/1", "d/2", "d/e/1", "d/1?k=1&l=2"];
const GLOBS: [&str; 3] = ["d/*", "d/e/*", "d/*?k=1&l=2"];
const OPAQUE: [&str; 3] = ["a", "b", "d/1"];

/// What differs between histories, all drawn from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) protocol: Protocol,
    /// The client understands wrapped resources in SotW (rule 110).
    pub(crate) wrapped: bool,
    /// A wildcard at the origin covers `xdstp:` names too.
    pub(crate) wildcard_covers_xdstp: bool,
    /// The origin gives a version to each type as a whole.
    pub(crate) type_versions: bool,
    /// Resources may live for a time only, and the client understands that.
    pub(crate) ttl: bool,
    /// The origin may have errors of names and globs (TP3).
    pub(crate) errors: bool,
    /// Versions are texts of the origin, or else hashes of the content.
    pub(crate) own_versions: bool,
    pub(crate) tombstones: usize,
    /// Messages that one direction of a link holds.
    pub(crate) window: usize,
    /// The longest that a message is on its way, in ms.
    pub(crate) latency: u64,
    /// The longest that the client's user takes for one update, in ms.
    pub(crate) think: u64,
    /// Types overtake one another.
    pub(crate) reorder: bool,
    /// Bytes beside the body of each resource: where there are many, every resource fills a response.
    pub(crate) filler: usize,
    /// How many names the origin looks at before it pauses.
    pub(crate) looks: usize,
    /// Names have variants, of which the client gets the one that is for it.
    pub(crate) variants: Option<Form>,
}

impl Setup {
    pub(crate) fn random(random: &mut Random) -> Self {
        Self {
            protocol: random.pick(&[Protocol::Sotw, Protocol::Delta]),
            wrapped: random.one_in(2),
            wildcard_covers_xdstp: random.one_in(2),
            type_versions: random.one_in(3),
            ttl: random.one_in(3),
            errors: random.one_in(2),
            own_versions: random.one_in(2),
            tombstones: random.pick(&[1, 3, 1000]),
            window: random.pick(&[1, 2, 16]),
            latency: random.pick(&[1, 20, 200]),
            think: random.pick(&[0, 0, 30, 300]),
            reorder: random.one_in(3),
            filler: if random.one_in(8) { 256 * 1024 } else { 0 },
            looks: usize::MAX,
            variants: None,
        }
    }
}

/// A number for a type.
pub(crate) type Of = usize;

pub(crate) struct Kind {
    pub(crate) url: TypeUrl,
    pub(crate) rule: TypeRule,
    pub(crate) names: Vec<ResourceName>,
    /// Names, globs, and last the wildcard.
    pub(crate) interests: Vec<Interest>,
}

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) kinds: Vec<Kind>,
}

impl World {
    /// Whether messages pass as they are: what they say of variants, only the machines read.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.setup.variants.is_some_and(|form| form.on_wire)
    }

    pub(crate) const KINDS: usize = TYPES.len();
    pub(crate) const NAMES: usize = OPAQUE.len() + XDSTP.len();
    pub(crate) const INTERESTS: usize = Self::NAMES + GLOBS.len() + 1;
    /// Bodies are numbers; the client's user refuses the last one.
    pub(crate) const BODIES: u8 = 5;
    pub(crate) const BAD: u8 = Self::BODIES - 1;
    /// How long resources may live, in ms.
    pub(crate) const TTLS: [u64; 2] = [3000, 9000];

    pub(crate) fn new(setup: Setup) -> Self {
        let rules = TypeRules::envoy();
        let kind = |message: &&str| {
            let url = TypeUrl::from(format!("type.googleapis.com/{message}"));
            let xdstp = |id: &&str| ResourceName::parse(&format!("xdstp://x/{message}/{id}")).unwrap();
            let opaque = OPAQUE.iter().map(|text| ResourceName::parse(text).unwrap());
            let names: Vec<_> = opaque.chain(XDSTP.iter().map(xdstp)).collect();
            let mut interests: Vec<_> =
                names.iter().cloned().chain(GLOBS.iter().map(xdstp)).map(Interest::from).collect();
            interests.push(Interest::Wildcard);
            Kind { rule: rules.of(&url).clone(), url, names, interests }
        };
        let kinds = TYPES.iter().map(kind).collect();
        Self { setup, rules: Arc::new(rules), kinds }
    }

    pub(crate) fn of(&self, type_url: &str) -> Option<Of> {
        self.kinds.iter().position(|kind| kind.url.as_str() == type_url)
    }

    pub(crate) fn rule(&self, of: Of) -> &TypeRule {
        &self.kinds[of].rule
    }

    /// Whether absence can be said: SotW cannot say it of most types (rule 67).
    pub(crate) fn says_absence(&self, of: Of) -> bool {
        self.setup.protocol == Protocol::Delta || self.rule(of).full_state_in_sotw
    }

    /// Whether a TTL is told.
    pub(crate) fn tells_ttl(&self) -> bool {
        self.setup.ttl && (self.setup.protocol == Protocol::Delta || self.setup.wrapped)
    }

    pub(crate) fn resource(&self, of: Of, name: &ResourceName, body: u8, ttl: Option<u64>) -> Resource<Frame> {
        let eds = (of == 0 && body % 2 == 1).then(|| Eds { service_name: OPAQUE[usize::from(body) % 3].into() });
        let payload = Payload { name: name.as_str().into(), eds, body: u32::from(body) };
        let mut payload = payload.encode_to_vec();
        let frame = |payload: &[u8]| Frame::of_message(&self.kinds[of].url, payload);
        let version = self.setup.own_versions.then(|| Version::from(format!("v{body}")));
        let mut resource = frame(&payload).into_resource(version);
        if self.setup.filler > 0 {
            // The same for all: to hash it would take longer than the rest of the run.
            prost::encoding::bytes::encode(1001, &vec![b'.'; self.setup.filler], &mut payload);
            resource.value = frame(&payload);
        }
        resource.value = resource.value.with_wrapper(Bytes::new(), ttl.map(Duration::from_millis), false);
        resource
    }

    /// What is sent again with a resource of type `of` (rule 124).
    pub(crate) fn dependents(&self, of: Of, any: &[u8]) -> Vec<(Of, ResourceName)> {
        if of != 0 {
            return Vec::new();
        }
        let payload = Payload::decode(any).unwrap();
        let name = payload.eds.map_or(payload.name, |eds| eds.service_name);
        vec![(1, ResourceName::parse(&name).unwrap())]
    }
}

/// Whether an interest covers a name, at the origin or, where a wildcard is everything, at the client.
pub(crate) fn covers(interest: &Interest, name: &ResourceName, wildcard_covers_xdstp: bool) -> bool {
    match interest {
        Interest::Wildcard => wildcard_covers_xdstp || !name.as_str().starts_with("xdstp:"),
        Interest::Name(asked) => name.answers(asked),
    }
}

/// What anybody may look at in a payload: the name, and a Cluster's reference.
#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "3")]
    eds: Option<Eds>,
    #[prost(uint32, tag = "1000")]
    body: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Eds {
    #[prost(string, tag = "2")]
    service_name: String,
}

/// The name and the number in an encoded payload.
pub(crate) fn read(payload: &[u8]) -> (String, u8) {
    let payload = Payload::decode(payload).unwrap();
    (payload.name, payload.body as u8)
}
