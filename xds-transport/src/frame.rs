//! A resource as it travels: one shared body, and the few wrapper fields beside it.

use std::any::Any;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use foldhash::quality::RandomState;
use sha2::{Digest, Sha256};
use thiserror::Error;
use xdstp_cache::{Resource, TypeUrl, Variant, Version};
use xdstp_uri::ResourceName;

use crate::wire::walk::{self, Field, FieldValue, Fields};

/// The content of a resource, never decoded.
///
/// `Resource.resource` in a delta response and an element of `resources` in a SotW response have the same field number
/// and type, so one encoded `Any` serves both protocols and every client (rule 140), whole and byte for byte (rule 80).
///
/// Cloning costs a reference count; the value is 8 bytes, because there may be as many caches as clients that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Arc<Content>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    any: Bytes,
    /// Most have nothing: there are as many as a cache has resources.
    beside: Option<Box<Beside>>,
    do_not_cache: bool,
}

/// What the wrapper says beside name, version and content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Beside {
    wrapper: Bytes,
    ttl: Option<Duration>,
    expires: Option<Instant>,
    variant: Option<Arc<Variant>>,
    decoded: Option<Decoded>,
}

/// What somebody made of the content, from which it follows: of two that are compared, that decides.
#[derive(Clone)]
struct Decoded(Arc<dyn Any + Send + Sync>);

impl PartialEq for Decoded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Decoded {}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoded")
    }
}

/// An encoded `Any` is not of the type it is to be used as (rule 81).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a resource of type {inside:?} is not a {expected}")]
pub struct WrongType {
    /// The type URL inside.
    pub inside: String,
    /// The type it should have.
    pub expected: TypeUrl,
}

impl Frame {
    /// A frame around an encoded `google.protobuf.Any`, whatever it holds.
    pub fn new(any: Bytes) -> Self {
        Self(Arc::new(Content { any, beside: None, do_not_cache: false }))
    }

    /// A frame around an encoded `google.protobuf.Any` that must hold a `type_url`: clients refuse a whole response
    /// over one resource of another type than it says (rule 81).
    ///
    /// # Errors
    /// When it holds another type.
    pub fn of_any(type_url: &TypeUrl, any: Bytes) -> Result<Self, WrongType> {
        let inside = walk::text_at(&any, &[1]).unwrap_or_default().to_owned();
        if inside == type_url.as_str() {
            Ok(Self::new(any))
        } else {
            Err(WrongType { inside, expected: type_url.clone() })
        }
    }

    /// A frame around an encoded message of type `type_url`.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use xds_transport::Frame;
    ///
    /// let frame = Frame::of_message(&"type.example.com/T".into(), b"body");
    /// assert!(frame.any().ends_with(b"body"));
    /// ```
    pub fn of_message(type_url: &TypeUrl, value: &[u8]) -> Self {
        let mut any = BytesMut::with_capacity(type_url.as_str().len() + value.len() + 16);
        walk::put_bytes(&mut any, 1, type_url.as_str().as_bytes());
        walk::put_bytes(&mut any, 2, value);
        Self::new(any.freeze())
    }

    /// The same frame with other fields of the wrapper: encoded fields of
    /// `envoy.service.discovery.v3.Resource` but for `version`, `resource`, `name` and `ttl`,
    /// passed on byte for byte (rule 121).
    #[must_use]
    pub fn with_wrapper(mut self, wrapper: Bytes, ttl: Option<Duration>, do_not_cache: bool) -> Self {
        if do_not_cache != self.do_not_cache() {
            Arc::make_mut(&mut self.0).do_not_cache = do_not_cache;
        }
        self.changed(|beside| (beside.wrapper, beside.ttl) = (wrapper, ttl))
    }

    /// The encoded `google.protobuf.Any`.
    pub fn any(&self) -> &Bytes {
        &self.0.any
    }

    /// Whether anybody else holds the same, itself or its buffer; always, if that is empty.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || !self.0.any.is_unique()
    }

    /// Encoded wrapper fields: aliases, cache control, metadata, and those nobody here knows.
    pub fn wrapper(&self) -> &Bytes {
        static NONE: Bytes = Bytes::new();
        self.0.beside.as_ref().map_or(&NONE, |beside| &beside.wrapper)
    }

    /// The other names that the resource may be asked for by (rule 105).
    pub fn aliases(&self) -> impl Iterator<Item = ResourceName> {
        Fields::of(self.wrapper()).flatten().filter_map(|field| alias_in(&field))
    }

    /// The same frame with only those aliases that are to be kept.
    #[must_use]
    pub fn with_aliases(self, keep: impl Fn(&ResourceName) -> bool) -> Self {
        if self.aliases().all(|alias| keep(&alias)) {
            return self;
        }
        let mut wrapper = BytesMut::with_capacity(self.wrapper().len());
        let mut fields = Fields::of(self.wrapper());
        while let Some(Ok((field, encoded))) = fields.next_encoded() {
            if alias_in(&field).is_none_or(|alias| keep(&alias)) {
                wrapper.extend_from_slice(encoded);
            }
        }
        self.changed(|beside| beside.wrapper = wrapper.freeze())
    }

    /// Which of the variants of its name it is, if an origin said that it is one (TP2).
    pub fn variant(&self) -> Option<&Arc<Variant>> {
        self.0.beside.as_ref()?.variant.as_ref()
    }

    /// The same frame as a variant; the [plain](Variant::plain) one is as good as none.
    #[must_use]
    pub fn of_variant(self, variant: Option<Variant>) -> Self {
        let variant = variant.filter(|variant| !variant.is_plain()).map(Arc::new);
        if self.variant() == variant.as_ref() {
            return self;
        }
        self.changed(|beside| beside.variant = variant)
    }

    /// What was made of the content by who [decoded](Self::with_decoded) it.
    pub fn decoded(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.0.beside.as_ref()?.decoded.as_ref().map(|Decoded(value)| value)
    }

    /// The same frame with what its user made of the content, for all who hold it: it is not sent.
    ///
    /// ```
    /// use {std::sync::Arc, xds_transport::Frame};
    /// let frame = Frame::new(vec![1; 9].into()).with_decoded(Arc::new(9_u8));
    /// assert_eq!(frame.decoded().and_then(|value| value.downcast_ref()), Some(&9_u8));
    /// ```
    #[must_use]
    pub fn with_decoded(self, value: Arc<dyn Any + Send + Sync>) -> Self {
        self.changed(|beside| beside.decoded = Some(Decoded(value)))
    }

    /// How long the resource lives without being refreshed.
    pub fn ttl(&self) -> Option<Duration> {
        self.0.beside.as_ref()?.ttl
    }

    /// When it is over, unless an origin elsewhere refreshes it; `None` for what this server answers for, and
    /// refreshes itself.
    pub fn expires(&self) -> Option<Instant> {
        self.0.beside.as_ref()?.expires
    }

    /// The same frame, which lives until `expires` unless it is refreshed: what came from an origin.
    #[must_use]
    pub fn until(self, expires: Option<Instant>) -> Self {
        self.changed(|beside| beside.expires = expires)
    }

    /// The origin lets it live on: for `ttl`, until `expires`.
    pub fn refresh(&mut self, ttl: Option<Duration>, expires: Option<Instant>) {
        self.change(|beside| (beside.ttl, beside.expires) = (ttl, expires));
    }

    /// The TTL to send at `now`: what remains of the origin's (rule 148).
    pub fn remaining_ttl(&self, now: Instant) -> Option<Duration> {
        /// A TTL of nothing is none: what is over now is about to be removed.
        const LEAST: Duration = Duration::from_millis(1);
        let ttl = self.ttl()?;
        Some(self.expires().map_or(ttl, |expires| expires.saturating_duration_since(now)).max(LEAST))
    }

    /// Whether the origin forbids sharing it between clients (`cache_control.do_not_cache`).
    pub fn do_not_cache(&self) -> bool {
        self.0.do_not_cache
    }

    /// The same frame, which nobody may share between clients: with `cache_control.do_not_cache`, whether it had that or not.
    ///
    /// ```
    /// use xds_transport::Frame;
    ///
    /// let frame = Frame::new(vec![1; 9].into()).private();
    /// assert!(frame.do_not_cache());
    /// assert_eq!(frame.clone().private(), frame);
    /// ```
    #[must_use]
    pub fn private(self) -> Self {
        if self.do_not_cache() {
            return self;
        }
        // `cache_control { do_not_cache: true }`
        let wrapper = [self.wrapper(), &b"\x3a\x02\x08\x01"[..]].concat();
        let ttl = self.ttl();
        self.with_wrapper(wrapper.into(), ttl, true)
    }

    /// The same frame, holding on to no more than twice its own size of a received buffer of
    /// `buffer` bytes: one small survivor must not pin a large response.
    #[must_use]
    pub fn detached(mut self, buffer: usize) -> Self {
        if self.any().len() < buffer / 2 {
            let any = Bytes::copy_from_slice(self.any());
            Arc::make_mut(&mut self.0).any = any;
        }
        if !self.wrapper().is_empty() {
            self.change(|beside| beside.wrapper = Bytes::copy_from_slice(&beside.wrapper));
        }
        self
    }

    /// Becomes a clone of another frame of the same content; if they do not live for the same time, at least its buffers are
    /// the other's. Whether the content is the same: else nothing changes.
    ///
    /// ```
    /// use xds_transport::Frame;
    ///
    /// let (first, mut second) = (Frame::new(vec![1; 9].into()), Frame::new(vec![1; 9].into()));
    /// assert!(second.hold_with(&first));
    /// assert_eq!(first.any().as_ptr(), second.any().as_ptr());
    /// assert!(!second.hold_with(&Frame::new(vec![2; 9].into())));
    /// ```
    pub fn hold_with(&mut self, other: &Self) -> bool {
        if self.any() != other.any() || self.wrapper() != other.wrapper() {
            return false;
        }
        let same_life = (self.ttl(), self.expires()) == (other.ttl(), other.expires());
        let same = same_life && self.variant() == other.variant();
        if same && self.do_not_cache() == other.do_not_cache() {
            self.0 = other.0.clone();
        } else {
            Arc::make_mut(&mut self.0).any = other.any().clone();
            self.change(|beside| beside.wrapper = other.wrapper().clone());
        }
        true
    }

    /// The first 128 bits of SHA-256 over the encoded `Any` and wrapper: part of the interop contract,
    /// because relays must agree on the version of a resource that came without one (rules 35, 146).
    pub fn digest(&self) -> u128 {
        digest(&[self.any(), self.wrapper()])
    }

    /// The cached form: at `version`, or at the content hash in hex where the origin gave none.
    pub fn into_resource(self, version: Option<Version>) -> Resource<Self> {
        let version = version.unwrap_or_else(|| Resource::unversioned(self.digest(), ()).version);
        Resource::new(version, self.fingerprint(), self)
    }

    /// Tells contents apart in this process. Nobody else compares it, so that it need not be SHA-256, which costs far more.
    fn fingerprint(&self) -> u128 {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        SEED.hash_one((self.any(), self.wrapper(), self.variant())).into()
    }

    /// Appends the encoded `Resource` but for its body: everything up to the body's length.
    #[inline]
    pub(crate) fn put_head(&self, into: &mut impl BufMut, name: Named<'_>, version: &Version, ttl: Option<Duration>) {
        walk::put_bytes(into, 1, version.as_str().as_bytes());
        match name {
            Named::Plain(name) => walk::put_bytes(into, 3, name.as_bytes()),
            Named::Encoded(fields) => into.put_slice(fields),
        }
        if let Some(beside) = &self.0.beside {
            into.put_slice(&beside.wrapper);
        }
        if let Some(ttl) = ttl {
            put_duration(into, 6, ttl);
        }
        walk::put_delimited(into, 2, self.any().len());
    }

    /// The encoded length of the whole `Resource`, body included.
    #[inline]
    pub(crate) fn encoded_len(&self, name: Named<'_>, version: &Version, ttl: Option<Duration>) -> usize {
        let ttl = ttl.map_or(0, |ttl| walk::delimited_len(6, duration_len(ttl)));
        walk::bytes_len(1, version.as_str().len())
            + name.encoded_len()
            + self.0.beside.as_ref().map_or(0, |beside| beside.wrapper.len())
            + ttl
            + walk::delimited_len(2, self.any().len())
    }

    fn changed(mut self, change: impl FnOnce(&mut Beside)) -> Self {
        self.change(change);
        self
    }

    /// Equal frames are equal however they came to be: what says nothing is none.
    fn change(&mut self, change: impl FnOnce(&mut Beside)) {
        let mut beside = self.0.beside.as_deref().cloned().unwrap_or_default();
        change(&mut beside);
        let beside = (beside != Beside::default()).then(|| Box::new(beside));
        if beside.is_some() || self.0.beside.is_some() {
            Arc::make_mut(&mut self.0).beside = beside;
        }
    }
}

/// How a `Resource` says what it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    Plain(&'a str),
    /// By these encoded fields of it, which say its variant, too.
    Encoded(&'a [u8]),
}

impl Named<'_> {
    #[inline]
    fn encoded_len(self) -> usize {
        match self {
            Self::Plain(name) => walk::bytes_len(3, name.len()),
            Self::Encoded(fields) => fields.len(),
        }
    }
}

impl<'a> From<&'a str> for Named<'a> {
    fn from(name: &'a str) -> Self {
        Self::Plain(name)
    }
}

fn alias_in(field: &Field<'_>) -> Option<ResourceName> {
    match field {
        Field { number: 4, value: FieldValue::Bytes(alias) } => ResourceName::parse(str::from_utf8(alias).ok()?).ok(),
        _ => None,
    }
}

/// The first 128 bits of SHA-256 over `parts`, each preceded by its length.
pub(crate) fn digest(parts: &[&[u8]]) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

pub(crate) fn duration_len(value: Duration) -> usize {
    let field = |n: u64| if n == 0 { 0 } else { 1 + walk::varint_len(n) };
    field(value.as_secs()) + field(u64::from(value.subsec_nanos()))
}

pub(crate) fn put_duration(into: &mut impl BufMut, number: u32, value: Duration) {
    walk::put_delimited(into, number, duration_len(value));
    for (key, n) in [(0x08, value.as_secs()), (0x10, u64::from(value.subsec_nanos()))] {
        if n != 0 {
            into.put_u8(key);
            walk::put_varint(into, n);
        }
    }
}
