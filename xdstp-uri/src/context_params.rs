//! Context parameters: the query of a name.

use alloc::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    format,
    string::{String, ToString},
    sync::Arc,
    vec::{self, Vec},
};
use core::{fmt, iter::FusedIterator};

use crate::{
    MAX_LEN, ParseError, ParseErrorKind, canonical, grammar,
    percent::{self, Encoded, Set},
    text::{Parsed, Text, by_canonical_form},
};

/// The context parameters of a name: keys with values, in no order.
///
/// Of a key that is written twice, the last value counts. Read and compared decoded; ordered as canonical texts.
///
/// # Examples
/// ```
/// use xdstp_uri::ContextParams;
///
/// let params = ContextParams::parse("zone=b%20c&env=prod&zone=d%26e")?;
/// assert_eq!(params.get("zone").as_deref(), Some("d&e"));
/// assert_eq!(params, ContextParams::new([("env", "prod"), ("zone", "d&e")])?);
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
    /// Control characters, escapes that are not UTF-8, a `#`, more than [`MAX_LEN`](crate::MAX_LEN) bytes, here or in the
    /// canonical form.
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
        if !canonical {
            canonical::check_written_len(text, |counter| canonical::write_params(counter, text))?;
        }
        Ok(Self { text: Text::Borrowed(text), canonical })
    }

    /// Makes parameters of decoded keys and values; of equal keys the last one counts.
    ///
    /// # Errors
    /// More than [`MAX_LEN`](crate::MAX_LEN) bytes in the canonical form.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let params = ContextParams::new([("zone", "b&c"), ("env", "test"), ("env", "prod")])?;
    /// assert_eq!(params.to_string(), "env=prod&zone=b%26c");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn new<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Result<ContextParams<'static>, ParseError>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let too_long = ParseError::new(ParseErrorKind::TooLong, MAX_LEN);
        let mut sorted: BTreeMap<String, V> = BTreeMap::new();
        // Decoded, and so no longer than the text will be: an endless iterator ends here.
        let mut len = 0;
        for (key, value) in pairs {
            len += value.as_ref().len();
            match sorted.entry(key.as_ref().to_string()) {
                Entry::Occupied(mut entry) => len -= entry.insert(value).as_ref().len(),
                Entry::Vacant(entry) => {
                    len += entry.key().len() + 1;
                    entry.insert(value);
                }
            }
            if len > MAX_LEN {
                return Err(too_long);
            }
        }
        let mut text = String::new();
        for (key, value) in &sorted {
            let separator = if text.is_empty() { "" } else { "&" };
            // Writing to a string does not fail.
            let _ = fmt::Write::write_fmt(
                &mut text,
                format_args!("{separator}{}={}", Encoded(key, Set::PARAM), Encoded(value.as_ref(), Set::PARAM)),
            );
        }
        if text.len() > MAX_LEN {
            return Err(too_long);
        }
        Ok(ContextParams { text: Text::Shared(Arc::from(text)), canonical: true })
    }

    pub(crate) fn of(parsed: &Parsed<'a>) -> Self {
        let span = parsed.layout.params;
        let text = match &parsed.text {
            Text::Borrowed(text) => Text::Borrowed(span.of(text)),
            Text::Shared(text) => Text::Shared(Arc::from(span.of(text))),
        };
        Self { text, canonical: parsed.layout.canonical }
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
    #[must_use]
    pub fn into_owned(self) -> ContextParams<'static> {
        let text = if self.canonical { self.text.shared() } else { Arc::from(self.to_canonical()) };
        ContextParams { text: Text::Shared(text), canonical: true }
    }

    /// The same parameters, borrowed from this value rather than from what was parsed: of owned ones, keys and values can be
    /// read without copying them.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let owned = ContextParams::new([("k", "v")])?;
    /// assert!(matches!(owned.borrowed().get("k"), Some(std::borrow::Cow::Borrowed("v"))));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn borrowed(&self) -> ContextParams<'_> {
        ContextParams { text: Text::Borrowed(&self.text), canonical: self.canonical }
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
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Cow<'a, str>> {
        match &self.text {
            Text::Borrowed(text) => value_of(text, key).map(percent::decode),
            Text::Shared(text) => value_of(text, key).map(|value| Cow::Owned(percent::decode(value).into_owned())),
        }
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
    #[inline]
    #[must_use]
    pub fn iter(&self) -> ContextParamsIter<'a> {
        ContextParamsIter(match &self.text {
            Text::Borrowed(text) if self.canonical => Pairs::Canonical(text),
            Text::Borrowed(text) => Pairs::Sorted(canonical::sorted_pairs(text).into_iter()),
            Text::Shared(_) => {
                let copied = self.borrowed().iter().map(|(key, value)| (key.into_owned(), value.into_owned()));
                Pairs::Copied(copied.collect::<Vec<_>>().into_iter())
            }
        })
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
    #[must_use]
    pub fn to_canonical(&self) -> Cow<'a, str> {
        self.text.read(|text| {
            if self.canonical {
                return Cow::Borrowed(text);
            }
            let mut out = String::with_capacity(text.len() + 2);
            // Writing to a string does not fail.
            let _ = canonical::write_params(&mut out, text);
            Cow::Owned(out)
        })
    }

    /// What a client presents to the server for a resource (TP1, *context parameters*). Where keys collide, the later
    /// argument wins.
    ///
    /// `node`: parameters of the node, for collections at the root of the resource graph only, and only those that the
    /// bootstrap lists; else none. `name`: those of the resource's name. Each of `client_features` becomes
    /// `xds.client_feature.<feature>=true`, each of the well-known `attributes` of the resource type
    /// `xds.resource.<attribute>`.
    ///
    /// # Errors
    /// More than [`MAX_LEN`](crate::MAX_LEN) bytes in the canonical form.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ContextParams;
    ///
    /// let name = ContextParams::parse("bar=baz")?;
    /// let params = ContextParams::compose(&ContextParams::default(), &name, ["some.feature"], [("vip", "96.54.3.1")])?;
    /// assert_eq!(params.to_string(), "bar=baz&xds.client_feature.some.feature=true&xds.resource.vip=96.54.3.1");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn compose<'p>(
        node: &ContextParams<'_>,
        name: &ContextParams<'_>,
        client_features: impl IntoIterator<Item = &'p str>,
        attributes: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<ContextParams<'static>, ParseError> {
        let features = client_features
            .into_iter()
            .map(|feature| (Cow::Owned(format!("xds.client_feature.{feature}")), Cow::Borrowed("true")));
        let attributes = attributes
            .into_iter()
            .map(|(key, value)| (Cow::Owned(format!("xds.resource.{key}")), Cow::Borrowed(value)));
        ContextParams::new(node.iter().chain(name.iter()).chain(features).chain(attributes))
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

/// The value of a key, still encoded.
fn value_of<'t>(params: &'t str, key: &str) -> Option<&'t str> {
    let same = |written: &str| {
        if written.contains('%') { percent::decoded(written.as_bytes()).eq(key.bytes()) } else { written == key }
    };
    grammar::pairs(params).filter(|(written, _)| same(written)).last().map(|(_, value)| value)
}

impl Default for ContextParams<'_> {
    fn default() -> Self {
        Self { text: Text::Borrowed(""), canonical: true }
    }
}

impl<'a> IntoIterator for &ContextParams<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);
    type IntoIter = ContextParamsIter<'a>;

    fn into_iter(self) -> ContextParamsIter<'a> {
        self.iter()
    }
}

/// Keys and values, decoded, sorted by key: see [`ContextParams::iter`].
#[derive(Clone, Debug)]
pub struct ContextParamsIter<'a>(Pairs<'a>);

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the few parameters of a name are kept in place, not allocated for")]
enum Pairs<'a> {
    /// What is left of a text that is in order.
    Canonical(&'a str),
    /// Still encoded.
    Sorted(<canonical::Pairs<'a> as IntoIterator>::IntoIter),
    /// Of parameters that own their text.
    Copied(vec::IntoIter<(String, String)>),
}

impl<'a> Iterator for ContextParamsIter<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = match &mut self.0 {
            Pairs::Canonical(rest) => grammar::next_pair(rest)?,
            Pairs::Sorted(pairs) => pairs.next()?,
            Pairs::Copied(pairs) => return pairs.next().map(|(key, value)| (key.into(), value.into())),
        };
        Some((percent::decode(key), percent::decode(value)))
    }
}

impl FusedIterator for ContextParamsIter<'_> {}

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
    #[must_use]
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
