//! Texts that are compared and never interpreted: type URLs, and the versions of resources.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text as the wire carries it.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether a clone of this value lives beside it.
            pub fn is_shared(&self) -> bool {
                Arc::strong_count(&self.0) > 1
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

text! {
    /// A type URL, such as `type.googleapis.com/envoy.config.cluster.v3.Cluster`: opaque here.
    TypeUrl
}

text! {
    /// The version of one resource. Equal versions of a name mean equal bodies.
    Version
}

/// In front of a version: no version of a resource begins so.
const WANTED_AGAIN: &str = "\0";

impl Version {
    /// What a subscriber [brings along](crate::Cache::resume) that has this version and is to be sent what is there whatever that
    /// has: only of what is stale, another one is not sent before it is known which counts.
    ///
    /// ```
    /// use xdstp_cache::Version;
    ///
    /// assert_ne!(Version::from("1").wanted_again(), Version::from("1"));
    /// ```
    #[must_use]
    pub fn wanted_again(&self) -> Self {
        format!("{WANTED_AGAIN}{self}").into()
    }

    /// Whether this was brought along as one that has `other`, and wants it again.
    pub(crate) fn wants_again(&self, other: &Self) -> bool {
        self.as_str().strip_prefix(WANTED_AGAIN) == Some(other.as_str())
    }
}
