//! What a cache stores, and the words for it.

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

/// One resource as a cache holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource<V> {
    /// The version, as the origin gave it or as computed from the content.
    pub version: Version,
    /// In native order; a `u128` would have every slot of a cache aligned to 16 bytes.
    digest: [u8; 16],
    /// The content, not interpreted.
    pub value: V,
}

impl<V> Resource<V> {
    /// A resource with the digest of its content.
    pub fn new(version: Version, digest: u128, value: V) -> Self {
        Self { version, digest: digest.to_ne_bytes(), value }
    }

    /// A hash of the content: tells an equal body at a new version from a new body at an old one.
    pub fn digest(&self) -> u128 {
        u128::from_ne_bytes(self.digest)
    }

    /// A resource that came without a version: its content's digest, as 32 hex digits, is the version, so that
    /// equal content has equal versions wherever it is computed (rules 35, 146).
    ///
    /// The digest has to be one that others compute too; for what is on the wire, `xds-transport` has it.
    ///
    /// ```
    /// use xdstp_cache::Resource;
    ///
    /// let resource = Resource::unversioned(0xc0ffee, "body");
    /// assert_eq!(resource.version.as_str(), "00000000000000000000000000c0ffee");
    /// ```
    pub fn unversioned(digest: u128, value: V) -> Self {
        Self::new(Version::from(format!("{digest:032x}")), digest, value)
    }

    /// The same, with its content borrowed.
    pub(crate) fn as_ref(&self) -> Resource<&V> {
        Resource { version: self.version.clone(), digest: self.digest, value: &self.value }
    }

    /// The same, with another form of the content.
    pub(crate) fn map<W>(self, content: impl FnOnce(V) -> W) -> Resource<W> {
        Resource { version: self.version, digest: self.digest, value: content(self.value) }
    }
}
