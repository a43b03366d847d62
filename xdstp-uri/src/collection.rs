//! Collections: list types, and what can go wrong when one is subscribed to.

use alloc::{format, string::String};
use core::fmt;

use crate::ParseError;

const SUFFIX: &str = "Collection";

/// The type of the list collections of a resource type (TP1, *list*).
///
/// # Examples
/// ```
/// assert_eq!(xdstp_uri::collection_type("a.v3.Listener"), "a.v3.ListenerCollection");
/// ```
#[must_use]
pub fn collection_type(member_type: &str) -> String {
    format!("{member_type}{SUFFIX}")
}

/// The type of the members of a list collection; `None` for a type that is not named as one.
///
/// # Examples
/// ```
/// assert_eq!(xdstp_uri::member_type("a.v3.ListenerCollection"), Some("a.v3.Listener"));
/// assert_eq!(xdstp_uri::member_type("a.v3.Listener"), None);
/// ```
#[must_use]
pub fn member_type(collection_type: &str) -> Option<&str> {
    collection_type.strip_suffix(SUFFIX).filter(|member| !member.is_empty() && !member.ends_with('.'))
}

/// Why a collection cannot be subscribed to.
///
/// # Examples
/// ```
/// use xdstp_uri::{ContextParams, Locator};
///
/// let locator = Locator::parse("xdstp://a/a.v3.Cluster/*")?;
/// let error = locator.to_collection_name("a.v3.Listener", &ContextParams::default()).unwrap_err();
/// assert_eq!(error.as_str(), "resource_type_mismatch");
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectionError {
    /// An `http:` or `file:` locator: there is nothing to put on the wire.
    NotXdstp,
    /// The locator is of another type than the subscription.
    ResourceTypeMismatch {
        /// The type of the subscription.
        expected: String,
        /// The type of the locator.
        found: String,
    },
    /// With the parameters of the node, the name is too long.
    Name(ParseError),
}

impl CollectionError {
    /// The kind as a word for logs and other machines, such as `resource_type_mismatch`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotXdstp => "not_xdstp",
            Self::ResourceTypeMismatch { .. } => "resource_type_mismatch",
            Self::Name(error) => error.kind().as_str(),
        }
    }
}

impl fmt::Display for CollectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotXdstp => f.write_str("expected an 'xdstp:' locator"),
            Self::ResourceTypeMismatch { expected, found } => {
                write!(f, "expected the resource type {expected:?}, found {found:?}")
            }
            Self::Name(_) => f.write_str("expected a shorter name, with the parameters of the node"),
        }
    }
}

impl core::error::Error for CollectionError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Name(error) => Some(error),
            _ => None,
        }
    }
}
