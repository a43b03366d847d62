//! Under which keys the releases of a scope are kept.

use sha2::{Digest, Sha256};

use crate::hex::{hex, unhex};
use crate::releases::act::Instance;
use crate::releases::manifest::BodyHash;
use crate::releases::release::Release;

/// In front of every key: there are other things in a store.
pub(crate) const PREFIX: &str = "xds-relay/releases/v1/";

/// What a key of a scope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Control,
    Turn,
    Release,
    Part,
    /// A piece of the body of this hash, as text.
    Body(&'a str),
}

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

    /// What the keys of all bodies begin with whose hashes begin with this byte.
    pub(crate) fn bodies(&self, first: u8) -> String {
        format!("{}body/{first:02x}", self.prefix)
    }

    /// Who publishes has it.
    pub(crate) fn turn(&self) -> String {
        format!("{}pub", self.prefix)
    }

    /// What the keys begin with under which relays say how their clients are.
    pub(crate) fn tallies(&self) -> String {
        format!("{}tally/", self.prefix)
    }

    pub(crate) fn tally(&self, of: Instance) -> String {
        format!("{}tally/{:016x}", self.prefix, of.0)
    }

    /// Who says how its clients are under that key.
    pub(crate) fn tally_of(&self, key: &str) -> Option<Instance> {
        let text = key.strip_prefix(&self.prefix)?.strip_prefix("tally/")?;
        unhex(text).map(|number| Instance(u64::from_be_bytes(number)))
    }

    /// What a key is for: none of another scope's, nor of what is only for people.
    pub(crate) fn kind<'a>(&self, key: &'a str) -> Option<Kind<'a>> {
        let rest = key.strip_prefix(&self.prefix)?;
        match rest.split_once('/') {
            None if rest == "ctl" => Some(Kind::Control),
            None if rest == "pub" => Some(Kind::Turn),
            Some(("rel", _)) => Some(Kind::Release),
            Some(("part", _)) => Some(Kind::Part),
            Some(("body", piece)) => piece.split_once('/').map(|(body, _)| Kind::Body(body)),
            _ => None,
        }
    }

    /// What waits for the store that this is a copy of.
    pub(crate) fn waiting(&self) -> String {
        format!("{}waiting", self.prefix)
    }

    pub(crate) fn log(&self) -> String {
        format!("{}log/", self.prefix)
    }

    /// In the order of time, and where a clock went back, not.
    pub(crate) fn entry(&self, millis: u64, number: u64) -> String {
        format!("{}log/{millis:016}-{number:016}", self.prefix)
    }
}
