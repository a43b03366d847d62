//! What a subscriber takes along from one cache to another.

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::interest::Interest;
use crate::text::Version;

/// What a subscriber wants of a cache, and what it was told by it: for another cache, in which it goes on.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Along {
    /// What it is interested in.
    pub interests: Vec<Interest>,
    /// What it was sent.
    pub held: Vec<HeldAlong>,
    /// What it wants and was told not to be there: names, and globs that are empty.
    pub absent: BTreeSet<ResourceName>,
    /// Whether it was answered about all collections that it wants.
    pub is_answered: bool,
}

/// A resource that a subscriber holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldAlong {
    /// Its name.
    pub name: ResourceName,
    /// Its version, and its digest where that is known; none where it is not known what of the name the subscriber has.
    pub version: Option<(Version, Option<u128>)>,
}

impl HeldAlong {
    /// The version that the subscriber says it has where `there` is the digest of what there is: one that nothing has, unless the
    /// content is equal. Where it brought the name along itself, nobody knows its content.
    pub fn version_beside(&self, there: Option<u128>) -> Version {
        match &self.version {
            Some((version, digest)) if digest.is_none() || *digest == there => version.clone(),
            Some(_) | None => Version::from(""),
        }
    }
}
