//! Walking a received response into resources: the body of each stays a slice of what arrived.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use xdstp_cache::{TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::type_rules::TypeRules;
use crate::wire::walk::{self, FieldValue, Fields, WalkError};
use crate::wire::{RESOURCE_TYPE_URL, ResourceError};

/// A response of either variant, walked.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Response {
    /// The type of everything in it.
    pub type_url: String,
    /// The nonce to answer with.
    pub nonce: String,
    /// SotW `version_info`, or delta `system_version_info`.
    pub version: String,
    /// The resources that could be read.
    pub resources: Vec<Received>,
    /// Names in `removed_resources` (delta), as spelled.
    pub removed: Vec<ResourceName>,
    /// TP3 errors, decoded.
    pub errors: Vec<ResourceError>,
    /// What could not be read, and why: each is a reason for a NACK.
    pub rejected: Vec<Rejected>,
    /// Who answered.
    pub control_plane: String,
}

/// One resource of a response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Received {
    /// Its name, parsed.
    pub name: ResourceName,
    /// Its own version, where the response gives one (delta, or a SotW wrapper).
    pub version: Option<Version>,
    /// Its content; `None` in a TTL heartbeat (rule 112) or for an alias without a resource (rule 106).
    pub frame: Option<Frame>,
    /// How long it lives without being refreshed.
    pub ttl: Option<Duration>,
}

/// One resource that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// Its name, or `#n` for the n-th resource of the response when it has none.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Rejected {
    /// The resource called `name` cannot be used, because of `reason`.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}

impl Response {
    /// Walks an encoded `DeltaDiscoveryResponse`.
    ///
    /// # Errors
    /// When the message itself is not protobuf. A resource that cannot be read is in [`rejected`](Self::rejected).
    pub fn from_delta(message: Bytes) -> Result<Self, WalkError> {
        let mut response = Self::default();
        let mut wrapped = Vec::new();
        for field in Fields::of(&message) {
            let field = field?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => response.version = lossy(text).into_owned(),
                (2, FieldValue::Bytes(resource)) => wrapped.push(resource),
                (4, FieldValue::Bytes(text)) => response.type_url = lossy(text).into_owned(),
                (5, FieldValue::Bytes(text)) => response.nonce = lossy(text).into_owned(),
                (6, FieldValue::Bytes(text)) => response.push_removed(text),
                (7, FieldValue::Bytes(plane)) => {
                    response.control_plane = walk::text_at(plane, &[1]).unwrap_or_default().to_owned();
                }
                (9, FieldValue::Bytes(error)) => response.push_error(error),
                _ => {}
            }
        }
        for (index, resource) in wrapped.into_iter().enumerate() {
            response.push_wrapped(resource, index, &message);
        }
        response.reject_duplicates();
        Ok(response)
    }

    /// Walks an encoded `DiscoveryResponse`; names inside bare resources are found by `rules`.
    ///
    /// # Errors
    /// When the message itself is not protobuf. A resource that cannot be read is in [`rejected`](Self::rejected).
    pub fn from_sotw(message: Bytes, rules: &TypeRules) -> Result<Self, WalkError> {
        let mut response = Self::default();
        let mut resources = Vec::new();
        for field in Fields::of(&message) {
            let field = field?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => response.version = lossy(text).into_owned(),
                (2, FieldValue::Bytes(any)) => resources.push(any),
                (4, FieldValue::Bytes(text)) => response.type_url = lossy(text).into_owned(),
                (5, FieldValue::Bytes(text)) => response.nonce = lossy(text).into_owned(),
                (6, FieldValue::Bytes(plane)) => {
                    response.control_plane = walk::text_at(plane, &[1]).unwrap_or_default().to_owned();
                }
                (7, FieldValue::Bytes(error)) => response.push_error(error),
                _ => {}
            }
        }
        let type_url = TypeUrl::from(response.type_url.as_str());
        let rule = rules.of(&type_url);
        for (index, any) in resources.into_iter().enumerate() {
            if any_type(any) == Some(RESOURCE_TYPE_URL) {
                response.push_wrapped(any_value(any).unwrap_or_default(), index, &message);
            } else {
                let frame = Frame::new(message.slice_ref(any)).detached(message.len());
                response.push(rule.name_of(any).map(Cow::from), None, Some(frame), None, index);
            }
        }
        response.reject_duplicates();
        Ok(response)
    }

    fn push_removed(&mut self, text: &[u8]) {
        let name = lossy(text);
        match ResourceName::parse(&name) {
            Ok(name) => self.removed.push(name),
            Err(error) => self.rejected.push(Rejected::new(name, error.to_string())),
        }
    }

    fn push_error(&mut self, error: &[u8]) {
        match prost::Message::decode(error) {
            Ok(error) => self.errors.push(error),
            Err(error) => {
                self.rejected.push(Rejected { name: "resource_errors".into(), reason: error.to_string() });
            }
        }
    }

    /// `index` counts from 0, as the resources stand in the response.
    /// An encoded `Resource`, part of `message`.
    fn push_wrapped(&mut self, resource: &[u8], index: usize, message: &Bytes) {
        match Wrapped::walk(resource) {
            Ok(wrapped) => {
                let Wrapped { name, version, any, wrapper, ttl, do_not_cache } = wrapped;
                let frame = any.map(|any| {
                    let frame = Frame::new(message.slice_ref(any)).detached(message.len());
                    frame.with_wrapper(wrapper, ttl, do_not_cache)
                });
                self.push(name, version, frame, ttl, index);
            }
            Err(error) => self.rejected.push(Rejected { name: format!("#{index}"), reason: error.to_string() }),
        }
    }

    fn push(
        &mut self,
        name: Option<Cow<'_, str>>,
        version: Option<Version>,
        frame: Option<Frame>,
        ttl: Option<Duration>,
        index: usize,
    ) {
        let mut reject = |name: String, reason: String| self.rejected.push(Rejected { name, reason });
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return reject(format!("#{index}"), "a resource without a name".into());
        };
        if let Some(frame) = &frame {
            // Rule 81: the type inside must be the type of the response.
            let inside = any_type(frame.any()).unwrap_or_default();
            if inside != self.type_url {
                return reject(
                    name.into_owned(),
                    format!("a resource of type {inside:?} in a response of type {:?}", self.type_url),
                );
            }
        }
        match ResourceName::parse(&name) {
            Ok(collection) if collection.is_glob() || name == "*" => {
                reject(name.into_owned(), "the name of a collection, not of a resource".into());
            }
            Ok(name) => self.resources.push(Received { name, version, frame, ttl }),
            Err(error) => reject(name.into_owned(), error.to_string()),
        }
    }

    /// Rule 69: a name stands once in a response, and not in both lists.
    fn reject_duplicates(&mut self) {
        let mut seen = HashSet::with_capacity(self.resources.len() + self.removed.len());
        let names = self.resources.iter().map(|resource| &resource.name).chain(&self.removed);
        let twice: Vec<_> = names.filter(|name| !seen.insert(*name)).cloned().collect();
        for name in twice {
            let name = name.as_str().to_owned();
            self.rejected.push(Rejected { name, reason: "named twice in one response".into() });
        }
    }
}

/// The fields of an encoded `Resource`.
#[derive(Default)]
struct Wrapped<'a> {
    name: Option<Cow<'a, str>>,
    version: Option<Version>,
    any: Option<&'a [u8]>,
    wrapper: Bytes,
    ttl: Option<Duration>,
    do_not_cache: bool,
}

impl<'a> Wrapped<'a> {
    fn walk(resource: &'a [u8]) -> Result<Self, WalkError> {
        let mut found = Self::default();
        let mut wrapper = BytesMut::new();
        let mut fields = Fields::of(resource);
        while let Some(field) = fields.next_encoded() {
            let (field, encoded) = field?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => found.version = Some(Version::from(&*lossy(text))),
                (2, FieldValue::Bytes(any)) => found.any = Some(any),
                (3, FieldValue::Bytes(text)) => found.name = Some(lossy(text)),
                (6, FieldValue::Bytes(ttl)) => found.ttl = duration(ttl),
                (7, FieldValue::Bytes(cache_control)) => {
                    found.do_not_cache = Fields::of(cache_control)
                        .flatten()
                        .any(|field| field.number == 1 && matches!(field.value, FieldValue::Varint(1..)));
                    wrapper.extend_from_slice(encoded);
                }
                (8, FieldValue::Bytes(name)) => {
                    // TP2: a variant is named in `resource_name`, and `name` is empty.
                    if let Some(name) = walk::text_at(name, &[1]) {
                        found.name.get_or_insert(name.into());
                    }
                    wrapper.extend_from_slice(encoded);
                }
                _ => wrapper.extend_from_slice(encoded),
            }
        }
        found.wrapper = wrapper.freeze();
        Ok(found)
    }
}

fn duration(message: &[u8]) -> Option<Duration> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::of(message).flatten() {
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => seconds = value,
            (2, FieldValue::Varint(value)) => nanos = value,
            _ => {}
        }
    }
    // A negative duration is a ten-byte varint: beyond i64.
    let seconds = i64::try_from(seconds).ok()?;
    Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?))
}

fn any_type(any: &[u8]) -> Option<&str> {
    walk::text_at(any, &[1])
}

/// As protobuf has it, the last occurrence of a field counts.
fn any_value(any: &[u8]) -> Option<&[u8]> {
    Fields::of(any)
        .flatten()
        .filter_map(|field| match (field.number, field.value) {
            (2, FieldValue::Bytes(value)) => Some(value),
            _ => None,
        })
        .last()
}

fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}
