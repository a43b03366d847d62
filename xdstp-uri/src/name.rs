//! Names as the wire carries them.

use alloc::{borrow::Cow, string::String, sync::Arc};
use core::{fmt, hash, str::FromStr};

use crate::{
    Locator, MAX_LEN, canonical,
    error::ParseError,
    grammar::{self, Layout},
    name_key::{GlobParent, NameParts},
    percent,
};

pub(crate) const XDSTP: &str = "xdstp:";
const AUTHORITY_START: usize = "xdstp://".len();

/// What the wire carries as a name in a subscription or with a resource: an opaque (old-style) name, or an `xdstp:`
/// name, which may be a glob.
///
/// The value holds the canonical form, so comparing and hashing it compares components: the order of context parameters
/// and the way of escaping make no difference. Names are ordered as the strings that their canonical forms are. Cloning costs a reference count; the value is 24 bytes.
///
/// A server answers in the spelling of the client: keep the text as it was received beside this value for that.
///
/// # Examples
/// ```
/// use xdstp_uri::ResourceName;
///
/// let name = ResourceName::parse("xdstp://authority/a.v3.Type/id?k=1&j=%32")?;
/// assert_eq!(name, ResourceName::parse("xdstp://authority/a.v3.Type/id?j=2&k=1")?);
/// assert_eq!(name.as_str(), "xdstp://authority/a.v3.Type/id?j=2&k=1");
/// assert_eq!(name.authority(), Some("authority"));
///
/// let opaque = ResourceName::parse("outbound|80||web")?;
/// assert!(opaque.is_opaque());
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName {
    /// Canonical. Only an `xdstp:` name starts with `xdstp:`, so no opaque name is equal to one.
    text: Arc<str>,
    /// Where the authority ends; 0 for an opaque name.
    authority_end: u32,
    /// Where the parameters, with their `?`, start.
    path_end: u32,
}

impl ResourceName {
    /// Parses a name. What does not start with `xdstp:` (in lower case) is opaque, the empty text and `*` too.
    ///
    /// # Errors
    /// A text that starts with `xdstp:` but is no such name, and one with directives (`#…`): these are for the client
    /// and never sent. More than [`MAX_LEN`] bytes, of an opaque name too.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert!(ResourceName::parse("*")?.is_opaque());
    /// assert!(ResourceName::parse("xdstp://a").is_err());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if !text.starts_with(XDSTP) {
            if text.len() > MAX_LEN {
                return Err(ParseError::too_long(text));
            }
            return Ok(Self { text: Arc::from(text), authority_end: 0, path_end: 0 });
        }
        let layout = grammar::name(text)?;
        canonical::check_len(text, &layout)?;
        Ok(Self::from_layout(text, &layout))
    }

    /// The name of a text with the scheme `xdstp:` and this layout, without its directives.
    pub(crate) fn from_layout(text: &str, layout: &Layout) -> Self {
        if layout.canonical && layout.fragment.is_none() {
            return Self::from_canonical(Arc::from(text), layout);
        }
        let mut out = String::with_capacity(text.len() + 2);
        // Writing to a string does not fail.
        let _ = canonical::write_base(&mut out, text, layout);
        // In the canonical form an authority shows no '/', and a path no '?'.
        let path_end = out.find('?').unwrap_or(out.len());
        let authority_end = out.bytes().skip(AUTHORITY_START).position(|byte| byte == b'/').unwrap_or_default();
        let authority_end = (AUTHORITY_START + authority_end) as u32;
        Self { text: Arc::from(out), authority_end, path_end: path_end as u32 }
    }

    /// The name of a text that is its own canonical form, has this layout and no directives.
    pub(crate) fn from_canonical(text: Arc<str>, layout: &Layout) -> Self {
        let params = layout.params.range();
        let path_end = if params.is_empty() { text.len() } else { params.start - 1 };
        Self { text, authority_end: layout.authority.range().end as u32, path_end: path_end as u32 }
    }

    /// The canonical form.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert_eq!(ResourceName::parse("xdstp:/T/x")?.as_str(), "xdstp:///T/x");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a clone of this value lives beside it: who keeps one of each name knows by it which ones are still used.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// let name = ResourceName::parse("web")?;
    /// assert!(!name.is_shared());
    /// let clone = name.clone();
    /// assert!(name.is_shared() && clone.is_shared());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.text) > 1
    }

    /// The name has no structure: it is not an `xdstp:` name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert!(ResourceName::parse("web")?.is_opaque());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub const fn is_opaque(&self) -> bool {
        self.authority_end == 0
    }

    /// The name stands for a glob collection: its id is `*` or ends in `/*`.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert!(ResourceName::parse("xdstp://a/T/*?k=v")?.is_glob());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_glob(&self) -> bool {
        // In the canonical form `*` is never escaped and no resource type has one.
        !self.is_opaque() && self.path().ends_with("/*")
    }

    /// The authority, percent-encoded as in the canonical form; empty for `xdstp:///…`, `None` for an opaque name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert_eq!(ResourceName::parse("xdstp:///T/x")?.authority(), Some(""));
    /// assert_eq!(ResourceName::parse("web")?.authority(), None);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        if self.is_opaque() { None } else { self.text.get(AUTHORITY_START..self.authority_end as usize) }
    }

    /// The resource type, such as `envoy.config.listener.v3.Listener`; `None` for an opaque name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert_eq!(ResourceName::parse("xdstp://a/a.v3.Type/x")?.resource_type(), Some("a.v3.Type"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn resource_type(&self) -> Option<&str> {
        self.split_path().map(|(resource_type, _)| resource_type)
    }

    /// The id, decoded; `None` for an opaque name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// assert_eq!(ResourceName::parse("xdstp://a/T/x%20y")?.id().as_deref(), Some("x y"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.split_path().map(|(_, id)| percent::decode(id))
    }

    /// The components of an `xdstp:` name, to be read decoded; `None` for an opaque name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// let name = ResourceName::parse("xdstp://a/T/foo/*?k=a%26b")?;
    /// let locator = name.locator().expect("the name is not opaque");
    /// assert_eq!(locator.context_params().get("k").as_deref(), Some("a&b"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn locator(&self) -> Option<Locator<'_>> {
        if self.is_opaque() { None } else { Locator::parse(&self.text).ok() }
    }

    /// The glob collection that this name is a member of: its last path segment replaced by `*`, all else equal.
    ///
    /// `None` for an opaque name, for a glob, for a name without an id, and where the glob would be too long.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// let name = ResourceName::parse("xdstp://a/T/foo/bar?k=v")?;
    /// assert_eq!(name.glob_parent(), Some(ResourceName::parse("xdstp://a/T/foo/*?k=v")?));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn glob_parent(&self) -> Option<Self> {
        let NameParts { directory, params, .. } = self.glob_parent_key()?.0;
        let mut text = String::with_capacity(directory.len() + 1 + params.len());
        text.push_str(directory);
        text.push('*');
        text.push_str(params);
        let path_end = directory.len() as u32 + 1;
        Some(Self { text: Arc::from(text), authority_end: self.authority_end, path_end })
    }

    /// The same, to look it up in a map without building it.
    ///
    /// # Examples
    /// ```
    /// use std::collections::HashMap;
    /// use xdstp_uri::{NameKey, ResourceName};
    ///
    /// let globs = HashMap::from([(ResourceName::parse("xdstp://a/T/foo/*")?, 7)]);
    /// let name = ResourceName::parse("xdstp://a/T/foo/bar")?;
    /// let key = name.glob_parent_key().expect("the name has an id");
    /// assert_eq!(globs.get(&key as &dyn NameKey), Some(&7));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn glob_parent_key(&self) -> Option<GlobParent<'_>> {
        let parts = self.parts();
        let has_id = match parts.leaf {
            // It may be the end of an id that ends with a `/`, or what follows the type.
            "" => self.split_path().is_some_and(|(_, id)| !id.is_empty()),
            _ => parts.directory.len() > self.authority_end as usize + 1,
        };
        // The leaf of a name that is as long as one may be can be empty.
        let fits = !parts.leaf.is_empty() || self.text.len() < MAX_LEN;
        (has_id && fits && parts.leaf != "*").then_some(GlobParent(NameParts { leaf: "*", ..parts }))
    }

    /// A resource of this name answers a subscription to `subscription`: it is the same name, or a member of that glob
    /// (one path segment deep; authority, resource type and context parameters equal).
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// let name = ResourceName::parse("xdstp://a/T/foo/bar?k=v")?;
    /// assert!(name.answers(&ResourceName::parse("xdstp://a/T/foo/*?k=v")?));
    /// assert!(!name.answers(&ResourceName::parse("xdstp://a/T/foo/*")?));
    /// assert!(!name.answers(&ResourceName::parse("xdstp://a/T/*?k=v")?));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    #[must_use]
    pub fn answers(&self, subscription: &Self) -> bool {
        self == subscription || self.glob_parent_key().is_some_and(|glob| glob.0 == subscription.parts())
    }

    /// This name, cut where its glob parent differs from it.
    pub(crate) fn parts(&self) -> NameParts<'_> {
        if self.is_opaque() {
            return NameParts { directory: &self.text, leaf: "", params: "" };
        }
        let (path, params) = self.text.split_at_checked(self.path_end as usize).unwrap_or((&self.text, ""));
        NameParts::of(path, params)
    }

    fn path(&self) -> &str {
        self.text.get(..self.path_end as usize).unwrap_or_default()
    }

    fn split_path(&self) -> Option<(&str, &str)> {
        if self.is_opaque() {
            return None;
        }
        let path = self.text.get(self.authority_end as usize + 1..self.path_end as usize)?;
        Some(path.split_once('/').unwrap_or((path, "")))
    }
}

/// Hashes by [`NameKey`](crate::NameKey), so that a name can be looked up by one.
impl hash::Hash for ResourceName {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl FromStr for ResourceName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for ResourceName {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
