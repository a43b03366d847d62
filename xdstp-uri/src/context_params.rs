//! Context parameters: the query of a name.

use alloc::{
    borrow::Cow,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    sync::Arc,
};
use core::fmt;

use crate::{
    ParseError, canonical, grammar,
    percent::{self, Encoded, Set},
    text::{Parsed, Text, by_canonical_form},
};

/// The context parameters of a name: keys with values, in no order.
///
/// Of a key that is written twice, the last value counts. Read and compared decoded.
///
/// # Examples
/// ```
/// use xdstp_uri::ContextParams;
///
/// let params = ContextParams::parse("zone=b%20c&env=prod&zone=d%26e")?;
/// assert_eq!(params.get("zone").as_deref(), Some("d&e"));
/// assert_eq!(params, ContextParams::from_iter([("env", "prod"), ("zone", "d&e")]));
/// assert_eq!(params.to_string(), "env=prod&zone=d%26e");
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone)]
pub struct ContextParams<'a> {
    text: Text<'a>,
    canonical: bool,
}

by_canonical_form!(ContextParams);

impl<'a> ContextParams<'a> {
    /// Parses parameters alone, as they stand between `?` and `#` in a name.
    ///
    /// # Errors
    /// Control characters, escapes that are not UTF-8, a `#`, more than [`MAX_LEN`](crate::MAX_LEN) bytes.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// assert_eq!(ContextParams::parse("a=1&b=2")?.len(), 2);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let canonical = grammar::context_params(text)?;
        Ok(Self { text: Text::Borrowed(text), canonical })
    }

    pub(crate) fn of(parsed: &'a Parsed<'_>) -> Self {
        Self { text: Text::Borrowed(parsed.layout.params.of(&parsed.text)), canonical: parsed.layout.canonical }
    }

    /// The parameters with a canonical text of their own; cloning them costs a reference count.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let params: ContextParams<'static> = ContextParams::parse("b=2&a=1")?.into_owned();
    /// assert_eq!(params.to_canonical(), "a=1&b=2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn into_owned(self) -> ContextParams<'static> {
        let text = if self.canonical { self.text.shared() } else { Arc::from(&*self.to_canonical()) };
        ContextParams { text: Text::Shared(text), canonical: true }
    }

    /// There is no parameter.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// assert!(ContextParams::default().is_empty());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        grammar::pairs(&self.text).next().is_none()
    }

    /// How many keys there are.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// assert_eq!(ContextParams::parse("k=1&k=2")?.len(), 1);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn len(&self) -> usize {
        if self.canonical { grammar::pairs(&self.text).count() } else { canonical::sorted_pairs(&self.text).len() }
    }

    /// The value of a key, decoded.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let params = ContextParams::parse("k=1&%6B=b%20c")?;
    /// assert_eq!(params.get("k").as_deref(), Some("b c"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        let same = |written: &str| {
            written == key || written.contains('%') && percent::decoded(written.as_bytes()).eq(key.bytes())
        };
        grammar::pairs(&self.text).filter(|(written, _)| same(written)).last().map(|(_, value)| percent::decode(value))
    }

    /// Keys and values, decoded, sorted by key.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let params = ContextParams::parse("b=2&a=1")?;
    /// let pairs: Vec<_> = params.iter().collect();
    /// assert_eq!(pairs, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        canonical::sorted_pairs(&self.text)
            .into_iter()
            .map(|(key, value)| (percent::decode(key), percent::decode(value)))
    }

    /// The canonical form, borrowed if the text that was parsed is it: sorted by decoded key, escaped only where needed.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// assert_eq!(ContextParams::parse("b=%32&a")?.to_canonical(), "a=&b=2");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn to_canonical(&self) -> Cow<'_, str> {
        if self.canonical {
            return Cow::Borrowed(&self.text);
        }
        let mut out = String::with_capacity(self.text.len() + 2);
        // Writing to a string does not fail.
        let _ = canonical::write_params(&mut out, &self.text);
        Cow::Owned(out)
    }

    /// What a client presents to the server for a resource (TP1, *context parameters*). Where keys collide, the later
    /// argument wins.
    ///
    /// `node`: parameters of the node, for collections at the root of the resource graph only, and only those that the
    /// bootstrap lists; else none. `name`: those of the resource's name. Each of `client_features` becomes
    /// `xds.client_feature.<feature>=true`, each of the well-known `attributes` of the resource type
    /// `xds.resource.<attribute>`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let name = ContextParams::parse("bar=baz")?;
    /// let params = ContextParams::compose(&ContextParams::default(), &name, ["some.feature"], [("vip", "96.54.3.1")]);
    /// assert_eq!(params.to_string(), "bar=baz&xds.client_feature.some.feature=true&xds.resource.vip=96.54.3.1");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn compose<'p>(
        node: &ContextParams<'_>,
        name: &ContextParams<'_>,
        client_features: impl IntoIterator<Item = &'p str>,
        attributes: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> ContextParams<'static> {
        let features = client_features
            .into_iter()
            .map(|feature| (Cow::Owned(format!("xds.client_feature.{feature}")), Cow::Borrowed("true")));
        let attributes = attributes
            .into_iter()
            .map(|(key, value)| (Cow::Owned(format!("xds.resource.{key}")), Cow::Borrowed(value)));
        node.iter().chain(name.iter()).chain(features).chain(attributes).collect()
    }

    /// Refuses keys that nobody may write into a URL; see
    /// [`Locator::check_reserved_params`](crate::Locator::check_reserved_params).
    ///
    /// # Errors
    /// The first such key.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// assert!(ContextParams::parse("env=prod")?.check_reserved().is_ok());
    /// assert!(ContextParams::parse("_env=prod")?.check_reserved().is_err());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn check_reserved(&self) -> Result<(), ReservedParam> {
        let reserved = |key: &str| key.starts_with("xds.") || key.starts_with(|first: char| !first.is_alphanumeric());
        match self.iter().find(|(key, _)| reserved(key)) {
            Some((key, _)) => Err(ReservedParam { key: key.into_owned() }),
            None => Ok(()),
        }
    }
}

impl Default for ContextParams<'_> {
    fn default() -> Self {
        Self { text: Text::Borrowed(""), canonical: true }
    }
}

/// Of equal keys the last one counts.
impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for ContextParams<'static> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let sorted: BTreeMap<String, V> =
            pairs.into_iter().map(|(key, value)| (key.as_ref().to_string(), value)).collect();
        let mut text = String::new();
        for (key, value) in &sorted {
            let separator = if text.is_empty() { "" } else { "&" };
            // Writing to a string does not fail.
            let _ = fmt::Write::write_fmt(
                &mut text,
                format_args!("{separator}{}={}", Encoded(key, Set::PARAM), Encoded(value.as_ref(), Set::PARAM)),
            );
        }
        Self { text: Text::Shared(Arc::from(text)), canonical: true }
    }
}

/// A URL sets a context parameter that TP1 reserves.
///
/// # Examples
/// ```
/// use xdstp_uri::ContextParams;
///
/// let error = ContextParams::parse("xds.a=1")?.check_reserved().unwrap_err();
/// assert_eq!(error.key(), "xds.a");
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedParam {
    key: String,
}

impl ReservedParam {
    /// The key, decoded.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ReservedParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the context parameter {:?} is reserved: expected a key that starts with a letter or digit and not with 'xds.'",
            self.key
        )
    }
}

impl core::error::Error for ReservedParam {}
