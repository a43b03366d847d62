//! Names and locators of TP1 as messages: `xds.core.v3.ResourceName` and `xds.core.v3.ResourceLocator`.
//!
//! ```
//! use xds_transport::wire::xdstp::{decode_locator, decode_name, encode_locator, encode_name};
//! use xdstp_uri::{Locator, Urn};
//!
//! let name = Urn::parse("xdstp://mesh/a.v3.Type/cart?env=prod")?;
//! assert_eq!(decode_name(&encode_name(&name))?, name);
//!
//! let locator = Locator::parse("xdstp://mesh/a.v3.TypeCollection/all#alt=http://cdn/a.v3.TypeCollection/all")?;
//! assert_eq!(decode_locator(&encode_locator(&locator))?, locator);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Write as _;

use bytes::Bytes;
use thiserror::Error;
use xdstp_uri::{ContextParams, Directive, Locator, MAX_ALT_DEPTH, ParseError, Scheme, Urn};

use super::walk::{Field, FieldValue, Fields, WalkError, put_bytes, put_delimited, put_varint};

/// A message is none of a name or a locator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is not protobuf.
    #[error(transparent)]
    Malformed(#[from] WalkError),
    /// A text is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// What it says is no name and no locator.
    #[error("a name or locator that cannot be parsed")]
    Locator(#[from] ParseError),
    /// A locator has a scheme that nobody knows.
    #[error("a locator with an unknown scheme {0}")]
    Scheme(u64),
}

/// The name that an `xds.core.v3.ResourceName` says.
///
/// # Errors
/// It is none.
pub fn decode_name(message: &[u8]) -> Result<Urn<'static>, MessageError> {
    let (mut id, mut authority, mut resource_type, mut params) = ("", "", "", Vec::new());
    for field in Fields::of(message) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(value)) => id = text("id", value)?,
            (2, FieldValue::Bytes(value)) => authority = text("authority", value)?,
            (3, FieldValue::Bytes(value)) => resource_type = text("resource_type", value)?,
            (4, FieldValue::Bytes(context)) => read_params(context, &mut params)?,
            _ => {}
        }
    }
    Ok(Urn::new(authority, resource_type, id, &ContextParams::new(params)?)?)
}

/// The `xds.core.v3.ResourceName` of a name.
pub fn encode_name(name: &Urn<'_>) -> Bytes {
    let mut message = Vec::new();
    put_bytes(&mut message, 1, name.id().as_bytes());
    put_bytes(&mut message, 2, name.authority().as_bytes());
    put_bytes(&mut message, 3, name.resource_type().as_bytes());
    put_params(&mut message, 4, &name.context_params());
    message.into()
}

/// The locator that an `xds.core.v3.ResourceLocator` says.
///
/// # Errors
/// It is none, or has alternatives of alternatives deeper than a locator's text may.
pub fn decode_locator(message: &[u8]) -> Result<Locator<'static>, MessageError> {
    read_locator(message, 0)
}

/// The `xds.core.v3.ResourceLocator` of a locator.
pub fn encode_locator(locator: &Locator<'_>) -> Bytes {
    let mut message = Vec::new();
    let scheme = match locator.scheme() {
        Scheme::Http => 1,
        Scheme::File => 2,
        _ => 0,
    };
    if scheme != 0 {
        put_varint(&mut message, 1 << 3);
        put_varint(&mut message, scheme);
    }
    put_bytes(&mut message, 2, locator.id().as_bytes());
    put_bytes(&mut message, 3, locator.authority().as_bytes());
    put_bytes(&mut message, 4, locator.resource_type().as_bytes());
    put_params(&mut message, 5, &locator.context_params());
    for directive in locator.directives() {
        let mut inner = Vec::new();
        // A locator's text says how deep alternatives are.
        if let Some(alternative) = directive.alt() {
            put_message(&mut inner, 1, &encode_locator(&alternative));
        } else if let Some(entry) = directive.entry() {
            put_bytes(&mut inner, 2, entry.as_bytes());
        }
        put_message(&mut message, 6, &inner);
    }
    message.into()
}

/// An empty one is there, too.
fn put_message(into: &mut Vec<u8>, number: u32, message: &[u8]) {
    put_delimited(into, number, message.len());
    into.extend_from_slice(message);
}

/// `ContextParams.params` is a map: field 1, entries with key 1 and value 2.
fn put_params(into: &mut Vec<u8>, number: u32, params: &ContextParams<'_>) {
    let mut context = Vec::new();
    for (key, value) in params.iter() {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value.as_bytes());
        put_message(&mut context, 1, &entry);
    }
    put_bytes(into, number, &context);
}

fn read_params<'a>(context: &'a [u8], into: &mut Vec<(&'a str, &'a str)>) -> Result<(), MessageError> {
    for entry in Fields::of(context) {
        let Field { number: 1, value: FieldValue::Bytes(entry) } = entry? else { continue };
        let (mut key, mut value) = ("", "");
        for field in Fields::of(entry) {
            let field = field?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(bytes)) => key = text("the key of a context parameter", bytes)?,
                (2, FieldValue::Bytes(bytes)) => value = text("a context parameter", bytes)?,
                _ => {}
            }
        }
        into.push((key, value));
    }
    Ok(())
}

fn read_locator(message: &[u8], depth: usize) -> Result<Locator<'static>, MessageError> {
    let (mut scheme, mut id, mut authority, mut resource_type) = (0, "", "", "");
    let (mut params, mut directives) = (Vec::new(), Vec::new());
    for field in Fields::of(message) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(value)) => scheme = value,
            (2, FieldValue::Bytes(value)) => id = text("id", value)?,
            (3, FieldValue::Bytes(value)) => authority = text("authority", value)?,
            (4, FieldValue::Bytes(value)) => resource_type = text("resource_type", value)?,
            (5, FieldValue::Bytes(context)) => read_params(context, &mut params)?,
            (6, FieldValue::Bytes(directive)) => directives.extend(read_directive(directive, depth)?),
            _ => {}
        }
    }
    let mut written = String::from(match scheme {
        0 => "xdstp://",
        1 => "http://",
        2 => "file://",
        unknown => return Err(MessageError::Scheme(unknown)),
    });
    let is_file = scheme == 2;
    if !is_file {
        escape(&mut written, authority, &['/']);
        written.push('/');
        escape(&mut written, resource_type, &[]);
    }
    if is_file || !id.is_empty() {
        written.push('/');
        escape(&mut written, id, &[]);
    }
    if !is_file && !params.is_empty() {
        written.push('?');
        written.push_str(&ContextParams::new(params)?.borrowed().to_canonical());
    }
    let mut locator = Locator::parse(&written)?.into_owned();
    for directive in &directives {
        locator = locator.with_directive(directive)?;
    }
    Ok(locator)
}

fn read_directive(directive: &[u8], depth: usize) -> Result<Option<Directive<'static>>, MessageError> {
    let mut read = None;
    for field in Fields::of(directive) {
        let field = field?;
        read = match (field.number, field.value) {
            // One level deeper than parses: the locator it goes into is refused.
            (1, FieldValue::Bytes(alt)) if depth <= MAX_ALT_DEPTH => {
                Some(Directive::alt_to(read_locator(alt, depth + 1)?)?)
            }
            (2, FieldValue::Bytes(entry)) => Some(Directive::entry_received(text("entry", entry)?.to_owned())?),
            _ => read,
        };
    }
    Ok(read)
}

/// Writes a decoded part of a locator so that it stays one part; its canonical form is the parser's business.
fn escape(text: &mut String, part: &str, separators: &[char]) {
    for character in part.chars() {
        if character.is_ascii_control() || matches!(character, '%' | '?' | '#') || separators.contains(&character) {
            // Writing to a string does not fail.
            let _ = write!(text, "%{:02X}", u32::from(character));
        } else {
            text.push(character);
        }
    }
}

fn text<'a>(field: &'static str, bytes: &'a [u8]) -> Result<&'a str, MessageError> {
    std::str::from_utf8(bytes).map_err(|_| MessageError::Text(field))
}
