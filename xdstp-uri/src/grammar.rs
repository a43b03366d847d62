//! The grammar of names and locators: the only file that knows nom, and the parser that serves every caller.
//!
//! ```text
//! xdstp     = "xdstp:" ["//" authority] "/" type ["/" id] ["?" params] ["#" directives]
//! http      = "http://" authority "/" type ["/" id] ["?" params] ["#" directives]
//! file      = "file:///" id ["#" directives]            ; '?' is part of the id
//! params    = [pair *("&" pair)]                        ; empty pieces are skipped
//! pair      = key ["=" value]                           ; split at the first '='; the key may be empty
//! directives = directive *("," directive)
//! directive = "alt=" locator / "entry=" 1*char          ; the value percent-encoded; each at most once
//! ```
//!
//! Bytes are scanned once. What is found are positions ([`Layout`]); decoding is left to whoever reads a component, but
//! everything that can be wrong with it has been checked here.

use alloc::borrow::Cow;
use core::{cmp::Ordering, ops::Range};

use nom::{
    IResult, Parser,
    branch::alt,
    bytes::complete::{tag, take_while},
    combinator::{opt, value},
};

use crate::{
    error::{ParseError, ParseErrorKind},
    percent::{self, Set, Utf8},
};

/// Longest name or locator that is read, in bytes: 64 KiB. Its canonical form may not be longer either.
///
/// # Examples
/// ```
/// use xdstp_uri::{MAX_LEN, ParseErrorKind, Urn};
///
/// let long = format!("xdstp://a/T/{}", "x".repeat(MAX_LEN));
/// assert_eq!(Urn::parse(&long).unwrap_err().kind(), ParseErrorKind::TooLong);
/// ```
pub const MAX_LEN: usize = 64 * 1024;

/// Deepest nesting of `alt=` directives that is read.
///
/// # Examples
/// ```
/// assert_eq!(xdstp_uri::MAX_ALT_DEPTH, 8);
/// ```
pub const MAX_ALT_DEPTH: usize = 8;

/// How a locator's transport is named.
///
/// # Examples
/// ```
/// use xdstp_uri::{Locator, Scheme};
///
/// let locator = Locator::parse("file:///etc/lds.yaml")?;
/// assert_eq!((locator.scheme(), locator.scheme().as_str()), (Scheme::File, "file"));
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// `xdstp:`, resources over the xDS transport protocol.
    Xdstp,
    /// `http:`, resources fetched over HTTP.
    Http,
    /// `file:`, resources in the local file system.
    File,
}

impl Scheme {
    /// The scheme without its `:`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Xdstp => "xdstp",
            Self::Http => "http",
            Self::File => "file",
        }
    }
}

/// Where the components of a locator are in its text, still encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Span,
    pub(crate) resource_type: Span,
    pub(crate) id: Span,
    pub(crate) params: Span,
    /// From behind the `#`; `None` without one.
    pub(crate) fragment: Option<Span>,
    /// The text is its own canonical form.
    pub(crate) canonical: bool,
}

/// A range of bytes of a text of at most [`MAX_LEN`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The bytes of this span in the text that it was found in.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }
}

/// Which directive a piece of a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectiveName {
    Alt,
    Entry,
}

/// Parses a name as the wire carries it: `xdstp:`, a glob or not, without a fragment.
pub(crate) fn name(text: &str) -> Result<Layout, ParseError> {
    let total = text.len();
    let parsed = xdstp_scheme(text.as_bytes()).map_err(|_| Fault::at(text.as_bytes(), ParseErrorKind::NotXdstp).into());
    let (layout, rest) =
        parsed.and_then(|(rest, scheme)| base(rest, scheme, total)).map_err(|error| finish(error, text))?;
    if rest.is_empty() { Ok(layout) } else { Err(ParseError::new(ParseErrorKind::FragmentInUrn, total - rest.len())) }
}

/// Parses a locator of any scheme that is the value of `depth` nested `alt=` directives (0: of none).
pub(crate) fn locator(text: &str, depth: usize) -> Result<Layout, ParseError> {
    let total = text.len();
    let parsed = scheme(text.as_bytes()).and_then(|(rest, scheme)| base(rest, scheme, total));
    let (mut layout, rest) = parsed.map_err(|error| finish(error, text))?;
    if !rest.is_empty() {
        let start = total - rest.len() + 1;
        layout.fragment = Some(Span::new(start, total));
        layout.canonical &= directives(text, start, depth)?;
    }
    Ok(layout)
}

/// Parses context parameters alone; true if they are canonical.
pub(crate) fn context_params(text: &str) -> Result<bool, ParseError> {
    let total = text.len();
    if total > MAX_LEN {
        return Err(ParseError::too_long(text));
    }
    let (rest, canonical) = params(text.as_bytes()).map_err(|error| finish(error, text))?;
    if rest.is_empty() {
        // An empty query is not canonical; no parameters at all are.
        Ok(canonical || text.is_empty())
    } else {
        Err(ParseError::new(ParseErrorKind::FragmentInUrn, total - rest.len()))
    }
}

/// Parses one directive alone; its value is still encoded.
pub(crate) fn directive(text: &str) -> Result<(DirectiveName, &str), ParseError> {
    if text.len() > MAX_LEN {
        return Err(ParseError::too_long(text));
    }
    directives(text, 0, 0)?;
    match (text.find(','), pieces(text).next()) {
        (None, Some(directive)) => Ok(directive),
        (comma, _) => Err(ParseError::new(ParseErrorKind::UnknownDirective, comma.unwrap_or_default())),
    }
}

/// The directives of a fragment, their values still encoded.
pub(crate) fn pieces(fragment: &str) -> impl Iterator<Item = (DirectiveName, &str)> {
    fragment.split(',').filter_map(|piece| {
        let (value, name) = directive_name(piece.as_bytes()).ok()?;
        Some((name, piece.get(piece.len() - value.len()..)?))
    })
}

/// Context parameters in the order of the text: key and value, still encoded.
pub(crate) fn pairs(params: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = params;
    core::iter::from_fn(move || next_pair(&mut rest))
}

/// Takes the first of [`pairs`].
#[inline]
pub(crate) fn next_pair<'t>(rest: &mut &'t str) -> Option<(&'t str, &'t str)> {
    *rest = rest.trim_start_matches('&');
    let end = rest.bytes().position(|byte| byte == b'&').unwrap_or(rest.len());
    let (piece, after) = rest.split_at_checked(end).filter(|(piece, _)| !piece.is_empty())?;
    *rest = after;
    let equals = piece.bytes().position(|byte| byte == b'=').unwrap_or(piece.len());
    let (key, value) = piece.split_at_checked(equals)?;
    Some((key, value.get(1..).unwrap_or_default()))
}

/// An error of the grammar; `rest` is how many bytes were left from where it was found.
#[derive(Debug)]
struct Fault {
    rest: usize,
    kind: ParseErrorKind,
}

impl Fault {
    const fn at(rest: &[u8], kind: ParseErrorKind) -> Self {
        Self { rest: rest.len(), kind }
    }
}

impl nom::error::ParseError<&[u8]> for Fault {
    // Of nom's own parsers only `tag` can fail, and only the schemes are not optional.
    fn from_error_kind(input: &[u8], _: nom::error::ErrorKind) -> Self {
        Self::at(input, ParseErrorKind::UnsupportedScheme)
    }

    fn append(_: &[u8], _: nom::error::ErrorKind, other: Self) -> Self {
        other
    }
}

impl From<Fault> for nom::Err<Fault> {
    fn from(fault: Fault) -> Self {
        Self::Failure(fault)
    }
}

type Parsed<'a, T> = IResult<&'a [u8], T, Fault>;

#[cold]
fn finish(error: nom::Err<Fault>, text: &str) -> ParseError {
    match error {
        nom::Err::Error(fault) | nom::Err::Failure(fault) if fault.kind != ParseErrorKind::TooLong => {
            ParseError::new(fault.kind, text.len() - fault.rest)
        }
        // Complete parsers never ask for more.
        _ => ParseError::too_long(text),
    }
}

fn xdstp_scheme(input: &[u8]) -> Parsed<'_, Scheme> {
    value(Scheme::Xdstp, tag("xdstp:")).parse(input)
}

fn scheme(input: &[u8]) -> Parsed<'_, Scheme> {
    alt((xdstp_scheme, value(Scheme::Http, tag("http:")), value(Scheme::File, tag("file:")))).parse(input)
}

fn directive_name(input: &[u8]) -> Parsed<'_, DirectiveName> {
    alt((value(DirectiveName::Alt, tag("alt=")), value(DirectiveName::Entry, tag("entry=")))).parse(input)
}

/// Everything behind the scheme up to a fragment. `total` is the length of the text that `input` is the end of.
fn base(input: &[u8], scheme: Scheme, total: usize) -> Result<(Layout, &[u8]), nom::Err<Fault>> {
    if total > MAX_LEN {
        return Err(Fault::at(input, ParseErrorKind::TooLong).into());
    }
    let here = |rest: &[u8]| total - rest.len();
    let nothing = Span::new(here(input), here(input));
    let (input, slashes) = opt(tag("//")).parse(input)?;
    if slashes.is_none() && scheme != Scheme::Xdstp {
        return Err(Fault::at(input, ParseErrorKind::MissingAuthoritySlashes).into());
    }
    if scheme == Scheme::File {
        return file(input, nothing, total);
    }

    let (mut rest, mut canonical, mut authority) = (input, slashes.is_some(), nothing);
    if slashes.is_some() {
        let (after, scanned) = component(input, Set::AUTHORITY, |byte| matches!(byte, b'/' | b'?' | b'#'))?;
        authority = Span::new(here(input), here(after));
        canonical &= scanned.canonical;
        rest = after;
    }
    let (typed, slash) = opt(tag("/")).parse(rest)?;
    if slash.is_none() {
        return Err(Fault::at(typed, ParseErrorKind::MissingResourceType).into());
    }
    let (mut rest, resource_type_canonical) = resource_type(typed)?;
    canonical &= resource_type_canonical;
    let resource_type = Span::new(here(typed), here(rest));

    let mut id = nothing;
    if let Some((b'/', after_slash)) = rest.split_first() {
        let (after, scanned) = component(after_slash, Set::PATH, |byte| matches!(byte, b'?' | b'#'))?;
        id = Span::new(here(after_slash), here(after));
        canonical &= scanned.canonical && id != Span::new(here(after_slash), here(after_slash));
        rest = after;
    }
    let mut span = nothing;
    if let Some((b'?', after_mark)) = rest.split_first() {
        let (after, params_canonical) = params(after_mark)?;
        span = Span::new(here(after_mark), here(after));
        canonical &= params_canonical;
        rest = after;
    }
    Ok((Layout { scheme, authority, resource_type, id, params: span, fragment: None, canonical }, rest))
}

fn file(input: &[u8], nothing: Span, total: usize) -> Result<(Layout, &[u8]), nom::Err<Fault>> {
    let path = match input.split_first() {
        Some((b'/', path)) => path,
        None | Some((b'#', _)) => return Err(Fault::at(input, ParseErrorKind::MissingPath).into()),
        Some(_) => return Err(Fault::at(input, ParseErrorKind::FileAuthority).into()),
    };
    let (rest, scanned) = component(path, Set::PATH, |byte| byte == b'#')?;
    let layout = Layout {
        scheme: Scheme::File,
        authority: nothing,
        resource_type: nothing,
        id: Span::new(total - path.len(), total - rest.len()),
        params: nothing,
        fragment: None,
        canonical: scanned.canonical,
    };
    Ok((layout, rest))
}

/// A resource type; true if it is canonical, that is without escapes.
fn resource_type(input: &[u8]) -> Parsed<'_, bool> {
    let (rest, scanned) = component(input, Set::RESOURCE_TYPE, |byte| matches!(byte, b'/' | b'?' | b'#'))?;
    if rest.len() == input.len() {
        return Err(Fault::at(input, ParseErrorKind::MissingResourceType).into());
    }
    if scanned.verbatim && scanned.canonical {
        return Ok((rest, true));
    }
    // An escape may spell a letter, but may not smuggle in a delimiter.
    let mut at = input;
    while at.len() > rest.len() {
        match percent::next(at) {
            Some((byte, width)) if Set::RESOURCE_TYPE.contains(byte) => at = at.get(width..).unwrap_or_default(),
            _ => return Err(Fault::at(at, ParseErrorKind::InvalidResourceType).into()),
        }
    }
    Ok((rest, false))
}

/// Parameters up to a `#` or the end; true if they are canonical: none empty, each with `=`, keys strictly ascending.
fn params(input: &[u8]) -> Parsed<'_, bool> {
    let (mut rest, mut canonical, mut previous) = (input, true, None);
    loop {
        match rest.first() {
            None | Some(b'#') => return Ok((rest, false)),
            Some(b'&') => {
                canonical = false;
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            Some(_) => {}
        }
        let (after_key, key) = component(rest, Set::PARAM, |byte| matches!(byte, b'&' | b'=' | b'#'))?;
        let key_bytes = rest.get(..rest.len() - after_key.len()).unwrap_or_default();
        canonical &= key.canonical && previous.is_none_or(|last| percent::compare(last, key_bytes) == Ordering::Less);
        previous = Some(key_bytes);
        rest = after_key;
        if let Some((b'=', after_equals)) = rest.split_first() {
            let (after, scanned) = component(after_equals, Set::PARAM, |byte| matches!(byte, b'&' | b'#'))?;
            canonical &= scanned.canonical;
            rest = after;
        } else {
            canonical = false;
        }
        match rest.split_first() {
            Some((b'&', more)) => rest = more,
            _ => return Ok((rest, canonical)),
        }
    }
}

/// Checks the fragment of `text` that starts at `start`; true if it is canonical.
fn directives(text: &str, start: usize, depth: usize) -> Result<bool, ParseError> {
    let fragment = text.as_bytes().get(start..).unwrap_or_default();
    // Whatever else is wrong, a '#' means that this is no fragment.
    read_directives(text, fragment, depth).map_err(|error| match fragment.iter().position(|&byte| byte == b'#') {
        Some(at) => ParseError::new(ParseErrorKind::InvalidCharacter, start + at),
        None => error,
    })
}

fn read_directives(text: &str, fragment: &[u8], depth: usize) -> Result<bool, ParseError> {
    let total = text.len();
    let fail = |rest: &[u8], kind| Err(ParseError::new(kind, total - rest.len()));
    let (mut rest, mut canonical, mut seen_alt, mut seen_entry) = (fragment, true, false, false);
    loop {
        let Ok((encoded, name)) = directive_name(rest) else {
            return fail(rest, ParseErrorKind::UnknownDirective);
        };
        let seen = if name == DirectiveName::Alt { &mut seen_alt } else { &mut seen_entry };
        if core::mem::replace(seen, true) {
            return fail(rest, ParseErrorKind::DuplicateDirective);
        }
        let (after, scanned) = component(encoded, Set::DIRECTIVE, |byte| matches!(byte, b',' | b'#'))
            .map_err(|error| finish(error, text))?;
        canonical &= scanned.canonical;
        match name {
            DirectiveName::Entry if encoded.len() == after.len() => return fail(encoded, ParseErrorKind::EmptyEntry),
            DirectiveName::Entry => {}
            DirectiveName::Alt if depth == MAX_ALT_DEPTH => return fail(rest, ParseErrorKind::AltTooDeep),
            DirectiveName::Alt => {
                let value = text.get(total - encoded.len()..total - after.len()).unwrap_or_default();
                let url = if scanned.verbatim { Cow::Borrowed(value) } else { percent::decode(value) };
                let inner = locator(&url, depth + 1).map_err(|error| {
                    let offset = total - encoded.len() + percent::encoded_offset(value.as_bytes(), error.offset());
                    ParseError::new(error.kind(), offset)
                })?;
                canonical &= inner.canonical;
            }
        }
        match after.split_first() {
            Some((b',', more)) => rest = more,
            Some(_) => return fail(after, ParseErrorKind::InvalidCharacter),
            None => return Ok(canonical),
        }
    }
}

#[derive(Clone, Copy)]
struct Scanned {
    /// Shown as it is in the canonical form.
    canonical: bool,
    /// Nothing but plain bytes.
    verbatim: bool,
}

/// One component, up to a byte of `stop` or the end; no byte of `stop` is in `plain`.
#[inline]
fn component(input: &[u8], plain: Set, stop: impl Fn(u8) -> bool) -> Parsed<'_, Scanned> {
    let (rest, _) = take_while(|byte| plain.contains(byte)).parse(input)?;
    match rest.first() {
        Some(&byte) if !stop(byte) => escaped_component(rest, plain, stop),
        _ => Ok((rest, Scanned { canonical: true, verbatim: true })),
    }
}

/// The rest of a component from its first byte that is not plain.
fn escaped_component(input: &[u8], plain: Set, stop: impl Fn(u8) -> bool) -> Parsed<'_, Scanned> {
    let (mut rest, mut character, mut utf8, mut canonical) = (input, input, Utf8::default(), true);
    while let Some((byte, width)) = percent::next(rest) {
        let escape = width > 1;
        if !escape && stop(byte) {
            break;
        }
        if !escape && byte.is_ascii_control() {
            return Err(Fault::at(rest, ParseErrorKind::InvalidCharacter).into());
        }
        if utf8.is_complete() {
            character = rest;
        }
        if !utf8.push(byte) {
            return Err(Fault::at(character, ParseErrorKind::InvalidUtf8).into());
        }
        let (triplet, after) = rest.split_at_checked(width).unwrap_or((rest, &[]));
        // An escape is canonical if it is needed and in upper case.
        canonical &= if escape {
            !plain.contains(byte) && !triplet.iter().any(u8::is_ascii_lowercase)
        } else {
            plain.contains(byte)
        };
        rest = after;
        if utf8.is_complete() {
            (rest, _) = take_while(|byte| plain.contains(byte)).parse(rest)?;
        }
    }
    if !utf8.is_complete() {
        return Err(Fault::at(character, ParseErrorKind::InvalidUtf8).into());
    }
    Ok((rest, Scanned { canonical, verbatim: false }))
}
