//! Names as the wire carries them.

use alloc::{borrow::Cow, string::String, sync::Arc};
use core::{fmt, hash, str::FromStr};

use crate::{
    canonical,
    error::ParseError,
    grammar::{self, Layout},
    percent,
};

const XDSTP: &str = "xdstp:";
const AUTHORITY_START: usize = "xdstp://".len();

/// What the wire carries as a name in a subscription or with a resource: an opaque (old-style) name, or an `xdstp:`
/// name, which may be a glob.
///
/// The value holds the canonical form, so comparing, ordering and hashing it compares components: the order of context
/// parameters and the way of escaping make no difference. Cloning costs a reference count; the value is 24 bytes.
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
    /// and never sent.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if !text.starts_with(XDSTP) {
            return Ok(Self { text: Arc::from(text), authority_end: 0, path_end: 0 });
        }
        let layout = grammar::name(text)?;
        canonical::check_len(text, &layout)?;
        Ok(Self::from_layout(text, &layout))
    }

    /// The name of an `xdstp:` text of this layout, without its directives.
    pub(crate) fn from_layout(text: &str, layout: &Layout) -> Self {
        if layout.canonical && layout.fragment.is_none() {
            return Self::from_canonical(Arc::from(text), layout);
        }
        let mut out = String::with_capacity(text.len() + 2);
        // Writing to a string does not fail, and a canonical form parses.
        let _ = canonical::write_base(&mut out, text, layout);
        let written = grammar::name(&out).unwrap_or(*layout);
        Self::from_canonical(Arc::from(out), &written)
    }

    fn from_canonical(text: Arc<str>, layout: &Layout) -> Self {
        let params = layout.params.range();
        let path_end = if params.is_empty() { text.len() } else { params.start - 1 };
        Self { text, authority_end: layout.authority.range().end as u32, path_end: path_end as u32 }
    }

    /// The canonical form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name has no structure: it is not an `xdstp:` name.
    pub const fn is_opaque(&self) -> bool {
        self.authority_end == 0
    }

    /// The name stands for a glob collection: its id is `*` or ends in `/*`.
    pub fn is_glob(&self) -> bool {
        // In the canonical form `*` is never escaped and no resource type has one.
        !self.is_opaque() && self.path().ends_with("/*")
    }

    /// The authority, percent-encoded as in the canonical form; empty for `xdstp:///…`, `None` for an opaque name.
    pub fn authority(&self) -> Option<&str> {
        if self.is_opaque() { None } else { self.text.get(AUTHORITY_START..self.authority_end as usize) }
    }

    /// The resource type, such as `envoy.config.listener.v3.Listener`; `None` for an opaque name.
    pub fn resource_type(&self) -> Option<&str> {
        self.split_path().map(|(resource_type, _)| resource_type)
    }

    /// The id, decoded; `None` for an opaque name.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.split_path().map(|(_, id)| percent::decode(id))
    }

    /// The glob collection that this name is a member of: its last path segment replaced by `*`, all else equal.
    ///
    /// `None` for an opaque name, for a glob, and for a name without an id.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::ResourceName;
    ///
    /// let name = ResourceName::parse("xdstp://a/T/foo/bar?k=v")?;
    /// assert_eq!(name.glob_parent(), Some(ResourceName::parse("xdstp://a/T/foo/*?k=v")?));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
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
    pub fn glob_parent_key(&self) -> Option<GlobParent<'_>> {
        let parts = self.parts();
        let has_id = self.split_path().is_some_and(|(_, id)| !id.is_empty());
        (has_id && parts.leaf != "*").then_some(GlobParent(NameParts { leaf: "*", ..parts }))
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
    pub fn answers(&self, subscription: &Self) -> bool {
        self == subscription || self.glob_parent_key().is_some_and(|glob| glob.0 == subscription.parts())
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

/// Hashes by [`NameKey`], so that a name can be looked up by one.
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

/// Something that a map of [`ResourceName`]s can be asked for: a name, or the glob parent of one.
///
/// See [`ResourceName::glob_parent_key`]. The trait is sealed.
pub trait NameKey: sealed::Parts {}

impl NameKey for ResourceName {}

impl NameKey for GlobParent<'_> {}

impl<'a> core::borrow::Borrow<dyn NameKey + 'a> for ResourceName {
    fn borrow(&self) -> &(dyn NameKey + 'a) {
        self
    }
}

impl PartialEq for dyn NameKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn NameKey + '_ {}

impl hash::Hash for dyn NameKey + '_ {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// The glob collection that a name is a member of, borrowed from the name. See [`ResourceName::glob_parent_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobParent<'a>(NameParts<'a>);

/// A canonical name cut where its glob parent differs from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameParts<'a> {
    /// Up to the last `/` of the path, with it; all of an opaque name.
    directory: &'a str,
    leaf: &'a str,
    /// With the `?`.
    params: &'a str,
}

mod sealed {
    use super::{GlobParent, NameParts, ResourceName};

    pub trait Parts {
        fn parts(&self) -> NameParts<'_>;
    }

    impl Parts for ResourceName {
        fn parts(&self) -> NameParts<'_> {
            if self.is_opaque() {
                return NameParts { directory: &self.text, leaf: "", params: "" };
            }
            let (path, params) = self.text.split_at_checked(self.path_end as usize).unwrap_or((&self.text, ""));
            let leaf_start = path.rfind('/').map_or(0, |slash| slash + 1);
            let (directory, leaf) = path.split_at_checked(leaf_start).unwrap_or((path, ""));
            NameParts { directory, leaf, params }
        }
    }

    impl Parts for GlobParent<'_> {
        fn parts(&self) -> NameParts<'_> {
            self.0
        }
    }
}

use sealed::Parts as _;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::ParseErrorKind;

    fn name(text: &str) -> ResourceName {
        ResourceName::parse(text).unwrap()
    }

    #[test]
    fn is_small_and_shareable() {
        fn shareable<T: Send + Sync + 'static>() {}
        shareable::<ResourceName>();
        assert_eq!(size_of::<Option<ResourceName>>(), 24);
    }

    #[test]
    fn what_is_not_xdstp_is_opaque() {
        for text in ["", "*", "web", "XDSTP://a/T/x", "xdst", "http://a/T/x", "a#b"] {
            let name = name(text);
            assert!(name.is_opaque() && !name.is_glob());
            assert_eq!((name.as_str(), name.authority(), name.resource_type()), (text, None, None));
            assert_eq!(name.glob_parent(), None);
        }
    }

    #[test]
    fn components_are_those_of_the_canonical_form() {
        let parsed = name("xdstp:/T/%78?b=1&a=2&b=3&");
        assert_eq!(parsed.as_str(), "xdstp:///T/x?a=2&b=3");
        assert_eq!(parsed.authority(), Some(""));
        assert_eq!((parsed.resource_type(), parsed.id().as_deref()), (Some("T"), Some("x")));
        assert_eq!(parsed, name(parsed.as_str()));
        assert_eq!(name("xdstp://a%2Fb/T").authority(), Some("a%2Fb"));
        assert_eq!(format!("{:>15}", name("xdstp://a/T")), "    xdstp://a/T");
    }

    #[test]
    fn a_fragment_is_refused_where_it_starts() {
        let error = ResourceName::parse("xdstp://a/T/x#entry=e").unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ParseErrorKind::FragmentInUrn, 13));
    }

    #[test]
    fn glob_parents() {
        for (member, glob) in [
            ("xdstp://a/T/x", "xdstp://a/T/*"),
            ("xdstp://a/T/x/y?k=/v", "xdstp://a/T/x/*?k=/v"),
            ("xdstp://a/T/x/", "xdstp://a/T/x/*"),
            ("xdstp:///T//", "xdstp:///T//*"),
        ] {
            assert!(name(glob).is_glob());
            assert_eq!(name(member).glob_parent(), Some(name(glob)));
            assert!(name(member).answers(&name(glob)));
            assert!(!name(glob).answers(&name(member)));
        }
        for text in ["xdstp://a/T", "xdstp://a/T/*", "xdstp://a/T/x/%2A", "web/*"] {
            assert_eq!(name(text).glob_parent(), None);
            assert!(name(text).answers(&name(text)));
        }
    }
}
