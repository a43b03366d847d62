//! What a cache stores.

use crate::text::Version;

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
