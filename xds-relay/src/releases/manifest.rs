//! What is in a release.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use xds_transport::Frame;
use xdstp_cache::{Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::hex::{hex, unhex};
use crate::releases::release::Release;
use crate::releases::types::Types;

/// In front of what an id is a hash of: other content in another order would be another.
const ID_OF: &[u8] = b"xds-relay release 1";

/// What a body is told by: the SHA-256 of its `Any`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyHash(pub(crate) [u8; 32]);

impl BodyHash {
    /// Of an encoded `Any`.
    pub fn of(any: &[u8]) -> Self {
        Self(Sha256::digest(any).into())
    }

    /// As it is written in keys: none if that is no hash.
    pub(crate) fn of_key(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

impl fmt::Display for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BodyHash({self})")
    }
}

/// A resource in a manifest: all of it but its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name, in canonical form.
    pub name: String,
    /// Which variant of the name it is (TP2), as text; empty if it has no others.
    pub variant: String,
    /// As the origin said it, or a hash of the content. It is no part of the release's id: the same content is the same release.
    pub version: Version,
    /// What its wrapper says beside: aliases, metadata, and what nobody here knows.
    pub wrapper: Bytes,
    /// How long it lives without being refreshed; whole milliseconds.
    pub ttl: Option<Duration>,
    /// Its content.
    pub body: BodyHash,
}

impl Item {
    /// That of a resource: none if resources of that type are in no release, or if no two clients may share it.
    pub fn of(type_url: &TypeUrl, name: &ResourceName, resource: &Resource<Frame>, types: Types) -> Option<Self> {
        let frame = &resource.value;
        (types.contains(type_url) && !frame.do_not_cache()).then(|| Self {
            type_url: type_url.clone(),
            name: name.to_string(),
            variant: frame.variant().map(ToString::to_string).unwrap_or_default(),
            version: resource.version.clone(),
            wrapper: frame.wrapper().clone(),
            ttl: frame.ttl().map(|ttl| Duration::from_millis(millis(ttl))),
            body: BodyHash::of(frame.any()),
        })
    }

    /// What tells it from others in a manifest, in whose order they are there.
    pub(crate) fn key(&self) -> (&str, &str, &str) {
        (self.type_url.as_str(), &self.name, &self.variant)
    }

    /// Whether clients see the same, but for the version.
    pub fn is_as(&self, other: &Self) -> bool {
        self.key() == other.key() && (&self.wrapper, self.ttl, self.body) == (&other.wrapper, other.ttl, other.body)
    }

    fn add_to(&self, hash: &mut Sha256) {
        let ttl = self.ttl.map(|ttl| millis(ttl).to_be_bytes());
        let ttl = ttl.as_ref().map_or(&[][..], |ttl| ttl);
        let (type_url, name, variant) = self.key();
        for part in [type_url.as_bytes(), name.as_bytes(), variant.as_bytes(), &self.wrapper, ttl, &self.body.0] {
            // No part runs into the next.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
}

/// All that a scope has at one moment of what is in releases.
///
/// ```
/// use xds_relay::releases::{Item, Manifest, Types};
/// use xds_transport::Frame;
///
/// let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let item = |name: &str, body: &[u8], version: &str| {
///     let resource = Frame::of_message(&type_url, body).into_resource(Some(version.into()));
///     name.parse().ok().and_then(|name| Item::of(&type_url, &name, &resource, Types::Default))
/// };
/// let manifest = |items: [Option<Item>; 2]| Manifest::new(items.into_iter().flatten());
/// let one = manifest([item("a", b"1", "7"), item("b", b"2", "7")]);
/// assert_eq!(one.release(), manifest([item("b", b"2", "8"), item("a", b"1", "9")]).release());
/// assert_ne!(one.release(), manifest([item("a", b"2", "7"), item("b", b"1", "7")]).release());
/// assert_eq!(one.items().len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    release: Release,
    /// In the order of their keys, of which there is one each.
    items: Vec<Item>,
}

impl Manifest {
    /// That of these resources, in whatever order; of two that are the same variant of a name, the later one.
    pub fn new(items: impl IntoIterator<Item = Item>) -> Self {
        let mut items: Vec<_> = items.into_iter().collect();
        // The sort leaves equal ones in their order, and what is dropped is the second of two.
        items.reverse();
        items.sort_by(|one, other| one.key().cmp(&other.key()));
        items.dedup_by(|second, first| second.key() == first.key());
        let mut hash = Sha256::new_with_prefix(ID_OF);
        items.iter().for_each(|item| item.add_to(&mut hash));
        let mut id = [0; 16];
        id.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self { release: Release::of_bytes(id), items }
    }

    /// Its id.
    pub fn release(&self) -> Release {
        self.release
    }

    /// By type, name and variant.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// One of them; the variant is empty text where there are no others.
    pub fn item(&self, type_url: &str, name: &str, variant: &str) -> Option<&Item> {
        let at = self.items.binary_search_by(|item| item.key().cmp(&(type_url, name, variant))).ok()?;
        self.items.get(at)
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn item(change: impl FnOnce(&mut Item)) -> Item {
        let resource = Frame::of_message(&CLUSTER.into(), b"body").into_resource(Some("1".into()));
        let mut item = Item::of(&CLUSTER.into(), &"a".parse().unwrap(), &resource, Types::Default).unwrap();
        change(&mut item);
        item
    }

    /// A change of any part that clients see is another release, and no part runs into the next.
    #[test]
    fn an_id_follows_from_all_that_clients_see_and_from_nothing_else() {
        let of = |change: fn(&mut Item)| Manifest::new([item(change)]).release();
        let others = [
            of(|_| ()),
            of(|item| item.type_url = "x/T".into()),
            of(|item| item.name = "b".to_owned()),
            of(|item| item.variant = "b".to_owned()),
            of(|item| (item.name, item.variant) = ("ab".to_owned(), String::new())),
            of(|item| (item.name, item.variant) = ("a".to_owned(), "ab".to_owned())),
            of(|item| item.wrapper = Bytes::from_static(b"b")),
            of(|item| item.ttl = Some(Duration::ZERO)),
            of(|item| item.ttl = Some(Duration::from_millis(1))),
            of(|item| item.body = BodyHash::of(b"other")),
            Manifest::new([]).release(),
        ];
        let distinct: std::collections::BTreeSet<_> = others.iter().collect();
        assert_eq!(distinct.len(), others.len());
        assert_eq!(of(|_| ()), of(|item| item.version = "2".into()));
        // It is told in files and to other relays: it does not change from one version of the program to the next.
        assert_eq!(of(|_| ()).to_string(), "b34c5968b8458405ffde248308b32ad6");
    }

    #[test]
    fn of_two_of_a_key_the_later_one_is_there() {
        let versions = ["1", "2", "3"].map(|version| item(|item| item.version = version.into()));
        let other = item(|item| item.name = "0".to_owned());
        let manifest = Manifest::new(versions.into_iter().chain([other]));
        let shown: Vec<_> = manifest.items().iter().map(|item| (&*item.name, item.version.as_str())).collect();
        assert_eq!(shown, [("0", "1"), ("a", "3")]);
        assert_eq!(manifest.item(CLUSTER, "a", "").unwrap().version.as_str(), "3");
        assert_eq!((manifest.item(CLUSTER, "a", "x"), manifest.item("", "a", "")), (None, None));
    }

    #[test]
    fn what_is_secret_or_one_clients_own_is_in_no_release() {
        let of = |type_url: &str, private: bool, types| {
            let frame = Frame::of_message(&type_url.into(), b"body");
            let frame = if private { frame.private() } else { frame };
            Item::of(&type_url.into(), &"a".parse().unwrap(), &frame.into_resource(None), types).is_some()
        };
        let secret = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
        let endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
        for (type_url, private, types, is_in) in [
            (CLUSTER, false, Types::Default, true),
            (CLUSTER, true, Types::Default, false),
            (CLUSTER, true, Types::All, false),
            (endpoints, false, Types::Default, false),
            (endpoints, false, Types::All, true),
            (secret, false, Types::Default, false),
            (secret, false, Types::All, false),
            ("other.example/envoy.api.v2.auth.Secret", false, Types::All, false),
            (&format!("{secret}Collection"), false, Types::All, false),
        ] {
            assert_eq!(of(type_url, private, types), is_in, "{type_url} {private} {types:?}");
        }
    }
}
