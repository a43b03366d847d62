//! The types, names and bodies of every history, and who serves them.

use bytes::{Bytes, BytesMut};
use prost::Message;
use xds_transport::Frame;
use xds_transport::Protocol;
use xds_transport::TypeRules;
use xdstp_cache::{Interest, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::random::Random;

const TYPES: [&str; 5] = [
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "envoy.config.route.v3.ScopedRouteConfiguration",
    "envoy.config.route.v3.RouteConfiguration",
    "envoy.config.listener.v3.Listener",
];
/// What others refer to, and what does.
pub(crate) const REFERRED: [Of; 2] = [0, 1];
pub(crate) const REFERRERS: [Of; 3] = [2, 3, 4];
/// Old-style names, and ids of authorities.
const NAMES: [&str; 8] = ["a", "b", "x d/1", "x d/2", "y d/1", "y d/1?k=1&l=2", "z d/1", "w d/1"];
/// Other names, and which two of the names may have them.
const ALIASES: [(&str, [usize; 2]); 4] = [("c", [0, 1]), ("x e/1", [2, 3]), ("z e/1", [2, 6]), ("y e/1", [3, 4])];
const GLOBS: [&str; 4] = ["x d/*", "y d/*", "y d/*?k=1&l=2", "z d/*"];

/// The authorities that each origin is configured for. The first serves old-style names, and those of authorities that no
/// origin is configured for.
pub(crate) const AUTHORITIES: [&str; ORIGINS] = ["x, z", "y"];
pub(crate) const ORIGINS: usize = 2;
/// The one that comes and goes, where one does.
pub(crate) const LED: usize = 1;
/// As many servers an origin has at most. Of two, each is a replica of its own.
pub(crate) const SERVERS: usize = 2;
/// The servers of all origins: the first of each, and then the second of each.
pub(crate) const ALL_SERVERS: usize = ORIGINS * SERVERS;
/// Clients, and the node group of each.
pub(crate) const GROUPS: [usize; 3] = [0, 0, 1];

/// One of these fills a response.
const LARGE: usize = 256 * 1024;

/// A number for a type.
pub(crate) type Of = usize;

/// What differs between histories, all drawn from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What each origin speaks.
    pub(crate) up: [Protocol; ORIGINS],
    /// How many servers each origin has.
    pub(crate) servers: [usize; ORIGINS],
    /// What each client speaks.
    pub(crate) down: [Protocol; GROUPS.len()],
    /// Clients understand wrapped resources in SotW (rule 110).
    pub(crate) wrapped: bool,
    /// Versions are texts of the origin, or else hashes of the content.
    pub(crate) own_versions: bool,
    /// The longest that a message is on its way, in ms.
    pub(crate) latency: u64,
    /// Resources are so large that an answer comes in several responses.
    pub(crate) large: bool,
    /// Wildcards hold `xdstp:` names too, of the origin's own authorities and of others'.
    pub(crate) xdstp_in_wildcards: bool,
    /// Resources have aliases.
    pub(crate) aliases: bool,
    /// The relay may start anew.
    pub(crate) relay_restarts: bool,
    /// Clients that speak as Envoy does.
    pub(crate) envoy: [bool; GROUPS.len()],
    /// Resources refer to each other, and in what order they are told is looked at.
    pub(crate) refers: bool,
    /// How long what nobody wants any more lingers upstream, in ms.
    pub(crate) linger: u64,
    /// How narrow the links are, if they are.
    pub(crate) narrow: Option<Narrow>,
    /// Clients that ask for the clusters they are referred to, as gRPC does.
    pub(crate) follows: [bool; GROUPS.len()],
    /// Nothing but the content of the origins changes.
    pub(crate) calm: bool,
    /// How many names the relay looks at for one stream before others have their turn.
    pub(crate) names_per_turn: usize,
    /// The second origin comes and goes, as another each time: its names are asked of whoever it is.
    pub(crate) led: bool,
    /// Which origins have a method for each type.
    pub(crate) apart: [bool; ORIGINS],
}

/// A link that takes its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    pub(crate) bytes_per_ms: u64,
    /// As many messages are on their way at most.
    pub(crate) window: usize,
}

impl Setup {
    pub(crate) fn random(random: &mut Random) -> Self {
        let both = [Protocol::Sotw, Protocol::Delta];
        let large = random.one_in(4);
        Self {
            up: std::array::from_fn(|_| random.pick(&both)),
            servers: [1; ORIGINS],
            down: std::array::from_fn(|_| random.pick(&both)),
            wrapped: random.one_in(2),
            own_versions: random.one_in(2),
            latency: random.pick(&[1, 20, 200]),
            large,
            xdstp_in_wildcards: !random.one_in(4),
            aliases: !random.one_in(4),
            // An answer in pieces is of use to who brings something along.
            relay_restarts: large || random.one_in(2),
            envoy: std::array::from_fn(|_| random.one_in(2)),
            refers: false,
            linger: 30_000,
            narrow: None,
            follows: Default::default(),
            calm: false,
            names_per_turn: 4096,
            led: false,
            apart: [false; ORIGINS],
        }
    }

    /// Of histories in which an origin has several servers.
    pub(crate) fn several(random: &mut Random) -> Self {
        let setup = Self::random(random);
        let servers = random.pick(&[[2, 2], [2, 1], [1, 2]]);
        // Their content is hashed, which takes long where it is large.
        Self { servers, large: false, own_versions: true, linger: random.pick(&[1, 30_000]), ..setup }
    }

    /// Of histories in which the second origin is another from time to time, or none: what is asked of the first meanwhile has no names
    /// beside its own.
    pub(crate) fn led(random: &mut Random) -> Self {
        let setup = Self::random(random);
        let up = [Protocol::Delta; ORIGINS];
        let (large, aliases, xdstp_in_wildcards, relay_restarts) = (false, false, false, false);
        let linger = random.pick(&[1, 30_000]);
        Self { led: true, up, own_versions: true, large, aliases, xdstp_in_wildcards, relay_restarts, linger, ..setup }
    }

    /// Of histories in which the stream of one type ends beside others.
    pub(crate) fn apart(random: &mut Random) -> Self {
        let setup = Self::random(random);
        let apart = random.pick(&[[true, true], [true, false], [false, true]]);
        Self { apart, own_versions: true, relay_restarts: true, linger: random.pick(&[1, 30_000]), ..setup }
    }

    /// Whether an origin is a replica of its own wherever it is reached: versions of one say nothing of the other's.
    pub(crate) fn has_replicas(&self, origin: usize) -> bool {
        self.servers[origin] > 1 || self.led && origin == LED
    }

    /// Of histories whose resources refer to each other.
    pub(crate) fn referring(random: &mut Random) -> Self {
        let setup = Self { aliases: false, ..Self::random(random) };
        let setup = Self { large: setup.large && random.one_in(2), ..setup };
        let (calm, windows) = (random.one_in(3), [1, 2, 4]);
        let rates = if setup.large { [100, 1000] } else { [1, 10] };
        let narrow = Narrow { bytes_per_ms: random.pick(&rates), window: random.pick(&windows) };
        let narrow = (random.one_in(2) && !calm).then_some(narrow);
        // Where a response crosses the end of a collection and its new beginning, nobody can tell what it answers.
        let linger = if narrow.is_some() { 30_000 } else { random.pick(&[1, 50, 30_000]) };
        // Nobody waits for long for who always has news.
        let latency = if calm { setup.latency.min(20) } else { setup.latency };
        let follows = std::array::from_fn(|_| random.one_in(3));
        let relay_restarts = !calm && random.one_in(4);
        Self { refers: true, calm, narrow, linger, latency, follows, relay_restarts, xdstp_in_wildcards: true, ..setup }
    }
}

pub(crate) struct Kind {
    pub(crate) url: TypeUrl,
    pub(crate) full_state: bool,
    pub(crate) names: Vec<ResourceName>,
    /// What some of them may be called besides.
    pub(crate) aliases: Vec<ResourceName>,
    /// Names, aliases, globs, and last the wildcard.
    pub(crate) interests: Vec<Interest>,
}

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) kinds: Vec<Kind>,
}

/// Where something is served from: an origin, and what it has for one node group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) origin: usize,
    pub(crate) group: Option<usize>,
}

impl Place {
    /// What answers the wildcard of a node group.
    pub(crate) fn wildcard(group: usize) -> Self {
        Self { origin: 0, group: Some(group) }
    }
}

impl World {
    pub(crate) const KINDS: usize = TYPES.len();
    pub(crate) const NAMES: usize = NAMES.len();
    pub(crate) const INTERESTS: usize = NAMES.len() + ALIASES.len() + GLOBS.len() + 1;
    /// The one glob that two names are members of: what is left of it may not be empty.
    pub(crate) const GLOB_OF_TWO: usize = NAMES.len() + ALIASES.len();
    pub(crate) const ITS_MEMBERS: [usize; 2] = [2, 3];
    /// Names of the authority whose origin comes and goes, and a glob.
    pub(crate) const LED: [usize; 2] = [4, 5];
    pub(crate) const GLOB_OF_LED: usize = NAMES.len() + ALIASES.len() + 1;
    pub(crate) const ALL_ALIASES: u64 = (1 << ALIASES.len()) - 1;
    /// How many types there are in histories whose resources do not refer to each other.
    pub(crate) const UNRELATED: usize = 4;
    pub(crate) const WILDCARD: usize = Self::INTERESTS - 1;

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
            let aliases: Vec<_> = ALIASES.iter().map(|(alias, _)| name(alias)).collect();
            let globs = GLOBS.iter().map(name);
            let mut interests: Vec<_> =
                names.iter().chain(&aliases).cloned().chain(globs).map(Interest::from).collect();
            interests.push(Interest::Wildcard);
            Kind { full_state: rules.of(&url).full_state_in_sotw, url, names, aliases, interests }
        };
        Self { setup, kinds: TYPES.iter().map(kind).collect() }
    }

    pub(crate) fn of(&self, type_url: &str) -> Option<Of> {
        self.kinds.iter().position(|kind| kind.url.as_str() == type_url)
    }

    /// The aliases that a name may have, one bit each.
    pub(crate) fn aliases_of(name: usize) -> u64 {
        let may = |(bit, (_, names)): (usize, &(&str, [usize; 2]))| names.contains(&name).then_some(1 << bit);
        ALIASES.iter().enumerate().filter_map(may).sum()
    }

    /// Whether a resource may ever be called like this.
    pub(crate) fn may_be_called(&self, of: Of, name: &ResourceName, alias: &ResourceName) -> bool {
        let Kind { names, aliases, .. } = &self.kinds[of];
        let called = |(called, (_, of)): (&ResourceName, &(&str, [usize; 2]))| {
            called == alias && of.iter().any(|of| names[*of] == *name)
        };
        aliases.iter().zip(&ALIASES).any(called)
    }

    /// Whether a client can be told that a name of this place is gone: SotW cannot say it of most types (rule 67).
    pub(crate) fn says_absence(&self, of: Of, place: Place, client: usize) -> bool {
        let delta = |protocol| protocol == Protocol::Delta;
        self.kinds[of].full_state || delta(self.setup.up[place.origin]) && delta(self.setup.down[client])
    }

    /// Whether a relay learns that something it asks for is not there. A SotW origin is silent about that, but for full
    /// states, and a relay takes silence for no answer (rule 150).
    pub(crate) fn learns_absence(&self, of: Of, place: Place) -> bool {
        self.kinds[of].full_state || self.setup.up[place.origin] == Protocol::Delta
    }

    /// Whether a client does. What a SotW client concludes is its own affair.
    pub(crate) fn answers_what_is_not_there(&self, of: Of, place: Place, client: usize) -> bool {
        self.learns_absence(of, place) || self.setup.down[client] == Protocol::Sotw
    }

    /// Whether what is asked for by an alias is sent: aliases are a matter of delta (rule 105).
    pub(crate) fn has_aliases(&self, place: Place, client: usize) -> bool {
        [self.setup.up[place.origin], self.setup.down[client]] == [Protocol::Delta; 2]
    }

    /// Whether a resource keeps its version on its way to a client (rule 146).
    pub(crate) fn keeps_version(&self, place: Place, client: usize) -> bool {
        if self.setup.has_replicas(place.origin) {
            return false;
        }
        let delta = |protocol| protocol == Protocol::Delta;
        delta(self.setup.up[place.origin]) && (delta(self.setup.down[client]) || self.setup.wrapped)
    }

    pub(crate) fn resource(&self, of: Of, name: &ResourceName, body: &Body) -> Resource<Frame> {
        let body = Body { name: name.as_str().into(), ..body.clone() };
        let aliases: Vec<_> = self.aliases(of, &body).map(ToString::to_string).collect();
        let mut wrapper = BytesMut::new();
        prost::encoding::string::encode_repeated(4, &aliases, &mut wrapper);
        let wrapper = wrapper.freeze();
        let mut payload = body.encode_to_vec();
        let frame =
            |payload: &[u8]| Frame::of_message(&self.kinds[of].url, payload).with_wrapper(wrapper.clone(), None, false);
        let version = self.setup.own_versions.then(|| Version::from(format!("v{}", body.serial)));
        let mut resource = frame(&payload).into_resource(version);
        if self.setup.large {
            // The same for all: to hash it would take longer than the rest of the run.
            prost::encoding::bytes::encode(2000, &vec![b'.'; LARGE], &mut payload);
            resource.value = frame(&payload);
        }
        resource
    }

    /// What a replica calls by a version of its own: that which another calls something else by.
    pub(crate) fn replicated(
        &self,
        origin: usize,
        replica: usize,
        resource: &Resource<Frame>,
        body: &Body,
    ) -> Resource<Frame> {
        if !self.setup.has_replicas(origin) || replica == 0 {
            return resource.clone();
        }
        let version = Version::from(format!("v{}", body.serial + replica as u64));
        Resource::new(version, resource.digest(), resource.value.clone())
    }

    /// The bit of an alias.
    pub(crate) fn alias(&self, of: Of, interest: &Interest) -> u64 {
        let Interest::Name(name) = interest else { return 0 };
        self.kinds[of].aliases.iter().position(|alias| alias == name).map_or(0, |bit| 1 << bit)
    }

    /// What a resource is called besides.
    pub(crate) fn aliases<'a>(&'a self, of: Of, body: &Body) -> impl Iterator<Item = &'a ResourceName> {
        let mask = body.aliases;
        let aliases = self.kinds[of].aliases.iter().enumerate();
        aliases.filter(move |(bit, _)| mask & 1 << bit != 0).map(|(_, alias)| alias)
    }

    /// Whether a resource is what a relay serves for an interest. A wildcard is answered by what is there for a node group,
    /// everything else but old-style names by what is there for everybody.
    pub(crate) fn serves(&self, of: Of, interest: &Interest, name: &ResourceName, body: &Body) -> bool {
        let Interest::Name(asked) = interest else { return body.group != 0 };
        (body.group == 0 || name.is_opaque()) && (name.answers(asked) || self.stands_for(of, asked, name, body))
    }

    /// Whether it says itself that it is called like this, whoever may say so.
    pub(crate) fn called(&self, of: Of, asked: &Interest, name: &ResourceName, body: &Body) -> bool {
        matches!(asked, Interest::Name(asked) if asked != name && self.aliases(of, body).any(|alias| alias == asked))
    }

    /// Whether a resource may be asked for by another name: of an authority of the same origin.
    pub(crate) fn stands_for(&self, of: Of, asked: &ResourceName, name: &ResourceName, body: &Body) -> bool {
        origin_of(asked) == origin_of(name) && self.aliases(of, body).any(|alias| alias == asked)
    }
}

/// The origin that a name is asked of.
pub(crate) fn origin_of(name: &ResourceName) -> usize {
    usize::from(name.authority() == Some("y"))
}

/// Who serves a name to a node group that asks for it.
pub(crate) fn place_of(name: &ResourceName, group: usize) -> Place {
    Place { origin: origin_of(name), group: name.is_opaque().then_some(group) }
}

/// Where what is referred to is: in the wildcard of a node group, if what refers to it is there although its own name is
/// another authority's.
pub(crate) fn place_of_referred(name: &ResourceName, place: Place, referrer: &ResourceName) -> Place {
    match place.group {
        Some(group) if !referrer.is_opaque() => Place::wildcard(group),
        group => place_of(name, group.unwrap_or(0)),
    }
}

/// Whether an interest covers a name in the eyes of a client, to whom a wildcard is everything.
pub(crate) fn covers(interest: &Interest, name: &ResourceName) -> bool {
    match interest {
        Interest::Wildcard => true,
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
    /// One bit each.
    #[prost(uint64, tag = "1004")]
    pub(crate) aliases: u64,
    /// The clusters and endpoints it refers to, one bit for each name.
    #[prost(uint64, tag = "1005")]
    pub(crate) uses: u64,
}

impl Body {
    /// The one in an encoded `Any`.
    pub(crate) fn of_any(any: &Bytes) -> Self {
        Self::decode(xds_transport::wire::Any::decode(any.clone()).unwrap().value).unwrap()
    }

    /// The names of a type that it refers to.
    pub(crate) fn references<'a>(&self, world: &'a World, of: Of) -> impl Iterator<Item = &'a ResourceName> {
        let uses = self.uses;
        let names = world.kinds[of].names.iter().enumerate();
        names.filter(move |(bit, _)| uses & 1 << bit != 0).map(|(_, name)| name)
    }

    /// Where a resource of this name was put.
    pub(crate) fn place(&self, name: &ResourceName) -> Place {
        match self.group.checked_sub(1) {
            Some(group) => Place::wildcard(group as usize),
            None => Place { origin: origin_of(name), group: None },
        }
    }

    /// Whether a client of a node group may be told of it: rules 147 and 153.
    pub(crate) fn is_for(&self, name: &ResourceName, group: usize) -> bool {
        let theirs = self.group == group as u64 + 1;
        if name.is_opaque() { theirs } else { self.group == 0 || theirs && origin_of(name) == 0 }
    }
}

/// What a transcript shows of a payload: its name, and a number for its body.
pub(crate) fn read(payload: &[u8]) -> (String, u8) {
    let body = Body::decode(payload).unwrap();
    (body.name, body.serial as u8)
}
