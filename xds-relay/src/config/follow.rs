//! What a relay asks of a control plane that it follows (`follow`).

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use xdstp_uri::ResourceName;

use super::fields::FOLLOW_FIELDS;
use super::{Methods, Origin, Rollout, XdstpStreams};
use crate::releases::{Gathered, Stages, Types};
use crate::yaml::{self, Error};

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
const LISTENERS: &str = "envoy.config.listener.v3.Listener";
const CLUSTERS: &str = "envoy.config.cluster.v3.Cluster";

const NO_COLLECTIONS: &str =
    "empty; expected at least one collection, or no such field: then it is all Listeners and Clusters";
pub(super) const NO_SERVER: &str = "only an origin with a server is followed; all that others have is known anyway";
const NO_ROLLOUT: &str =
    "expected a rollout of old-style, or of an authority of this origin: it is followed to release what it has";
const BY_NODE: &str =
    "not with xdstp: by_node: a release is the same for every node, and all names are each node's own there";
const PER_TYPE: &str = "not with methods: per_type: streams of types have no order among each other, and a release between two of them \
                        is what the control plane never had";
const COLLECTIONS: &str = "expected a type, such as envoy.config.listener.v3.Listener, or an xdstp: glob";
const OTHER_TYPE: &str =
    "expected Listeners, Clusters or ScopedRouteConfigurations: of others nobody says which there are";

/// Which collections a control plane is asked for, by the relay as one client of it, so that what it has can be released: they, and the
/// RouteConfigurations that they refer to.
///
/// ```
/// use xds_relay::config::Follow;
///
/// let follow = Follow::default();
/// let all: Vec<_> = follow.collections.iter().map(ToString::to_string).collect();
/// assert_eq!(all, ["envoy.config.listener.v3.Listener", "envoy.config.cluster.v3.Cluster"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Follow {
    /// At least one.
    pub collections: Vec<Collection>,
}

/// All resources of a type with old-style names that a server has, or those of a glob.
///
/// ```
/// use xds_relay::config::Collection;
///
/// let glob: Collection = "xdstp://example.com/envoy.config.listener.v3.Listener/edge/*".parse()?;
/// assert_eq!(glob.type_url(), "type.googleapis.com/envoy.config.listener.v3.Listener");
/// assert!("xdstp://example.com/envoy.config.listener.v3.Listener/edge".parse::<Collection>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    type_url: String,
    glob: Option<ResourceName>,
}

impl Default for Follow {
    fn default() -> Self {
        let all = |message_type| Collection { type_url: format!("{TYPE_URL_PREFIX}{message_type}"), glob: None };
        Self { collections: [LISTENERS, CLUSTERS].map(all).into() }
    }
}

impl Follow {
    /// What is wrong with it; with where.
    pub(super) fn problem(&self) -> Option<(String, String)> {
        if self.collections.is_empty() {
            return Some(("collections".to_owned(), NO_COLLECTIONS.to_owned()));
        }
        self.collections.iter().enumerate().find_map(|(index, collection)| {
            let is_twice = self.collections.iter().take(index).any(|other| other == collection);
            is_twice.then(|| (format!("collections[{index}]"), format!("`{collection}`: listed twice")))
        })
    }

    /// What is in releases of an authority, or of old-style names: that of which it is known what there is.
    pub(crate) fn types(&self, authority: Option<&str>) -> Types {
        let of_scope = self.collections.iter().filter(|of| of.authority() == authority);
        Types::Gathered(of_scope.fold(Gathered::default(), |types, of| types.with(of.type_url())))
    }
}

/// An origin that is followed and whose names are each node's own, or that says types on streams of their own, or of which nothing is released, or not that of a collection: which, by
/// which field, and why that is wrong.
pub(super) fn unused(
    rollouts: &[Rollout],
    (origins, default_origin): (&[Origin], &str),
) -> Option<(usize, String, String)> {
    origins.iter().enumerate().find_map(|(index, origin)| {
        let follow = origin.follow.as_ref()?;
        if origin.xdstp == XdstpStreams::ByNode {
            return Some((index, "follow".to_owned(), BY_NODE.to_owned()));
        }
        if origin.methods == Methods::PerType {
            return Some((index, "follow".to_owned(), PER_TYPE.to_owned()));
        }
        let is_of_it =
            |rollout: &&Rollout| rollout.origin(origins, default_origin).is_some_and(|of| of.name == origin.name);
        let released: Vec<_> = rollouts.iter().filter(is_of_it).map(|rollout| rollout.authority.as_deref()).collect();
        if released.is_empty() {
            return Some((index, "follow".to_owned(), NO_ROLLOUT.to_owned()));
        }
        // What is never answered of it would hold up all else.
        let is_unused = |of: &&Collection| !released.contains(&of.authority());
        let (at, collection) = follow.collections.iter().enumerate().find(|(_, of)| is_unused(of))?;
        let scope = Rollout::new(collection.authority(), Stages::default()).scope();
        let problem = format!("`{collection}`: nothing of it is released; expected a rollout of {scope}, too");
        Some((index, format!("follow.collections[{at}]"), problem))
    })
}

impl Collection {
    /// The type of what is in it.
    pub fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The glob; none where it is all that there is of the type.
    pub fn glob(&self) -> Option<&ResourceName> {
        self.glob.as_ref()
    }

    fn authority(&self) -> Option<&str> {
        self.glob.as_ref().and_then(ResourceName::authority)
    }

    /// As it is asked for.
    #[cfg(feature = "file-origin")]
    pub(crate) fn interest(&self) -> xdstp_cache::Interest {
        self.glob.clone().map_or(xdstp_cache::Interest::Wildcard, xdstp_cache::Interest::Name)
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.glob {
            Some(glob) => f.write_str(glob.as_str()),
            None => f.write_str(self.type_url.strip_prefix(TYPE_URL_PREFIX).unwrap_or(&self.type_url)),
        }
    }
}

impl FromStr for Collection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| format!("`{text}`: {why}");
        let glob = text.starts_with("xdstp:").then(|| ResourceName::parse(text)).transpose();
        let glob = glob.map_err(|error| refused(&error.to_string()))?;
        let message_type = match &glob {
            Some(glob) => glob.resource_type().filter(|_| glob.is_glob()).ok_or_else(|| refused(COLLECTIONS))?,
            None => text.strip_prefix(TYPE_URL_PREFIX).unwrap_or(text),
        };
        let type_url = format!("{TYPE_URL_PREFIX}{message_type}");
        let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !message_type.contains('.') || !message_type.split('.').all(is_part) {
            return Err(refused(COLLECTIONS));
        }
        if Gathered::default().with(&type_url) == Gathered::default() {
            return Err(refused(OTHER_TYPE));
        }
        Ok(Self { type_url, glob })
    }
}

/// As far as it can be read by itself.
pub(super) fn follow(node: &yaml::Node) -> Result<Follow, Error> {
    node.expect_fields(FOLLOW_FIELDS)?;
    let item = |node: &yaml::Node| node.text()?.parse().or_else(|problem: String| node.refuse(problem));
    let of = |list: &yaml::Node| {
        let follow = Follow { collections: list.items(item)? };
        match follow.problem() {
            Some((_, problem)) => list.refuse(problem),
            None => Ok(follow),
        }
    };
    Ok(node.field("collections", of)?.unwrap_or_default())
}

/// As a file has it.
pub(super) fn written(Follow { collections }: &Follow) -> Value {
    json!({ "collections": collections.iter().map(ToString::to_string).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn config(origin: &str) -> Result<Config, String> {
        let rollout = if origin.contains("'xdstp://a/envoy.config.cluster.v3.Cluster/x/*'") {
            ", { scope: 'xdstp://a' }"
        } else {
            ""
        };
        let text = format!(
            "origins: [{{ name: cp, authorities: [a], {origin} }}]\nstate: {{ path: . }}\nrollout: [{{ scope: old-style }}{rollout}]"
        );
        Config::parse("relay.yaml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_read_is_written_and_what_is_left_out_is_all_listeners_and_clusters() {
        let all = config("server: 'a:1', follow: {}").unwrap();
        assert_eq!(all.origins[0].follow, Some(Follow::default()));
        let more = "[envoy.config.listener.v3.Listener, type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, \
                    'xdstp://a/envoy.config.cluster.v3.Cluster/x/*']";
        let more = config(&format!("server: 'a:1', follow: {{ collections: {more} }}")).unwrap();
        let written = more.to_value().unwrap();
        assert_eq!(written["origins"][0]["follow"]["collections"][1], "envoy.config.route.v3.ScopedRouteConfiguration");
        assert_eq!(serde_json::from_value::<Config>(written).unwrap(), more);
        assert_eq!(more.validate(), Ok(()));
    }

    #[test]
    fn what_is_in_releases_of_a_scope_is_that_of_which_it_is_known_what_there_is() {
        let collections = ["envoy.config.listener.v3.Listener", "xdstp://a/envoy.config.cluster.v3.Cluster/x/*"];
        let follow = Follow { collections: collections.map(|of| of.parse().unwrap()).into() };
        let has = |authority, name: &str| {
            follow.types(authority).contains(&format!("type.googleapis.com/envoy.config.{name}").as_str().into())
        };
        for (authority, name, is_in) in [
            (None, "listener.v3.Listener", true),
            (None, "route.v3.RouteConfiguration", true),
            (None, "route.v3.ScopedRouteConfiguration", false),
            (None, "cluster.v3.Cluster", false),
            (None, "core.v3.TypedExtensionConfig", false),
            (None, "route.v3.VirtualHost", false),
            (Some("a"), "cluster.v3.Cluster", true),
            (Some("a"), "route.v3.RouteConfiguration", false),
            (Some("a"), "endpoint.v3.ClusterLoadAssignment", false),
            (Some("b"), "cluster.v3.Cluster", false),
        ] {
            assert_eq!(has(authority, name), is_in, "{authority:?} {name}");
        }
    }

    #[test]
    fn an_error_says_where_and_what_was_expected() {
        for (origin, problem) in [
            ("files: ., follow: {}", "origins[0].follow: only an origin with a server is followed"),
            ("server: 'a:1', follow: { node: x }", "origins[0].follow.node: unknown field `node`"),
            ("server: 'a:1', follow: { collections: [] }", "origins[0].follow.collections: empty; expected"),
            ("server: 'a:1', follow: { collections: [Listener] }", "collections[0]: `Listener`: expected a type"),
            ("server: 'a:1', follow: { collections: ['xdstp:x'] }", "`xdstp:x`: "),
            (
                "server: 'a:1', follow: { collections: ['xdstp://a/envoy.config.cluster.v3.Cluster/x'] }",
                "expected a type, such as envoy.config.listener.v3.Listener, or an xdstp: glob",
            ),
            (
                "server: 'a:1', follow: { collections: [envoy.config.endpoint.v3.ClusterLoadAssignment] }",
                "expected Listeners, Clusters or ScopedRouteConfigurations",
            ),
            (
                "server: 'a:1', follow: { collections: [envoy.extensions.transport_sockets.tls.v3.Secret] }",
                "expected Listeners, Clusters or ScopedRouteConfigurations",
            ),
            (
                "server: 'a:1', follow: { collections: [envoy.config.cluster.v3.Cluster, envoy.config.cluster.v3.Cluster] }",
                "listed twice",
            ),
        ] {
            let error = config(origin).unwrap_err();
            assert!(error.contains(problem), "{origin}: {error}");
        }
        let mut made = config("server: 'a:1', follow: {}").unwrap();
        made.origins[0].follow = Some(Follow { collections: Vec::new() });
        let error = made.validate().unwrap_err().to_string();
        assert!(error.starts_with("origins[0].follow.collections: empty"), "{error}");
        made.origins[0].kind = crate::config::OriginKind::Embedded;
        let error = made.validate().unwrap_err().to_string();
        assert!(error.starts_with("origins[0].follow: only an origin with a server"), "{error}");
    }

    #[test]
    fn one_is_followed_for_a_rollout_and_that_is_of_what_is_gathered() {
        let read = |rollout: &str, collections: &str| {
            let origin = format!("{{ name: cp, server: 'a:1', authorities: [a], follow: {collections} }}");
            let text = format!("origins: [{origin}]\n{rollout}");
            Config::parse("relay.yaml", &text).map(drop).map_err(|error| error.to_string())
        };
        let rollout = |of: &str| format!("state: {{ path: . }}\nrollout: [{{ {of} }}]");
        assert_eq!(read(&rollout("scope: old-style"), "{}"), Ok(()));
        assert!(read(&rollout("scope: old-style"), "{}, xdstp: by_node").unwrap_err().contains(BY_NODE));
        assert!(read(&rollout("scope: old-style"), "{}, methods: per_type").unwrap_err().contains(PER_TYPE));
        let globs = "{ collections: ['xdstp://a/envoy.config.cluster.v3.Cluster/*'] }";
        assert_eq!(read(&rollout("scope: 'xdstp://a'"), globs), Ok(()));
        for (rollout, collections, problem) in [
            (String::new(), "{}", format!("1:64: origins[0].follow: {NO_ROLLOUT}")),
            (
                rollout("scope: 'xdstp://a'"),
                "{}",
                "rollout[0].scope: `xdstp://a`: no collection of `follow`".to_owned(),
            ),
            (
                rollout("scope: 'xdstp://a'"),
                "{ collections: ['xdstp://a/envoy.config.cluster.v3.Cluster/*', envoy.config.listener.v3.Listener] }",
                "origins[0].follow.collections[1]: `envoy.config.listener.v3.Listener`: nothing of it is released; expected a rollout of old-style, too".to_owned(),
            ),
            (rollout("scope: old-style"), globs, "rollout[0].scope: `old-style`: no collection of `follow`".to_owned()),
            (
                rollout("scope: old-style, all_types: true"),
                "{}",
                "rollout[0].all_types: origin `cp` is followed".to_owned(),
            ),
        ] {
            let error = read(&rollout, collections).unwrap_err();
            assert!(error.contains(&problem), "{error}");
        }
    }
}
