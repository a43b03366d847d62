//! Who may ask for what.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::{Value, json};
use xds_transport::wire::Node;
use xdstp_uri::ResourceName;

use super::cidr::Cidr;
use super::client_limits::{self, ClientLimits, client_limits};
use super::fields::{CLIENT_FIELDS, MATCH_FIELDS};
use super::glob::{Glob, PatternError};
use super::name_pattern::NamePattern;
use super::tls::File;
use super::values::flag;
use crate::api::is_type;
use crate::yaml::{self, Error};

/// Which clients a rule is for, and what they may ask for.
///
/// ```
/// use xds_relay::Config;
///
/// let config = Config::parse(
///     "relay.yaml",
///     "
///     origins: [{ name: control-plane, server: 127.0.0.1:18010 }]
///     clients:
///       - match: { cidr: [10.1.0.0/16] }
///         nodes: [shop-*]
///         names: [shop/**]
///     ",
/// )?;
/// let rule = &config.clients.as_ref().unwrap()[0];
/// assert!(rule.allows_name(&"shop/web".parse()?));
/// assert!(!rule.allows_name(&"bank/web".parse()?) && !rule.wildcard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientRule {
    /// The clients that it is for.
    pub matches: ClientMatch,
    /// The ids that their nodes may have; `None`: any, and so with the others.
    pub nodes: Option<Vec<Glob>>,
    /// The clusters that their nodes may be of.
    pub clusters: Option<Vec<Glob>>,
    /// The types that they may ask for: type URLs, or the ends of these.
    pub types: Option<Vec<String>>,
    /// The names that they may ask for.
    pub names: Option<Vec<NamePattern>>,
    /// Whether they may ask for all of a type at once, whatever its names are.
    pub wildcard: bool,
    /// Whether they may ask what all clients have (CSDS), where the relay tells it.
    pub client_status: bool,
    /// What each of them may use up.
    pub limits: ClientLimits,
}

/// What clients must show. Of each kind that there is anything of they must show one, and there is some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMatch {
    /// A name in their certificate: of a host, or a URI.
    pub san: Vec<Glob>,
    /// The SPIFFE id in their certificate.
    pub spiffe: Vec<Glob>,
    /// Where they come from.
    pub cidr: Vec<Cidr>,
    /// A bearer token that is in this file, one in a line.
    pub token: Option<PathBuf>,
    /// That they came by the unix socket.
    pub unix: bool,
    /// Nothing.
    pub any: bool,
}

impl ClientRule {
    /// A rule that allows all that it does not limit.
    #[must_use]
    pub fn new(matches: ClientMatch) -> Self {
        let limits = ClientLimits::default();
        Self {
            matches,
            nodes: None,
            clusters: None,
            types: None,
            names: None,
            wildcard: true,
            client_status: true,
            limits,
        }
    }

    /// Why a client may not say that it is this node, if it may not.
    #[must_use]
    pub fn denies_node(&self, node: &Node) -> Option<String> {
        let is_one = |globs: &Option<Vec<Glob>>, text: &str| {
            globs.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(text)))
        };
        if !is_one(&self.nodes, &node.id) {
            return Some(format!("this client may not be a node of the id {:?}", node.id));
        }
        let cluster = &node.cluster;
        (!is_one(&self.clusters, cluster)).then(|| format!("this client may not be a node of the cluster {cluster:?}"))
    }

    /// Whether it looks at who a client says that it is.
    #[must_use]
    pub fn limits_nodes(&self) -> bool {
        self.nodes.is_some() || self.clusters.is_some()
    }

    /// Whether a client may ask for anything of a type URL.
    #[must_use]
    pub fn allows_type(&self, type_url: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.iter().any(|known| is_type(type_url, known)))
    }

    /// Whether a client may ask for a name, or a glob.
    #[must_use]
    pub fn allows_name(&self, name: &ResourceName) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|pattern| pattern.matches(name)))
    }
}

impl ClientMatch {
    /// Whether an address is of the range that it must be of.
    pub(crate) fn is_from(&self, address: Option<IpAddr>) -> bool {
        self.cidr.is_empty() || address.is_some_and(|address| self.cidr.iter().any(|range| range.contains(address)))
    }

    /// Whether it looks at a certificate.
    pub(crate) fn needs_certificate(&self) -> bool {
        !self.san.is_empty() || !self.spiffe.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.needs_certificate() && self.cidr.is_empty() && self.token.is_none() && !self.unix && !self.any
    }
}

/// Whether clients show certificates, and whether what they say is read by nobody else.
#[derive(Clone, Copy)]
pub(super) struct Listening {
    pub(super) asks_for_certificates: bool,
    pub(super) is_private: bool,
}

/// What is wrong with rules that nobody matches.
pub(super) const NO_RULES: &str = "empty: all would be refused; expected at least one rule";
const NO_MATCH: &str = "expected any of san, spiffe, cidr, token and unix, or any: true";
const NO_CERTIFICATES: &str = "no client shows a certificate; expected tls.client_ca";
const OPEN_TOKEN: &str = "a token goes over TLS, a unix socket or the loopback address only; expected tls";

pub(super) fn clients(list: &yaml::Node, listening: Listening, file: File<'_>) -> Result<Vec<ClientRule>, Error> {
    let rules = list.items(|node| rule(node, listening, file))?;
    if rules.is_empty() { list.refuse(NO_RULES) } else { Ok(rules) }
}

fn rule(node: &yaml::Node, listening: Listening, file: File<'_>) -> Result<ClientRule, Error> {
    node.expect_fields(CLIENT_FIELDS)?;
    let matches = node.required_field("match", NO_MATCH, |node| matched(node, listening, file))?;
    let host = |list: &yaml::Node| some(list, |node| pattern(node, |text| Glob::parse(text, '/')));
    let types = |list: &yaml::Node| some(list, type_url);
    let names = node.field("names", |list| list.items(|node| pattern(node, NamePattern::parse)))?;
    Ok(ClientRule {
        matches,
        nodes: node.field("nodes", host)?,
        clusters: node.field("clusters", host)?,
        types: node.field("types", types)?,
        wildcard: node.field("wildcard", flag)?.unwrap_or(names.is_none()),
        client_status: node.field("client_status", flag)?.unwrap_or_default(),
        limits: node.field("limits", client_limits)?.unwrap_or_default(),
        names,
    })
}

fn matched(node: &yaml::Node, listening: Listening, file: File<'_>) -> Result<ClientMatch, Error> {
    node.expect_fields(MATCH_FIELDS)?;
    let certified = |node: &yaml::Node| {
        if listening.asks_for_certificates { Ok(()) } else { node.refuse(NO_CERTIFICATES) }
    };
    let san = |list: &yaml::Node| certified(list).and_then(|()| some(list, |node| pattern(node, san)));
    let spiffe = |list: &yaml::Node| certified(list).and_then(|()| some(list, spiffe));
    let cidr =
        |node: &yaml::Node| node.text().and_then(|text| text.parse().or_else(|problem: String| node.refuse(problem)));
    let token = |node: &yaml::Node| if listening.is_private { file(node) } else { node.refuse(OPEN_TOKEN) };
    let matches = ClientMatch {
        san: node.field("san", san)?.unwrap_or_default(),
        spiffe: node.field("spiffe", spiffe)?.unwrap_or_default(),
        cidr: node.field("cidr", |list| some(list, cidr))?.unwrap_or_default(),
        token: node.field("token", token)?,
        unix: node.field("unix", set)?.is_some(),
        any: node.field("any", set)?.is_some(),
    };
    if matches.is_empty() {
        return node.refuse(format!("empty; {NO_MATCH}"));
    }
    if matches.any && matches != (ClientMatch { any: true, ..ClientMatch::default() }) {
        return node.refuse("any: true is all there is to say; expected nothing beside it");
    }
    Ok(matches)
}

/// A list that leaves out everybody is a slip.
fn some<T>(list: &yaml::Node, read: impl FnMut(&yaml::Node) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let items = list.items(read)?;
    if items.is_empty() { list.refuse("empty; expected at least one, or no such field") } else { Ok(items) }
}

fn pattern<T>(node: &yaml::Node, read: impl FnOnce(&str) -> Result<T, PatternError>) -> Result<T, Error> {
    read(node.text()?).or_else(|error| node.refuse(error.to_string()))
}

/// Of the name of a host a star stands for one label, as in certificates; of a URI for one step of its path.
fn san(text: &str) -> Result<Glob, PatternError> {
    if text.contains(':') { Glob::parse(text, '/') } else { Glob::parse(&text.to_ascii_lowercase(), '.') }
}

fn spiffe(node: &yaml::Node) -> Result<Glob, Error> {
    let text = node.text()?;
    if !text.starts_with("spiffe://") {
        return node
            .refuse(format!("`{text}`: expected a pattern of SPIFFE ids, such as spiffe://example.com/ns/*/sa/web"));
    }
    pattern(node, |text| Glob::parse(text, '/'))
}

fn type_url(node: &yaml::Node) -> Result<String, Error> {
    let text = node.text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if text.is_empty() || !text.chars().all(plain) || text.starts_with(['.', '/']) {
        return node.refuse(format!("`{text}`: expected a type URL or its end, such as Cluster or cluster.v3.Cluster"));
    }
    Ok(text.to_owned())
}

fn set(node: &yaml::Node) -> Result<(), Error> {
    if flag(node)? { Ok(()) } else { node.refuse("`false`: expected true, or no such field") }
}

/// As a file would have it.
pub(super) fn written(
    rules: &[ClientRule],
    path: impl Fn(&std::path::Path) -> Result<Value, String>,
) -> Result<Value, String> {
    fn texts<T: ToString>(items: &[T]) -> Vec<String> {
        items.iter().map(ToString::to_string).collect()
    }
    let put = |into: &mut Value, key: &str, value: Value| into[key] = value;
    let rule = |rule: &ClientRule| {
        let ClientRule { matches, nodes, clusters, types, names, wildcard, client_status, limits } = rule;
        let (mut of, mut allows) = (json!({}), json!({ "wildcard": wildcard, "client_status": client_status }));
        for (key, globs) in [("san", &matches.san), ("spiffe", &matches.spiffe)] {
            if !globs.is_empty() {
                put(&mut of, key, json!(texts(globs)));
            }
        }
        if !matches.cidr.is_empty() {
            put(&mut of, "cidr", json!(texts(&matches.cidr)));
        }
        if let Some(file) = &matches.token {
            put(&mut of, "token", path(file)?);
        }
        for (key, _) in [("unix", matches.unix), ("any", matches.any)].into_iter().filter(|(_, set)| *set) {
            put(&mut of, key, json!(true));
        }
        put(&mut allows, "match", of);
        client_limits::written(limits).into_iter().for_each(|limits| put(&mut allows, "limits", limits));
        let lists = [("nodes", nodes.as_deref().map(texts)), ("clusters", clusters.as_deref().map(texts))];
        let others = [("types", types.clone()), ("names", names.as_deref().map(texts))];
        for (key, list) in lists.into_iter().chain(others) {
            if let Some(list) = list {
                put(&mut allows, key, json!(list));
            }
        }
        Ok(allows)
    };
    rules.iter().map(rule).collect()
}
