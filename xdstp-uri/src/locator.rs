//! Where and how to find a resource or a collection.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::fmt;

use crate::{
    CollectionError, ContextParams, Directive, ParseError, ReservedParam, ResourceName, Scheme, Urn, canonical,
    grammar,
    text::{Parsed, Text, by_canonical_form},
};

/// Where and how to find a resource or a collection (TP1, *URL*): an `xdstp:`, `http:` or `file:` URL, possibly a
/// [glob](Locator::is_glob), possibly with [directives](Directive).
///
/// Parsing borrows and decodes nothing; components are decoded when they are read, and live as long as the text.
/// [`Locator::into_owned`] and `FromStr` give a canonical form of its own, cheap to clone. Equality and hash are by
/// components; the order is that of the canonical forms as strings.
///
/// # Examples
/// ```
/// use xdstp_uri::Locator;
///
/// let locator = Locator::parse("xdstp://a/a.v3.Type/foo/*?env=prod#alt=xdstp://b/a.v3.Type/foo/*")?;
/// assert!(locator.is_glob());
/// assert_eq!(locator.id(), "foo/*");
/// assert_eq!(locator.alt().unwrap().authority(), "b");
/// // What a client subscribes to: directives stay with the client.
/// assert_eq!(locator.to_name().unwrap().as_str(), "xdstp://a/a.v3.Type/foo/*?env=prod");
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Locator<'a>(Parsed<'a>);

by_canonical_form!(Locator);

impl<'a> Locator<'a> {
    /// Parses a locator, with every `alt=` in it.
    ///
    /// # Errors
    /// See [`ParseErrorKind`](crate::ParseErrorKind).
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert!(Locator::parse("file:///etc/envoy/lds.yaml").is_ok());
    /// assert!(Locator::parse("https://a/T/x").is_err());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[inline]
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        Ok(Self(Parsed::new(text, grammar::locator(text, 0)?)?))
    }

    /// The locator with a canonical text of its own; cloning it costs a reference count.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// let locator: Locator<'static> = Locator::parse("xdstp://a/T/x?b=1&a=2")?.into_owned();
    /// assert!(locator.is_canonical());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Locator<'static> {
        Locator(self.0.into_owned(|text| grammar::locator(text, 0)))
    }

    /// How the resource is fetched.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Locator, Scheme};
    ///
    /// assert_eq!(Locator::parse("http://a/T/x")?.scheme(), Scheme::Http);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.0.layout.scheme
    }

    /// The same locator, borrowed from this value rather than from what was parsed: of an owned one, components can be read
    /// without copying them.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// let owned: Locator<'static> = "xdstp://a/T/x".parse()?;
    /// assert!(matches!(owned.borrowed().id(), std::borrow::Cow::Borrowed("x")));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn borrowed(&self) -> Locator<'_> {
        Locator(self.0.borrowed())
    }

    /// The authority, decoded; empty for `file:`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("xdstp://a.com:80/T/x")?.authority(), "a.com:80");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn authority(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.authority)
    }

    /// The resource type, such as `envoy.config.listener.v3.Listener`; empty for `file:`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("http://a/a.v3.Type/x")?.resource_type(), "a.v3.Type");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn resource_type(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.resource_type)
    }

    /// The id, decoded; for `file:`, the path without its leading `/`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("file:///etc/lds.yaml")?.id(), "etc/lds.yaml");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> Cow<'a, str> {
        self.0.component(self.0.layout.id)
    }

    /// The context parameters; `file:` has none.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("http://a/T/x?k=v")?.context_params().get("k").as_deref(), Some("v"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn context_params(&self) -> ContextParams<'a> {
        ContextParams::of(&self.0)
    }

    /// The directives, in the order in which they are written.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Directive, Locator};
    ///
    /// let locator = Locator::parse("xdstp://a/T/x#entry=m,alt=http://b/T/y")?;
    /// let directives: Vec<_> = locator.directives().collect();
    /// assert_eq!(directives, [Directive::parse("entry=m")?, Directive::parse("alt=http://b/T/y")?]);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn directives(&self) -> impl Iterator<Item = Directive<'a>> + use<'a> {
        let fragment = self.0.layout.fragment;
        let (borrowed, copied) = match &self.0.text {
            Text::Borrowed(text) => (fragment.map(|span| span.of(text)), Vec::new()),
            Text::Shared(_) => (None, self.borrowed().directives().map(Directive::into_owned).collect()),
        };
        // Parsing the locator has parsed each directive, so none is left out.
        let decode = |(name, value)| Directive::decode(name, value).ok();
        borrowed.into_iter().flat_map(grammar::pieces).filter_map(decode).chain(copied)
    }

    /// The locator to fall back to.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// let locator = Locator::parse("xdstp://a/T/x#alt=http://b/T/y")?;
    /// assert_eq!(locator.alt(), Some(Locator::parse("http://b/T/y")?));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn alt(&self) -> Option<Self> {
        self.directives().find_map(Directive::into_alt)
    }

    /// The name of the entry inside the list collection that is meant.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("xdstp://a/T/x#entry=m")?.entry().as_deref(), Some("m"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn entry(&self) -> Option<Cow<'a, str>> {
        self.directives().find_map(Directive::into_entry)
    }

    /// The locator stands for a glob collection: its id is `*` or ends in `/*`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert!(Locator::parse("xdstp://a/T/foo/*")?.is_glob());
    /// assert!(!Locator::parse("xdstp://a/T/foo*")?.is_glob());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_glob(&self) -> bool {
        self.0.is_glob()
    }

    /// The text as it was parsed is the canonical form. Costs nothing: parsing finds it out.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert!(!Locator::parse("xdstp://a/T/%78")?.is_canonical());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.0.layout.canonical
    }

    /// The canonical form, borrowed if the text that was parsed is it. Directives keep their order.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("http://a/T/x?k")?.to_canonical(), "http://a/T/x?k=");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn to_canonical(&self) -> Cow<'a, str> {
        self.0.to_canonical()
    }

    /// The name that the wire carries for this locator, without directives; `None` for `http:` and `file:`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// assert_eq!(Locator::parse("xdstp://a/T/*#alt=http://b/T/y")?.to_name().unwrap().as_str(), "xdstp://a/T/*");
    /// assert_eq!(Locator::parse("file:///a")?.to_name(), None);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn to_name(&self) -> Option<ResourceName> {
        (self.scheme() == Scheme::Xdstp).then(|| ResourceName::from_layout(&self.0.text, &self.0.layout))
    }

    /// The name of the one resource that this locator points to; `None` for `http:`, `file:` and globs.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Locator, Urn};
    ///
    /// assert_eq!(Locator::parse("xdstp://a/T/x#entry=m")?.to_urn(), Some(Urn::parse("xdstp://a/T/x")?));
    /// assert_eq!(Locator::parse("xdstp://a/T/*")?.to_urn(), None);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn to_urn(&self) -> Option<Urn<'static>> {
        self.to_name().filter(|name| !name.is_glob()).and_then(|name| name.as_str().parse().ok())
    }

    /// The same locator without directives.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// let locator = Locator::parse("http://a/T/x#entry=m")?;
    /// assert_eq!(locator.without_directives(), Locator::parse("http://a/T/x")?);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn without_directives(&self) -> Locator<'static> {
        let mut text = String::new();
        // Writing to a string does not fail, and a locator without its fragment still is one.
        let _ = canonical::write_base(&mut text, &self.0.text, &self.0.layout);
        Locator::parse(&text).map_or_else(|_| self.clone().into_owned(), Locator::into_owned)
    }

    /// The same locator with one more directive.
    ///
    /// # Errors
    /// A directive of this kind is there already, `alt=` becomes nested too deep, the locator becomes too long.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{Directive, Locator};
    ///
    /// let alt = Directive::parse("alt=xdstp://b/T/x?k=1%2C2")?;
    /// let locator = Locator::parse("xdstp://a/T/x")?.with_directive(&alt)?;
    /// assert_eq!(locator.to_string(), "xdstp://a/T/x#alt=xdstp://b/T/x?k=1%2C2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn with_directive(&self, directive: &Directive<'_>) -> Result<Locator<'static>, ParseError> {
        let mut text = self.to_canonical().into_owned();
        let separator = if self.0.layout.fragment.is_some() { ',' } else { '#' };
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{separator}{directive}"));
        Locator::parse(&text).map(Locator::into_owned)
    }

    /// The same locator with these context parameters in place of its own.
    ///
    /// # Errors
    /// It becomes too long.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{ContextParams, Locator};
    ///
    /// let locator = Locator::parse("xdstp://a/T/x?k=1#alt=xdstp://b/T/x")?;
    /// let params = ContextParams::compose(&ContextParams::default(), &locator.context_params(), [], [("vip", "1.2.3.4")])?;
    /// let computed = locator.with_context_params(&params)?;
    /// assert_eq!(computed.to_string(), "xdstp://a/T/x?k=1&xds.resource.vip=1.2.3.4#alt=xdstp://b/T/x");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn with_context_params(&self, params: &ContextParams<'_>) -> Result<Locator<'static>, ParseError> {
        let mut text = self.without_directives().without_params();
        if !params.is_empty() {
            text.push('?');
            text.push_str(&params.to_canonical());
        }
        let canonical = self.to_canonical();
        if let Some((_, directives)) = canonical.split_once('#') {
            text.push('#');
            text.push_str(directives);
        }
        Locator::parse(&text).map(Locator::into_owned)
    }

    /// Refuses parameters that nobody may write into a URL, here or in an `alt=`.
    ///
    /// TP1 keeps the namespace `xds.` for parameters that clients compute, and keys that start with a character that is
    /// not alphanumeric for later use. On the wire both are fine, so parsing accepts them; configuration must not.
    ///
    /// # Errors
    /// The first such key.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::Locator;
    ///
    /// let locator = Locator::parse("xdstp://a/T/x?xds.resource.vip=1.2.3.4")?;
    /// assert_eq!(locator.check_reserved_params().unwrap_err().key(), "xds.resource.vip");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn check_reserved_params(&self) -> Result<(), ReservedParam> {
        self.context_params().check_reserved()?;
        // Bounded: parsing has bounded the nesting of `alt=`.
        self.alt().map_or(Ok(()), |alt| alt.check_reserved_params())
    }

    /// The name to subscribe to for this collection, a root of the resource graph: without directives, and with those of
    /// the node's parameters that the locator does not set itself.
    ///
    /// # Errors
    /// The locator is not `xdstp:`, or not of the resource type that the subscription is for.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::{ContextParams, Locator};
    ///
    /// let node = ContextParams::new([("xds.node.id", "n1"), ("env", "test")])?;
    /// let locator = Locator::parse("xdstp://a/a.v3.Type/foo/*?env=prod")?;
    /// let name = locator.to_collection_name("a.v3.Type", &node).unwrap();
    /// assert_eq!(name.as_str(), "xdstp://a/a.v3.Type/foo/*?env=prod&xds.node.id=n1");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn to_collection_name(
        &self,
        resource_type: &str,
        node: &ContextParams<'_>,
    ) -> Result<ResourceName, CollectionError> {
        if self.scheme() != Scheme::Xdstp {
            return Err(CollectionError::NotXdstp);
        }
        if self.resource_type() != resource_type {
            let found = self.resource_type().into_owned();
            return Err(CollectionError::ResourceTypeMismatch { expected: resource_type.into(), found });
        }
        let params = ContextParams::compose(node, &self.context_params(), [], []).map_err(CollectionError::Name)?;
        let mut text = self.without_directives().without_params();
        if !params.is_empty() {
            text.push('?');
            text.push_str(&params.to_canonical());
        }
        ResourceName::parse(&text).map_err(CollectionError::Name)
    }

    fn without_params(&self) -> String {
        let base = self.to_canonical();
        String::from(base.split_once('?').map_or(&*base, |(base, _)| base))
    }
}

impl From<Urn<'_>> for Locator<'static> {
    fn from(urn: Urn<'_>) -> Self {
        Self(urn.into_owned().0)
    }
}
