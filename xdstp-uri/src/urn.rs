//! The name of one resource.

use alloc::{borrow::Cow, string::String};

use crate::{
    ContextParams, ParseError, ParseErrorKind, ResourceName, grammar,
    percent::{self, Set},
    text::{Parsed, Text, by_canonical_form},
};

/// The name of one resource: authority, resource type, id and context parameters (TP1, *URN*).
///
/// Parsing borrows and decodes nothing; components are decoded when they are read, borrowed where they hold no escape,
/// and live as long as the text. [`Urn::into_owned`] and `FromStr` give a canonical form of its own, cheap to clone.
/// Equality and hash are by components: the order of parameters and the way of escaping make no difference. The order is
/// that of the canonical forms as strings, `a-b` before `a/b`.
///
/// # Examples
/// ```
/// use xdstp_uri::Urn;
///
/// let urn = Urn::parse("xdstp://authority/envoy.config.listener.v3.Listener/a%20b?zone=1&env=prod")?;
/// assert_eq!(urn.authority(), "authority");
/// assert_eq!(urn.resource_type(), "envoy.config.listener.v3.Listener");
/// assert_eq!(urn.id(), "a b");
/// assert_eq!(urn.context_params().get("env").as_deref(), Some("prod"));
/// assert_eq!(urn.to_string(), "xdstp://authority/envoy.config.listener.v3.Listener/a%20b?env=prod&zone=1");
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Urn<'a>(pub(crate) Parsed<'a>);

by_canonical_form!(Urn);

impl<'a> Urn<'a> {
    /// Parses the name of one resource.
    ///
    /// # Errors
    /// What is not an `xdstp:` name, directives (`#…`), and globs.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://a/T/x")?.id(), "x");
    /// assert!(Urn::parse("xdstp://a/T/*").is_err());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[inline]
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let parsed = Parsed::new(text, grammar::name(text)?)?;
        if parsed.is_glob() {
            let end = parsed.layout.id.range().end;
            let width = if text.get(..end).is_some_and(|text| text.ends_with('*')) { 1 } else { 3 };
            return Err(ParseError::new(ParseErrorKind::GlobInUrn, end - width));
        }
        Ok(Self(parsed))
    }

    /// Makes a name of decoded components.
    ///
    /// # Errors
    /// An empty resource type, or one that has other characters than letters, digits, `.`, `_` and `-`; an id that makes
    /// the name a glob; a name that is too long. The offset points into the text that the name would be.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{ContextParams, Urn};
    ///
    /// let params = ContextParams::new([("shard", "1/2"), ("env", "a&b")])?;
    /// let urn = Urn::new("authority", "a.v3.Type", "what?", &params)?;
    /// assert_eq!(urn.to_string(), "xdstp://authority/a.v3.Type/what%3F?env=a%26b&shard=1/2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn new(
        authority: &str,
        resource_type: &str,
        id: &str,
        params: &ContextParams<'_>,
    ) -> Result<Urn<'static>, ParseError> {
        let mut text = String::from("xdstp://");
        // Writing to a string does not fail.
        let _ = percent::encode(&mut text, authority, Set::AUTHORITY);
        text.push('/');
        // Checked here: written as it is, a '/' in it would become a separator.
        if let Some(at) = resource_type.bytes().position(|byte| !Set::RESOURCE_TYPE.contains(byte)) {
            return Err(ParseError::new(ParseErrorKind::InvalidResourceType, text.len() + at));
        }
        text.push_str(resource_type);
        if !id.is_empty() {
            text.push('/');
            let _ = percent::encode(&mut text, id, Set::PATH);
        }
        if !params.is_empty() {
            text.push('?');
            text.push_str(&params.to_canonical());
        }
        Urn::parse(&text).map(Urn::into_owned)
    }

    /// The name with a canonical text of its own; cloning it costs a reference count.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// fn read() -> Result<Urn<'static>, xdstp_uri::ParseError> {
    ///     let text = String::from("xdstp://a/T/x?b=1&a=2");
    ///     Ok(Urn::parse(&text)?.into_owned())
    /// }
    /// assert!(read()?.is_canonical());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Urn<'static> {
        Urn(self.0.into_owned(grammar::name))
    }

    /// The same name, borrowed from this value rather than from what was parsed: of an owned one, components can be read
    /// without copying them.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// let owned: Urn<'static> = "xdstp://a/T/x".parse()?;
    /// assert!(matches!(owned.borrowed().id(), std::borrow::Cow::Borrowed("x")));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn borrowed(&self) -> Urn<'_> {
        Urn(self.0.borrowed())
    }

    /// The authority, decoded: an opaque, case-sensitive string, possibly empty.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://%23.com/T/x")?.authority(), "#.com");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn authority(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.authority)
    }

    /// The resource type, such as `envoy.config.listener.v3.Listener`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://a/a.v3.Type/x")?.resource_type(), "a.v3.Type");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn resource_type(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.resource_type)
    }

    /// The id, decoded; possibly empty.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://a/T/x%20y/z")?.id(), "x y/z");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.id)
    }

    /// The context parameters.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://a/T/x?k=v")?.context_params().len(), 1);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn context_params(&self) -> ContextParams<'a> {
        ContextParams::of(&self.0)
    }

    /// The text as it was parsed is the canonical form. Costs nothing: parsing finds it out.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert!(Urn::parse("xdstp://a/T/x?a=1&b=2")?.is_canonical());
    /// assert!(!Urn::parse("xdstp://a/T/x?b=2&a=1")?.is_canonical());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.0.layout.canonical
    }

    /// The canonical form, borrowed if the text that was parsed is it.
    ///
    /// Escapes only what its component may not show (RFC 3986), in upper-case hex; sorts parameters by decoded key.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp:/T/%78?b=2&a=1")?.to_canonical(), "xdstp:///T/x?a=1&b=2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn to_canonical(&self) -> Cow<'a, str> {
        self.0.to_canonical()
    }

    /// This name as the wire carries it.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Urn;
    ///
    /// assert_eq!(Urn::parse("xdstp://a/T/x/")?.to_name().as_str(), "xdstp://a/T/x/");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn to_name(&self) -> ResourceName {
        match &self.0.text {
            Text::Shared(text) => ResourceName::from_canonical(text.clone(), &self.0.layout),
            Text::Borrowed(text) => ResourceName::from_layout(text, &self.0.layout),
        }
    }
}

impl From<Urn<'_>> for ResourceName {
    fn from(urn: Urn<'_>) -> Self {
        urn.to_name()
    }
}
