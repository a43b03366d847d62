//! The tenants, types and names of every script, and the relay before them.

use std::fmt::Write as _;

use bytes::Bytes;
use prost::Message;
use xds_relay::Config;
use xds_transport::Protocol;
use xds_transport::wire::Node;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::script::Script;

pub(crate) const ORIGINS: usize = 2;
pub(crate) const CLIENTS: [Who; 4] = [Who::Red, Who::Blue, Who::Red, Who::Blue];
/// Of full states; of no full states; and what comes over delta only, and is absent as an alias.
pub(crate) const TYPES: [&str; 3] = [
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "type.googleapis.com/envoy.config.route.v3.VirtualHost",
];

/// Old-style names, and those of the authority of each origin, and of one that nobody is configured for.
const NAMES: [&str; 8] = ["a", "b", "rc/h", "x d/1", "x d/2", "y d/1?k=1", "y e", "z d/1"];
const GLOBS: [&str; 4] = ["x d/*", "y d/*?k=1", "y *", "x *"];

/// Whom an origin answers on a stream: one tenant of the relay, who must not see what is another's, or the relay for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    Shared,
    Red,
    Blue,
    /// Who said nothing of itself.
    Nobody,
}

impl Who {
    const ALL: [Self; 4] = [Self::Shared, Self::Red, Self::Blue, Self::Nobody];

    pub(crate) fn of(node: &Bytes) -> Self {
        match Node::decode(node.clone()).unwrap_or_default().cluster.as_str() {
            "relay" => Self::Shared,
            "red" => Self::Red,
            "blue" => Self::Blue,
            _ => Self::Nobody,
        }
    }

    /// Stands in everything that an origin says on a stream for it. No two are alike in all but a byte or two.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Shared => "~shared~",
            Self::Red => "~red~",
            Self::Blue => "~blue~",
            Self::Nobody => "~nobody~",
        }
    }

    /// Whether `bytes` hold what was made for somebody else; what is shared is nobody's.
    pub(crate) fn must_not_see(self, bytes: &[u8]) -> Option<Self> {
        let others = Self::ALL.into_iter().filter(|who| *who != self && *who != Self::Shared);
        others.into_iter().find(|who| holds(bytes, who.mark().as_bytes()))
    }
}

fn holds(bytes: &[u8], mark: &[u8]) -> bool {
    const CHUNK: usize = 4096;
    // Most bytes of a long message are padding: what need not be looked at one by one, is not.
    let chunks = bytes.chunks(CHUNK).enumerate().filter(|(_, chunk)| chunk.contains(&b'~'));
    let starts = chunks.flat_map(|(at, chunk)| (at * CHUNK..).zip(chunk).filter(|(_, byte)| **byte == b'~'));
    starts.into_iter().any(|(at, _)| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark)))
}

pub(crate) struct World {
    pub(crate) up: [Protocol; ORIGINS],
    pub(crate) down: [Protocol; CLIENTS.len()],
    by_node: [bool; ORIGINS],
    shares_by_cluster: bool,
    lingers: bool,
    features: u8,
}

impl World {
    pub(crate) fn read(script: &mut Script<'_>) -> Self {
        let (first, second) = (script.byte(), script.byte());
        let protocol = |bits: u8, at: usize| if bits >> at & 1 == 0 { Protocol::Delta } else { Protocol::Sotw };
        Self {
            up: std::array::from_fn(|at| protocol(first, at)),
            by_node: std::array::from_fn(|at| first >> (2 + at) & 1 == 1),
            shares_by_cluster: first >> 4 & 1 == 0,
            lingers: first >> 5 & 1 == 0,
            down: std::array::from_fn(|at| protocol(second, at)),
            features: second >> 4,
        }
    }

    pub(crate) fn config(&self) -> Config {
        let mut text = String::from("node: {id: relay, cluster: relay}\ndefault_origin: o0\n");
        text += if self.shares_by_cluster { "share_by: [cluster]\n" } else { "" };
        text += if self.lingers { "" } else { "linger: 1ms\n" };
        text += "origins:\n";
        for (at, authority) in ["x", "y"].iter().enumerate() {
            let protocol = if self.up[at] == Protocol::Delta { "delta" } else { "sotw" };
            let xdstp = if self.by_node[at] { "by_node" } else { "shared" };
            let _ = writeln!(text, "  - name: o{at}\n    server: 127.0.0.1:1\n    protocol: {protocol}");
            let _ = writeln!(text, "    authorities: [{authority}]\n    xdstp: {xdstp}");
        }
        Config::parse("relay.yaml", &text).unwrap()
    }

    /// Who a client is: in its tenant's group, by its cluster or by being the same node.
    pub(crate) fn node(&self, client: usize) -> Bytes {
        let cluster = CLIENTS[client].mark().trim_matches('~').to_owned();
        let id = if self.shares_by_cluster { format!("client-{client}") } else { cluster.clone() };
        let known = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];
        let knows = |(at, _): &(usize, &str)| self.features >> at & 1 == 1;
        let client_features = known.into_iter().enumerate().filter(knows).map(|(_, feature)| feature.into()).collect();
        Node { id, cluster, client_features, ..Node::default() }.encode_to_vec().into()
    }
}

/// Which origin a name is set by (rule 153): the first is the default.
pub(crate) fn origin_of(name: &ResourceName) -> usize {
    usize::from(name.authority() == Some("y"))
}

/// The names of a type.
pub(crate) fn names(type_url: &str) -> Vec<ResourceName> {
    NAMES.iter().map(|text| spell(type_url, text)).collect()
}

/// All that can be asked for of a type: names, globs, everything.
pub(crate) fn interests(type_url: &str) -> Vec<Interest> {
    let globs = GLOBS.iter().map(|text| spell(type_url, text));
    let named = names(type_url).into_iter().chain(globs).map(Interest::from);
    std::iter::once(Interest::Wildcard).chain(named).collect()
}

fn spell(type_url: &str, text: &str) -> ResourceName {
    let message = type_url.rsplit('/').next().unwrap_or_default();
    let text = match text.split_once(' ') {
        Some((authority, id)) => format!("xdstp://{authority}/{message}/{id}"),
        None => text.to_owned(),
    };
    ResourceName::parse(&text).unwrap()
}
