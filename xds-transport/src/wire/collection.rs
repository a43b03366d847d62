//! List collections and redirects of TP1, recognised on the wire.
//!
//! TP1's text writes a locator as a string; the protocol buffers that came of it have a message. Both are read: a
//! string begins with its scheme, and no encoded `ResourceLocator` does. Nothing here is on the way of a relay, which
//! passes a collection on as it passes on everything else.

use bytes::Bytes;
use thiserror::Error;
use xdstp_cache::Version;
use xdstp_uri::{Locator, ParseError, member_type};

use super::walk::{Field, FieldValue, Fields, WalkError, text_at};
use super::xdstp::{MessageError, decode_locator};

/// One entry of a list collection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectionEntry {
    /// The member is elsewhere.
    Locator(Locator<'static>),
    /// The member is here.
    Inline {
        /// Its name within the collection, for `#entry=`; it may be empty.
        name: String,
        /// Its version; it may be empty.
        version: Version,
        /// An encoded `google.protobuf.Any`.
        resource: Bytes,
    },
}

/// Why a list collection or a redirect cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CollectionError {
    /// It is not protobuf.
    #[error(transparent)]
    Malformed(#[from] WalkError),
    /// An entry has neither a locator nor a resource.
    #[error("entry {0} of a collection has no content")]
    Empty(usize),
    /// A locator is none.
    #[error("a locator that cannot be parsed")]
    Locator(#[from] ParseError),
    /// A locator has a scheme that nobody knows.
    #[error("a locator with an unknown scheme {0}")]
    Scheme(u64),
    /// A text of a locator is not UTF-8.
    #[error("{0} of a locator is not UTF-8")]
    Text(&'static str),
}

impl From<MessageError> for CollectionError {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::Malformed(error) => Self::Malformed(error),
            MessageError::Text(field) => Self::Text(field),
            MessageError::Locator(error) => Self::Locator(error),
            MessageError::Scheme(scheme) => Self::Scheme(scheme),
        }
    }
}

/// The entries of a resource that is a list collection; `None` for a resource of any other type.
///
/// ```
/// use bytes::Bytes;
/// use xds_transport::Frame;
/// use xds_transport::wire::collection::{CollectionEntry, entries};
///
/// let collection = "type.googleapis.com/a.v3.ListenerCollection".into();
/// let frame = Frame::of_message(&collection, b"\x0a\x1d\x0a\x1bxdstp://x/a.v3.Listener/foo");
/// let Some(CollectionEntry::Locator(member)) = entries(frame.any())?.and_then(|mut all| all.pop()) else { panic!() };
/// assert_eq!(member.id(), "foo");
/// # Ok::<(), xds_transport::wire::collection::CollectionError>(())
/// ```
///
/// # Errors
/// When one of them cannot be read.
pub fn entries(any: &Bytes) -> Result<Option<Vec<CollectionEntry>>, CollectionError> {
    let Some(message) = message_of(any, |name| member_type(name).is_some())? else { return Ok(None) };
    let mut entries = Vec::new();
    for field in Fields::of(message) {
        if let Field { number: 1, value: FieldValue::Bytes(entry) } = field? {
            entries.push(read_entry(any, entry, entries.len())?);
        }
    }
    Ok(Some(entries))
}

/// Where a resource redirects its reader to; `None` for a resource that is no redirect.
///
/// # Errors
/// When it is one that cannot be read.
pub fn redirect(any: &Bytes) -> Result<Option<Locator<'static>>, CollectionError> {
    let Some(message) = message_of(any, |name| name == LOCATOR)? else { return Ok(None) };
    // The string form is a message with one text field; of today's message, field 1 is a number.
    match text_at(message, &[1]) {
        Some(text) => Ok(Some(Locator::parse(text)?.into_owned())),
        None => Ok(Some(decode_locator(message)?)),
    }
}

/// Whether a resource of this type URL is a redirect.
pub(crate) fn is_redirect(type_url: &str) -> bool {
    type_url.strip_suffix(LOCATOR).is_some_and(|before| before.ends_with('/'))
}

const LOCATOR: &str = "xds.core.v3.ResourceLocator";

/// The message inside an encoded `Any` whose type is one of those asked for.
fn message_of(any: &[u8], is_asked: impl Fn(&str) -> bool) -> Result<Option<&[u8]>, CollectionError> {
    let (mut asked, mut message) = (false, &[][..]);
    for field in Fields::of(any) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(url)) => {
                let name = url.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                asked = std::str::from_utf8(name).is_ok_and(&is_asked);
            }
            (2, FieldValue::Bytes(value)) => message = value,
            _ => {}
        }
    }
    Ok(asked.then_some(message))
}

/// An entry, part of `any`.
fn read_entry(any: &Bytes, entry: &[u8], index: usize) -> Result<CollectionEntry, CollectionError> {
    let mut read = None;
    for field in Fields::of(entry) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(locator)) => read = Some(CollectionEntry::Locator(read_either(locator)?)),
            (2, FieldValue::Bytes(inline)) => read = Some(read_inline(any, inline)?),
            _ => {}
        }
    }
    read.ok_or(CollectionError::Empty(index))
}

fn read_inline(within: &Bytes, inline: &[u8]) -> Result<CollectionEntry, CollectionError> {
    let (mut name, mut version, mut resource) = (String::new(), String::new(), Bytes::new());
    for field in Fields::of(inline) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(text)) => name = lossy(text),
            (2, FieldValue::Bytes(text)) => version = lossy(text),
            (3, FieldValue::Bytes(any)) => resource = within.slice_ref(any),
            _ => {}
        }
    }
    Ok(CollectionEntry::Inline { name, version: version.into(), resource })
}

/// A locator in either form: `x`, `h` and `f` would be the keys of fields that a `ResourceLocator` does not have.
fn read_either(locator: &[u8]) -> Result<Locator<'static>, CollectionError> {
    match std::str::from_utf8(locator) {
        Ok(text) if ["xdstp:", "http:", "file:"].iter().any(|scheme| text.starts_with(scheme)) => {
            Ok(Locator::parse(text)?.into_owned())
        }
        // Today's message: `xds.core.v3.ResourceLocator`.
        _ => Ok(decode_locator(locator)?),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
