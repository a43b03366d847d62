//! What a locator asks of the client beside the resource.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
};
use core::{cmp::Ordering, fmt, str::FromStr};

use crate::{
    Locator, MAX_LEN, ParseError, ParseErrorKind, canonical, grammar,
    grammar::DirectiveName,
    percent::{self, Encoded, Set},
};

/// A processing directive of a [`Locator`]: an instruction to the client, never sent. It is one of two: [`alt=`](Self::alt)
/// or [`entry=`](Self::entry). Equality and hash are by components; the order is that of the texts.
///
/// # Examples
/// ```
/// use xdstp_uri::Directive;
///
/// let directive = Directive::parse("alt=xdstp://b/T/x%3Fk=v")?;
/// let fallback = directive.alt().expect("it is an alt= directive");
/// assert_eq!(fallback.context_params().get("k").as_deref(), Some("v"));
/// assert_eq!(directive.entry(), None);
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directive<'a>(Kind<'a>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind<'a> {
    Alt(Locator<'a>),
    /// Decoded, and not empty.
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
    /// assert_eq!(Directive::parse("entry=a%2Cb")?.entry().as_deref(), Some("a,b"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let (name, value) = grammar::directive(text)?;
        canonical::check_written_len(text, |counter| canonical::write_directive(counter, name, value))?;
        Self::decode(name, value).map_err(|error| ParseError::new(error.kind(), text.len() - value.len()))
    }

    /// An `alt=` directive: the locator to fall back to.
    ///
    /// # Errors
    /// The locator has [`MAX_ALT_DEPTH`](crate::MAX_ALT_DEPTH) levels of `alt=` already, or the directive is too long. The
    /// offset points into the text that the directive would be.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Directive, Locator};
    ///
    /// let directive = Directive::alt_to(Locator::parse("xdstp://b/T/x?k=1,2")?)?;
    /// assert_eq!(directive.to_string(), "alt=xdstp://b/T/x?k=1%2C2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn alt_to(locator: Locator<'a>) -> Result<Self, ParseError> {
        Self(Kind::Alt(locator)).checked()
    }

    /// An `entry=` directive, as an author writes it: the name of an entry inlined in a list collection.
    ///
    /// # Errors
    /// An empty name, and characters that TP1's protocol buffers do not allow: these are letters, digits, `_`, `-`, `.`,
    /// `/`, `~` and `:`. A directive that is too long. The offset points into `name`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Directive;
    ///
    /// assert_eq!(Directive::entry_named("vhost_1")?.to_string(), "entry=vhost_1");
    /// assert_eq!(Directive::entry_named("a b").unwrap_err().offset(), 1);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn entry_named(name: impl Into<Cow<'a, str>>) -> Result<Self, ParseError> {
        let name = name.into();
        let allowed = |byte: u8| Set::RESOURCE_TYPE.contains(byte) || matches!(byte, b'/' | b'~' | b':');
        match name.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(ParseError::new(ParseErrorKind::InvalidEntry, at)),
            None => Self::entry_received(name),
        }
    }

    /// The same as a peer wrote it, in a message rather than in a locator: like parsing, this accepts any name.
    ///
    /// # Errors
    /// An empty name; a directive that is too long. The offset points into `name`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Directive;
    ///
    /// assert_eq!(Directive::entry_received("a,b")?, Directive::parse("entry=a%2Cb")?);
    /// assert!(Directive::entry_received("").is_err());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn entry_received(name: impl Into<Cow<'a, str>>) -> Result<Self, ParseError> {
        let name = name.into();
        if name.len() > MAX_LEN {
            return Err(ParseError::too_long(&name));
        }
        let len = name.len();
        match Self(Kind::Entry(name)).checked() {
            // As with a canonical form that is too long: all of the name was read.
            Err(error) => Err(ParseError::new(error.kind(), len)),
            entry => entry,
        }
    }

    /// The locator to fall back to, of an `alt=` directive. It lives as long as the text.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Directive, Locator};
    ///
    /// fn fallback(text: &str) -> Option<Locator<'_>> {
    ///     Directive::parse(text).ok()?.alt()
    /// }
    /// assert_eq!(fallback("alt=http://b/T/x"), Some(Locator::parse("http://b/T/x")?));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn alt(&self) -> Option<Locator<'a>> {
        self.clone().into_alt()
    }

    /// The name of the entry that is meant, decoded, of an `entry=` directive. It lives as long as the text, borrowed where
    /// it holds no escape.
    ///
    /// # Examples
    /// ```
    /// use std::borrow::Cow;
    /// use xdstp_uri::Directive;
    ///
    /// fn entry(text: &str) -> Option<Cow<'_, str>> {
    ///     Directive::parse(text).ok()?.entry()
    /// }
    /// assert!(matches!(entry("entry=m"), Some(Cow::Borrowed("m"))));
    /// ```
    #[must_use]
    pub fn entry(&self) -> Option<Cow<'a, str>> {
        self.clone().into_entry()
    }

    /// The directive with a text of its own.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Directive;
    ///
    /// let directive: Directive<'static> = Directive::parse("entry=m")?.into_owned();
    /// assert_eq!(directive.entry().as_deref(), Some("m"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Directive<'static> {
        Directive(match self.0 {
            Kind::Alt(locator) => Kind::Alt(locator.into_owned()),
            Kind::Entry(name) => Kind::Entry(Cow::Owned(name.into_owned())),
        })
    }

    pub(crate) fn into_alt(self) -> Option<Locator<'a>> {
        match self.0 {
            Kind::Alt(locator) => Some(locator),
            Kind::Entry(_) => None,
        }
    }

    pub(crate) fn into_entry(self) -> Option<Cow<'a, str>> {
        match self.0 {
            Kind::Alt(_) => None,
            Kind::Entry(name) => Some(name),
        }
    }

    /// The directive of this encoded value.
    pub(crate) fn decode(name: DirectiveName, value: &'a str) -> Result<Self, ParseError> {
        match (name, percent::decode(value)) {
            (DirectiveName::Entry, entry) => Ok(Self(Kind::Entry(entry))),
            (DirectiveName::Alt, Cow::Borrowed(url)) => Locator::parse(url).map(|locator| Self(Kind::Alt(locator))),
            (DirectiveName::Alt, Cow::Owned(url)) => url.parse().map(|locator| Self(Kind::Alt(locator))),
        }
    }

    /// What is displayed can be parsed again.
    fn checked(self) -> Result<Self, ParseError> {
        let text: String = self.to_string();
        grammar::directive(&text).map(|_| self)
    }
}

impl PartialOrd for Directive<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Directive<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl FromStr for Directive<'static> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Directive::parse(text).map(Directive::into_owned)
    }
}

impl<'a> TryFrom<&'a str> for Directive<'a> {
    type Error = ParseError;

    fn try_from(text: &'a str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// As in the fragment of a locator, percent-encoded.
impl fmt::Display for Directive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Alt(locator) => write!(f, "alt={}", Encoded(&locator.to_canonical(), Set::DIRECTIVE)),
            Kind::Entry(name) => write!(f, "entry={}", Encoded(name, Set::DIRECTIVE)),
        }
    }
}
