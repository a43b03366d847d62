//! Looking up names, by what is no name yet too, and the globs they are members of, in a map of names.

use core::{borrow::Borrow, hash};

use crate::{ResourceName, name::XDSTP};

/// Something that a map of [`ResourceName`]s can be asked for: a name, the glob parent of one, or its canonical form.
///
/// See [`ResourceName::glob_parent_key`] and [`CanonicalText`]. The trait is sealed.
pub trait NameKey: sealed::Parts {}

impl NameKey for ResourceName {}

impl NameKey for GlobParent<'_> {}

impl NameKey for CanonicalText<'_> {}

impl<'a> Borrow<dyn NameKey + 'a> for ResourceName {
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
pub struct GlobParent<'a>(pub(crate) NameParts<'a>);

/// A text as if it were the canonical form of a name: to look up that name without parsing the text.
///
/// No name has a text as its canonical form that would not be parsed as that name. So what is found is the name that the
/// text is; where nothing is found, the text may be another spelling of a name that is there, or no name at all.
///
/// # Examples
/// ```
/// use std::collections::HashMap;
/// use xdstp_uri::{CanonicalText, NameKey, ResourceName};
///
/// let names = HashMap::from([(ResourceName::parse("xdstp://a/T/x?j=1&k=2")?, 7)]);
/// let find = |text| names.get(&CanonicalText::new(text) as &dyn NameKey);
/// assert_eq!(find("xdstp://a/T/x?j=1&k=2"), Some(&7));
/// assert_eq!(find("xdstp://a/T/x?k=2&j=1"), None);
/// # Ok::<(), xdstp_uri::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanonicalText<'a>(&'a str);

impl<'a> CanonicalText<'a> {
    /// The key of a text, whatever it is.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::CanonicalText;
    ///
    /// assert_eq!(CanonicalText::new("web").as_str(), "web");
    /// ```
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::CanonicalText;
    ///
    /// assert_eq!(CanonicalText::new("xdstp://a/T/x").as_str(), "xdstp://a/T/x");
    /// ```
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }

    /// The authority of the name, if there is one that has this canonical form; `None` of an opaque name.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::CanonicalText;
    ///
    /// assert_eq!(CanonicalText::new("xdstp://a/T/x").authority(), Some("a"));
    /// assert_eq!(CanonicalText::new("web").authority(), None);
    /// ```
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        let rest = self.0.strip_prefix(XDSTP)?.strip_prefix("//")?;
        // Byte by byte: it is short.
        rest.get(..rest.bytes().position(|byte| byte == b'/')?)
    }

    /// Whether [that](Self::authority) is this one, which has no `/`, as none has in its canonical form.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::CanonicalText;
    ///
    /// assert!(CanonicalText::new("xdstp://a/T/x").is_of("a"));
    /// assert!(!CanonicalText::new("xdstp://a.b/T/x").is_of("a"));
    /// assert!(!CanonicalText::new("web").is_of(""));
    /// ```
    #[must_use]
    pub fn is_of(&self, authority: &str) -> bool {
        let rest = self.0.strip_prefix(XDSTP).and_then(|rest| rest.strip_prefix("//"));
        let behind = rest.and_then(|rest| rest.strip_prefix(authority));
        behind.is_some_and(|behind| behind.starts_with('/'))
    }

    fn parts(&self) -> NameParts<'a> {
        let text = self.0;
        if !text.starts_with(XDSTP) {
            return NameParts { directory: text, leaf: "", params: "" };
        }
        // In the canonical form an authority and a path show no '?'.
        // Most have no parameters, and that is found out faster than where they are.
        let params = if text.as_bytes().contains(&b'?') { text.find('?') } else { None };
        let (path, params) = params.and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""));
        NameParts::of(path, params)
    }
}

impl hash::Hash for CanonicalText<'_> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// A canonical name cut where its glob parent differs from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts<'a> {
    /// Up to the last `/` of the path, with it; all of an opaque name.
    pub(crate) directory: &'a str,
    pub(crate) leaf: &'a str,
    /// With the `?`.
    pub(crate) params: &'a str,
}

impl<'a> NameParts<'a> {
    /// Of an `xdstp:` name.
    pub(crate) fn of(path: &'a str, params: &'a str) -> Self {
        // Byte by byte: a leaf is short, and names are hashed all the time.
        let leaf_start = path.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (directory, leaf) = path.split_at_checked(leaf_start).unwrap_or((path, ""));
        Self { directory, leaf, params }
    }
}

/// One end for all of it: where the parts meet, the text itself says.
impl hash::Hash for NameParts<'_> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        state.write(self.directory.as_bytes());
        // Most have no parameters, and an opaque name has no leaf.
        for part in [self.leaf, self.params].into_iter().filter(|part| !part.is_empty()) {
            state.write(part.as_bytes());
        }
        state.write_u8(0xff);
    }
}

mod sealed {
    use super::{CanonicalText, GlobParent, NameParts, ResourceName};

    pub trait Parts {
        fn parts(&self) -> NameParts<'_>;
    }

    impl Parts for ResourceName {
        fn parts(&self) -> NameParts<'_> {
            self.parts()
        }
    }

    impl Parts for GlobParent<'_> {
        fn parts(&self) -> NameParts<'_> {
            self.0
        }
    }

    impl Parts for CanonicalText<'_> {
        fn parts(&self) -> NameParts<'_> {
            self.parts()
        }
    }
}
