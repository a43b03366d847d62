//! Under which keys the releases of a scope are kept.

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::releases::manifest::BodyHash;
use crate::releases::release::Release;

/// In front of every key: there are other things in a store.
const PREFIX: &str = "xds-relay/releases/v1/";

/// The keys of one scope.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    prefix: String,
}

impl Keyspace {
    /// Of a scope by its name, which may be any text: its hash is in the keys.
    pub(crate) fn of(scope: &str) -> Self {
        let hash = Sha256::digest(scope);
        Self { prefix: format!("{PREFIX}{}/", hex(hash.get(..16).unwrap_or_default())) }
    }

    /// What all of them begin with.
    pub(crate) fn all(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn control(&self) -> String {
        format!("{}ctl", self.prefix)
    }

    pub(crate) fn releases(&self) -> String {
        format!("{}rel/", self.prefix)
    }

    pub(crate) fn release(&self, release: Release) -> String {
        format!("{}rel/{release}", self.prefix)
    }

    pub(crate) fn parts(&self) -> String {
        format!("{}part/", self.prefix)
    }

    pub(crate) fn part(&self, part: &BodyHash) -> String {
        format!("{}part/{part}", self.prefix)
    }

    /// What the keys of the pieces of a body begin with.
    pub(crate) fn body(&self, body: &BodyHash) -> String {
        format!("{}body/{body}/", self.prefix)
    }

    /// In their order.
    pub(crate) fn piece(&self, body: &BodyHash, piece: usize) -> String {
        format!("{}body/{body}/{piece:04}", self.prefix)
    }

    pub(crate) fn log(&self) -> String {
        format!("{}log/", self.prefix)
    }

    /// In the order of time, and where a clock went back, not.
    pub(crate) fn entry(&self, millis: u64, number: u64) -> String {
        format!("{}log/{millis:016}-{number:016}", self.prefix)
    }
}
