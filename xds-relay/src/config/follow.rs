//! What a relay asks of a control plane that it follows (`follow`).

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use xds_transport::{Protocol, TypeRules};
use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use super::fields::FOLLOW_FIELDS;
use crate::yaml::{self, Error};

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
const LISTENERS: &str = "envoy.config.listener.v3.Listener";
const CLUSTERS: &str = "envoy.config.cluster.v3.Cluster";

const NO_COLLECTIONS: &str =
    "empty; expected at least one collection, or no such field: then it is all Listeners and Clusters";
pub(super) const NO_SERVER: &str = "only an origin with a server is followed; all that others have is known anyway";
const COLLECTIONS: &str = "expected a type, such as envoy.config.listener.v3.Listener, or an xdstp: name or glob";

/// The collections that a control plane is asked for, by the relay as its one client: they, and what resources in them refer to, are
/// all that there is.
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

/// All resources of a type that a server has, those of a glob, or one.
///
/// ```
/// use xds_relay::config::Collection;
///
/// let glob: Collection = "xdstp://example.com/envoy.config.listener.v3.Listener/edge/*".parse()?;
/// assert_eq!(glob.type_url(), "type.googleapis.com/envoy.config.listener.v3.Listener");
/// assert!("edge".parse::<Collection>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    type_url: String,
    name: Option<ResourceName>,
}

impl Default for Follow {
    fn default() -> Self {
        let all = |message_type| Collection { type_url: format!("{TYPE_URL_PREFIX}{message_type}"), name: None };
        Self { collections: [LISTENERS, CLUSTERS].map(all).into() }
    }
}

impl Follow {
    /// What is wrong with it, for a server that speaks a protocol; with where.
    pub(super) fn problem(&self, protocol: Protocol) -> Option<(String, String)> {
        if self.collections.is_empty() {
            return Some(("collections".to_owned(), NO_COLLECTIONS.to_owned()));
        }
        let rules = TypeRules::envoy();
        self.collections.iter().enumerate().find_map(|(index, collection)| {
            let says_all =
                rules.of(&TypeUrl::from(collection.type_url())).full_state_in_sotw || !collection.is_several();
            let problem = if self.collections.iter().take(index).any(|other| other == collection) {
                format!("`{collection}`: listed twice")
            } else if protocol == Protocol::Sotw && !says_all {
                format!(
                    "`{collection}`: over sotw nobody says what there is not of this type; expected protocol: delta"
                )
            } else {
                return None;
            };
            Some((format!("collections[{index}]"), problem))
        })
    }
}

impl Collection {
    /// The type of what is in it.
    pub fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The glob, or the name; none where it is all that there is of the type.
    pub fn name(&self) -> Option<&ResourceName> {
        self.name.as_ref()
    }

    /// Whether it may be more than one resource.
    pub(crate) fn is_several(&self) -> bool {
        self.name.as_ref().is_none_or(ResourceName::is_glob)
    }

    /// As it is asked for.
    #[cfg(feature = "file-origin")]
    pub(crate) fn interest(&self) -> xdstp_cache::Interest {
        self.name.clone().map_or(xdstp_cache::Interest::Wildcard, xdstp_cache::Interest::Name)
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name.as_str()),
            None => f.write_str(self.type_url.strip_prefix(TYPE_URL_PREFIX).unwrap_or(&self.type_url)),
        }
    }
}

impl FromStr for Collection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}`: {COLLECTIONS}");
        if text.starts_with("xdstp:") {
            let name = ResourceName::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
            let message_type = name.resource_type().ok_or_else(refused)?;
            return Ok(Self { type_url: format!("{TYPE_URL_PREFIX}{message_type}"), name: Some(name) });
        }
        let message_type = text.strip_prefix(TYPE_URL_PREFIX).unwrap_or(text);
        let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !message_type.contains('.') || !message_type.split('.').all(is_part) {
            return Err(refused());
        }
        Ok(Self { type_url: format!("{TYPE_URL_PREFIX}{message_type}"), name: None })
    }
}

/// As far as it can be read by itself, for a server that speaks a protocol.
pub(super) fn follow(node: &yaml::Node, protocol: Protocol) -> Result<Follow, Error> {
    node.expect_fields(FOLLOW_FIELDS)?;
    let item = |node: &yaml::Node| node.text()?.parse().or_else(|problem: String| node.refuse(problem));
    let of = |list: &yaml::Node| {
        let collections = list.items(item)?;
        let follow = Follow { collections };
        match follow.problem(protocol) {
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
        let text = format!("origins: [{{ name: cp, {origin} }}]");
        Config::parse("relay.yaml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_read_is_written_and_what_is_left_out_is_all_listeners_and_clusters() {
        let server = config("server: 'a:1'").unwrap();
        assert_eq!((server.origins[0].follow.as_ref(), server.origins[0].is_followed()), (None, false));
        let all = config("server: 'a:1', follow: {}").unwrap();
        assert_eq!(all.origins[0].follow, Some(Follow::default()));
        assert!(all.origins[0].is_followed());
        let more = "[envoy.config.listener.v3.Listener, type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, \
                    'xdstp://a/envoy.config.cluster.v3.Cluster/x/*']";
        let more = config(&format!("server: 'a:1', follow: {{ collections: {more} }}")).unwrap();
        let written = more.to_value().unwrap();
        assert_eq!(written["origins"][0]["follow"]["collections"][1], "envoy.config.core.v3.TypedExtensionConfig");
        assert_eq!(serde_json::from_value::<Config>(written).unwrap(), more);
        assert_eq!(more.validate(), Ok(()));
    }

    #[test]
    fn an_error_says_where_and_what_was_expected() {
        for (origin, problem) in [
            ("files: ., follow: {}", "origins[0].follow: only an origin with a server is followed"),
            ("server: 'a:1', follow: { node: x }", "origins[0].follow.node: unknown field `node`"),
            ("server: 'a:1', follow: { collections: [] }", "origins[0].follow.collections: empty; expected"),
            ("server: 'a:1', follow: { collections: [Listener] }", "collections[0]: `Listener`: expected a type"),
            ("server: 'a:1', follow: { collections: ['xdstp:x'] }", "`xdstp:x`: "),
            ("server: 'a:1', follow: { collections: [a.B, a.B] }", "`a.B`: listed twice"),
            ("server: 'a:1', protocol: sotw, follow: { collections: [a.B] }", "`a.B`: over sotw nobody says"),
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
}
