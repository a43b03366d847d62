//! The version of a whole type, where the origin gave none: the same on every relay.

use std::fmt;

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

/// An order-free hash over (name, version): the 128-bit sum, modulo 2^128, of FNV-1a-128 over each
/// canonical name, a zero byte and the version; written as 32 hex digits. Part of the interop
/// contract: a SotW client may move between relays that got the resources over delta (rules 33, 34).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeHash(u128);

impl TypeHash {
    pub(crate) fn add(&mut self, name: &ResourceName, version: &Version) {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let bytes = name.as_str().bytes().chain([0]).chain(version.as_str().bytes());
        let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
        self.0 = self.0.wrapping_add(hash);
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
