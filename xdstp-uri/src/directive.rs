//! What a locator asks of the client beside the resource.

use alloc::borrow::Cow;
use core::fmt;

use crate::{
    Locator, ParseError, ParseErrorKind, grammar,
    grammar::DirectiveName,
    percent::{self, Encoded, Set},
};

/// A processing directive of a [`Locator`]: an instruction to the client, never sent.
///
/// # Examples
/// ```
/// use xdstp_uri::Directive;
///
/// let Directive::Alt(locator) = Directive::parse("alt=xdstp://b/T/x%3Fk=v")? else { unreachable!() };
/// assert_eq!(locator.context_params().get("k").as_deref(), Some("v"));
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Directive<'a> {
    /// `alt=`: the locator to fall back to.
    Alt(Locator<'a>),
    /// `entry=`: the name of an entry inlined in a list collection, decoded.
    Entry(Cow<'a, str>),
}

impl<'a> Directive<'a> {
    /// Parses one directive, `alt=…` or `entry=…`, percent-encoded as in the fragment of a locator.
    ///
    /// # Errors
    /// Those of the fragment of a locator; a second directive is one.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Directive;
    ///
    /// assert_eq!(Directive::parse("entry=a%2Cb")?, Directive::Entry("a,b".into()));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let (name, value) = grammar::directive(text)?;
        Self::decode(name, value).map_err(|error| ParseError::new(error.kind(), text.len() - value.len()))
    }

    /// An `entry=` directive to this name.
    ///
    /// # Errors
    /// Parsing accepts any name; one that is made may only have the characters that TP1's protocol buffers allow:
    /// letters, digits, `_`, `-`, `.`, `/`, `~`, `:`. The offset points into `name`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Directive;
    ///
    /// assert_eq!(Directive::entry("vhost_1")?.to_string(), "entry=vhost_1");
    /// assert_eq!(Directive::entry("a b").unwrap_err().offset(), 1);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn entry(name: &'a str) -> Result<Self, ParseError> {
        if name.is_empty() {
            return Err(ParseError::new(ParseErrorKind::EmptyEntry, 0));
        }
        let allowed = |byte: u8| Set::RESOURCE_TYPE.contains(byte) || matches!(byte, b'/' | b'~' | b':');
        match name.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(ParseError::new(ParseErrorKind::InvalidEntry, at)),
            None => Ok(Self::Entry(Cow::Borrowed(name))),
        }
    }

    /// The directive of this encoded value.
    pub(crate) fn decode(name: DirectiveName, value: &'a str) -> Result<Self, ParseError> {
        match (name, percent::decode(value)) {
            (DirectiveName::Entry, entry) => Ok(Self::Entry(entry)),
            (DirectiveName::Alt, Cow::Borrowed(url)) => Locator::parse(url).map(Self::Alt),
            (DirectiveName::Alt, Cow::Owned(url)) => url.parse().map(Self::Alt),
        }
    }
}

/// As in the fragment of a locator, percent-encoded.
impl fmt::Display for Directive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alt(locator) => write!(f, "alt={}", Encoded(&locator.to_canonical(), Set::DIRECTIVE)),
            Self::Entry(name) => write!(f, "entry={}", Encoded(name, Set::DIRECTIVE)),
        }
    }
}
