//! How what is known is written down: keys, values, and a checksum in each.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use prost::Message;
use sha2::{Digest, Sha256};
use xds_transport::Frame;
use xdstp_cache::{Extent, Interest, Known, Selector, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use crate::state::keys::Keys;

/// In front of every key: there may be other things in a store.
pub(crate) const PREFIX: &str = "xds-relay/v1/";
/// What the format is called, under [`FORMAT_KEY`].
pub(crate) const FORMAT: &str = "1";
pub(crate) const FORMAT_KEY: &str = "xds-relay/v1/format";
/// When anything was saved last, in seconds since 1970.
pub(crate) const SAVED_KEY: &str = "xds-relay/v1/saved";
/// Which runs of programs there were.
pub(crate) const RUNS_KEY: &str = "xds-relay/v1/runs";
pub(crate) const BODIES: &str = "xds-relay/v1/body/";
pub(crate) const SCOPES: &str = "xds-relay/v1/scope/";
pub(crate) const KNOWN: &str = "xds-relay/v1/known/";
/// Whose values are kept.
pub(crate) const OWNERS: &str = "xds-relay/v1/owner/";

/// Of how much of a hash a checksum is, in bytes.
const CHECKSUM: usize = 8;

/// What a body is told by: its SHA-256.
pub(crate) type Hash = [u8; 32];

/// A scope, whatever its place in a configuration: what it is of, and whose.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ScopeId(String);

impl ScopeId {
    /// Of all that tells it from others.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hex(hash.finalize().get(..16).unwrap_or_default()))
    }

    /// What of it is for who selects by this.
    pub(crate) fn selected(&self, selector: &Selector) -> Self {
        match selector {
            Selector::Parameters(parameters) => {
                let parameters = parameters.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
                Self::of(&[b"parameters", self.0.as_bytes()].into_iter().chain(parameters).collect::<Vec<_>>())
            }
            Selector::Constraints(constraints) => {
                Self::of(&[b"constraints", self.0.as_bytes(), constraints.constraint().to_string().as_bytes()])
            }
        }
    }

    /// Of a key behind [`SCOPES`], or the first part of one behind [`KNOWN`].
    pub(crate) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    pub(crate) fn key(&self) -> String {
        format!("{SCOPES}{}", self.0)
    }

    /// What all of its keys begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("{KNOWN}{}/", self.0)
    }

    pub(crate) fn key_of(&self, type_url: &TypeUrl, interest: &Interest) -> String {
        [KNOWN, &self.0, "/", type_url.as_str(), "\0", interest.as_str()].concat()
    }
}

impl Borrow<str> for ScopeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The scope that a key of something known is of: what of it a [`ScopeId`] is.
pub(crate) fn scope_of(key: &str) -> Option<&str> {
    key.strip_prefix(KNOWN)?.split_once('/').map(|(scope, _)| scope)
}

/// What is behind a key of something known.
pub(crate) fn read_key(key: &str) -> Option<(ScopeId, TypeUrl, Interest)> {
    let (scope, rest) = key.strip_prefix(KNOWN)?.split_once('/')?;
    let (type_url, name) = rest.split_once('\0')?;
    let name = ResourceName::parse(name).ok()?;
    Some((ScopeId::read(scope), type_url.into(), name.into()))
}

pub(crate) fn body_key(hash: &Hash) -> String {
    format!("{BODIES}{}", hex(hash))
}

pub(crate) fn hash_of(body: &[u8]) -> Hash {
    Sha256::digest(body).into()
}

/// What is known of a scope as a whole.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeRecord {
    /// For people.
    #[prost(string, tag = "1")]
    pub(crate) label: String,
    /// When it was in use last, in seconds since 1970.
    #[prost(uint64, tag = "2")]
    pub(crate) used: u64,
    /// Since when nobody has said that what is known of it is so, in seconds since 1970: not at all, if its origin has since.
    #[prost(uint64, optional, tag = "3")]
    pub(crate) stale_since: Option<u64>,
    /// Which origin's it is.
    #[prost(string, tag = "4")]
    pub(crate) whose: String,
    /// Of an owner of values: all that was there was heard, and is kept.
    #[prost(bool, tag = "5")]
    pub(crate) is_complete: bool,
    /// Which servers of its origin said all of it: none if it was not the same always, or that is not told.
    #[prost(string, tag = "6")]
    pub(crate) said_by: String,
}

/// What is known of a name, or of a collection.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    /// The hash of the body of what is there, where others have it, too.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) body: Vec<u8>,
    /// The body, where this has it alone.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub(crate) content: Option<Bytes>,
    /// Its version; of the wildcard, that of the type.
    #[prost(string, tag = "2")]
    version: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) aliases: Vec<String>,
    /// What its wrapper says beside.
    #[prost(bytes = "bytes", tag = "4")]
    wrapper: Bytes,
    /// In milliseconds.
    #[prost(uint64, optional, tag = "5")]
    ttl: Option<u64>,
    /// When it is over, in milliseconds since 1970.
    #[prost(uint64, optional, tag = "6")]
    expires: Option<u64>,
    /// When it went, in milliseconds since 1970.
    #[prost(uint64, optional, tag = "7")]
    pub(crate) gone: Option<u64>,
    /// Whether it was there before.
    #[prost(bool, tag = "8")]
    seen: bool,
    /// A collection was answered: 1 somewhat, 2 completely.
    #[prost(uint32, tag = "9")]
    answered: u32,
    /// Which variant of its name it is (TP2): who gets it, as the final form has it, or the draft.
    #[prost(string, tag = "12")]
    constraints: String,
    #[prost(btree_map = "string, string", tag = "13")]
    parameters: BTreeMap<String, String>,
    /// Such a record, encrypted: there is nothing beside but when it went.
    #[prost(bytes = "vec", optional, tag = "11")]
    encrypted: Option<Vec<u8>>,
}

/// One moment, by two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: std::time::Instant,
    pub(crate) wall: SystemTime,
}

impl Moment {
    /// This one, by the clocks of the system.
    pub(crate) fn of_the_system() -> Self {
        Self { now: std::time::Instant::now(), wall: SystemTime::now() }
    }

    pub(crate) fn seconds(self) -> u64 {
        self.millis() / 1000
    }

    fn millis(self) -> u64 {
        let since = self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Record {
    /// What is written of what is known of a name, or of a collection, without the body; and that, if there is one. `None` if
    /// nothing is.
    pub(crate) fn of(known: Vec<Known<Frame>>, at: Moment) -> Option<(Self, Option<Bytes>)> {
        let mut record = Self::default();
        let mut body = None;
        for known in known {
            match known {
                Known::Present { aliases, resource, .. } => {
                    let frame = &resource.value;
                    let left = |expires: std::time::Instant| expires.saturating_duration_since(at.now);
                    record = Self {
                        version: resource.version.to_string(),
                        aliases: aliases.iter().map(ToString::to_string).collect(),
                        wrapper: frame.wrapper().clone(),
                        ttl: frame.ttl().map(millis),
                        expires: frame.expires().map(|expires| at.millis().saturating_add(millis(left(expires)))),
                        ..Self::default()
                    };
                    match frame.variant().map(|variant| &**variant) {
                        Some(Variant::Constraints(constraints)) => record.constraints = constraints.to_string(),
                        Some(Variant::Parameters(parameters)) => {
                            let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
                            record.parameters = parameters.iter().map(owned).collect();
                        }
                        None => {}
                    }
                    body = Some(frame.any().clone());
                }
                Known::Gone { ago, seen, .. } => {
                    (record.gone, record.seen) = (Some(at.millis().saturating_sub(millis(ago))), seen);
                }
                Known::Answered { extent, .. } => record.answered = if extent == Extent::Complete { 2 } else { 1 },
                Known::TypeVersion { version, .. } => record.version = version.to_string(),
                _ => {}
            }
        }
        (body.is_some() || record != Self::default()).then_some((record, body))
    }

    /// The same, which nobody reads without the key: none if it cannot be encrypted.
    pub(crate) fn encrypt(self, key: &str, keys: &Keys) -> Option<Self> {
        let gone = self.gone;
        let encrypted = keys.encrypt(key, self.encode_to_vec())?;
        Some(Self { gone, encrypted: Some(encrypted), ..Self::default() })
    }

    /// The same as it was, if it was encrypted; and whether it is to be anew, by another key. None if that cannot be read.
    pub(crate) fn decrypt(self, key: &str, keys: Option<&Keys>) -> Option<(Self, bool)> {
        let Some(encrypted) = &self.encrypted else { return Some((self, false)) };
        let (plain, is_current) = keys?.decrypt(key, encrypted)?;
        Some((Self::decode(&*plain).ok()?, !is_current))
    }

    /// What it says of a name, or of a collection; `body` is that of its hash. Nothing of what is over.
    pub(crate) fn known(
        &self,
        type_url: TypeUrl,
        interest: Interest,
        body: Option<Bytes>,
        at: Moment,
    ) -> Vec<Known<Frame>> {
        let name = match interest {
            Interest::Name(name) if !name.is_glob() => name,
            collection => return self.of_collection(type_url, collection),
        };
        if let Some(gone) = self.gone {
            let (Some(glob), ago) = (name.glob_parent(), at.millis().saturating_sub(gone)) else { return Vec::new() };
            return vec![Known::Gone { type_url, glob, name, ago: Duration::from_millis(ago), seen: self.seen }];
        }
        let Some(any) = body else { return Vec::new() };
        let left = self.expires.map(|expires| Duration::from_millis(expires.saturating_sub(at.millis())));
        if left.is_some_and(|left| left.is_zero()) {
            return Vec::new();
        }
        let frame = Frame::new(any).with_wrapper(self.wrapper.clone(), self.ttl.map(Duration::from_millis), false);
        // As another one it would be somebody else's.
        let Some(variant) = self.variant() else { return Vec::new() };
        let frame = frame.until(left.and_then(|left| at.now.checked_add(left))).of_variant(Some(variant));
        let aliases = self.aliases.iter().filter_map(|alias| ResourceName::parse(alias).ok()).collect();
        let resource = frame.into_resource(Some(self.version.as_str().into()));
        vec![Known::Present { type_url, name, variant: None, aliases, resource }]
    }

    /// The plain one, if it was none; none if it cannot be read.
    fn variant(&self) -> Option<Variant> {
        if !self.parameters.is_empty() {
            let parameters = self.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            return Some(Variant::Parameters(parameters.collect()));
        }
        match self.constraints.as_str() {
            "" => Some(Variant::plain().clone()),
            constraints => constraints.parse().ok().map(Variant::Constraints),
        }
    }

    fn of_collection(&self, type_url: TypeUrl, collection: Interest) -> Vec<Known<Frame>> {
        let version =
            Some(self.version.as_str()).filter(|version| !version.is_empty() && collection == Interest::Wildcard);
        let version = version.map(|version| Known::TypeVersion { type_url: type_url.clone(), version: version.into() });
        let extent = match self.answered {
            0 => None,
            1 => Some(Extent::Begun),
            _ => Some(Extent::Stale),
        };
        let answered = extent.map(|extent| Known::Answered { type_url, collection, extent });
        answered.into_iter().chain(version).collect()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A value under a key, with a checksum over both.
pub(crate) fn seal(key: &str, message: &impl Message) -> Bytes {
    let mut value = Vec::with_capacity(message.encoded_len() + CHECKSUM);
    message.encode_raw(&mut value);
    let checksum = checksum(key, &value);
    value.extend_from_slice(&checksum);
    value.into()
}

/// The value, if it is what was written under that key.
pub(crate) fn unseal<M: Message + Default>(key: &str, value: &[u8]) -> Option<M> {
    let (message, written) = value.split_last_chunk()?;
    if checksum(key, message) != *written {
        return None;
    }
    M::decode(message).ok()
}

fn checksum(key: &str, message: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_be_bytes());
    hash.update(key);
    hash.update(message);
    let hash: Hash = hash.finalize().into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// Two lowercase digits for each byte.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What other versions of this program read and wrote.
    #[test]
    fn what_is_written_is_what_was_written_before() {
        let scope = ScopeRecord { label: "x".to_owned(), used: 1, ..ScopeRecord::default() };
        let content = Some(Bytes::from_static(b"body"));
        let record = Record { version: "1".to_owned(), content, ..Record::default() };
        let sealed = [seal("scope", &scope), seal("known", &record)];
        let written = ["0a0178100105fc3f1fed65321b", "1201315204626f64790498be097dc1b5cb"];
        assert_eq!(sealed.each_ref().map(|value| hex(value)), written);
        assert_eq!(unseal("known", &sealed[1]), Some(record));
        assert_eq!(unseal::<Record>("other", &sealed[1]), None);
        assert_eq!(unseal::<Record>("known", &sealed[1][..7]), None);
    }
}
