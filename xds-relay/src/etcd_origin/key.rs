//! Which key has which resource.

use std::fmt;

use xdstp_uri::{ParseError, ResourceName};

/// What the keys of resources begin with, after the prefix of an origin.
pub(crate) const RESOURCES: &str = "res/";
const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
/// What a key that is no text is called by begins with: none of a resource does.
const NO_TEXT: &str = "no UTF-8: ";

/// The key of a resource, without the prefix of its origin: `res/TYPE/NAME`, where the type is the message's full name. The name is as
/// clients ask for it, an `xdstp:` name in canonical form; it may have any characters, and ends with the key.
///
/// ```
/// use xds_relay::etcd_origin::Key;
///
/// let key: Key = "res/envoy.config.cluster.v3.Cluster/web".parse()?;
/// assert_eq!((key.type_url(), key.name().as_str()), ("type.googleapis.com/envoy.config.cluster.v3.Cluster", "web"));
///
/// let name = "xdstp://example.com/envoy.config.cluster.v3.Cluster/web?b=1&a=2".parse()?;
/// let key = Key::new("envoy.config.cluster.v3.Cluster", name)?;
/// assert_eq!(
///     key.to_string(),
///     "res/envoy.config.cluster.v3.Cluster/xdstp://example.com/envoy.config.cluster.v3.Cluster/web?a=2&b=1",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    type_url: String,
    name: ResourceName,
}

/// Such a key is that of no resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl Key {
    /// That of a resource of a type, which is a message's full name or its type URL.
    ///
    /// # Errors
    /// It is no type, or no name of one resource of it.
    pub fn new(message_type: &str, name: ResourceName) -> Result<Self, KeyError> {
        let message_type = message_type.strip_prefix(TYPE_URL_PREFIX).unwrap_or(message_type);
        let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !message_type.split('.').all(is_part) {
            let type_ = message_type.escape_debug();
            return Err(KeyError(format!(
                "`{type_}` is no type; expected one such as envoy.config.cluster.v3.Cluster"
            )));
        }
        let shown = name.as_str().escape_debug();
        if name.is_glob() || matches!(name.as_str(), "" | "*") {
            return Err(KeyError(format!("`{shown}` cannot be the name of a resource")));
        }
        match name.resource_type() {
            Some(named) if named != message_type => {
                Err(KeyError(format!("`{shown}` is the name of a {named}, not of a {message_type}")))
            }
            _ => Ok(Self { type_url: format!("{TYPE_URL_PREFIX}{message_type}"), name }),
        }
    }

    /// The type URL, which begins with `type.googleapis.com/`.
    pub fn type_url(&self) -> &str {
        &self.type_url
    }

    /// The name.
    pub fn name(&self) -> &ResourceName {
        &self.name
    }

    pub(crate) fn message_type(&self) -> &str {
        self.type_url.strip_prefix(TYPE_URL_PREFIX).unwrap_or(&self.type_url)
    }
}

/// What a key that is no text is called by.
pub(super) fn no_text(key: &[u8]) -> String {
    format!("{NO_TEXT}{}", key.escape_ascii())
}

impl KeyError {
    pub(super) fn of_name(name: &str, error: &ParseError) -> Self {
        Self(format!("`{}` is no resource name: {error}", name.escape_debug()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{RESOURCES}{}/{}", self.message_type(), self.name.as_str())
    }
}

impl std::str::FromStr for Key {
    type Err = KeyError;

    /// A resource has one key: the name in it is in canonical form.
    fn from_str(key: &str) -> Result<Self, KeyError> {
        if key.starts_with(NO_TEXT) {
            return Err(KeyError("a key is text, in UTF-8".to_owned()));
        }
        let parts = key.strip_prefix(RESOURCES).and_then(|rest| rest.split_once('/'));
        let (message_type, name) = parts.ok_or_else(|| {
            KeyError("expected res/TYPE/NAME, such as res/envoy.config.cluster.v3.Cluster/web".to_owned())
        })?;
        let parsed = ResourceName::parse(name).map_err(|error| KeyError::of_name(name, &error))?;
        if format!("{message_type}/") == TYPE_URL_PREFIX {
            return Err(KeyError(format!("expected the type without {TYPE_URL_PREFIX}")));
        }
        let read = Self::new(message_type, parsed)?;
        match read.to_string() {
            canonical if canonical == key => Ok(read),
            canonical => Err(KeyError(format!("its canonical form is `{}`", canonical.escape_debug()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

    proptest! {
        #[test]
        fn a_key_is_that_of_its_type_and_name_alone(
            message_type in "[a-z][a-z0-9_]{0,8}(\\.[A-Za-z0-9_]{1,8}){0,4}",
            opaque in "\\PC{1,24}|[a-z/?#&=%\\\\ \\x00\\n]{1,12}",
            id in "[a-zA-Z0-9 /?&#%ü]{1,12}",
            parameters in prop::collection::btree_map("[a-z]{1,3}", "[a-z&=%]{0,4}", 0..3),
        ) {
            let escaped = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
            let parameters: Vec<_> = parameters.iter().map(|(k, v)| format!("{k}={}", escaped(v))).collect();
            let xdstp = format!("xdstp://a/{message_type}/{}?{}", escaped(&id), parameters.join("&"));
            for name in [opaque, xdstp] {
                let Ok(name) = ResourceName::parse(&name) else { continue };
                let Ok(key) = Key::new(&message_type, name.clone()) else { continue };
                prop_assert_eq!(key.name(), &name);
                let again: Key = key.to_string().parse().unwrap();
                prop_assert_eq!(&again, &key);
                prop_assert_eq!(again.type_url(), format!("{TYPE_URL_PREFIX}{message_type}"));
            }
        }

        #[test]
        fn whatever_is_read_as_a_key_is_written_so(key in "(res/)?\\PC{0,40}|res/[a-z.]{0,9}/(xdstp://a/)?\\PC{0,20}") {
            if let Ok(read) = key.parse::<Key>() {
                prop_assert_eq!(read.to_string(), key);
            }
        }
    }

    #[test]
    fn what_is_no_key_of_a_resource_is_refused_in_words() {
        for (key, words) in [
            ("web", "expected res/TYPE/NAME"),
            ("res/web", "expected res/TYPE/NAME"),
            ("res//web", "`` is no type"),
            ("res/a..b/web", "`a..b` is no type"),
            (
                "res/type.googleapis.com/envoy.config.cluster.v3.Cluster",
                "expected the type without type.googleapis.com/",
            ),
            (&format!("res/{CLUSTER}/"), "cannot be the name"),
            (&format!("res/{CLUSTER}/*"), "cannot be the name"),
            (&format!("res/{CLUSTER}/xdstp://a/{CLUSTER}/x/*"), "cannot be the name"),
            (&format!("res/{CLUSTER}/xdstp://a/x.Other/web"), "is the name of a x.Other, not of a"),
            (&format!("res/{CLUSTER}/xdstp://a/{CLUSTER}/x?b=1&a=2"), "its canonical form is `res/"),
        ] {
            let error = key.parse::<Key>().unwrap_err().to_string();
            assert!(error.contains(words), "{key}: {error}");
        }
    }
}
