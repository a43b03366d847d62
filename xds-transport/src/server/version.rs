//! The version of a whole type, where the origin gave none: the same on every relay.

use std::fmt;

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::frame::digest;

/// An order-free hash over (name, version): the sum, modulo 2^128, of the first 128 bits of SHA-256
/// over each canonical name and version, either preceded by its length as eight bytes, big end
/// first; written as 32 hex digits.
///
/// Part of the interop contract: a SotW client may move between relays that got the resources over
/// delta (rules 33, 34). A weaker hash will not do: summed, its differences cancel out, and two
/// resources that go from version 1 to 2 must not leave the version of their type what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeHash(u128);

impl TypeHash {
    pub(crate) fn add(&mut self, name: &ResourceName, version: &Version) {
        let hash = digest(&[name.as_str().as_bytes(), version.as_str().as_bytes()]);
        self.0 = self.0.wrapping_add(hash);
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
