//! What is wrong with a name, and where.

use core::fmt;

use crate::MAX_LEN;

/// Why a name, locator or part of one was refused, and at which byte.
///
/// # Examples
/// ```
/// use xdstp_uri::{ParseErrorKind, ResourceName};
///
/// let error = ResourceName::parse("xdstp://authority/T%2Fq/x").unwrap_err();
/// assert_eq!(error.kind(), ParseErrorKind::InvalidResourceType);
/// assert_eq!(error.offset(), 19);
/// assert_eq!(error.to_string(), "expected a resource type of letters, digits, '.', '_' and '-', at byte 19");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParseError {
    kind: ParseErrorKind,
    offset: u32,
}

impl ParseError {
    pub(crate) const fn new(kind: ParseErrorKind, offset: usize) -> Self {
        // Nothing past MAX_LEN is read, so every offset fits.
        Self { kind, offset: offset as u32 }
    }

    /// The text has more bytes than may be read; the offset is that of the first character that is not all within.
    #[cold]
    pub(crate) fn too_long(text: &str) -> Self {
        let within = (0..=MAX_LEN.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        Self::new(ParseErrorKind::TooLong, within.unwrap_or_default())
    }

    /// Which rule was broken.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{ParseErrorKind, Urn};
    ///
    /// assert_eq!(Urn::parse("web").unwrap_err().kind(), ParseErrorKind::NotXdstp);
    /// ```
    #[must_use]
    pub const fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// Offset in bytes, into the text that was parsed, of the first byte that breaks the rule.
    ///
    /// Inside an `alt=` directive it points into the outer text too, at the byte (or escape) that the inner byte came from.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// // `%09` is a tab inside the inner locator.
    /// assert_eq!(Locator::parse("xdstp://a/T/x#alt=xdstp://b/T/%09").unwrap_err().offset(), 30);
    /// ```
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset as usize
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.kind.expectation(), self.offset)
    }
}

impl core::error::Error for ParseError {}

/// The rule that a refused text breaks.
///
/// # Examples
/// ```
/// use xdstp_uri::ParseErrorKind;
///
/// assert_eq!(ParseErrorKind::FragmentInUrn.as_str(), "fragment_in_urn");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text does not start with `xdstp:` (in lower case), where only such a name will do.
    NotXdstp,
    /// The scheme of a locator is none of `xdstp:`, `http:` and `file:` (in lower case).
    UnsupportedScheme,
    /// `http:` or `file:` is not followed by `//`.
    MissingAuthoritySlashes,
    /// A `file:` locator has an authority.
    FileAuthority,
    /// A `file:` locator has no path.
    MissingPath,
    /// There is no resource type, or an empty one.
    MissingResourceType,
    /// The resource type has other characters than letters, digits, `.`, `_` and `-`.
    InvalidResourceType,
    /// The percent-decoded bytes of a component are not UTF-8.
    InvalidUtf8,
    /// An unescaped control character, or an unescaped `#` inside a fragment.
    InvalidCharacter,
    /// A piece of the fragment is neither `alt=` nor `entry=` (this includes an empty piece).
    UnknownDirective,
    /// A directive appears twice.
    DuplicateDirective,
    /// An `entry=` directive without a value.
    EmptyEntry,
    /// The name of an entry, as it is made, has other characters than letters, digits and `_-./~:`.
    InvalidEntry,
    /// `alt=` directives are nested more than [`MAX_ALT_DEPTH`](crate::MAX_ALT_DEPTH) deep.
    AltTooDeep,
    /// A fragment where a name is expected: directives are for the client and never sent.
    FragmentInUrn,
    /// A glob where the name of one resource is expected.
    GlobInUrn,
    /// The text, or its canonical form, is longer than [`MAX_LEN`](crate::MAX_LEN) bytes.
    TooLong,
}

impl ParseErrorKind {
    /// The kind as a word for logs and other machines, such as `missing_resource_type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotXdstp => "not_xdstp",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::MissingAuthoritySlashes => "missing_authority_slashes",
            Self::FileAuthority => "file_authority",
            Self::MissingPath => "missing_path",
            Self::MissingResourceType => "missing_resource_type",
            Self::InvalidResourceType => "invalid_resource_type",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::InvalidCharacter => "invalid_character",
            Self::UnknownDirective => "unknown_directive",
            Self::DuplicateDirective => "duplicate_directive",
            Self::EmptyEntry => "empty_entry",
            Self::InvalidEntry => "invalid_entry",
            Self::AltTooDeep => "alt_too_deep",
            Self::FragmentInUrn => "fragment_in_urn",
            Self::GlobInUrn => "glob_in_urn",
            Self::TooLong => "too_long",
        }
    }

    const fn expectation(self) -> &'static str {
        match self {
            Self::NotXdstp => "expected the scheme 'xdstp:'",
            Self::UnsupportedScheme => "expected one of the schemes 'xdstp:', 'http:' and 'file:'",
            Self::MissingAuthoritySlashes => "expected '//' after the scheme",
            Self::FileAuthority => "expected 'file:///' and a path, without an authority",
            Self::MissingPath => "expected '/' and a path",
            Self::MissingResourceType => "expected '/' and a resource type",
            Self::InvalidResourceType => "expected a resource type of letters, digits, '.', '_' and '-'",
            Self::InvalidUtf8 => "expected percent-encoded bytes that are UTF-8",
            Self::InvalidCharacter => "expected no control character and, in a fragment, no '#' unless percent-encoded",
            Self::UnknownDirective => "expected the directive 'alt=' or 'entry='",
            Self::DuplicateDirective => "expected each directive at most once",
            Self::EmptyEntry => "expected the name of an entry after 'entry='",
            Self::InvalidEntry => "expected the name of an entry of letters, digits, '_', '-', '.', '/', '~' and ':'",
            Self::AltTooDeep => "expected at most 8 levels of 'alt='",
            Self::FragmentInUrn => "expected a name without directives ('#…')",
            Self::GlobInUrn => "expected the name of one resource, not a glob ('/*')",
            Self::TooLong => "expected at most 65536 bytes",
        }
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
