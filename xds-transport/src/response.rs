//! Walking a received response into resources: the body of each stays a slice of what arrived.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use xds_matcher::DynamicParameters;
use xdstp_cache::{TypeUrl, Variant, Version};
use xdstp_uri::ResourceName;

use crate::Dialect;
use crate::frame::Frame;
use crate::types::TypeRules;
use crate::wire::collection;
use crate::wire::parameters::{self, LocatorError, VariantName};
use crate::wire::shape::{self, Undecodable};
use crate::wire::walk::{self, Field, FieldValue, Fields, WalkError};
use crate::wire::{RESOURCE_TYPE_URL, ResourceError};

/// A response of either protocol, walked.
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
    /// Those that only say where to look: redirects of TP1, whose type is not that of the response.
    pub redirects: Vec<Received>,
    /// Names in `removed_resources` (delta), as spelled.
    pub removed: Vec<ResourceName>,
    /// Variants in `removed_resource_names` (delta, TP2).
    pub removed_variants: Vec<(ResourceName, Variant)>,
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
    /// Walks an encoded `DeltaDiscoveryResponse` of a server that speaks the final form of TP2, if it speaks any.
    ///
    /// # Errors
    /// When the message itself is not protobuf. A resource that cannot be read is in [`rejected`](Self::rejected).
    pub fn from_delta(message: Bytes) -> Result<Self, WalkError> {
        Self::from_delta_in(Dialect::Final, message)
    }

    /// The same of a server that speaks a dialect.
    ///
    /// # Errors
    /// Those of [`from_delta`](Self::from_delta).
    pub fn from_delta_in(dialect: Dialect, message: Bytes) -> Result<Self, WalkError> {
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
                (8, FieldValue::Bytes(name)) if dialect == Dialect::Final => response.push_removed_variant(name),
                (9, FieldValue::Bytes(error)) => response.push_error(error),
                _ => {}
            }
        }
        for (index, resource) in wrapped.into_iter().enumerate() {
            response.push_wrapped(dialect, resource, index, &message);
        }
        response.reject_duplicates();
        Ok(response)
    }

    /// Walks an encoded `DiscoveryResponse`, of a server that speaks the final form of TP2, if it speaks any; names inside
    /// bare resources are found by `rules`.
    ///
    /// # Errors
    /// When the message itself is not protobuf. A resource that cannot be read is in [`rejected`](Self::rejected).
    pub fn from_sotw(message: Bytes, rules: &TypeRules) -> Result<Self, WalkError> {
        Self::from_sotw_in(Dialect::Final, message, rules)
    }

    /// The same of a server that speaks a dialect.
    ///
    /// # Errors
    /// Those of [`from_sotw`](Self::from_sotw).
    pub fn from_sotw_in(dialect: Dialect, message: Bytes, rules: &TypeRules) -> Result<Self, WalkError> {
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
            match shape::any(any) {
                Ok((RESOURCE_TYPE_URL, resource)) => response.push_wrapped(dialect, resource, index, &message),
                Ok((inside, _)) => {
                    let frame = Frame::new(message.slice_ref(any)).detached(message.len());
                    // A redirect has the name of something else inside.
                    let name = rule.name_of(any).filter(|_| !collection::is_redirect(inside));
                    let wrapped = Wrapped { name, ..Wrapped::default() };
                    response.push(wrapped, Some((inside, frame)), index);
                }
                Err(error) => response.reject(rule.name_of(any), index, error),
            }
        }
        response.reject_duplicates();
        Ok(response)
    }

    /// Redirects are resources like others to who follows them, and of another type (rule 81) to who does not.
    pub(crate) fn settle_redirects(&mut self, follows: bool) {
        let redirects = std::mem::take(&mut self.redirects);
        if follows {
            self.resources.extend(redirects);
        } else {
            let refuse =
                |redirect: Received| Rejected::new(redirect.name.as_str(), "a redirect, which is not followed");
            self.rejected.extend(redirects.into_iter().map(refuse));
        }
    }

    fn push_removed(&mut self, text: &[u8]) {
        let Ok(name) = str::from_utf8(text) else {
            return self.rejected.push(Rejected::new("removed_resources", "text that is not UTF-8"));
        };
        match ResourceName::parse(name) {
            Ok(name) => self.removed.push(name),
            Err(error) => self.rejected.push(Rejected::new(name, error.to_string())),
        }
    }

    fn push_removed_variant(&mut self, name: &[u8]) {
        let parsed = VariantName::decode(name).map_err(|error| error.to_string()).and_then(|of| {
            let name = ResourceName::parse(of.name).map_err(|error| error.to_string())?;
            Ok((name, of.variant.unwrap_or_else(|| Variant::plain().clone())))
        });
        match parsed {
            Ok(removed) => self.removed_variants.push(removed),
            Err(error) => self.rejected.push(Rejected::new("removed_resource_names", error)),
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

    /// An encoded `Resource`, part of `message`. `index` counts from 0, as the resources stand in the response.
    fn push_wrapped(&mut self, dialect: Dialect, resource: &[u8], index: usize, message: &Bytes) {
        match Wrapped::walk(dialect, resource) {
            Ok(mut wrapped) => {
                let wrapper = std::mem::take(&mut wrapped.wrapper).freeze();
                let content = wrapped.any.map(|(inside, any)| {
                    let frame = Frame::new(message.slice_ref(any)).detached(message.len());
                    (inside, frame.with_wrapper(wrapper, wrapped.ttl, wrapped.do_not_cache))
                });
                self.push(wrapped, content, index);
            }
            Err(error) => self.reject(name_before_the_fault(resource), index, error),
        }
    }

    fn push(&mut self, wrapped: Wrapped<'_>, content: Option<(&str, Frame)>, index: usize) {
        let Wrapped { name, version, ttl, variant, .. } = wrapped;
        let Some(named) = name.filter(|name| !name.is_empty()) else {
            return self.reject(None, index, "a resource without a name");
        };
        let is_redirect = content.as_ref().is_some_and(|(inside, _)| collection::is_redirect(inside));
        // Rule 81: the type inside must be the type of the response.
        if let Some((inside, _)) = &content
            && *inside != self.type_url
            && !is_redirect
        {
            let reason = format!("a resource of type {inside:?} in a response of type {:?}", self.type_url);
            return self.reject(name, index, reason);
        }
        let frame = content.map(|(_, frame)| frame.of_variant(variant));
        match ResourceName::parse(named) {
            Ok(collection) if collection.is_glob() || named == "*" => {
                self.reject(name, index, "the name of a collection, not of a resource");
            }
            Ok(name) => {
                let list = if is_redirect { &mut self.redirects } else { &mut self.resources };
                list.push(Received { name, version, frame, ttl });
            }
            Err(error) => self.reject(name, index, error),
        }
    }

    fn reject(&mut self, name: Option<&str>, index: usize, reason: impl ToString) {
        let name = name.filter(|name| !name.is_empty()).map_or_else(|| format!("#{index}"), str::to_owned);
        self.rejected.push(Rejected { name, reason: reason.to_string() });
    }

    /// Rule 69: a name stands once in a response, and not in both lists; of one that has variants each of them does.
    fn reject_duplicates(&mut self) {
        let mut seen = HashSet::with_capacity(self.resources.len() + self.removed.len());
        let resources = self.resources.iter().chain(&self.redirects).map(|resource| {
            (&resource.name, resource.frame.as_ref().and_then(Frame::variant).map(|variant| &**variant))
        });
        let removed = self.removed.iter().map(|name| (name, None));
        let variants = self.removed_variants.iter().map(|(name, variant)| (name, Some(variant)));
        let all = resources.chain(removed).chain(variants);
        let twice: Vec<_> = all.filter(|one| !seen.insert(*one)).map(|(name, _)| name.clone()).collect();
        for name in twice {
            let name = name.as_str().to_owned();
            self.rejected.push(Rejected { name, reason: "named twice in one response".into() });
        }
    }
}

/// The fields of an encoded `Resource`.
#[derive(Default)]
struct Wrapped<'a> {
    name: Option<&'a str>,
    version: Option<Version>,
    /// Its type, and how it is encoded.
    any: Option<(&'a str, &'a [u8])>,
    wrapper: BytesMut,
    ttl: Option<Duration>,
    do_not_cache: bool,
    variant: Option<Variant>,
}

impl<'a> Wrapped<'a> {
    /// What is passed on must be what its receiver decodes: it refuses the whole response otherwise.
    fn walk(dialect: Dialect, resource: &'a [u8]) -> Result<Self, Unreadable> {
        let mut found = Self::default();
        let mut parameters = Vec::new();
        let mut fields = Fields::of(resource);
        while let Some(field) = fields.next_encoded() {
            let (field, encoded) = field.map_err(|_| Undecodable::not_a_message("resource"))?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(version)) => found.version = Some(shape::text("version", version)?.into()),
                (2, FieldValue::Bytes(any)) => found.any = Some((shape::any(any)?.0, any)),
                (3, FieldValue::Bytes(name)) => found.name = Some(shape::text("name", name)?),
                (6, FieldValue::Bytes(ttl)) => found.ttl = Some(duration(ttl)?),
                (8, FieldValue::Bytes(of)) if dialect == Dialect::Final => found.take_variant(of)?,
                (8, FieldValue::Bytes(of)) => parameters.push(parameters::entry("dynamic_parameters", of)?),
                _ => {
                    shape::RESOURCE.check_field(&field)?;
                    found.note(&field);
                    found.wrapper.extend_from_slice(encoded);
                }
            }
        }
        if !parameters.is_empty() {
            found.variant = Some(Variant::Parameters(DynamicParameters::from_iter(parameters)));
        }
        Ok(found)
    }

    /// TP2: a variant is named in `resource_name`, and `name` is empty.
    fn take_variant(&mut self, resource_name: &'a [u8]) -> Result<(), Unreadable> {
        self.variant = VariantName::decode(resource_name)?.variant.filter(|variant| !variant.is_plain());
        if let Some(name) = walk::text_at(resource_name, &[1]) {
            self.name.get_or_insert(name);
        }
        Ok(())
    }

    /// What is needed of a field that is passed on as it is.
    fn note(&mut self, field: &Field<'a>) {
        if let (7, FieldValue::Bytes(cache_control)) = (field.number, field.value) {
            // A message that is there several times is one, and of each of its fields the last counts.
            for field in Fields::of(cache_control).flatten().filter(|field| field.number == 1) {
                if let FieldValue::Varint(value) = field.value {
                    self.do_not_cache = value != 0;
                }
            }
        }
    }
}

/// Why a resource cannot be read.
#[derive(Debug, Error)]
enum Unreadable {
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    #[error(transparent)]
    Variant(#[from] LocatorError),
}

/// What a resource that cannot be read calls itself, as far as it can be read.
fn name_before_the_fault(resource: &[u8]) -> Option<&str> {
    let names = Fields::of(resource).flatten().filter_map(|field| match (field.number, field.value) {
        (3, FieldValue::Bytes(name)) => str::from_utf8(name).ok(),
        _ => None,
    });
    names.last()
}

fn duration(message: &[u8]) -> Result<Duration, Undecodable> {
    shape::DURATION.check("ttl", message)?;
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::of(message).flatten() {
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => seconds = value,
            (2, FieldValue::Varint(value)) => nanos = value,
            _ => {}
        }
    }
    // A negative duration is a ten-byte varint: beyond i64.
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match (i64::try_from(seconds), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Duration::new(seconds.unsigned_abs(), nanos)),
        _ => Err(Undecodable::new("ttl", "not a duration of zero or more")),
    }
}

fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}
